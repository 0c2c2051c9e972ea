"""Compactions that go on in pieces, each of which may run in another thread, or in a worker process.

A worker keeps the compactions that have begun there, until they are done, fail or are closed.
"""

from __future__ import annotations

from typing import NamedTuple

from .cleaning import Job, Outcome, steps
from .files import Files, OsFiles
from .layout import CLEANED

_of_worker: dict[int, Compaction] = {}


class Piece(NamedTuple):
    """How many bytes were read and written; with the last piece, what came of the whole."""

    bytes: int
    outcome: Outcome | None


class Compaction:
    """A compaction in this process."""

    def __init__(self, files: Files, job: Job) -> None:
        self._steps = steps(files, job)

    def go_on(self, bytes_max: float) -> Piece:
        """Reads and writes until it has done so many bytes, in whole batches. Raises OSError."""
        done = 0
        while done < bytes_max:
            try:
                done += next(self._steps)
            except StopIteration as end:
                return Piece(done, end.value)
        return Piece(done, None)

    def close(self) -> None:
        """Closes the files. What was written stays."""
        self._steps.close()


def go_on_in_worker(number: int, job: Job | None, bytes_max: float) -> Piece:
    """As `Compaction.go_on`, in a worker. `number`: of the compaction; `job`: with its first piece, what it does."""
    if job is not None:
        _of_worker[number] = Compaction(OsFiles(), job)
    piece = None
    try:
        piece = _of_worker[number].go_on(bytes_max)
    finally:
        if piece is None or piece.outcome is not None:
            del _of_worker[number]
    return piece


def close_in_worker(number: int) -> None:
    """As `Compaction.close`, in a worker."""
    compaction = _of_worker.pop(number, None)
    if compaction is not None:
        compaction.close()


def remove_cleaned(files: Files, directory: str) -> None:
    """Removes what a compaction that does not go on has written. Raises OSError."""
    for name in files.names(directory):
        if name.endswith(CLEANED):
            files.remove(f"{directory}/{name}")
