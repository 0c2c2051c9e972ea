"""What is decided in one step costs little for each element. Python's bytecodes are counted, and nothing is timed."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker import share_groups
from ottla.broker.apis import _fetch_reading
from ottla.broker.controller.commits import GONE, STEP_RECORDS, Commits
from ottla.coordinator.group.metadata_hash import topic_hash
from ottla.coordinator.group.offsets import store
from ottla.coordinator.group.offsets.store import Offsets
from ottla.coordinator.metadata.delta import MetadataDelta
from ottla.protocol import messages as m

from ..support.event_counts import EventCounts
from ..support.step_work import longest_step_of
from ..support.transaction_world import Writer, create
from ..support.transaction_world import world as transaction_world
from ..support.work import work_of
from ..support.world import Answer, World

PARTITIONS = 1000


@pytest.fixture(scope="module")
def world() -> World:
    made = transaction_world(1)
    create(made, "wide", PARTITIONS)
    made.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    return made


def offsets_of_all(request: Any) -> Any:
    """A commit of all partitions of the topic `wide`."""
    topic = next(cls for name, cls in vars(request).items() if name.endswith("RequestTopic"))
    part = next(cls for name, cls in vars(request).items() if name.endswith("RequestPartition"))
    parts = [part(partition_index=index, committed_offset=1) for index in range(PARTITIONS)]
    return request(group_id="g", topics=[topic(name="wide", partitions=parts)])


def test_a_commit_of_many_partitions(world: World) -> None:
    assert longest_step_of(world, "OffsetCommit", 9, offsets_of_all(m.OffsetCommitRequest)) < 80 * PARTITIONS


def test_a_commit_in_a_transaction_and_its_end(world: World) -> None:
    writer = Writer(world)
    writer.init()
    commit = offsets_of_all(m.TxnOffsetCommitRequest)
    commit.transactional_id, commit.producer_id, commit.producer_epoch = writer.name, writer.id, writer.epoch
    assert longest_step_of(world, "TxnOffsetCommit", 5, commit) < 100 * PARTITIONS
    end = m.EndTxnRequest(transactional_id=writer.name, producer_id=writer.id, producer_epoch=writer.epoch)
    end.committed = True
    assert longest_step_of(world, "EndTxn", 5, end) < 50 * PARTITIONS
    offsets = next(iter(world.broker.groups.hosts.values())).shard.offsets
    assert len(offsets.of("g")) == PARTITIONS
    assert not len(offsets.pending_producers)


def test_transactions_that_commit_the_same_offsets_end_one_by_one(world: World) -> None:
    """The offsets of the one that is left stay pending."""
    writers = [Writer(world, name) for name in ("y", "z")]
    for writer in writers:
        writer.init()
        assert writer.commit_offset(7, group="both").done
        world.pass_ms(10)
    offsets = next(iter(world.broker.groups.hosts.values())).shard.offsets
    key = ("t", 0)
    assert offsets.pending_producers["both"][key] == tuple(writer.id for writer in writers)
    alive = writers[1].id
    assert writers[0].end() == 0
    assert offsets.pending_producers["both"][key] == (alive,)
    assert offsets.is_pending("both", key)
    assert writers[1].end(committed=False) == 0
    assert not offsets.has_pending("both")
    assert len(offsets.of("both")) == 1


def test_a_transaction_with_offsets_of_many_groups_ends_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader meanwhile finds all groups as they were, and a commit comes after the end."""
    world, groups = transaction_world(1), [f"g{number}" for number in range(300)]
    writer = Writer(world)
    writer.init()
    for group in groups:
        writer.commit_offset(7, group=group)
        world.pass_ms(10)
    seen: list[Answer] = []

    def between() -> None:
        (host,) = world.broker.groups.hosts.values()
        assert [len(list(host.shard.offsets.pending_of(one))) for one in (groups[0], groups[-1])] == [0, 1]
        seen.append(world.send("OffsetFetch", 8, fetch_of([groups[0], groups[-1]], stable=False)))
        seen.append(world.send("OffsetFetch", 8, fetch_of([groups[0], groups[-1]], stable=True)))
        seen.append(world.send("OffsetCommit", 8, commit_of(groups[0], 9)))

    def ended(*_: Any) -> int:
        if not seen:
            world.schedule.soon(between)
            seen.append(Answer())
        return store.GROUP_WEIGHT + 1

    weights = EventCounts(world, monkeypatch, Offsets, "_forget_producer", ended)
    assert writer.end() == 0
    world.pass_ms(20)
    assert weights.count == len(groups) * ended()
    assert weights.most < store.STEP_ENDED + ended()
    assert [offsets_of(one.reply) for one in seen[1:3]] == [[-1, -1], [7, 7]]
    assert offsets_of(world.ask("OffsetFetch", 8, fetch_of(groups, stable=True))) == [9] + [7] * (len(groups) - 1)


def fetch_of(groups: list[str], stable: bool) -> m.OffsetFetchRequest:
    r = m.OffsetFetchRequest
    topics = [r.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    asked = [r.OffsetFetchRequestGroup(group_id=group, topics=topics) for group in groups]
    return r(groups=asked, require_stable=stable)


def commit_of(group: str, offset: int) -> m.OffsetCommitRequest:
    r = m.OffsetCommitRequest
    part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    return r(group_id=group, topics=[r.OffsetCommitRequestTopic(name="t", partitions=[part])])


def offsets_of(reply: m.OffsetFetchResponse) -> list[int]:
    return [group.topics[0].partitions[0].committed_offset for group in reply.groups]


@pytest.mark.long
def test_groups_are_sorted_by_their_coordinators_some_at_a_time(world: World) -> None:
    names = [f"absent-{number}" for number in range(3000)]
    world.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=names[:1]))  # makes what reads the first one
    assert longest_step_of(world, "DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=names)) < 100 * len(names)


@pytest.mark.long
def test_records_of_many_topics_are_deleted_some_at_a_time(world: World) -> None:
    r, count = m.DeleteRecordsRequest, 3000
    parts = [r.DeleteRecordsPartition(partition_index=0, offset=0)]
    topics = [r.DeleteRecordsTopic(name=f"absent-{number}", partitions=parts) for number in range(count)]
    assert longest_step_of(world, "DeleteRecords", 2, r(topics=topics, timeout_ms=1000)) < 40 * count


def test_share_partitions_are_named_and_initialized_some_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = EventCounts(world, monkeypatch, share_groups, "PartitionKey", lambda *fields: 1)
    beat = m.ShareGroupHeartbeatRequest(group_id="share", member_id="m", subscribed_topic_names=["wide"])
    world.send("ShareGroupHeartbeat", 1, beat)
    world.pass_ms(100)
    assert named.count == PARTITIONS
    assert named.most <= share_groups.STEP_KEYS


@pytest.mark.parametrize("racks", [frozenset[str](), frozenset(("a", "b"))])
def test_partitions_of_a_topic_that_have_the_same_racks_are_hashed_together(racks: frozenset[str]) -> None:
    assert work_of(lambda: topic_hash(bytes(16), "wide", [racks] * PARTITIONS)) < 3 * PARTITIONS


def test_a_fetch_reads_some_partitions_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """As their logs are opened by the first one that reads them, and their files by the first read."""
    create(world, "read", count := 1200)
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=index, partition_max_bytes=1) for index in range(count)]
    reads = EventCounts(world, monkeypatch, _fetch_reading, "read_entry", lambda *of: 1)
    reply = world.ask("Fetch", 11, r(topics=[r.FetchTopic(topic="read", partitions=parts)], max_bytes=1))
    assert [one.error_code for one in reply.responses[0].partitions] == [0] * count
    assert (reads.count, reads.most <= _fetch_reading.STEP_READS) == (count, True)


@pytest.mark.long
def test_topics_of_many_partitions_are_dropped_one_after_another(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"gone-{number}" for number in range(3)]
    for name in names:
        create(world, name, GONE * STEP_RECORDS)
    drops = EventCounts(world, monkeypatch, Commits, "_replay", lambda *of: isinstance(of[-1], m.RemoveTopicRecord))
    shown = EventCounts(world, monkeypatch, MetadataDelta, "show", lambda *of: 1)
    topics = [m.DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
    reply = world.ask("DeleteTopics", 6, m.DeleteTopicsRequest(topics=topics, timeout_ms=10_000))
    assert [one.error_code for one in reply.responses] == [0] * 3
    world.pass_ms(100)
    assert (drops.count, drops.most, shown.count) == (3, 1, 1)
