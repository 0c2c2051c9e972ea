"""Kafka's own classes read what our codec writes and write what it reads: every schema, every version, both
directions.
"""

from __future__ import annotations

import base64
import json
import os
import random
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import codec, schema
from ottla.protocol.schema import FieldSchema, Schema, StructSchema
from ottla.storage.checkpoints import uuid_to_text

from ..support.generate import Generator, all_schemas
from .jars import jar_paths
from .kafka import program

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
EACH = int(os.environ.get("OTTLA_CODEC_MESSAGES", "200"))
CHUNK = 80  # schemas and versions a run of the JVM


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


def ask_java(command: list[str], lines: list[str]) -> list[str]:
    with tempfile.TemporaryFile("w+", encoding="utf-8") as questions:
        questions.write("\n".join(lines) + "\n")
        questions.seek(0)
        answer = subprocess.run(command, stdin=questions, capture_output=True, text=True, check=True, timeout=600)
    return answer.stdout.splitlines()


def test_every_message_is_kafkas(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = program("broker", "CodecOracle", tmp_path)
    names = class_names()
    pairs = all_schemas()
    covered = {"bytes": 0, "json": 0}
    messages = 0
    for start in range(0, len(pairs), CHUNK):
        lines, wanted = [], []
        for name, version in pairs[start : start + CHUNK]:
            loaded = schema.load(name)
            kafka = names[name if loaded.kind not in ("request", "response", "header") else f"{name}Data"]
            chance = random.Random(f"oracle {name} {version}")
            with_tags = Generator(loaded, version, chance)
            plain = Generator(loaded, version, chance, unknown_tags=False)
            for _ in range(EACH):
                message = with_tags.message()
                data = bytes(codec.build(name, version, message))
                lines.append(f"bytes {kafka} {version} {data.hex()}")
                wanted.append((name, version, message, data))
                message = plain.message()
                data = bytes(codec.build(name, version, message))
                lines.append(f"json {kafka} {version} {json.dumps(as_json(loaded, loaded.root, version, message))}")
                wanted.append((name, version, message, data))
            covered["bytes"] += 1
            covered["json"] += 1
        for (name, version, message, data), answer in zip(wanted, ask_java(command, lines), strict=True):
            assert answer == data.hex(), (name, version, message)
            assert codec.parse(name, version, bytes.fromhex(answer)) == message
            messages += 1
    assert covered == {"bytes": len(pairs), "json": len(pairs)}
    with capsys.disabled():
        print(
            f"\n{len(pairs)} schemas and versions, both directions, {messages} messages: all of them Kafka's, byte "
            "for byte"
        )
