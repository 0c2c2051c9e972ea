"""Offsets of groups: those of transactions, and how they age."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker.group.coordinators import GroupCoordinators
from ottla.coordinator.group.offsets.deletion import STEP_OFFSETS
from ottla.coordinator.group.shard import GroupShard
from ottla.protocol import messages as m
from ottla.protocol.control import Marker
from ottla.protocol.errors import Errors

from ..support.group_world import (
    beat,
    code,
    commit,
    fetched,
    join,
    sync,
    world,
)

# offsets of transactions, as a Kafka's log may hold them


def test_offsets_of_a_transaction_are_pending_until_its_end() -> None:
    w = world()
    commit(w, 5)
    shard = w.broker.groups.host("s").shard
    k, v = m.OffsetCommitKey, m.OffsetCommitValue

    def pending(producer_id: int, offset: int, at: int, partition: int = 0) -> None:
        shard.replay(
            at,
            producer_id,
            0,
            k(group="s", topic="t", partition=partition),
            v(offset=offset, metadata="", commit_timestamp=1),
        )

    pending(7, 50, 100)
    assert fetched(w).committed_offset == 5
    assert fetched(w, stable=True).error_code == Errors.UNSTABLE_OFFSET_COMMIT
    list(shard.replay_marker(101, 7, 0, Marker(False, 0)))
    assert fetched(w, stable=True).committed_offset == 5
    pending(7, 60, 102)
    pending(8, 70, 103)
    list(shard.replay_marker(104, 8, 0, Marker(True, 0)))
    assert fetched(w, stable=True).error_code == Errors.UNSTABLE_OFFSET_COMMIT, "the other one is not over"
    list(shard.replay_marker(105, 7, 0, Marker(True, 0)))
    assert fetched(w, stable=True).committed_offset == 70, "the later record wins, whichever ends first"
    pending(9, 80, 106)
    shard.replay(107, -1, -1, k(group="s", topic="t", partition=0), None)
    list(shard.replay_marker(108, 9, 0, Marker(True, 0)))
    assert fetched(w, stable=True).committed_offset == -1, "a tombstone takes pending ones too"
    pending(9, 90, 109, partition=1)
    assert shard.expire().records == [], "a group with pending offsets does not expire"


# offsets that age


def test_offsets_of_a_simple_group_expire_with_the_group() -> None:
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    commit(w, 1)
    w.pass_ms(58_000)
    assert fetched(w).committed_offset == 1
    w.pass_ms(4_000)
    assert fetched(w).committed_offset == -1
    assert w.send("ListGroups", 4, m.ListGroupsRequest()).reply.groups == []


@pytest.mark.parametrize("has_younger", [False, True])
def test_very_many_offsets_of_a_group_expire_some_at_a_time(monkeypatch: pytest.MonkeyPatch, has_younger: bool) -> None:
    """The group ends when all have; that some did is told once."""
    held: list[Iterator[None]] = []
    told: list[str] = []
    monkeypatch.setattr(GroupCoordinators, "in_steps", lambda owner, steps: held.append(steps))
    monkeypatch.setattr(GroupShard, "tell", lambda self, group, kind, *of: told.append(kind))
    w, count = world(offsets_retention_minutes="60"), 3 * STEP_OFFSETS
    c = m.CreatePartitionsRequest
    more = c.CreatePartitionsTopic(name="t", count=count, assignments=None)
    assert not w.ask("CreatePartitions", 3, c(topics=[more], timeout_ms=1000)).results[0].error_code
    r = m.OffsetCommitRequest

    def commit_all(partitions: range) -> None:
        parts = [r.OffsetCommitRequestPartition(partition_index=at, committed_offset=1) for at in partitions]
        request = r(group_id="s", topics=[r.OffsetCommitRequestTopic(name="t", partitions=parts)])
        assert not w.ask("OffsetCommit", 9, request).topics[0].partitions[-1].error_code

    commit_all(range(count))
    w.pass_ms(3_500_000)
    if has_younger:
        commit_all(range(1))
    w.pass_ms(200_000)
    shard = w.broker.groups.host("s").shard
    found: Any = shard.offsets.of("s")
    w.broker.turn.event(w.broker.groups.expire)
    left = [len(found)]
    for _ in held[-1]:
        w.broker.turn.settle()
        left.append(len(found))
    expected = [2 * STEP_OFFSETS, STEP_OFFSETS, 0] if not has_younger else [2 * STEP_OFFSETS + 1, STEP_OFFSETS + 1, 1]
    assert left[:3] == expected
    assert ("s" in shard.groups) is has_younger
    assert told.count("offsets-expired") == 1
    assert shard.counts["offset_expirations"] == count - has_younger


def test_offsets_of_what_a_group_is_subscribed_to_do_not_expire() -> None:
    w = world(offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000")
    beat(w, "m1", 0, "t")
    commit(w, 1, "g", "m1", 2)
    for _ in range(20):
        w.pass_ms(30_000)
        beat(w, "m1", 2)
    assert fetched(w, "g").committed_offset == 1
    beat(w, "m1", -1)
    w.pass_ms(2_000)
    assert fetched(w, "g").committed_offset == -1


def test_offsets_of_a_classic_group_age_once_it_is_empty() -> None:
    """And while it is stable those of topics that no member is subscribed to (KIP-211)."""
    w = world(
        offsets_retention_minutes="1", offsets_retention_check_interval_ms="1000", group_max_session_timeout_ms="900000"
    )
    r, c = m.CreateTopicsRequest, m.OffsetCommitRequest
    w.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name="u", num_partitions=1, replication_factor=1)], timeout_ms=1000),
    )
    joined = join(w, version=3, session_timeout_ms=900_000)
    w.pass_ms(300)
    member = joined.reply.member_id
    parts = [c.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    topics = [c.OffsetCommitRequestTopic(name=name, partitions=parts) for name in ("t", "u")]
    sync(w, member, 1, **{member: b"all"})
    w.send("OffsetCommit", 8, c(group_id="g", member_id=member, generation_id_or_member_epoch=1, topics=topics))

    def kept() -> list[str]:
        f = m.OffsetFetchRequest
        found = w.send("OffsetFetch", 8, f(groups=[f.OffsetFetchRequestGroup(group_id="g", topics=None)])).reply.groups[
            0
        ]
        return sorted(t.name for t in found.topics)

    w.pass_ms(58_000)
    assert kept() == ["t", "u"]
    w.pass_ms(4_000)
    assert kept() == ["t"], "no member is subscribed to the other, and its commit is a minute old"
    w.pass_ms(120_000)
    assert kept() == ["t"]
    leaving = m.LeaveGroupRequest(group_id="g", members=[m.LeaveGroupRequest.MemberIdentity(member_id=member)])
    assert w.send("LeaveGroup", 5, leaving).reply.error_code == 0
    w.pass_ms(58_000)
    assert kept() == ["t"], "empty for less than a minute, however old the commit"
    w.pass_ms(4_000)
    assert kept() == []
    assert w.send("ListGroups", 4, m.ListGroupsRequest()).reply.groups == []


def test_metadata_is_measured_in_javas_units() -> None:
    w = world(offset_metadata_max_bytes="4")
    assert code(commit(w, 1, metadata="\U0001f600\U0001f600")) == 0
    assert code(commit(w, 1, metadata="\U0001f600\U0001f600x")) == Errors.OFFSET_METADATA_TOO_LARGE


def test_a_request_may_say_itself_how_long() -> None:
    w = world(offsets_retention_check_interval_ms="1000")
    commit(w, 1, version=4, retention_time_ms=5000)
    w.pass_ms(4_000)
    assert fetched(w).committed_offset == 1
    w.pass_ms(2_500)
    assert fetched(w).committed_offset == -1


@pytest.mark.parametrize("retention_time_ms", [2**63 - 1, -2, -(2**63)])
def test_a_retention_time_beyond_64_bits_wraps_and_is_over_at_once(retention_time_ms: int) -> None:
    w = world(offsets_retention_check_interval_ms="1000")
    assert code(commit(w, 1, version=4, retention_time_ms=retention_time_ms)) == 0
    assert fetched(w).committed_offset == 1
    w.pass_ms(1_500)
    assert fetched(w).committed_offset == -1


def test_a_topic_takes_its_offsets_with_it_and_not_those_of_its_successor() -> None:
    w = world()
    commit(w, 1)
    d, r = m.DeleteTopicsRequest, m.CreateTopicsRequest
    w.ask("DeleteTopics", 5, d(topic_names=["t"], timeout_ms=1000))
    assert fetched(w).committed_offset == -1
    w.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=1000),
    )
    commit(w, 2)
    from ottla.coordinator.group.offsets.deletion import of_deleted_topics

    assert list(of_deleted_topics(w.broker.groups.host("s").shard, {b"another topic id": "t"})) == [None]
    w.broker.turn.settle()
    assert fetched(w).committed_offset == 2


def test_a_topic_takes_pending_offsets_with_it_that_are_the_only_ones_of_their_coordinator() -> None:
    w = world()
    shard, key = w.broker.groups.host("s").shard, m.OffsetCommitKey(group="s", topic="t", partition=0)
    shard.replay(100, 7, 0, key, m.OffsetCommitValue(offset=50, metadata="", commit_timestamp=1))
    assert fetched(w, stable=True).error_code == Errors.UNSTABLE_OFFSET_COMMIT
    w.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
    w.broker.turn.settle()
    assert not shard.offsets.has_pending("s")
