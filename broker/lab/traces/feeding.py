"""What programs beside the broker have in common: each takes the blocks of a stream, and ends when its broker does.

A process of its own has an interpreter lock of its own, so that the broker's loop does not wait for it.

On Linux a program works while no other process wants the processor (SCHED_IDLE), because with any other priority it
takes turns with the broker or its clients, whose requests then wait. Where others leave it less than a tenth of a
processor, a thread with a lower priority than theirs (nice) takes over, which gets that tenth, until nothing has come
for a while. There are two threads because Linux lets only root leave SCHED_IDLE; one of them works at a time.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, Protocol

from .stream import SIZE

READ_BYTES: Final = 64 << 10  # some milliseconds of work
NICE: Final = 10  # beside a busy process it gets a tenth of a processor
STARVED_SHARE: Final = 0.1  # of a processor
STARVED_SECONDS: Final = 0.05  # that work was delayed; less says nothing
CALM_SECONDS: Final = 1.0  # without bytes, after which there is no hurry
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
    try:
        work(sys.stdin.fileno(), feed)
        feed.end()
    except BrokenPipeError:  # the broker has ended, and waits for no answer
        pass


def work(source: int, feed: Feed) -> None:
    """Feeds the bytes of a pipe, to its end."""
    feed.feed(os.read(source, READ_BYTES))  # it is soon ready, and then it yields to the loop
    if sys.platform != "linux":
        os.nice(NICE)
        while data := os.read(source, READ_BYTES):
            feed.feed(data)
        return
    with ThreadPoolExecutor(1) as hasty:
        hasty.submit(_yield, os.SCHED_BATCH).result()  # a thread begins with the priority of the one that starts it
        _yield(os.SCHED_IDLE)
        while data := os.read(source, READ_BYTES):
            began, used = time.perf_counter(), time.thread_time()
            feed.feed(data)
            if is_starved(time.perf_counter() - began, time.thread_time() - used):
                hasty.submit(_catch_up, source, feed).result()


def is_starved(seconds: float, worked: float) -> bool:
    """Whether work was delayed by others. `seconds`: that it took, `worked`: of a processor."""
    return seconds - worked > STARVED_SECONDS and worked < seconds * STARVED_SHARE


def _yield(policy: int) -> None:
    """Gives this thread a lower priority, with which it interrupts no other one when there is something to do."""
    os.nice(NICE)
    with suppress(OSError):  # some sandboxes have no policies
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _catch_up(source: int, feed: Feed) -> None:
    """Feeds what comes until nothing does for CALM_SECONDS, or to the end."""
    while select.select([source], [], [], CALM_SECONDS)[0] and (data := os.read(source, READ_BYTES)):
        feed.feed(data)


def _answer(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]
