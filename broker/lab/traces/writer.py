"""The program that writes the file of a trace: it takes blocks from its broker, and makes lines of them."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....protocol.text import Json
from ...log_file import LogFile
from . import events
from .events import Raw
from .feeding import Answer, run
from .recording import Times, lines, times_of

logger = logging.getLogger("ottla.lab.traces")
LINES_AT_ONCE: Final = 500
PUT_OFF_BYTES_MAX: Final = 64 << 20  # some three seconds of work


def head(about: Mapping[str, Json], at_ms: int, ns: int, clock_ms: int) -> bytes:
    """The first line of each file. `about`: what does not change."""
    return events.plain_line("trace", format=events.FORMAT, at_ms=at_ms, mono_us=ns // 1000, clock_ms=clock_ms, **about)


class Writer:
    """Writes the blocks of a stream. `arguments`: the path, the descriptor of the file, its largest size, how many full
    ones are kept, and JSON with what the head says.
    """

    put_off_bytes_max = PUT_OFF_BYTES_MAX

    def __init__(self, arguments: Sequence[str]) -> None:
        path, descriptor, max_bytes, backups, about = arguments
        self._about: dict[str, Json] = json.loads(about)
        self._raw = cast(Raw, self._about["raw"])
        self._file = LogFile(path, int(max_bytes), int(backups), self._head, int(descriptor))
        self._times = Times(0, 0, 0, 0)
        self._lost = 0
        self._failed = False

    def _head(self) -> bytes:
        return head(self._about, self._times.at_ms, self._times.ns, self._times.clock_ms)

    def is_urgent(self, block: bytes) -> bool:
        return False

    def take(self, block: bytes) -> None:
        times = self._times = times_of(block)
        made = list(lines(block, self._raw))
        if self._lost:
            note = events.plain_line("dropped", at_ms=times.at_ms, mono_us=times.ns // 1000, count=self._lost)
            made.insert(0, note)
        for start in range(0, len(made), LINES_AT_ONCE):
            some = made[start : start + LINES_AT_ONCE]
            try:
                self._file.write(some)
            except OSError as error:
                self._note_failure(error, len(some))
            else:
                self._lost = 0

    def _note_failure(self, error: OSError, count: int) -> None:
        if not self._failed:
            logger.warning("the trace %s cannot be written: %s; its lines are lost", self._file.path, error)
        self._failed = True
        self._lost += count

    def end(self) -> None:
        self._file.close()


def begin(arguments: Sequence[str], answer: Answer) -> Writer:
    return Writer(arguments)


def main(arguments: Sequence[str]) -> None:
    run(begin, arguments)
