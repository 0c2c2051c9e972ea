"""Finds traces below directories, and deals them to tasks.

A trace is the unit of a verdict: its files are read in their order, by one task. A trace that is large beside all
others is read by several tasks, each for a share of its clients.
"""

from __future__ import annotations

import heapq
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import zstandard

from ..verdict.examiner import ALL, Share
from ..verdict.trace_lines import HEAD, Numbered, reader, trace_of, traces_of
from .files import Files

GROUPS: Final = ("client", "version", "rule", "day")
"""By what verdicts are counted."""
SUFFIX: Final = ".jsonl"
COMPRESSED: Final = (".gz", ".zst")
COMPRESSION: Final = 12  # by which a compressed trace is smaller
SPLIT_BYTES_MIN: Final = 64 << 20  # of a trace that is worth several tasks
SKIMMED: Final = 0.1  # what passing over a line costs, beside examining it
BINS_PER_TASK: Final = 4


@dataclass(frozen=True)
class Trace:
    """A trace. `name`: the path of the file that is written last; `files`: the paths, the oldest first."""

    name: str
    files: tuple[str, ...]
    bytes: int


@dataclass(frozen=True)
class Unit:
    """What is examined at a time."""

    trace: Trace
    share: Share = ALL

    @property
    def cost(self) -> float:
        return self.trace.bytes * (1 / self.share.of + (SKIMMED if self.share.of > 1 else 0))


def found(paths: Iterable[str]) -> list[Trace]:
    """Returns the traces of these files, and of these directories and those below them. Raises OSError, and ValueError
    for a directory without traces.
    """
    made: dict[str, Trace] = {}
    for given in paths:
        path = given if "://" in given else os.path.normpath(given)
        files = Files(path)
        of_path = list(_in_directory(path, files)) if files.is_directory() else [_of_file(path)]
        if not of_path:
            raise ValueError(f"{path} contains no trace")
        made |= {one.name: one for one in of_path}
    return list(made.values())


def _in_directory(path: str, files: Files) -> Iterator[Trace]:
    for directory, sizes in files.sizes().items():
        for of_trace in traces_of(sizes).values():
            if SUFFIX in of_trace[-1].name or _begins_like_a_trace(files, directory + of_trace[-1].name):
                yield _trace(f"{path.rstrip('/')}/{directory}", of_trace, sizes)


def _of_file(path: str) -> Trace:
    """The trace that is written to a file, whatever the file has."""
    parent, slash, name = path.rpartition("/")
    sizes = Files(parent + slash or ".").sizes(below=False).get("", {})
    if name not in sizes:
        raise FileNotFoundError(f"{path} does not exist")
    return _trace(parent + slash, trace_of(sizes, name), sizes)


def _trace(directory: str, of_trace: Sequence[Numbered], sizes: dict[str, int]) -> Trace:
    paths = tuple(directory + one.name for one in of_trace)
    total = sum(sizes[one.name] * (COMPRESSION if one.name.endswith(COMPRESSED) else 1) for one in of_trace)
    return Trace(paths[-1], paths, total)


def _begins_like_a_trace(files: Files, name: str) -> bool:
    try:
        with files.open(name) as file:
            return reader(name, file)(len(HEAD)) == HEAD
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return False


def dealt(traces: Sequence[Trace], tasks: int) -> list[list[Unit]]:
    """Deals traces to bins of about the same work, the one with most work first; there are several bins for each of the
    tasks that run at a time, because how long a bin takes is not known exactly.
    """
    worth = max(SPLIT_BYTES_MIN, sum(one.bytes for one in traces) // (2 * tasks))
    units = []
    for one in traces:
        count = tasks if one.bytes > worth else 1
        units += [Unit(one, Share(number, count)) for number in range(count)]
    units.sort(key=lambda unit: -unit.cost)
    heap: list[tuple[float, int]] = [(0, number) for number in range(min(len(units), tasks * BINS_PER_TASK))]
    bins: list[list[Unit]] = [[] for _ in heap]
    for unit in units:
        filled, number = heap[0]
        bins[number].append(unit)
        heapq.heapreplace(heap, (filled + unit.cost, number))
    return bins
