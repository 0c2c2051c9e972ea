"""Timers as data: a shard's deadlines by key, in one heap.
Moving a deadline changes a dict entry; old heap entries are skipped.

What a shard does at intervals is a round. Its timer is set only while there is something to do: a broker has many
shards, most of which are empty. A round that has found nothing to do is put among those that rest, until a write of the
shard removes it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

from .journal import NEVER, Journal
from .journaled import JournaledDict

K = TypeVar("K", bound=Hashable)
Operation = Callable[[int], Any]
OLD_MAX = 64  # entries of the heap that may be old, beyond as many as there are timers


@dataclass(slots=True)
class Timer:
    """At `deadline_ms` (monotonic), `operation` runs as a write of the shard, and again a moment later if the write
    fails. A deadline of None cancels the key's timer.
    """

    key: Hashable
    deadline_ms: int | None
    operation: Operation | None = None


@dataclass(slots=True)
class Round:
    """Every `interval_ms` after `since_ms` (monotonic), `operation` runs as the operation of a timer, unless the round
    rests or is not needed.
    """

    key: Hashable
    interval_ms: int
    since_ms: int
    operation: Operation
    is_needed: Callable[[], bool] = lambda: True

    def timer(self, now_ms: int) -> Timer:
        """The timer of the next interval."""
        done = (now_ms - self.since_ms) // self.interval_ms
        return Timer(self.key, self.since_ms + (done + 1) * self.interval_ms, self.operation)


class Timers:
    """The timers of one shard. The journal undoes the changes of a failed write."""

    def __init__(self, journal: Journal = NEVER) -> None:
        self._journal = journal
        self._live: dict[Hashable, Timer] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        # the deadline with which the heap holds a key; entries with another are old
        self._queued: dict[Hashable, int] = {}
        self._count = 0
        self._rounds: Sequence[Round] = ()
        self.resting: dict[Hashable, None] = JournaledDict(journal)  # keys of rounds that have nothing to do
        self._monotonic_ms: Callable[[], int] = lambda: 0

    def __len__(self) -> int:
        return len(self._live)

    def __contains__(self, key: object) -> bool:
        return key in self._live

    def __iter__(self) -> Iterator[Timer]:
        return iter(self._live.values())

    def get(self, key: Hashable) -> Timer | None:
        return self._live.get(key)

    def set(self, timer: Timer) -> None:
        """Replaces the key's timer."""
        key = timer.key
        journal = self._journal
        if journal.is_open:
            journal.notes.append((self._put_back, key, self._live.get(key)))
        deadline_ms = timer.deadline_ms
        if deadline_ms is None:
            self._live.pop(key, None)
            return
        self._live[key] = timer
        self._queue(key, deadline_ms)

    def begin_rounds(self, monotonic_ms: Callable[[], int], *rounds: Round) -> None:
        """Has timers for these rounds from now on, each while it is needed."""
        self._monotonic_ms, self._rounds = monotonic_ms, rounds

    def move(self, key: Hashable, deadline_ms: int) -> bool:
        """Gives the key's timer another deadline; returns whether there is one. It stays the same object, so that
        thousands of members who beat leave nothing for the garbage collector.
        """
        timer = self._live.get(key)
        if timer is None or timer.deadline_ms is None:
            return False
        if self._journal.is_open:
            self._journal.notes.append((self._move, timer, timer.deadline_ms))
        self._move(timer, deadline_ms)
        return True

    def move_each(self, now_ms: int, delays_ms: Iterable[tuple[K, int]]) -> list[tuple[K, int]]:
        """Like `move` for each of many keys, with the delay from `now_ms` on. Returns those that have no timer."""
        live, queued = self._live, self._queued
        missing: list[tuple[K, int]] = []
        moved: list[Timer] = []
        before: list[int] = []
        for key, delay_ms in delays_ms:
            timer = live.get(key)
            if timer is None or timer.deadline_ms is None:
                missing.append((key, delay_ms))
                continue
            moved.append(timer)
            before.append(timer.deadline_ms)
            timer.deadline_ms = deadline_ms = now_ms + max(0, delay_ms)
            if deadline_ms < queued.get(key, deadline_ms + 1):
                self._queue(key, deadline_ms)
        self._journal.note(self._move_back, moved, before)
        return missing

    def _move_back(self, timers: list[Timer], deadlines_ms: list[int]) -> None:
        for timer, deadline_ms in zip(reversed(timers), reversed(deadlines_ms), strict=True):
            self._move(timer, deadline_ms)

    def _move(self, timer: Timer, deadline_ms: int) -> None:
        timer.deadline_ms = deadline_ms
        self._queue(timer.key, deadline_ms)

    def cancel(self, key: Hashable) -> None:
        """Removes the key's timer, if there is one."""
        timer = self._live.pop(key, None)
        if timer is None:
            return
        if self._journal.is_open:
            self._journal.notes.append((self._put_back, key, timer))
        if len(self._heap) > 2 * len(self._live) + OLD_MAX:
            self._drop_old()

    def _drop_old(self) -> None:
        """Removes the old entries of the heap, so that it is in proportion to the timers."""
        live, queued = self._live, self._queued
        self._heap = [one for one in self._heap if one[2] in live and queued.get(one[2]) == one[0]]
        heapify(self._heap)
        self._queued = {key: deadline_ms for deadline_ms, _, key in self._heap}

    def _put_back(self, key: Hashable, timer: Timer | None) -> None:
        """Undoes a change. The heap has an entry for the key if it had one before the change."""
        if timer is None:
            self._live.pop(key, None)
        else:
            self._live[key] = timer
            assert timer.deadline_ms is not None
            self._queue(key, timer.deadline_ms)

    def _queue(self, key: Hashable, deadline_ms: int) -> None:
        """Adds an entry to the heap, unless the key has one that is not later."""
        queued = self._queued.get(key)
        if queued is None or deadline_ms < queued:
            self._count += 1
            self._queued[key] = deadline_ms
            heappush(self._heap, (deadline_ms, self._count, key))

    def next_deadline_ms(self) -> int | None:
        """Returns when to call `due` next, which may find nothing then. Sets the timers of rounds that are needed."""
        live, resting = self._live, self.resting
        for one in self._rounds:
            if one.key not in live and one.key not in resting and one.is_needed():
                self.set(one.timer(self._monotonic_ms()))
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int) -> list[Timer]:
        """Returns the timers that are due, earliest first. Each stays until the write that runs it cancels it."""
        found = []
        while self._heap and self._heap[0][0] <= now_ms:
            deadline_ms, _, key = heappop(self._heap)
            if self._queued.get(key) != deadline_ms:
                continue
            del self._queued[key]
            timer = self._live.get(key)
            if timer is None or timer.deadline_ms is None:
                continue
            if timer.deadline_ms > now_ms:
                self._queue(key, timer.deadline_ms)
            else:
                found.append(timer)
        return found

    def is_due(self, timer: Timer, now_ms: int) -> bool:
        """Whether a timer that `due` returned still is: nothing has replaced, cancelled or moved it since."""
        deadline_ms = timer.deadline_ms
        return self._live.get(timer.key) is timer and deadline_ms is not None and deadline_ms <= now_ms

    def clear(self) -> None:
        self._rounds = ()
        self._live.clear()
        self._heap.clear()
        self._queued.clear()
