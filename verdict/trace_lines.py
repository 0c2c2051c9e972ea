"""The files and lines of a trace, as bytes: which files belong together, what a line is, what is no trace.

Files may be compressed: those that end with `.gz` or `.zst`.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Final, NamedTuple

import zstandard

FORMAT: Final = 1
HEAD: Final = b'{"event":"trace",'
"""With what the first line of each file begins."""
SAME_RUN_US: Final = 60_000_000  # by which the machine's clock may be set while a broker runs
BLOCK_BYTES: Final = 1 << 20
LINE_BYTES_MAX: Final = 64 << 20
_NUMBERED: Final = re.compile(r"(?P<base>.+?)(\.(?P<number>\d{1,9}))?(\.gz|\.zst)?", re.ASCII)
Read = Callable[[int], bytes]
Event = dict[str, object]
"""A line of a trace: docs/reference/trace.md."""


def number(event: Mapping[str, object], name: str) -> int:
    """A field that is a number; 0 if it is not there."""
    found = event.get(name)
    return found if isinstance(found, int) else 0


class Runs:
    """Tells brokers apart whose events are in one trace: each gives its connections numbers from 1."""

    def __init__(self) -> None:
        self.zero_us: int | None = None  # of `mono_us`, on the wall clock
        self._newest = 0  # connection
        self._has_head = False  # since a connection was opened

    def begins(self, event: Mapping[str, object]) -> bool:
        """Takes the next event; returns whether it is the first of another broker."""
        if event.get("event") == "trace":
            before, self._has_head = self.zero_us, True
            self.zero_us = number(event, "clock_ms") * 1000 - number(event, "mono_us")
            return before is not None and abs(self.zero_us - before) > SAME_RUN_US  # the machine was started again
        if event.get("event") != "opened":
            return False
        newest, has_head = self._newest, self._has_head
        self._newest, self._has_head = max(number(event, "connection"), 0 if has_head else newest), False
        return has_head and self._newest <= newest  # the first line of a broker comes before its connections


class TraceError(ValueError):
    """A file that is no trace, or one of another format."""


class Numbered(NamedTuple):
    """A file of a trace. `number`: of a file that is full, 1 the latest; 0 of the one that is written."""

    number: int
    name: str


def traces_of(names: Iterable[str]) -> dict[str, list[Numbered]]:
    """Groups files of a directory by traces, whose names they have without numbers and compression; the oldest file
    first. Of a file that is there twice, the one that is not compressed. Without the file that is written last, a
    number is part of the name.
    """
    known = sorted(set(names), key=lambda name: (len(name), name))
    split = {name: _NUMBERED.fullmatch(name) for name in known}
    written = {found["base"] for found in split.values() if found is not None and found["number"] is None}
    made: dict[str, dict[int, str]] = {}
    for name, found in split.items():
        base, number = (found["base"], int(found["number"] or 0)) if found is not None else (name, 0)
        if base not in written:
            base, number = name.removesuffix(".gz").removesuffix(".zst"), 0
        made.setdefault(base, {}).setdefault(number, name)
    return {base: [Numbered(*one) for one in sorted(files.items(), reverse=True)] for base, files in made.items()}


def trace_of(names: Iterable[str], name: str) -> list[Numbered]:
    """Returns the files of the trace that is written to `name`; those before it are among `names`."""
    for files in traces_of((*names, name)).values():
        if files[-1].name == name:
            return files
    return [Numbered(0, name)]


def reader(name: str, file: IO[bytes]) -> Read:
    """Returns what reads a file, decompressed if its name says so."""
    if name.endswith(".gz"):
        return gzip.GzipFile(fileobj=file).read1  # `read` would lose what is before a missing end
    if name.endswith(".zst"):
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read
    return file.read


class Blocks:
    """Iterates over the complete lines of a file, without their ends, in lists. `is_cut`: whether a line without an end
    was last, or a compressed file ended too early. Raises TraceError for what cannot be decompressed.

    Of a line beyond LINE_BYTES_MAX only the end is kept, which cannot be read.
    """

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self.is_cut = False
        self._name, self._read_block = name, reader(name, file)

    def __iter__(self) -> Iterator[list[bytes]]:
        begun: list[bytes] = []
        size = 0
        while block := self._read():
            first, *others = block.split(b"\n")
            if not others:
                begun.append(first)
                size += len(first)
                if size > LINE_BYTES_MAX:
                    begun, size = [first], len(first)
                continue
            others.insert(0, b"".join((*begun, first)))
            begun = [others.pop()]
            size = len(begun[0])
            yield others
        self.is_cut = self.is_cut or any(begun)

    def _read(self) -> bytes:
        try:
            return self._read_block(BLOCK_BYTES)
        except EOFError:  # of gzip
            self.is_cut = True
            return b""
        except (gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
            raise TraceError(f"{self._name}: cannot be decompressed: {error}") from None


def event_of(line: bytes, name: str, number: int) -> Event:
    """Returns the event of a complete line, which is the `number`-th of the file `name`. One that was cut off by the
    end of a broker, before the next began the same file again, is the event `damaged`. Raises TraceError.
    """
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        start = line.rfind(HEAD)
        if start > 0:  # another broker has begun in the middle
            return event_of(line[start:], name, number)
        return damaged(f"{name}:{number}")
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        raise TraceError(f"{name}:{number}: not an event of a trace")
    if found["event"] == "trace" and found.get("format") != FORMAT:
        raise TraceError(f"{name}:{number}: a trace of format {found.get('format')}; this is for format {FORMAT}")
    return found


def first_event(line: bytes, name: str) -> Event:
    """Returns the event of the first line of a file. Raises TraceError also for one that cannot be read: a crash cuts
    off the last line only.
    """
    found = event_of(line, name, 1)
    if found["event"] == "damaged":
        raise TraceError(f"{name}:1: not an event of a trace")
    return found


def damaged(where: str) -> Event:
    """The event in place of what cannot be read."""
    return {"event": "damaged", "where": where}


def events(name: str, file: IO[bytes], is_last: bool) -> Iterator[Event]:
    """Yields the events of a file. The last line may be incomplete; it is damaged if another file follows. Raises
    TraceError.
    """
    blocks = Blocks(name, file)
    count = 0
    for lines in blocks:
        for number, line in enumerate(lines, count + 1):
            yield first_event(line, name) if number == 1 else event_of(line, name, number)
        count += len(lines)
    if blocks.is_cut and not is_last:
        yield damaged(f"{name}:{count + 1}")
