"""Share groups in a whole broker: the persister and the share coordinator."""

from __future__ import annotations

import pytest
from ottla.broker.share.coordinators import TOPIC_NAME
from ottla.coordinator.share.acknowledge_types import ACCEPT, REJECT, RELEASE
from ottla.coordinator.share.state import PartitionKey, batches_of
from ottla.protocol import compression
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.failing_appends import fail_appends
from ..support.share_world import (
    EARLIEST,
    Consumer,
    beat,
    configure,
    create,
    engine,
    hold,
    produce,
    produce_records,
    ready,
    records_of,
    state,
    topic_id,
    update_feature,
    world,
    written,
)
from ..support.world import World

# share.version


def test_without_share_version_there_are_no_share_groups() -> None:
    w, one = ready()
    one.got()
    assert update_feature(w, 0) == 0
    assert one.fetch().error_code == Errors.UNSUPPORTED_VERSION
    assert beat(w, "n").error_code == Errors.UNSUPPORTED_VERSION
    assert w.broker.share_partitions.partitions == {}
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
    assert engine(w).window.start_offset == 0
    hold(w, text="immediate")
    w.pass_ms(1)
    assert asked.reply.responses[0].partitions[0].error_code == 0
    assert engine(w).window.start_offset == 3


def test_a_write_that_takes_too_long_is_an_error_and_may_be_committed_yet() -> None:
    """`share.coordinator.write.timeout.ms`, five times, with pauses of 1, 2, 4 and 8 seconds; no shard waits for
    another.
    """
    w, one = ready(share_coordinator_write_timeout_ms="3000")
    one.got()
    hold(w)
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.pass_ms(29_500)
    assert not asked.done
    w.pass_ms(1000)
    said = asked.reply.responses[0].partitions[0]
    assert (said.error_code, said.error_message) == (
        Errors.COORDINATOR_NOT_AVAILABLE,
        "Error in write state RPC. Exhausted max retries to complete write state RPC without success.",
    )
    hold(w, text="immediate")
    w.pass_ms(100)
    assert state(w).batches == ((0, 2, 2, 1),)
    assert w.broker.share_states.hosts[0].runtime.bugs.count == 0


def test_a_refused_write_is_tried_again() -> None:
    """The state topic has too few replicas in sync for a while."""
    w, one = ready()
    one.got()
    partition = w.broker.partitions.get(TOPIC_NAME, 0)
    fail_appends(w, partition)
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.pass_ms(500)
    assert not asked.done
    fail_appends(w)
    w.pass_ms(1000)
    assert asked.reply.responses[0].partitions[0].error_code == 0


def test_a_fenced_write_reads_the_state_again() -> None:
    """Another leader has read the state: its epoch is higher."""
    w, one = ready()
    one.got()
    key = PartitionKey("q", topic_id(w), 0)
    w.broker.turn.event(lambda: w.broker.share_states.read_state(key, 7))
    w.pass_ms(10)
    assert one.acknowledge((0, 2, ACCEPT)) == Errors.NOT_LEADER_OR_FOLLOWER
    assert key not in w.broker.share_partitions.partitions


def test_no_write_of_a_share_partition_that_was_given_up_comes_late() -> None:
    w, one = ready()
    one.got()
    partition = w.broker.partitions.get(TOPIC_NAME, 0)
    fail_appends(w, partition)
    asked = one.send_acknowledge((0, 2, ACCEPT))
    w.broker.turn.event(lambda: w.broker.share_partitions.reload(w.broker.partitions.get("t", 0)))
    fail_appends(w)
    w.pass_ms(2000)
    assert asked.reply.responses[0].partitions[0].error_code == Errors.NOT_LEADER_OR_FOLLOWER
    assert Consumer(w, "other").got() == [(0, 2, 1)]


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.persister.NoOpStatePersister"])
def test_a_persister_that_keeps_nothing(name: str) -> None:
    """`group.share.persister.class.name`."""
    w, one = ready(group_share_persister_class_name=name)
    assert one.got() == [(0, 2, 1)]
    assert one.acknowledge((0, 2, ACCEPT)) == 0
    assert engine(w).window.start_offset == 3
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
    w, one = ready(
        0,
        share_coordinator_snapshot_update_records_per_snapshot="3",
        share_coordinator_state_topic_prune_interval_ms="7000",
    )
    acknowledge_all(w, one, 9)
    log = w.broker.partitions.get(TOPIC_NAME, 0).open_log()
    last = max(offset for offset, (kind, _) in enumerate(written(w)) if kind == "ShareSnapshot")
    assert log.start_offset == 0
    w.pass_ms(7001)
    assert log.start_offset == last
    before = state(w)
    w.broker.turn.event(lambda: w.broker.share_states.reload(w.broker.partitions.get(TOPIC_NAME, 0)))
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
    configs = w.broker.settings.of_topic(TOPIC_NAME)
    assert (configs["cleanup.policy"], configs["segment.bytes"], configs["retention.ms"]) == (
        ("delete",),
        2_000_000,
        -1,
    )
    assert w.broker.image.partition_counts[topic_id(w, TOPIC_NAME)] == 3


def test_batches_of_the_state_topic_are_compressed() -> None:
    w, _ = ready(share_coordinator_state_topic_compression_codec="4")
    log = w.broker.partitions.get(TOPIC_NAME, 0).open_log()
    assert {info.header.codec for _, info in log.batches_from(0) if info.header is not None} == {compression.ZSTD}


def test_the_state_of_a_deleted_topic_goes_with_it() -> None:
    w, one = ready()
    one.got()
    key = PartitionKey("q", topic_id(w), 0)
    w.ask(
        "DeleteTopics",
        6,
        m.DeleteTopicsRequest(topics=[m.DeleteTopicsRequest.DeleteTopicState(name="t")], timeout_ms=1000),
    )
    w.pass_ms(100)
    assert w.broker.share_states.hosts[0].shard.states.get(key) is None
    assert written(w)[-1] == ("ShareSnapshot", None)
    assert key not in w.broker.share_partitions.partitions


def test_a_partition_that_is_added_is_part_of_the_group() -> None:
    w, _ = ready()
    r = m.CreatePartitionsRequest
    w.ask(
        "CreatePartitions", 3, r(topics=[r.CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=1000)
    )
    w.pass_ms(5000)
    beat(w, "m", 2)
    w.pass_ms(5000)
    produce(w, b"v", partition=1)
    other = Consumer(w, "other", partitions=(0, 1))
    assert other.got() == [(0, 2, 1)], "its records do not wait for the state of the new one"
    assert other.got() == [(0, 0, 1)]


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
    w.broker.replicas.cleaner.clean_one()
    w.pass_ms(1000)
    left = [record.offset for record in records_of(w.broker.partitions.get("c", 0))]
    assert len(left) < 5
    seen: list[int] = []
    while got := one.got(max_bytes=1 << 23):
        seen += [offset for first, last, _ in got for offset in range(first, last + 1)]
        assert one.acknowledge(*((first, last, ACCEPT) for first, last, _ in got)) == 0
    assert set(left) <= set(seen)
    assert w.broker.share_partitions.partitions[PartitionKey("q", topic_id(w, "c"), 0)].engine.window.start_offset == 5


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
