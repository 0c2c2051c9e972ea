"""Partitions that tests write batch by batch, and what is read of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from ottla.pipeline import reading
from ottla.pipeline.committed import committed as of_partition
from ottla.pipeline.directory import EVERYTHING, Bounds, Directory
from ottla.pipeline.reading import Options
from ottla.protocol import records
from ottla.protocol.records import Record, Template

SCHEMA = pa.schema([("offset", pa.int64()), ("value", pa.binary()), ("position", pa.int64())])


class Written:
    """A partition's files, made batch by batch; an index entry for every one but the first of a segment."""

    def __init__(self, root: Path) -> None:
        self.root, self.directory = root, root / "t-0"
        self.directory.mkdir()
        self.offset = 0
        self.roll()

    def roll(self) -> None:
        self.log = self.directory / f"{self.offset:020d}.log"
        self.base = self.offset
        self.log.touch()

    def batch(self, count: int = 3, batches: int = 1, **settings: Any) -> int:
        """Appends records whose values are their offsets, in one batch or several; returns where the first one lies."""
        position = self.log.stat().st_size
        for _ in range(batches):
            numbers = range(self.offset, self.offset + count)
            made = [Record(None, b"%d" % n, 1000 + n, n) for n in numbers]
            with self.log.open("ab") as file:
                file.write(records.encode(made, Template(base_offset=self.offset, **settings)))
            self.offset += count
        if position:
            with self.log.with_suffix(".index").open("ab") as file:
                file.write((self.offset - 1 - self.base).to_bytes(4, "big") + position.to_bytes(4, "big"))
        with self.log.with_suffix(".timeindex").open("ab") as file:
            file.write((1000 + self.offset - 1).to_bytes(8, "big") + (self.offset - 1 - self.base).to_bytes(4, "big"))
        return position


def put_away(log: Path, suffix: str) -> None:
    """Renames the files of a segment, as a broker does before it deletes them: later than all others, which the clock
    of the file system has to show.
    """
    last = max(one.stat().st_ctime_ns for one in log.parent.iterdir())
    for kind in (".log", ".txnindex"):
        if (path := log.with_suffix(kind)).exists():
            renamed = path.rename(f"{path}{suffix}")
            while renamed.stat().st_ctime_ns <= last:
                renamed.touch()


def offsets(
    written: Written,
    bounds: Bounds = EVERYTHING,
    slice_bytes: int = 1 << 30,
    options: Options | None = None,
    committed: bool = False,
) -> list[int]:
    directory = Directory(str(written.root))
    segments = directory.segments("t", 0)
    aborted = of_partition(directory, "t", 0).aborted if committed else None
    return list(offsets_of(directory, list(directory.slices(segments, bounds, slice_bytes, aborted)), options))


def offsets_of(directory: Directory, slices: list[Any], options: Options | None = None) -> Iterator[int]:
    for part in slices:
        for batch in reading.records(directory, part, SCHEMA, options or Options()):
            found = batch.column("offset").to_pylist()
            assert [b"%d" % one for one in found] == batch.column("value").to_pylist()
            yield from found
