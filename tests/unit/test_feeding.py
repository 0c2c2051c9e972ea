"""The programs beside the broker: with which priority they work on what they are given."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
from ottla.broker.lab.traces import feeding
from ottla.broker.lab.traces.feeding import Feed
from ottla.broker.lab.traces.stream import SIZE

from ..support.poll import until

BLOCK = b"block"
SENT = SIZE.pack(len(BLOCK)) + BLOCK


class Noting:
    """Notes with which policy and niceness of its thread it takes each block."""

    put_off_bytes_max = 0

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []
        self._began = os.getpriority(os.PRIO_PROCESS, 0)

    def take(self, block: bytes) -> None:
        assert block == BLOCK
        self.taken.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0) - self._began))

    def is_urgent(self, block: bytes) -> bool:
        return False

    def end(self) -> None: ...


class Keeping:
    """Keeps the blocks that it has worked on, as text. One that ends with `?` is urgent."""

    put_off_bytes_max = 10

    def __init__(self) -> None:
        self.taken: list[str] = []

    def is_urgent(self, block: bytes) -> bool:
        return block.endswith(b"?")

    def take(self, block: bytes) -> None:
        self.taken.append(block.decode())

    def end(self) -> None:
        self.taken.append("end")


def sent(*blocks: str) -> bytes:
    return b"".join(SIZE.pack(len(one)) + one.encode() for one in blocks)


@contextmanager
def working(fed: Noting) -> Iterator[int]:
    """A thread works on what is written to a pipe, as a program does; ends it."""
    source, target = os.pipe()
    thread = Thread(target=feeding.work, args=(source, Feed(fed)))
    thread.start()
    try:
        yield target
    finally:
        os.close(target)
        thread.join()
        os.close(source)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has SCHED_IDLE")
def test_a_program_works_while_nothing_else_does_and_hurries_only_where_it_would_starve(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starved: list[bool] = []
    monkeypatch.setattr(feeding, "is_starved", lambda seconds, worked: starved.pop() if starved else False)
    monkeypatch.setattr(feeding, "READ_BYTES", len(SENT))
    monkeypatch.setattr(feeding, "CALM_SECONDS", 0.0)
    fed = Noting()
    with working(fed) as target:

        def take(sent: bytes = SENT) -> tuple[int, int]:
            count = len(fed.taken) + len(sent) // len(SENT)
            os.write(target, sent)
            until(lambda: len(fed.taken) == count, "it is taken", every=0.001)
            return fed.taken[-1]

        assert take() == (os.SCHED_OTHER, 0)  # it is not ready yet
        assert take() == (os.SCHED_IDLE, feeding.NICE)
        starved.append(True)
        assert take(2 * SENT) == (os.SCHED_BATCH, feeding.NICE)
        assert fed.taken[-2] == (os.SCHED_IDLE, feeding.NICE)
        until(lambda: take() == (os.SCHED_IDLE, feeding.NICE), "nothing has come for a while")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has SCHED_IDLE")
def test_a_sandbox_without_policies_of_scheduling_is_no_obstacle(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("Invalid argument")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    fed = Noting()
    with working(fed) as target:
        os.write(target, SENT)
        until(lambda: len(fed.taken) == 1, "it is taken", every=0.001)
        os.write(target, SENT)
        until(lambda: fed.taken[1:] == [(os.SCHED_OTHER, feeding.NICE)], "it works on", every=0.001)


@pytest.mark.parametrize(
    ("seconds", "worked", "is_starved"),
    [(0.06, 0.005, True), (0.06, 0.02, False), (0.04, 0.001, False), (3.0, 0.2, True), (3.0, 0.4, False)],
)
def test_less_than_a_tenth_of_a_processor_is_too_little(seconds: float, worked: float, is_starved: bool) -> None:
    assert feeding.is_starved(seconds, worked) == is_starved


def test_blocks_are_put_off_and_worked_on_in_their_order() -> None:
    fed = Keeping()
    feed = Feed(fed)
    feed.feed(sent("one"))
    feed.puts_off = True
    feed.feed(sent("two", "three"))
    assert (fed.taken, feed.waits) == (["one"], True)
    feed.puts_off = False
    feed.feed(sent("four"))
    assert fed.taken == ["one", "two"], "as much waits as may, after the first of them"
    while feed.waits:
        feed.catch_up()
    feed.feed(sent("five"))
    assert fed.taken == ["one", "two", "three", "four", "five"]


def test_no_more_is_put_off_than_may_be() -> None:
    fed = Keeping()
    feed = Feed(fed)
    feed.puts_off = True
    feed.feed(sent("12345", "67890"))
    assert fed.taken == []
    feed.feed(sent("abc"))
    assert fed.taken == ["12345"]
    feed.feed(sent("larger than all"))
    assert fed.taken == ["12345", "67890", "abc", "larger than all"]


def test_nothing_is_put_off_for_longer_than_some_seconds() -> None:
    """So a program that is killed takes at most so much with it."""
    now, fed = 5.0, Keeping()
    feed = Feed(fed, lambda: now)
    feed.puts_off = True
    feed.feed(sent("one"))
    now += feeding.PUT_OFF_SECONDS / 2
    feed.feed(sent("two"))
    now += feeding.PUT_OFF_SECONDS / 2
    feed.feed(sent("3"))
    assert fed.taken == [], "not longer than that"
    now += 0.1
    feed.feed(sent("4"))
    assert fed.taken == ["one"]
    now += feeding.PUT_OFF_SECONDS
    feed.feed(sent("5"))
    assert fed.taken == ["one", "two", "3", "4"]


def test_what_is_urgent_is_worked_on_after_all_that_was_put_off_before() -> None:
    fed = Keeping()
    feed = Feed(fed)
    feed.puts_off = True
    feed.feed(sent("one", "two", "well?"))
    assert (fed.taken, feed.waits) == (["one", "two", "well?"], False)


def test_what_was_put_off_is_worked_on_at_the_end() -> None:
    fed = Keeping()
    feed = Feed(fed)
    feed.puts_off = True
    feed.feed(sent("one", "two"))
    feed.end()
    assert fed.taken == ["one", "two", "end"]


def test_much_traffic_is_more_than_so_many_bytes_in_a_second() -> None:
    now = 5.0
    traffic = feeding.Traffic(lambda: now)
    traffic.note(feeding.MUCH_BYTES)
    assert not traffic.is_much, "it is not measured yet"
    now += 0.5
    traffic.note(0)
    assert traffic.is_much
    now += 0.25
    traffic.note(feeding.MUCH_BYTES // 4)
    assert not traffic.is_much


def has_come(blocks: int) -> Callable[[], bool]:
    """Whether so many blocks have, since the first."""
    return lambda: Told.noted == blocks * len(SENT)


class Told:
    """Traffic of which a test says whether it is much. `noted`: how many bytes have come."""

    is_much = False
    noted = 0

    def note(self, size: int) -> None:
        Told.noted += size


def test_a_program_puts_off_what_comes_while_much_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("is_much", True), ("noted", 0)):
        monkeypatch.setattr(Told, name, value)
    monkeypatch.setattr(feeding, "Traffic", Told)
    monkeypatch.setattr(feeding, "MEASURED_SECONDS", 0.001)
    monkeypatch.setattr(Noting, "put_off_bytes_max", 1 << 20)
    fed = Noting()
    with working(fed) as target:
        os.write(target, SENT)
        until(lambda: len(fed.taken) == 1, "it is not ready yet", every=0.001)
        for count in (1, 2):
            os.write(target, SENT)
            until(has_come(count), "it has come", every=0.001)
        assert len(fed.taken) == 1
        Told.is_much = False
        until(lambda: len(fed.taken) == 3, "there is time", every=0.001)
