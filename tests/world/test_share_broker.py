"""Share groups in a whole broker: fetching and waiting, the group's configuration, membership."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from ottla.broker.later import Later
from ottla.coordinator.group.share.group import ShareGroup
from ottla.coordinator.share.acknowledge_types import ACCEPT, RELEASE, RENEW
from ottla.coordinator.share.partition import State
from ottla.coordinator.share.state import PartitionKey
from ottla.protocol.errors import Errors

from ..support.failing_files import FailingFiles
from ..support.share_world import (
    EARLIEST,
    Consumer,
    acquired,
    beat,
    configure,
    create,
    engine,
    hold,
    produce,
    ready,
    topic_id,
    world,
)
from ..support.world import World


def share_group(w: World) -> ShareGroup:
    group = w.broker.groups.host("q").shard.groups["q"]
    assert isinstance(group, ShareGroup)
    return group


# fetching and waiting


def test_a_long_poll_wakes_with_new_records() -> None:
    w, one = ready(0)
    asked = one.send_fetch(wait_ms=5000)
    w.pass_ms(1000)
    assert not asked.done
    produce(w, b"v")
    w.pass_ms(0)
    assert acquired(asked.reply) == [(0, 0, 1)]


def test_a_long_poll_wakes_with_released_records() -> None:
    w, one = ready()
    one.got()
    other = Consumer(w, "other")
    other.got()
    asked = other.send_fetch(wait_ms=5000)
    assert one.acknowledge((0, 1, RELEASE)) == 0
    assert acquired(asked.reply) == [(0, 1, 2)]


def test_a_long_poll_wakes_when_a_lock_runs_out() -> None:
    w, one = ready()
    one.got()
    other = Consumer(w, "other")
    other.got()
    asked = other.send_fetch(wait_ms=60_000)
    w.pass_ms(29_998)
    assert not asked.done
    w.pass_ms(10)
    assert acquired(asked.reply) == [(0, 2, 2)]


def test_only_records_below_the_high_watermark_are_leased() -> None:
    w, one = ready(0)
    hold(w, "t")
    asked = one.send_fetch(wait_ms=60_000)
    produce(w, b"v")
    w.pass_ms(1000)
    assert not asked.done
    hold(w, "t", "immediate")
    w.pass_ms(10)
    assert acquired(asked.reply) == [(0, 0, 1)]


def test_a_long_poll_ends_with_its_time() -> None:
    w, one = ready(0)
    asked = one.send_fetch(wait_ms=500)
    w.pass_ms(499)
    assert not asked.done
    w.pass_ms(1)
    assert asked.done
    assert asked.reply.error_code == 0


def test_a_lost_connection_gives_back_what_it_held() -> None:
    w, one = ready()
    one.got()
    other = Consumer(w, "other")
    assert other.got() == []
    one.lose_connection()
    assert other.got() == [(0, 2, 2)]


def test_the_final_epoch_gives_back_what_the_member_held() -> None:
    w, one = ready()
    one.got()
    other = Consumer(w, "other")
    assert other.got() == []
    assert one.acknowledge((0, 0, ACCEPT), epoch=-1) == 0
    assert other.got() == [(1, 2, 2)]
    assert one.fetch(epoch=3).error_code == Errors.SHARE_SESSION_NOT_FOUND


def test_a_session_is_on_one_connection_and_goes_by_its_epoch() -> None:
    _, one = ready()
    assert one.fetch(epoch=9).error_code == Errors.INVALID_SHARE_SESSION_EPOCH
    assert one.acknowledge((0, 0, ACCEPT), epoch=9) == Errors.INVALID_SHARE_SESSION_EPOCH


def test_records_are_leased_when_the_share_partition_has_been_read() -> None:
    """A fetch that comes while the state is read waits for it."""
    w = world()
    produce(w, b"v")
    hold(w)
    w.broker.partitions.get("t", 0).leader_epoch = 1  # a new leader writes its epoch when it reads
    one = Consumer(w)
    asked = one.send_fetch(wait_ms=4000)
    w.pass_ms(100)
    assert engine(w).state is State.INITIALIZING
    assert not asked.done
    hold(w, text="immediate")
    w.pass_ms(10)
    assert acquired(asked.reply) == [(0, 0, 1)]


# the group's configuration


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("earliest", [(0, 2, 1)]),
        ("latest", []),
        ("by_duration:PT10S", [(1, 2, 1)]),
        ("by_duration:PT9223372036854775807S", [(0, 2, 1)]),
    ],
)
def test_where_a_group_begins(reset: str, expected: list[tuple[int, int, int]]) -> None:
    w = world(group={"share.auto.offset.reset": reset})
    produce(w, b"old")
    w.pass_ms(20_000)
    produce(w, b"new", b"new")
    assert Consumer(w).got(wait_ms=100) == expected


def test_a_group_begins_with_the_newest_records_unless_it_says_otherwise() -> None:
    w = world(group=None)
    produce(w, b"old")
    one = Consumer(w)
    assert one.got(wait_ms=100) == []
    produce(w, b"new")
    assert one.got() == [(1, 1, 1)]


def test_a_duration_after_the_last_record_has_no_offset() -> None:
    w = world(group={"share.auto.offset.reset": "by_duration:PT10S"})
    produce(w, b"old")
    w.pass_ms(20_000)
    reply = Consumer(w).fetch()
    assert [p.error_code for t in reply.responses for p in t.partitions] == [Errors.OFFSET_NOT_AVAILABLE]


@pytest.mark.parametrize(
    ("broker", "group", "expected_ms"),
    [
        ({}, {}, 30_000),
        ({"group_share_record_lock_duration_ms": "20000"}, {}, 20_000),
        ({"group_share_record_lock_duration_ms": "20000"}, {"share.record.lock.duration.ms": "40000"}, 40_000),
    ],
)
def test_how_long_records_are_locked(broker: dict[str, Any], group: dict[str, str], expected_ms: int) -> None:
    w, one = ready(group=EARLIEST | group, **broker)
    reply = one.fetch()
    assert reply.acquisition_lock_timeout_ms == expected_ms
    w.pass_ms(expected_ms - 1)
    other = Consumer(w, "other")
    assert other.got() == []
    w.pass_ms(1)
    assert other.got() == [(0, 2, 2)]


def test_a_lock_duration_may_change_while_records_are_held() -> None:
    w, one = ready()
    one.got(share_acquire_mode=1, max_records=1)
    assert configure(w, 32, "q", {"share.record.lock.duration.ms": "15000"}) == 0
    one.got(share_acquire_mode=1, max_records=1)
    w.pass_ms(15_000)
    assert Consumer(w, "other").got(share_acquire_mode=1, max_records=5)[0] == (1, 1, 2)


@pytest.mark.parametrize(
    ("broker", "group", "expected"),
    [({}, {}, 5), ({"group_share_delivery_count_limit": "3"}, {}, 3), ({}, {"share.delivery.count.limit": "2"}, 2)],
)
def test_how_often_a_record_is_delivered(broker: dict[str, str], group: dict[str, str], expected: int) -> None:
    _, one = ready(1, group=EARLIEST | group, **broker)
    for count in range(1, expected + 1):
        assert one.got() == [(0, 0, count)]
        assert one.acknowledge((0, 0, RELEASE)) == 0
    assert one.got() == []


@pytest.mark.parametrize(
    ("broker", "group", "expected"),
    [
        ({"group_share_partition_max_record_locks": "150"}, {}, 150),
        ({}, {"share.partition.max.record.locks": "100"}, 100),
    ],
)
def test_how_many_records_are_in_flight(broker: dict[str, str], group: dict[str, str], expected: int) -> None:
    w, one = ready(0, group=EARLIEST | group, **broker)
    for _ in range(20):
        produce(w, *(b"v" for _ in range(10)))
    assert [row[:2] for row in one.got(max_records=1000)] == [(0, expected - 1)]
    assert one.got() == []


def test_renewing_may_be_turned_off() -> None:
    w, one = ready()
    one.got()
    assert one.acknowledge((0, 2, RENEW), renews=True) == 0
    assert configure(w, 32, "q", {"share.renew.acknowledge.enable": "false"}) == 0
    assert one.acknowledge((0, 2, RENEW), renews=True) == Errors.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share.record.lock.duration.ms", "14999"),
        ("share.record.lock.duration.ms", "60001"),
        ("share.delivery.count.limit", "1"),
        ("share.delivery.count.limit", "11"),
        ("share.partition.max.record.locks", "99"),
        ("share.partition.max.record.locks", "4001"),
        ("share.heartbeat.interval.ms", "4999"),
        ("share.session.timeout.ms", "60001"),
        ("share.auto.offset.reset", "none"),
        ("share.isolation.level", "serializable"),
    ],
)
def test_values_that_a_group_may_not_have(key: str, value: str) -> None:
    assert configure(world(), 32, "q", {key: value}) == Errors.INVALID_CONFIG


def test_a_groups_value_is_capped_by_bounds_that_came_later() -> None:
    """KIP-1240: the broker's bounds win over what was set before them."""
    w = world(group=EARLIEST | {"share.record.lock.duration.ms": "60000"})
    w.broker.stop()
    again = World(
        w.files,
        1,
        offsets_topic_num_partitions="1",
        share_coordinator_state_topic_num_partitions="1",
        group_share_max_record_lock_duration_ms="40000",
    )
    again.pass_ms(100)
    assert Consumer(again).fetch().acquisition_lock_timeout_ms == 40_000


# membership


def test_members_get_the_heartbeat_interval_and_a_silent_one_is_fenced() -> None:
    w = world(
        ottla_group_settle="false", group_share_heartbeat_interval_ms="6000", group_share_session_timeout_ms="50000"
    )
    assert beat(w, "n").heartbeat_interval_ms == 6000
    w.pass_ms(50_001)
    assert beat(w, "n", 2).error_code == Errors.UNKNOWN_MEMBER_ID


def test_a_share_group_has_a_largest_size() -> None:
    w = world(group_share_max_size="1")
    assert beat(w, "n").error_code == Errors.GROUP_MAX_SIZE_REACHED


def test_more_members_than_partitions_all_have_some() -> None:
    w = world(2)
    for number in range(5):
        beat(w, f"n{number}")
    w.pass_ms(1000)
    held_by = share_group(w).targets
    held = [[index for indexes in target.values() for index in indexes] for target in held_by.values()]
    assert sorted(held) == [[0], [0], [0], [1], [1], [1]]


def test_sessions_have_a_limit() -> None:
    w = world(group_share_max_share_sessions="2", group_share_max_size="2")
    consumers = [Consumer(w, f"n{number}") for number in range(3)]
    assert [one.fetch().error_code for one in consumers] == [0, 0, Errors.SHARE_SESSION_LIMIT_REACHED]
    consumers[0].lose_connection()
    assert Consumer(w, "n3").fetch().error_code == 0


def test_a_group_has_intervals_of_its_own() -> None:
    own = {"share.heartbeat.interval.ms": "7000", "share.session.timeout.ms": "46000"}
    w = world(group=EARLIEST | own, ottla_group_settle="false")
    assert beat(w, "n").heartbeat_interval_ms == 7000
    w.pass_ms(46_001)
    assert beat(w, "n", 2).error_code == Errors.UNKNOWN_MEMBER_ID


def test_an_initialisation_that_is_under_way_is_begun_again_after_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """`group.share.initialize.retry.interval.ms`: the share coordinator does not answer."""
    w = world(group_share_initialize_retry_interval_ms="20000")
    begun: list[PartitionKey] = []

    def initialize(key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        begun.append(key)
        return Later()

    monkeypatch.setattr(w.broker.share_partitions.persister.once, "initialize", initialize)
    create(w, "late")
    beat(w, "n", 0, "late")
    w.pass_ms(19_000)
    beat(w, "n", 0, "late")
    assert begun == [PartitionKey("q", topic_id(w, "late"), 0)]
    w.pass_ms(1001)
    beat(w, "n", 0, "late")
    assert len(begun) == 2


def test_assignments_are_not_made_more_often_than_the_interval() -> None:
    w = world(
        2,
        group_share_assignment_interval_ms="10000",
        group_share_min_assignment_interval_ms="0",
        ottla_group_settle="false",
    )
    w.pass_ms(20_000)
    beat(w, "a")
    before = share_group(w).epochs()
    beat(w, "b")
    group, assignment = share_group(w).epochs()
    assert (group, assignment) == (before[0] + 1, before[1]), "within ten seconds of the last assignment"
    w.pass_ms(10_001)
    beat(w, "b", assignment)
    assert share_group(w).epochs() == (group, group)


@pytest.mark.parametrize(("error_number", "is_offline"), [(errno.EIO, True), (errno.EMFILE, False)])
def test_a_log_that_cannot_be_read_fails_its_partition_alone(error_number: int, is_offline: bool) -> None:
    """A disk that fails takes its directory offline, as for a Fetch; without descriptors only this fetch fails."""
    files = FailingFiles()
    w = world(2, files=files, log_dirs="/data,/second")
    one = Consumer(w, "m", partitions=(0, 1))
    for partition in (0, 1):
        produce(w, b"a", b"b", partition=partition)
    assert one.got() == [(0, 1, 1), (0, 1, 1)]
    (first,) = [one.index for one in w.broker.partitions.of_topic("t") if one.open_log().directory.startswith("/data/")]
    files.fail("read", f"/t-{first}/{0:020}.log", error_number)
    for partition in (0, 1):
        produce(w, b"c", partition=partition)
    reply = one.fetch(wait_ms=10)
    found = {part.partition_index: part for topic in reply.responses for part in topic.partitions}
    assert found[first].error_code == Errors.KAFKA_STORAGE_ERROR
    assert [len(found[1 - first].acquired_records) > 0, found[1 - first].error_code] == [True, 0]
    assert [one.failed for one in w.broker.log_directories.all] == [is_offline, False]
    logs = [one.log for one in w.broker.partitions.of_topic("t")]
    assert sum(segment.holds for log in logs if log is not None for segment in log.segments) == 0
    assert w.broker.metrics.bugs == 0


def test_a_log_in_which_the_first_offset_cannot_be_looked_for_fails_its_partition() -> None:
    files = FailingFiles()
    w = world(group={"share.auto.offset.reset": "by_duration:PT10S"}, files=files)
    one = Consumer(w)
    produce(w, b"a")
    fault = files.fail("read", f"/t-0/{0:020}.log", errno.EMFILE)
    ((part,),) = [topic.partitions for topic in one.fetch(wait_ms=10).responses]
    assert (part.error_code, w.broker.metrics.bugs) == (Errors.KAFKA_STORAGE_ERROR, 0)
    files.faults.remove(fault)
    assert one.got() == [(0, 0, 1)]


def test_a_connection_that_is_lost_while_acknowledgements_are_written_keeps_no_file() -> None:
    w, one = ready(2)
    one.got(max_records=1, share_acquire_mode=1)
    hold(w)
    asked = one.send_fetch((0, 0, ACCEPT))
    w.pass_ms(100)
    (log,) = [one.open_log() for one in w.broker.partitions.of_topic("t")]
    assert (asked.done, log.active.holds) == (False, 1)
    asked.waiting.cancel()
    assert log.active.holds == 0
