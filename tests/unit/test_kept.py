"""Outlines of schemas and functions of the codec that an earlier process has kept."""

from __future__ import annotations

import random
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import codec, functions, kept, messages, outlines, schema, trees
from ottla.protocol.buffers import Parts

from ..support.generate import Generator


@pytest.fixture(autouse=True)
def _nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)


def not_again(*_: object) -> Any:
    raise AssertionError("made again")


NAMES = ("FetchRequest", "MetadataResponse", "OffsetCommitRequest", "ShareGroupHeartbeatResponse", "PartitionRecord")


@pytest.mark.parametrize("name", NAMES)
def test_kept_functions_read_and_write_the_same_bytes(name: str) -> None:
    loaded, chance = schema.load(name), random.Random(name)
    for version in range(loaded.valid.low, loaded.valid.high + 1):
        tree = trees.tree(name, version)
        functions.function(name, f"read{version}", tree.reader)
        functions.function(name, f"write{version}", tree.writer)
        read = functions.function(name, f"read{version}", not_again)
        write = functions.function(name, f"write{version}", not_again)
        for _ in range(20):
            message = Generator(loaded, version, chance).message()
            data = codec.build_checked(name, version, message)
            out = bytearray()
            parts: Parts = []
            write(message, out, parts)
            assert (bytes(out), parts) == (data, [])
            assert read(data, 0) == (message, len(data))


def test_a_kept_outline_is_the_one_that_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, "RequestHeader", "ProduceRequest"):
        made = outlines.outline.__wrapped__(name)
        with monkeypatch.context() as patch:
            patch.setattr(outlines, "load", not_again)
            assert outlines.outline.__wrapped__(name) == made
        assert (made.valid, made.flexible) == (schema.load(name).valid, schema.load(name).flexible)


def test_what_a_schema_or_its_maker_made_before_it_changed_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    kept.save("FetchRequest", "read4", (1, "two", None))
    assert kept.load("FetchRequest", "read4") == (1, "two", None)
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_makers", lambda: ((0, 0),))
        assert kept.load("FetchRequest", "read4") is None
    state = kept._state
    monkeypatch.setattr(kept, "_state", lambda path: (1, 1) if path.endswith("/FetchRequest.json") else state(path))
    assert kept.load("FetchRequest", "read4") is None


def test_a_file_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    kept.save("FetchRequest", "read4", (1, "two", None))
    (path,) = tmp_path.rglob("FetchRequest.*.pyc")
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert kept.load("FetchRequest", "read4") is None
    path.write_bytes(whole)
    assert kept.load("FetchRequest", "read4") is not None


def test_nothing_is_written_where_python_writes_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept.save("FetchRequest", "read4", 1)
    assert list(tmp_path.rglob("FetchRequest.*.pyc")) == []


def test_every_maker_is_a_module() -> None:
    assert kept._makers()
    assert kept.load("NoSuchMessage", "outline") is None
    with pytest.raises(AttributeError):
        getattr(messages, "NoSuchMessage")  # noqa: B009  # the stub has no such message


def test_a_traceback_shows_the_lines_of_a_kept_function() -> None:
    def make() -> Any:
        return trees.tree("MetadataRequest", 12).reader()

    functions.function("MetadataRequest", "read12", make)
    read = functions.function("MetadataRequest", "read12", make)
    with pytest.raises(IndexError) as failed:
        read(b"", 0)
    assert "buf[pos]" in "".join(traceback.format_exception(failed.value))
