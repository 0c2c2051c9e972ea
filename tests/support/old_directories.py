"""Data directories that Kafkas with ZooKeeper and with KRaft wrote (`tests.oracle.record_old_directories`,
`record_kraft_directories`), and what they held.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any, Protocol

from ottla.protocol import legacy, records
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors
from ottla.protocol.records import MAGIC, MAGIC_AT

from .ask import fetch_message
from .memory_files import MemFiles
from .poll import until

DATA = Path(__file__).parent / "data"
VERSIONS = ("0.8.2.2", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.1")
KINDS = ("clean", "killed")
Row = list[Any]  # offset, key, value and timestamp of a record


class OldDirectories:
    """Those of one release. `clean` and `killed` are directories."""

    def __init__(self, version: str, directory: Path) -> None:
        with tarfile.open(DATA / f"old-kafka-{version}.tar.xz") as archive:
            archive.extractall(directory, filter="data")
        self.version = version
        self.path = directory
        self.truth: dict[str, Any] = json.loads((directory / "truth.json").read_text())

    def data(self, kind: str) -> Path:
        return self.path / kind

    @property
    def described(self) -> Path:
        """What `kafka-topics --describe` printed."""
        return self.path / "described.txt"

    @property
    def zookeeper(self) -> dict[str, bytes]:
        """What ZooKeeper held, by path."""
        return {path: text.encode() for path, text in json.loads((self.path / "zookeeper.json").read_text()).items()}

    def records(self, kind: str) -> dict[str, list[Row]]:
        """What clients read, by partition."""
        found: dict[str, list[Row]] = self.truth[kind]["records"]
        return found

    def offsets(self, kind: str) -> dict[str, dict[str, int]]:
        """What groups have committed, by group and partition."""
        found: dict[str, dict[str, int]] = self.truth[kind]["offsets"]
        return found


class Asks(Protocol):
    """A connection, or a world."""

    def ask(self, name: str, version: int, message: Any) -> Any: ...


def in_memory(directory: Path, at: str = "/data") -> MemFiles:
    """The files of a directory in memory, all of them durable."""
    files = MemFiles()
    for path in sorted(directory.rglob("*")):
        place = f"{at}/{path.relative_to(directory)}"
        if path.is_dir():
            files.make_directory(place)
        elif path.name != ".lock":
            files.make_directory(place.rpartition("/")[0])
            files.now_ms = int(path.stat().st_mtime * 1000)
            files.open(place, create=True).write_at(0, path.read_bytes())
    return files.copy()


def read(wire: Asks, topic: str, partition: int) -> list[Row]:
    """Every record of a partition, of any format, as `OldDirectories.records` has them."""
    found: list[Row] = []
    offset = 0
    while True:
        some = rows_of(until(lambda at=offset: _fetched(wire, topic, partition, at), f"{topic} is there")[0])  # type: ignore[misc]
        if not some:
            return found
        found += [row for row, is_data in some if is_data and row[0] >= offset]
        offset = some[-1][0][0] + 1


def _fetched(wire: Asks, topic: str, partition: int, offset: int) -> tuple[bytes] | None:
    """What a Fetch returns; None while the log is being opened."""
    (part,) = wire.ask("Fetch", 11, fetch_message(topic, offset, partition)).responses[0].partitions
    assert part.error_code in (0, Errors.NOT_LEADER_OR_FOLLOWER), (topic, partition, part)
    return None if part.error_code else (bytes(part.records),)


def rows_of(data: bytes) -> list[tuple[Row, bool]]:
    """The records in fetched bytes, and whether each is no control record."""
    position, found = 0, []
    while position + MAGIC_AT < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        part = data[position : position + size]
        position += size
        if len(part) < size:
            break
        if part[MAGIC_AT] == MAGIC:
            for at in records.batches(part):
                made = records.decode(part, at)
                found += [(_row(r.offset, r.key, r.value, r.timestamp), not at.header.is_control) for r in made]
        else:
            found += [(_row(r.offset, r.key, r.value, r.timestamp), True) for r in legacy.decode(part)]
    return found


def _row(offset: int, key: bytes | None, value: bytes | None, timestamp: int) -> Row:
    return [offset, None if key is None else key.decode(), None if value is None else value.decode(), timestamp]


def committed(wire: Asks, group: str, topics: list[str]) -> dict[str, int] | None:
    """What a group has committed for partitions 0; None while its coordinator loads."""
    r = m.OffsetFetchRequest
    named = [r.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in topics]
    found = wire.ask("OffsetFetch", 8, r(groups=[r.OffsetFetchRequestGroup(group_id=group, topics=named)])).groups[0]
    if found.error_code:
        return None
    return {f"{topic.name}-0": part.committed_offset for topic in found.topics for part in topic.partitions}


class DumpedNodes:
    """A ZooKeeper that was read before."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents

    def get(self, path: str) -> bytes | None:
        return self.contents.get(path)

    def children(self, path: str) -> list[str]:
        below = f"{path.rstrip('/')}/"
        return sorted({one[len(below) :].split("/")[0] for one in self.contents if one.startswith(below)} - {""})


class KraftDirectories:
    """What `tests.oracle.record_kraft_directories` made under one name."""

    def __init__(self, name: str, directory: Path) -> None:
        with tarfile.open(DATA / f"old-kraft-{name}.tar.xz") as archive:
            archive.extractall(directory, filter="data")
        self.directory = directory
        self.truth: dict[str, Any] = json.loads((directory / "truth.json").read_text())

    def nodes(self, kind: str) -> tuple[str, ...]:
        return tuple(sorted(map(str, (self.directory / kind).iterdir())))
