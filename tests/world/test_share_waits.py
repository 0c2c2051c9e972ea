"""Share fetches that only members could satisfy which wait themselves do not keep them waiting."""

from __future__ import annotations

from typing import Any

from ottla.broker.share.sessions import OWN_WAIT_MS
from ottla.coordinator.share.acknowledge_types import ACCEPT, RENEW

from ..support.share_world import EARLIEST, Consumer, acquired, produce, ready
from ..support.world import World

LOCKS = 100
WAIT_MS = 500
FULL = {**EARLIEST, "share.partition.max.record.locks": str(LOCKS)}


def full(**settings: Any) -> tuple[World, Consumer]:
    """A member that holds as many records as a share-partition may have in flight, and more are in the log."""
    w, one = ready(0, group=FULL, **settings)
    for _ in range(2):
        produce(w, *(b"v" for _ in range(LOCKS)))
    assert one.got(max_records=LOCKS) == [(0, LOCKS - 1, 1)]
    return w, one


def waited_ms(w: World, one: Consumer, *acks: tuple[int, ...]) -> int:
    """How long a fetch waits that gets nothing."""
    began_ms = w.schedule.monotonic_ms()
    assert one.got(*acks, wait_ms=WAIT_MS) == []
    return int(w.schedule.monotonic_ms() - began_ms)


def test_a_fetch_that_only_its_member_can_satisfy_ends_soon_and_later_each_time() -> None:
    w, one = full()
    assert [waited_ms(w, one) for _ in range(10)] == [2, 4, 8, 16, 32, 64, 128, 256, WAIT_MS, WAIT_MS]


def test_a_member_that_acknowledges_is_answered_soon_again() -> None:
    w, one = full()
    for _ in range(5):
        waited_ms(w, one)
    assert one.acknowledge((5, 5, ACCEPT)) == 0  # it frees nothing: the window begins before it
    assert waited_ms(w, one) == OWN_WAIT_MS
    assert waited_ms(w, one, (6, 6, ACCEPT)) == OWN_WAIT_MS
    assert one.got((0, LOCKS - 1, ACCEPT), wait_ms=WAIT_MS) == []  # some of them it does not hold any more
    assert one.got((7, LOCKS - 1, ACCEPT), wait_ms=WAIT_MS) == []
    asked = one.send_fetch((0, 4, ACCEPT), wait_ms=WAIT_MS)
    w.pass_ms(1)
    assert acquired(asked.reply) == [(LOCKS, 2 * LOCKS - 1, 1)]


def test_what_another_member_holds_is_waited_for() -> None:
    w, one = full()
    other = Consumer(w, "other")
    assert waited_ms(w, other) == WAIT_MS
    asked = other.send_fetch(wait_ms=WAIT_MS)
    w.pass_ms(300)
    assert not asked.done
    assert one.acknowledge((0, LOCKS - 1, ACCEPT)) == 0
    assert acquired(asked.reply) == [(LOCKS, 2 * LOCKS - 1, 1)]


def shared(**settings: Any) -> tuple[World, Consumer, Consumer, Consumer]:
    """Two members that hold all records that a share-partition may have in flight, and one that holds none."""
    w, one = ready(0, group=FULL, **settings)
    for _ in range(4):
        produce(w, *(b"v" for _ in range(LOCKS // 2)))
    other = Consumer(w, "other")
    assert one.got(max_records=LOCKS // 2, batch_size=LOCKS // 2) == [(0, LOCKS // 2 - 1, 1)]
    assert other.got(max_records=LOCKS // 2, batch_size=LOCKS // 2) == [(LOCKS // 2, LOCKS - 1, 1)]
    return w, one, other, Consumer(w, "third")


def test_fetches_end_soon_when_all_wait_who_could_satisfy_them() -> None:
    """A member that holds nothing goes on waiting: its connection is not what an acknowledgement comes over."""
    w, one, other, third = shared()
    idle, first = third.send_fetch(wait_ms=WAIT_MS), one.send_fetch(wait_ms=WAIT_MS)
    w.pass_ms(100)
    assert not first.done
    last = other.send_fetch(wait_ms=WAIT_MS)
    w.pass_ms(OWN_WAIT_MS)
    assert (first.done, last.done, idle.done) == (True, True, False)
    assert one.acknowledge((0, LOCKS // 2 - 1, ACCEPT)) == 0
    assert acquired(idle.reply) != []


def test_a_member_that_acknowledges_on_its_way_satisfies_those_that_wait() -> None:
    w, one, other, _ = shared()
    first = one.send_fetch(wait_ms=WAIT_MS)
    last = other.send_fetch((LOCKS // 2, LOCKS - 1, ACCEPT), wait_ms=WAIT_MS)  # the window begins before these
    w.pass_ms(OWN_WAIT_MS)
    assert (first.done, last.done) == (True, False)
    assert one.acknowledge((0, LOCKS // 2 - 1, ACCEPT)) == 0
    w.pass_ms(1)
    assert acquired(last.reply) != []


def test_a_fetch_that_names_a_partition_twice_waits_once() -> None:
    """When it has ended, its member does not wait, and may acknowledge for the others."""
    w, one, other, _ = shared()
    one.partitions = [0, 0]  # in its session: none can begin so
    asked = one.send_fetch(wait_ms=10)
    assert not asked.done
    w.pass_ms(10)
    assert asked.done
    assert asked.reply.error_code == 0
    assert waited_ms(w, other) == WAIT_MS


def test_without_settling_all_wait_as_in_kafka() -> None:
    w, one, other, _ = shared(ottla_group_settle="false")
    first, last = one.send_fetch(wait_ms=WAIT_MS), other.send_fetch(wait_ms=WAIT_MS)
    w.pass_ms(WAIT_MS - 1)
    assert (first.done, last.done) == (False, False)


def test_new_records_are_waited_for() -> None:
    w, one = ready(0, group=FULL)
    assert waited_ms(w, one) == WAIT_MS


def test_renewing_locks_counts_as_a_sign_of_life() -> None:
    w, one = full()
    for _ in range(5):
        waited_ms(w, one)
    assert one.acknowledge((0, LOCKS - 1, RENEW), renews=True) == 0
    assert waited_ms(w, one) == OWN_WAIT_MS


def test_without_settling_the_fetch_waits_as_in_kafka() -> None:
    w, one = full(ottla_group_settle="false")
    assert waited_ms(w, one) == WAIT_MS
