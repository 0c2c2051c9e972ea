"""The program that writes the file of a trace: it takes blocks from its broker, and makes lines of them.

A process of its own has an interpreter lock of its own, so that the broker's loop does not wait for it. It ends when
its broker does.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....protocol.text import Json
from ...log_file import LogFile
from . import events
from .events import Raw
from .recording import Times, lines, unpacked

logger = logging.getLogger("ottla.lab.traces")
READ_BYTES: Final = 1 << 20
SIZE: Final = struct.Struct(">I")  # before each block
NICE: Final = 5
LINES_AT_ONCE: Final = 500


def head(about: Mapping[str, Json], at_ms: int, ns: int, clock_ms: int) -> bytes:
    """The first line of each file. `about`: what does not change."""
    return events.plain_line("trace", format=events.FORMAT, at_ms=at_ms, mono_us=ns // 1000, clock_ms=clock_ms, **about)


class Writer:
    """Writes the blocks of a stream. `arguments`: the path, the descriptor of the file, its largest size, how many full
    ones are kept, and JSON with what the head says.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        path, descriptor, max_bytes, backups, about = arguments
        self._about: dict[str, Json] = json.loads(about)
        self._raw = cast(Raw, self._about["raw"])
        self._file = LogFile(path, int(max_bytes), int(backups), self._head, int(descriptor))
        self._times = Times(0, 0, 0, 0)
        self._stream = bytearray()
        self._lost = 0
        self._failed = False

    def _head(self) -> bytes:
        return head(self._about, self._times.at_ms, self._times.ns, self._times.clock_ms)

    def feed(self, data: bytes) -> None:
        """The next bytes of the stream."""
        stream = self._stream
        stream += data
        done = 0
        while len(stream) - done >= SIZE.size:
            (size,) = SIZE.unpack_from(stream, done)
            start = done + SIZE.size
            if len(stream) - start < size:
                break
            done = start + size
            self._write(bytes(stream[start:done]))
        del stream[:done]

    def _write(self, block: bytes) -> None:
        self._times, records = unpacked(block)
        if self._lost:
            times = self._times
            note = events.plain_line("dropped", at_ms=times.at_ms, mono_us=times.ns // 1000, count=self._lost)
            records.insert(0, note)
        for start in range(0, len(records), LINES_AT_ONCE):
            some = records[start : start + LINES_AT_ONCE]
            try:
                self._file.write(list(lines(self._times, some, self._raw)))
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


def main(arguments: Sequence[str]) -> None:
    """Writes what comes on standard input, to its end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the broker ends this
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(format="%(levelname)s %(message)s")
    writer = Writer(arguments)
    is_nice = False
    while data := os.read(sys.stdin.fileno(), READ_BYTES):
        writer.feed(data)
        if not is_nice:  # it is soon ready, and then it yields to the loop
            is_nice = True
            os.nice(NICE)
    writer.end()
