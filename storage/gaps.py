"""Finds missing data inside of a log: between its segments and before them. Recovery checks only the end of the log."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from itertools import pairwise

from .layout import LOG
from .log import Log
from .rebuilding import end_of


def gaps(log: Log) -> Generator[None, None, list[str]]:
    """A generator like `open_log`; its value is a list of messages, each with file and offsets. Reads only the end of
    each closed segment.

    Offsets may be missing between segments of a compacted log.
    """
    found = list(_before(log))
    for segment, after in pairwise(log.segments):
        end, position = yield from end_of(log, segment)
        if position < segment.size:
            found.append(f"{segment.path(LOG)}: no whole batch at position {position}, from offset {end} on")
        elif end < after.base_offset and not log.settings.is_compacted:
            found.append(
                f"{segment.path(LOG)}: the segment ends before offset {end}, but the next one begins at offset "
                f"{after.base_offset}"
            )
        yield
    return found


def _before(log: Log) -> Iterator[str]:
    """The leader epochs begin at the log start, because they are truncated whenever segments are removed."""
    base, epochs = log.segments[0].base_offset, log.epochs.entries
    if epochs and epochs[0][1] < base:
        yield (
            f"{log.segments[0].path(LOG)}: this is the first segment, but the leader epochs begin at offset "
            f"{epochs[0][1]}"
        )
