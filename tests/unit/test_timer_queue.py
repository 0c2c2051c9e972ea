"""The queue of timers: order, cancelling, and memory in proportion to what is pending."""

from __future__ import annotations

import math

from ottla.broker.timer_queue import CANCELLED_MAX, TimerQueue


def drained(queue: TimerQueue, until_ms: float = math.inf) -> None:
    while (call := queue.pop(until_ms, queue.last)) is not None:
        call()


def test_timers_fire_by_deadline_and_then_in_the_order_in_which_they_were_set() -> None:
    queue, fired = TimerQueue(), list[str]()
    for deadline_ms, name in ((5, "a"), (3, "b"), (5, "c"), (4, "d")):
        queue.add(deadline_ms, lambda name=name: fired.append(name))  # type: ignore[misc]
    drained(queue, 4)
    assert fired == ["b", "d"]
    assert queue.next_ms() == 5
    drained(queue)
    assert fired == ["b", "d", "a", "c"]
    assert queue.next_ms() == math.inf


def test_a_timer_that_is_newer_than_the_last_of_a_round_waits_for_the_next() -> None:
    queue, fired = TimerQueue(), list[int]()

    def again() -> None:
        fired.append(1)
        queue.add(0, again)

    queue.add(0, again)
    last = queue.last
    while (call := queue.pop(0, last)) is not None:
        call()
    assert fired == [1]
    assert len(queue) == 1


def test_a_timer_that_has_fired_or_was_cancelled_can_be_cancelled_again() -> None:
    queue = TimerQueue()
    fired, cancelled = queue.add(1, lambda: None), queue.add(2, lambda: None)
    assert queue.pop(1, queue.last) is not None
    fired.cancel()
    cancelled.cancel()
    cancelled.cancel()
    assert len(queue) == 0
    assert queue.next_ms() == math.inf


def test_cancelled_timers_take_no_more_memory_than_the_others() -> None:
    queue = TimerQueue()
    kept = [queue.add(1_000_000, lambda: None) for _ in range(100)]
    for n in range(10_000):
        queue.add(n, lambda: None).cancel()
    assert len(queue) == len(kept)
    assert len(queue._heap) <= 2 * len(kept) + CANCELLED_MAX + 1
