"""What programs beside the broker have in common: each takes the blocks of a stream, and ends when its broker does.

A process of its own has an interpreter lock of its own, so that the broker's loop does not wait for it.

On Linux a program works while no other process wants the processor (SCHED_IDLE), because with any other priority it
takes turns with the broker or its clients, whose requests then wait. Where others leave it less than a tenth of a
processor, a thread with a lower priority than theirs (nice) takes over, which gets that tenth, until nothing has come
for a while. There are two threads because Linux lets only root leave SCHED_IDLE; one of them works at a time.

Even so a program slows the loop where their processors are threads of one core. So while much comes, a program only
keeps it, and works on it when less does, when as much waits as it may keep, or when it has waited for some seconds.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import sys
import time
from collections import deque
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
MUCH_BYTES: Final = 1 << 20  # in a second: some 3,000 exchanges, which keep the loop busy for an eighth of it
MEASURED_SECONDS: Final = 0.1
PUT_OFF_SECONDS: Final = 10.0  # that a block waits at most, so that little is lost with a program that is killed
Answer = Callable[[bytes], object]
"""Sends bytes to the broker."""


class Fed(Protocol):
    """What a program does. `put_off_bytes_max`: of blocks that it may work on later."""

    put_off_bytes_max: int

    def is_urgent(self, block: bytes) -> bool:
        """Whether the broker waits for what becomes of a block."""

    def take(self, block: bytes) -> None:
        """Works on the next block."""

    def end(self) -> None:
        """No more blocks come."""


Begin = Callable[[Sequence[str], Answer], Fed]


class Feed:
    """Cuts the bytes of a stream into blocks, and has them worked on in their order: at once, or, while `puts_off`,
    later.
    """

    def __init__(self, fed: Fed, now: Callable[[], float] = time.perf_counter) -> None:
        self.puts_off = False
        self._fed = fed
        self._now = now
        self._stream = bytearray()
        self._waiting: deque[tuple[float, bytes]] = deque()  # each with when it came
        self._waiting_bytes = 0

    @property
    def waits(self) -> bool:
        """Whether there are blocks that were put off."""
        return bool(self._waiting)

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
            self._add(bytes(stream[start:done]))
        del stream[:done]

    def _add(self, block: bytes) -> None:
        if not self.puts_off and not self._waiting:
            self._fed.take(block)
            return
        now = self._now()
        self._waiting.append((now, block))
        self._waiting_bytes += len(block)
        kept_max = 0 if self._fed.is_urgent(block) else self._fed.put_off_bytes_max
        while self._waiting_bytes > kept_max or (self._waiting and now - self._waiting[0][0] > PUT_OFF_SECONDS):
            self.catch_up()

    def catch_up(self) -> None:
        """Works on the first block that was put off."""
        _, block = self._waiting.popleft()
        self._waiting_bytes -= len(block)
        self._fed.take(block)

    def end(self) -> None:
        while self._waiting:
            self.catch_up()
        self._fed.end()


class Traffic:
    """How much comes. `is_much`: more than MUCH_BYTES in a second."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.is_much = False
        self._now = now
        self._since = now()
        self._bytes = 0

    def note(self, size: int) -> None:
        """So many bytes have come."""
        self._bytes += size
        seconds = self._now() - self._since
        if seconds >= MEASURED_SECONDS:
            self.is_much = self._bytes > MUCH_BYTES * seconds
            self._since += seconds
            self._bytes = 0


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
    traffic = Traffic()
    if sys.platform != "linux":
        os.nice(NICE)
        while _step(source, feed, traffic) is not None:
            pass
        return
    with ThreadPoolExecutor(1) as hasty:
        hasty.submit(_yield, os.SCHED_BATCH).result()  # a thread begins with the priority of the one that starts it
        _yield(os.SCHED_IDLE)
        while (was_starved := _step(source, feed, traffic)) is not None:
            if was_starved:
                hasty.submit(_hurry, source, feed, traffic).result()


def _step(source: int, feed: Feed, traffic: Traffic) -> bool | None:
    """Feeds what comes, or works on what was put off if nothing does; returns whether that was delayed by others, None
    at the end of the stream.
    """
    data = b""
    if _has_come(source, feed, traffic):
        data = os.read(source, READ_BYTES)
        if not data:
            return None
        traffic.note(len(data))
        feed.puts_off = traffic.is_much
    began, used = time.perf_counter(), time.thread_time()
    if data:
        feed.feed(data)
    else:
        feed.catch_up()
    return is_starved(time.perf_counter() - began, time.thread_time() - used)


def _has_come(source: int, feed: Feed, traffic: Traffic) -> bool:
    """Waits for bytes, or until there is time for what was put off; returns whether bytes have come."""
    while feed.waits:
        if select.select([source], [], [], MEASURED_SECONDS if traffic.is_much else 0)[0]:
            return True
        if not traffic.is_much:
            return False
        traffic.note(0)
    return True


def is_starved(seconds: float, worked: float) -> bool:
    """Whether work was delayed by others. `seconds`: that it took, `worked`: of a processor."""
    return seconds - worked > STARVED_SECONDS and worked < seconds * STARVED_SHARE


def _yield(policy: int) -> None:
    """Gives this thread a lower priority, with which it interrupts no other one when there is something to do."""
    os.nice(NICE)
    with suppress(OSError):  # some sandboxes have no policies
        os.sched_setscheduler(0, policy, os.sched_param(0))


def _hurry(source: int, feed: Feed, traffic: Traffic) -> None:
    """Goes on until nothing has come for CALM_SECONDS and nothing is put off, or to the end."""
    while feed.waits or select.select([source], [], [], CALM_SECONDS)[0]:
        if _step(source, feed, traffic) is None:
            return


def _answer(data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(sys.stdout.fileno(), left) :]
