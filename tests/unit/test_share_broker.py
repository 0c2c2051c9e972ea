"""Share groups in a whole broker under virtual time: sessions, long polls, the persister and the share coordinator; each key shows its effect."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.later import Later
from ottla.broker.share_coordinators import TOPIC_NAME
from ottla.coordinator.share.partition import State
from ottla.coordinator.share.state import PartitionKey, batches_of
from ottla.protocol import compression
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..world import World
from .share_world import (
    ACCEPT,
    EARLIEST,
    REJECT,
    RELEASE,
    RENEW,
    Consumer,
    acquired,
    beat,
    configure,
    create,
    engine,
    hold,
    produce,
    produce_records,
    records_of,
    state,
    topic_id,
    world,
    written,
)


def ready(count: int = 3, group: dict[str, str] | None = EARLIEST, **settings: Any) -> tuple[World, Consumer]:
    """A group that has begun, with so many records in one batch."""
    w = world(group=group, **settings)
    one = Consumer(w)
    assert one.got() == []
    if count:
        produce(w, *(b"%d" % n for n in range(count)))
    return w, one


def update_feature(w: World, level: int) -> int:
    r = m.UpdateFeaturesRequest
    key = r.FeatureUpdateKey(feature="share.version", max_version_level=level, upgrade_type=2)
    reply = w.ask("UpdateFeatures", 1, r(timeout_ms=1000, feature_updates=[key]))
    return int(reply.error_code or reply.results[0].error_code)


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
    w.broker.partition("t", 0).leader_epoch = 1  # a new leader writes its epoch when it reads
    one = Consumer(w)
    asked = one.send_fetch(wait_ms=4000)
    w.pass_ms(100)
    assert engine(w).state is State.INITIALIZING
    assert not asked.done
    hold(w, text="immediate")
    w.pass_ms(10)
    assert acquired(asked.reply) == [(0, 0, 1)]


# the group's configuration


@pytest.mark.parametrize(("reset", "expected"), [("earliest", [(0, 2, 1)]), ("latest", []), ("by_duration:PT10S", [(1, 2, 1)])])
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
    ("broker", "group", "expected"), [({}, {}, 5), ({"group_share_delivery_count_limit": "3"}, {}, 3), ({}, {"share.delivery.count.limit": "2"}, 2)]
)
def test_how_often_a_record_is_delivered(broker: dict[str, str], group: dict[str, str], expected: int) -> None:
    _, one = ready(1, group=EARLIEST | group, **broker)
    for count in range(1, expected + 1):
        assert one.got() == [(0, 0, count)]
        assert one.acknowledge((0, 0, RELEASE)) == 0
    assert one.got() == []


@pytest.mark.parametrize(
    ("broker", "group", "expected"),
    [({"group_share_partition_max_record_locks": "150"}, {}, 150), ({}, {"share.partition.max.record.locks": "100"}, 100)],
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


def test_the_heartbeat_interval_is_told_and_a_silent_member_is_fenced() -> None:
    w = world(ottla_group_settle="false", group_share_heartbeat_interval_ms="6000", group_share_session_timeout_ms="50000")
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
    group = w.broker.groups.host("q").shard.groups["q"]
    held = [[index for indexes in target.values() for index in indexes] for target in group.targets.values()]
    assert sorted(held) == [[0], [0], [0], [1], [1], [1]]


def test_sessions_have_a_limit() -> None:
    w = world(group_share_max_share_sessions="2")
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

    monkeypatch.setattr(w.broker.sharing.persister, "initialize", initialize)
    create(w, "late")
    beat(w, "n", 0, "late")
    w.pass_ms(19_000)
    beat(w, "n", 0, "late")
    assert begun == [PartitionKey("q", topic_id(w, "late"), 0)]
    w.pass_ms(1001)
    beat(w, "n", 0, "late")
    assert len(begun) == 2


def test_assignments_are_not_made_more_often_than_the_interval() -> None:
    w = world(2, group_share_assignment_interval_ms="10000", group_share_min_assignment_interval_ms="0", ottla_group_settle="false")
    w.pass_ms(20_000)
    beat(w, "a")
    before = w.broker.groups.host("q").shard.groups["q"].epochs()
    beat(w, "b")
    group, assignment = w.broker.groups.host("q").shard.groups["q"].epochs()
    assert (group, assignment) == (before[0] + 1, before[1]), "within ten seconds of the last assignment"
    w.pass_ms(10_001)
    beat(w, "b", assignment)
    assert w.broker.groups.host("q").shard.groups["q"].epochs() == (group, group)


# share.version


def test_without_share_version_there_are_no_share_groups() -> None:
    w, one = ready()
    one.got()
    assert update_feature(w, 0) == 0
    assert one.fetch().error_code == Errors.UNSUPPORTED_VERSION
    assert beat(w, "n").error_code == Errors.UNSUPPORTED_VERSION
    assert w.broker.sharing.partitions == {}
    assert update_feature(w, 2) == 0
    assert Consumer(w).got() == [(0, 2, 1)], "leases are forgotten, the state is not"


# the persister and the share coordinator


def test_what_is_acknowledged_outlives_the_broker() -> None:
    w, one = ready(5)
    one.got()
    one.acknowledge((0, 0, ACCEPT), (1, 1, RELEASE), (3, 3, REJECT))
    w.broker.stop()
    again = World(w.files, 1, offsets_topic_num_partitions="1", share_coordinator_state_topic_num_partitions="1")
    again.pass_ms(100)
    assert Consumer(again).got() == [(1, 1, 2), (2, 2, 1), (4, 4, 1)]


def test_an_acknowledgement_is_answered_when_it_is_committed() -> None:
    w, one = ready()
    one.got()
    hold(w)
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.pass_ms(1000)
    assert not asked.done
    assert engine(w).start_offset == 0
    hold(w, text="immediate")
    w.pass_ms(1)
    assert asked.reply.responses[0].partitions[0].error_code == 0
    assert engine(w).start_offset == 3


def test_a_write_that_takes_too_long_is_an_error_and_may_be_committed_yet() -> None:
    """`share.coordinator.write.timeout.ms`, five times, with pauses of 1, 2, 4 and 8 seconds; no shard waits for another."""
    w, one = ready(share_coordinator_write_timeout_ms="3000")
    one.got()
    hold(w)
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.pass_ms(29_500)
    assert not asked.done
    w.pass_ms(1000)
    assert asked.reply.responses[0].partitions[0].error_code == Errors.COORDINATOR_NOT_AVAILABLE
    hold(w, text="immediate")
    w.pass_ms(100)
    assert state(w).batches == ((0, 2, 2, 1),)
    assert w.broker.share_states.hosts[0].runtime.bugs == 0


def test_a_refused_write_is_tried_again() -> None:
    """The state topic has too few replicas in sync for a while."""
    w, one = ready()
    one.got()
    partition = w.broker.partition(TOPIC_NAME, 0)
    partition.isr_size = 0
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.pass_ms(500)
    assert not asked.done
    partition.isr_size = 1
    w.pass_ms(1000)
    assert asked.reply.responses[0].partitions[0].error_code == 0


def test_a_fenced_write_reads_the_state_anew() -> None:
    """Another leader has read the state: its epoch is higher."""
    w, one = ready()
    one.got()
    key = PartitionKey("q", topic_id(w), 0)
    w.broker.event(lambda: w.broker.share_states.read_state(key, 7))
    w.pass_ms(10)
    assert one.acknowledge((0, 2, ACCEPT)) == Errors.NOT_LEADER_OR_FOLLOWER
    assert key not in w.broker.sharing.partitions


def test_no_write_of_a_share_partition_that_was_given_up_comes_late() -> None:
    w, one = ready()
    one.got()
    partition = w.broker.partition(TOPIC_NAME, 0)
    partition.isr_size = 0
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.broker.event(lambda: w.broker.sharing.reload(w.broker.partition("t", 0)))
    partition.isr_size = 1
    w.pass_ms(2000)
    assert asked.reply.responses[0].partitions[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER
    assert Consumer(w, "other").got() == [(0, 2, 1)]


def test_a_persister_that_keeps_nothing() -> None:
    """`group.share.persister.class.name`."""
    name = "org.apache.kafka.server.share.persister.NoOpStatePersister"
    w, one = ready(group_share_persister_class_name=name)
    assert one.got() == [(0, 2, 1)]
    assert one.acknowledge((0, 2, ACCEPT)) == 0
    assert engine(w).start_offset == 3
    assert w.broker.topic(TOPIC_NAME) is None


def acknowledge_all(w: World, one: Consumer, count: int) -> None:
    for number in range(count):
        produce(w, b"%d" % number)
        ((first, last, _),) = one.got()
        assert one.acknowledge((first, last, ACCEPT)) == 0


def test_after_so_many_updates_comes_a_snapshot() -> None:
    w, one = ready(0, share_coordinator_snapshot_update_records_per_snapshot="3")
    acknowledge_all(w, one, 9)
    kinds = [kind for kind, _ in written(w)]
    assert kinds.count("ShareSnapshot") == 3
    gaps = "".join("s" if kind == "ShareSnapshot" else "u" for kind in kinds)
    assert "uuuu" not in gaps
    epochs = [value.snapshot_epoch for _, value in written(w)]
    assert epochs == sorted(epochs)


def test_records_that_snapshots_made_redundant_are_cut_off() -> None:
    w, one = ready(0, share_coordinator_snapshot_update_records_per_snapshot="3", share_coordinator_state_topic_prune_interval_ms="7000")
    acknowledge_all(w, one, 9)
    log = w.broker.partition(TOPIC_NAME, 0).open_log()
    last = max(offset for offset, (kind, _) in enumerate(written(w)) if kind == "ShareSnapshot")
    assert log.start_offset == 0
    w.pass_ms(7001)
    assert log.start_offset == last
    before = state(w)
    w.broker.event(lambda: w.broker.share_states.reload(w.broker.partition(TOPIC_NAME, 0)))
    w.pass_ms(100)
    assert state(w) == before


def test_a_cold_share_partition_is_written_as_a_snapshot() -> None:
    w, one = ready(0, share_coordinator_cold_partition_snapshot_interval_ms="9000")
    acknowledge_all(w, one, 2)
    assert written(w)[-1][0] == "ShareUpdate"
    w.pass_ms(18_001)
    kind, value = written(w)[-1]
    assert (kind, value.start_offset, *batches_of(value)) == ("ShareSnapshot", 1, (1, 1, 2, 1))
    count = len(written(w))
    w.pass_ms(18_001)
    assert len(written(w)) == count, "once is enough"


def test_the_state_topic_is_made_as_configured() -> None:
    w = world(share_coordinator_state_topic_num_partitions="3", share_coordinator_state_topic_segment_bytes="2000000")
    Consumer(w).got()
    configs = w.broker.topic_config(TOPIC_NAME)
    assert (configs["cleanup.policy"], configs["segment.bytes"], configs["retention.ms"]) == (("delete",), 2_000_000, -1)
    assert w.broker.image.partition_counts[topic_id(w, TOPIC_NAME)] == 3


def test_batches_of_the_state_topic_are_compressed() -> None:
    w, _ = ready(share_coordinator_state_topic_compression_codec="4")
    log = w.broker.partition(TOPIC_NAME, 0).open_log()
    assert {info.header.codec for _, info in log.batches_from(0) if info.header is not None} == {compression.ZSTD}


def test_the_state_of_a_deleted_topic_goes_with_it() -> None:
    w, one = ready()
    one.got()
    key = PartitionKey("q", topic_id(w), 0)
    w.ask("DeleteTopics", 6, m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=1000))
    w.pass_ms(100)
    assert w.broker.share_states.hosts[0].shard.states.get(key) is None
    assert written(w)[-1] == ("ShareSnapshot", None)
    assert key not in w.broker.sharing.partitions


def test_a_partition_that_is_added_is_part_of_the_group() -> None:
    w, _ = ready()
    r = m.CreatePartitionsRequest
    w.ask("CreatePartitions", 3, r(topics=[r.CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=1000))
    w.pass_ms(5000)
    beat(w, "m", 2)
    w.pass_ms(5000)
    produce(w, b"v", partition=1)
    other = Consumer(w, "other", partitions=(0, 1))
    assert other.got() == [(0, 2, 1), (0, 0, 1)]


def test_a_topic_that_is_compacted_under_a_live_group() -> None:
    """Records that were given back and are then compacted away do not hold up the start offset."""
    w = world()
    create(w, "c", 1, {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"})
    beat(w, "m2", 0, "c")
    w.pass_ms(1000)
    one = Consumer(w, "m2", topic="c")
    assert one.got() == []
    for _ in range(5):
        produce_records(w, [(b"same", b"x" * 600_000)], "c")
    held = one.got(max_bytes=1 << 23)
    one.acknowledge(*((first, last, RELEASE) for first, last, _ in held))
    w.broker.partitions.cleaner.clean_one()
    w.pass_ms(1000)
    left = [record.offset for record in records_of(w.broker.partition("c", 0))]
    assert len(left) < 5
    seen: list[int] = []
    while got := one.got(max_bytes=1 << 23):
        seen += [offset for first, last, _ in got for offset in range(first, last + 1)]
        assert one.acknowledge(*((first, last, ACCEPT) for first, last, _ in got)) == 0
    assert set(left) <= set(seen)
    assert w.broker.sharing.partitions[PartitionKey("q", topic_id(w, "c"), 0)].engine.start_offset == 5


def test_fetches_of_another_group_see_their_own_records() -> None:
    w, one = ready()
    configure(w, 32, "r", EARLIEST)
    beat(w, "m2", group="r")
    w.pass_ms(1000)
    assert one.got() == [(0, 2, 1)]
    assert Consumer(w, "m2", group="r").got() == [(0, 2, 1)]


def test_read_committed_stops_at_the_last_stable_offset() -> None:
    """`share.isolation.level`: without transactions that is the high watermark."""
    w, one = ready(group=EARLIEST | {"share.isolation.level": "read_committed"})
    create(w, "u")
    assert one.got() == [(0, 2, 1)]
