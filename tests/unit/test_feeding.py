"""The programs beside the broker: with which priority they work on what they are given."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
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

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []
        self._began = os.getpriority(os.PRIO_PROCESS, 0)

    def take(self, block: bytes) -> None:
        assert block == BLOCK
        self.taken.append((os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0) - self._began))

    def end(self) -> None: ...


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
def test_a_program_works_while_nobody_else_does_and_hurries_only_where_it_would_starve(
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
