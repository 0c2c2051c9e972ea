"""Kafka's own classes read what our codec writes and write what it reads: every schema, every version, both
directions.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any, NamedTuple

import pytest
from ottla.protocol import codec, schema
from ottla.protocol.schema import FieldSchema, Schema, StructSchema
from ottla.storage.checkpoints import uuid_to_text

from ..support.generate import Generator, all_schemas
from ..support.seeds import turns
from .jars import jar_paths
from .kafka import program

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
EACH = int(os.environ.get("OTTLA_CODEC_MESSAGES", "25"))  # of a part of the random messages
CHUNK = 80  # schemas and versions whose messages are in memory at a time
SECONDS_MAX = 600


def class_names() -> dict[str, str]:
    """Kafka's class by schema name."""
    found: dict[str, str] = {}
    for path in jar_paths("broker"):
        if path.name.startswith("kafka"):
            with zipfile.ZipFile(path) as jar:
                for name in jar.namelist():
                    if (
                        name.endswith(".class")
                        and "$" not in name
                        and f"{name[:-6]}JsonConverter.class" in jar.namelist()
                    ):
                        found[name[:-6].rpartition("/")[2]] = name[:-6].replace("/", ".")
    return found


def as_json(loaded: Schema, struct: StructSchema, version: int, message: Any) -> dict[str, Any]:
    """A message as Kafka's JSON converters want it."""
    found: dict[str, Any] = {}
    for f in struct.fields:
        if version not in f.versions:
            continue
        value = getattr(message, f.name)
        name = f.kafka_name[0].lower() + f.kafka_name[1:]
        found[name] = (
            [_json(loaded, f, version, v) for v in value]
            if f.is_array and value is not None
            else _json(loaded, f, version, value)
        )
    return found


def _json(loaded: Schema, f: FieldSchema, version: int, value: Any) -> Any:
    if value is None:
        return None
    if f.struct is not None:
        return as_json(loaded, f.struct, version, value)
    if f.element_type == "uuid":
        return uuid_to_text(value)
    return base64.b64encode(value).decode() if f.element_type in ("bytes", "records") else value


class Java:
    """A running `CodecOracle`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def answers(self, lines: list[str]) -> Iterator[str]:
        """Asks, and yields an answer for each line."""
        assert self.process.stdout is not None
        timer = Timer(SECONDS_MAX, self.process.kill)
        timer.start()
        try:
            with ThreadPoolExecutor(1) as pool:  # Java answers while it is asked
                asked = pool.submit(self._ask, lines)
                for _ in lines:
                    yield self.process.stdout.readline().rstrip("\n")
                asked.result()
        finally:
            timer.cancel()

    def _ask(self, lines: list[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n".join(lines) + "\n\n")
        self.process.stdin.flush()


@contextmanager
def running(command: list[str]) -> Iterator[Java]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Java(process)
        finally:
            process.kill()


class Asked(NamedTuple):
    """A question to Java: a message that it shall read and write."""

    name: str
    version: int
    message: Any
    data: bytes
    line: str


def asked(names: dict[str, str], name: str, version: int, part: int) -> Iterator[Asked]:
    """A part of the random messages of a schema's version, in turn as bytes and as JSON."""
    loaded = schema.load(name)
    kafka = names[name if loaded.kind not in ("request", "response", "header") else f"{name}Data"]
    chance = random.Random(f"oracle {name} {version} {part}")
    with_tags = Generator(loaded, version, chance)
    plain = Generator(loaded, version, chance, unknown_tags=False)
    for _ in range(EACH):
        message = with_tags.message()
        data = bytes(codec.build(name, version, message))
        yield Asked(name, version, message, data, f"bytes {kafka} {version} {data.hex()}")
        message = plain.message()
        text = json.dumps(as_json(loaded, loaded.root, version, message))
        data = bytes(codec.build(name, version, message))
        yield Asked(name, version, message, data, f"json {kafka} {version} {text}")


def test_every_message_is_kafkas(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    names = class_names()
    pairs = all_schemas()
    messages = 0
    with running(program("broker", "CodecOracle", tmp_path)) as java:
        for start in range(0, len(pairs), CHUNK):
            some = [(*pair, part) for pair in pairs[start : start + CHUNK] for part in turns()]
            wanted = [one for each in some for one in asked(names, *each)]
            for one, answer in zip(wanted, java.answers([one.line for one in wanted]), strict=True):
                assert answer == one.data.hex(), one[:3]
                assert codec.parse(one.name, one.version, bytes.fromhex(answer)) == one.message
                messages += 1
    assert messages == 2 * EACH * len(pairs) * len(turns())
    with capsys.disabled():
        print(
            f"\n{len(pairs)} schemas and versions, both directions, {messages} messages: all of them Kafka's, byte "
            "for byte"
        )
