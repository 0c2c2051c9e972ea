"""What programs beside the broker have in common: each takes the blocks of a stream, and ends when its broker does.

A process of its own has an interpreter lock of its own, so that the broker's loop does not wait for it.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from .stream import SIZE

READ_BYTES: Final = 1 << 20
NICE: Final = 10  # beside somebody who is busy it gets a tenth of a processor
Answer = Callable[[bytes], object]
"""Sends bytes to the broker."""


class Fed(Protocol):
    """What a program does."""

    def take(self, block: bytes) -> None:
        """Works on the next block."""

    def end(self) -> None:
        """No more blocks come."""


Begin = Callable[[Sequence[str], Answer], Fed]


class Feed:
    """Cuts the bytes of a stream into blocks."""

    def __init__(self, fed: Fed) -> None:
        self._fed = fed
        self._stream = bytearray()

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
            self._fed.take(bytes(stream[start:done]))
        del stream[:done]

    def end(self) -> None:
        self._fed.end()


def run(begin: Begin, arguments: Sequence[str]) -> None:
    """Works on what comes on standard input, to its end; answers go to standard output."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the broker ends this
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(format="%(levelname)s %(message)s")
    feed = Feed(begin(arguments, _answer))
    is_nice = False
    try:
        while data := os.read(sys.stdin.fileno(), READ_BYTES):
            feed.feed(data)
            if not is_nice:  # it is soon ready, and then it yields to the loop
                is_nice = True
                _yield()
        feed.end()
    except BrokenPipeError:  # the broker has ended, and waits for no answer
        pass


def _yield() -> None:
    """Takes a lower priority, and interrupts nobody when there is something to do."""
    os.nice(NICE)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _answer(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]
