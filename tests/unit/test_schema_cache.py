"""The cache of what the codec derives from the schemas: what is in it, and what of it counts."""

from __future__ import annotations

import os
import random
import shutil
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import cached_functions, codec, messages, outlines, schema, schema_cache, trees
from ottla.protocol.buffers import Parts
from ottla.protocol.schema_files import DIRECTORY

from ..support.generate import Generator


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    forget_hashes()
    yield
    forget_hashes()


def forget_hashes() -> None:
    """As a new process."""
    schema_cache._hash_of_sources.cache_clear()
    schema_cache._makers.cache_clear()


def not_again(*_: object) -> Any:
    raise AssertionError("made again")


def cached_file(folder: Path) -> Path:
    (path,) = folder.rglob("FetchRequest.*.pyc")
    return path


NAMES = ("FetchRequest", "MetadataResponse", "OffsetCommitRequest", "ShareGroupHeartbeatResponse", "PartitionRecord")


@pytest.mark.parametrize("name", NAMES)
def test_cached_functions_read_and_write_the_same_bytes(name: str) -> None:
    loaded, chance = schema.load(name), random.Random(name)
    for version in range(loaded.valid.low, loaded.valid.high + 1):
        tree = trees.tree(name, version)
        cached_functions.cached_function(name, f"read{version}", tree.reader)
        cached_functions.cached_function(name, f"write{version}", tree.writer)
        read = cached_functions.cached_function(name, f"read{version}", not_again)
        write = cached_functions.cached_function(name, f"write{version}", not_again)
        for _ in range(20):
            message = Generator(loaded, version, chance).message()
            data = codec.build_checked(name, version, message)
            out = bytearray()
            parts: Parts = []
            write(message, out, parts)
            assert (bytes(out), parts) == (data, [])
            assert read(data, 0) == (message, len(data))


def test_a_cached_outline_is_the_one_that_was_made(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*NAMES, "RequestHeader", "ProduceRequest"):
        made = outlines.outline.__wrapped__(name)
        with monkeypatch.context() as patch:
            patch.setattr(outlines, "load", not_again)
            assert outlines.outline.__wrapped__(name) == made
        assert (made.valid, made.flexible) == (schema.load(name).valid, schema.load(name).flexible)


def change(path: Path, old: str, new: str) -> None:
    """Changes a file that keeps its size and times."""
    times, text = path.stat(), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size


def counts_until_changed(path: Path, old: str, new: str) -> None:
    """Each load is that of another process."""
    schema_cache.save("FetchRequest", "read4", 1)
    forget_hashes()
    assert schema_cache.load("FetchRequest", "read4") == 1
    change(path, old, new)
    forget_hashes()
    assert schema_cache.load("FetchRequest", "read4") is None


@pytest.mark.parametrize("folder", ["messages", "old"])
def test_a_value_of_a_schema_that_has_changed_since_does_not_count(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`old` has the versions that Kafka 4 removed, whose functions are cached, too."""
    schemas = tmp_path / "schemas"
    shutil.copytree(DIRECTORY, schemas)
    monkeypatch.setattr("ottla.protocol.schema_cache.DIRECTORY", str(schemas))
    counts_until_changed(schemas / folder / "FetchRequest.json", "int32", "int64")


@pytest.mark.long
def test_a_value_of_a_maker_that_has_changed_since_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makers = tmp_path / "makers"
    shutil.copytree(schema_cache._FOLDER, makers)
    monkeypatch.setattr(schema_cache, "_FOLDER", str(makers))
    counts_until_changed(makers / "wire.py", "return", "retval")


def test_a_schema_that_changes_while_a_process_runs_does_not_count_for_what_it_made_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = tmp_path / "schemas"
    shutil.copytree(DIRECTORY, schemas)
    monkeypatch.setattr("ottla.protocol.schema_cache.DIRECTORY", str(schemas))
    assert schema_cache.load("FetchRequest", "read4") is None
    change(schemas / "messages" / "FetchRequest.json", "int32", "int64")
    schema_cache.save("FetchRequest", "read4", 1)
    forget_hashes()
    assert schema_cache.load("FetchRequest", "read4") is None


PARTS = """
import sys
import ottla.protocol.cached_functions, ottla.protocol.codec, ottla.protocol.outlines, ottla.protocol.trees
print(*(name for name in sys.modules if name.startswith("ottla.protocol.")))
"""


def test_the_makers_are_all_modules_that_the_codec_imports() -> None:
    done = subprocess.run([sys.executable, "-c", PARTS], capture_output=True, text=True, timeout=60, check=True)
    assert sorted(done.stdout.split()) == [f"ottla.protocol.{name}" for name in schema_cache.MAKERS]


def test_a_damaged_file_does_not_count(tmp_path: Path) -> None:
    value = (1, "two", None, compile("3", "four", "eval"))
    schema_cache.save("FetchRequest", "read4", value)
    path = cached_file(tmp_path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert schema_cache.load("FetchRequest", "read4") is None
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes((whole[place] ^ 1,)) + whole[place + 1 :])
        assert schema_cache.load("FetchRequest", "read4") is None
    path.write_bytes(whole)
    assert schema_cache.load("FetchRequest", "read4") == value


WRITERS = """
import sys
from ottla.protocol import schema_cache

for _ in range(100):
    schema_cache.save("FetchRequest", "read4", (int(sys.argv[1]), "text" * 50_000))
"""


@pytest.mark.long
def test_processes_that_write_a_file_at_once_leave_a_whole_one_at_all_times(tmp_path: Path) -> None:
    schema_cache.save("FetchRequest", "read4", (0, "text" * 50_000))
    environment = os.environ | {"PYTHONPYCACHEPREFIX": str(sys.pycache_prefix), "PYTHONDONTWRITEBYTECODE": ""}
    writers = [subprocess.Popen([sys.executable, "-c", WRITERS, str(number)], env=environment) for number in range(3)]
    while any(writer.poll() is None for writer in writers):
        found = schema_cache.load("FetchRequest", "read4")
        assert isinstance(found, tuple), "the file was not whole"
        assert found[1] == "text" * 50_000
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert [path.name for path in cached_file(tmp_path).parent.glob("FetchRequest*")] == [cached_file(tmp_path).name]


def test_where_nothing_can_be_written_a_function_is_made_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands where the directory would be, so that root cannot write either."""
    (tmp_path / "cache").write_bytes(b"")
    for _ in range(2):
        made: list[object] = []

        def make(made: list[object] = made) -> Any:
            made.append(None)
            return trees.tree("MetadataRequest", 12).reader()

        assert cached_functions.cached_function("MetadataRequest", "read12", make)(bytes(4), 0)[1] == 4
        assert len(made) == 1
    assert (tmp_path / "cache").read_bytes() == b""


def test_nothing_is_written_where_python_writes_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)
        schema_cache.save("FetchRequest", "read4", 1)
    with monkeypatch.context() as patch:
        patch.setattr(sys.implementation, "cache_tag", None)
        schema_cache.save("FetchRequest", "read4", 1)
        assert schema_cache.load("FetchRequest", "read4") is None
    assert not (tmp_path / "cache").exists()


def test_there_is_nothing_of_a_schema_that_does_not_exist() -> None:
    assert schema_cache.load("NoSuchMessage", "outline") is None
    with pytest.raises(AttributeError):
        getattr(messages, "NoSuchMessage")  # noqa: B009  # the stub has no such message


TREE = trees.tree("MetadataRequest", 12)
CUT_OFF = b"\2" + bytes(18)  # after a topic
FAILING: dict[str, tuple[Callable[[], Any], Callable[[Any], object], str]] = {
    "read": (TREE.reader, lambda read: read(CUT_OFF, 0), "unpack_"),
    "count": (lambda: TREE.reader(counting=True), lambda read: read(CUT_OFF, 0, 1), "unpack_"),
    "pause": (TREE.pausing_reader, lambda read: list(read(CUT_OFF, 0, 1)), "unpack_"),
    "write": (TREE.writer, lambda write: write(None, bytearray(), []), "if obj."),
}
"""What makes a function, a call that fails, and what the line has that fails."""


@pytest.mark.parametrize("name", FAILING)
def test_a_traceback_shows_the_lines_of_a_cached_function(name: str) -> None:
    """Whichever other function of the message has been made since."""
    make, call, text = FAILING[name]
    cached_functions.cached_function("MetadataRequest", name, make)
    function = cached_functions.cached_function("MetadataRequest", name, make)
    for other in FAILING.keys() - {name}:
        FAILING[other][0]()
    with pytest.raises((struct.error, AttributeError)) as failed:
        call(function)
    last = traceback.extract_tb(failed.value.__traceback__)[-1]
    assert text in (last.line or "")
