"""Records of `__consumer_offsets` that ottla does not write and must read: of older Kafkas, and of groups it has not.
And what loads meanwhile.
"""

from __future__ import annotations

import pytest
from ottla.broker.shards import host as shard_host
from ottla.coordinator.group.consumer.member import UNKNOWN
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.group_world import (
    alive,
    beat,
    by_kafka,
    commit,
    fetched,
    given,
    join,
    own,
    owned,
    shard,
    stable,
    world,
    written,
)
from ..support.world import World


def test_a_commit_of_type_0_is_a_commit() -> None:
    """LegacyOffsetCommit: what Kafka 0.8.2 wrote. A later commit supersedes it, as does its tombstone."""
    w = world()
    key = m.LegacyOffsetCommitKey(group="s", topic="t", partition=0)
    value = m.LegacyOffsetCommitValue(offset=42, metadata="old", commit_timestamp=w.schedule.now_ms())
    by_kafka(w, (key, value), group="s")
    assert (fetched(w).committed_offset, fetched(w).metadata) == (42, "old")
    commit(w, 43)
    assert fetched(w).committed_offset == 43
    by_kafka(w, (key, value), group="s")
    assert fetched(w).committed_offset == 42, "the order in the log counts, not the type"
    by_kafka(w, (key, None), group="s")
    assert fetched(w).committed_offset == -1


def test_metadata_of_partitions_that_kafka_wrote_before_4_1_ends_with_the_next_epoch() -> None:
    """Type 4: read, kept until the group's metadata is computed again, and then taken out of the log with a tombstone,
    once.
    """
    w = world()
    assert beat(w, "m1", 0, "t").reply.member_epoch == 2
    value = m.ConsumerGroupPartitionMetadataValue(topics=[])
    by_kafka(w, (m.ConsumerGroupPartitionMetadataKey(group_id="g"), value))
    group = shard(w).groups["g"]
    assert group.has_partition_metadata
    assert beat(w, "m2", 0, "t").reply.error_code == 0
    kinds = [(name, value) for name, value in written(w) if name == "ConsumerGroupPartitionMetadata"]
    assert kinds == [("ConsumerGroupPartitionMetadata", value), ("ConsumerGroupPartitionMetadata", None)]
    assert not shard(w).groups["g"].has_partition_metadata
    beat(w, "m3", 0, "t")
    assert len([name for name, _ in written(w) if name == "ConsumerGroupPartitionMetadata"]) == 2


def test_a_member_in_a_state_that_is_not_known_begins_again() -> None:
    """State 127, what a later Kafka may write: the member is fenced until it owns nothing, and then goes straight to
    its target.
    """
    w = world()
    beat(w, "m1", 0, "t")
    v = m.ConsumerGroupCurrentMemberAssignmentValue
    topic_id = w.broker.image.topics["t"].id
    parts = [v.TopicPartitions(topic_id=topic_id, partitions=[0, 1], assignment_epochs=[2, 2])]
    value = v(
        member_epoch=2,
        previous_member_epoch=1,
        state=UNKNOWN,
        assigned_partitions=parts,
        partitions_pending_revocation=[],
    )
    by_kafka(w, (m.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m1"), value))
    assert shard(w).groups["g"].members["m1"].state == 127
    for owns in (None, owned(w, 0)):
        fenced = beat(w, "m1", 2, topic_partitions=owns)
        assert fenced.reply.error_code == Errors.FENCED_MEMBER_EPOCH
        assert "unknown state" in fenced.reply.error_message
    back = beat(w, "m1", 2, topic_partitions=[])
    assert (back.reply.error_code, given(back)) == (0, [0, 1, 2, 3])
    assert shard(w).groups["g"].members["m1"].state == 0


def test_while_a_shard_loads_a_heartbeat_is_well_and_everything_else_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    member = stable(w)
    monkeypatch.setattr(shard_host, "LOAD_STEP_NS", 0)
    host = w.broker.groups.host("g")
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    assert alive(w, member, 1) == 0
    assert alive(w, "nobody", 9) == 0, "not known yet"
    loading = Errors.COORDINATOR_LOAD_IN_PROGRESS
    assert join(w).reply.error_code == loading
    assert beat(w, "m1", 0, "t").reply.error_code == loading
    assert commit(w, 1, group="g").reply.topics[0].partitions[0].error_code == loading
    w.pass_ms(10)
    assert alive(w, member, 1) == 0
    assert alive(w, "nobody", 9) == Errors.UNKNOWN_MEMBER_ID


def test_configurations_of_a_group_outlive_it() -> None:
    """A ConfigRecord has nothing to do with the group's own records: who deletes the group and makes it again finds its
    settings.
    """
    w = world(ottla_group_settle="false")
    assert (
        w.ask("IncrementalAlterConfigs", 1, own("g", consumer_heartbeat_interval_ms=7000)).responses[0].error_code == 0
    )
    assert beat(w, "m1", 0, "t").reply.heartbeat_interval_ms == 7000
    beat(w, "m1", -1)
    assert w.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == 0
    assert "g" not in shard(w).groups
    w.broker.stop()
    again = World(w.files, offsets_topic_num_partitions="3", ottla_group_settle="false")
    again.pass_ms(100)
    d = m.DescribeConfigsRequest
    asked = d(
        resources=[
            d.DescribeConfigsResource(
                resource_type=32, resource_name="g", configuration_keys=["consumer.heartbeat.interval.ms"]
            )
        ]
    )
    assert [(c.name, c.value) for c in again.ask("DescribeConfigs", 4, asked).results[0].configs] == [
        ("consumer.heartbeat.interval.ms", "7000")
    ]
    assert beat(again, "m2", 0, "t").reply.heartbeat_interval_ms == 7000
