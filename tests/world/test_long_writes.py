"""Long writes of coordinators are decided, replayed and encoded in steps; the other writes of the shard wait."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.shards.host import STEP_WAITING
from ottla.coordinator.batch import STEP_RECORDS
from ottla.coordinator.group.format import Commits
from ottla.coordinator.group.offsets import commit as commits
from ottla.coordinator.group.offsets.commit import PIECE, TOPIC_WEIGHT
from ottla.coordinator.group.offsets.long_commits import LongCommits
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.shard import Result
from ottla.coordinator.shard_runtime import STEP_WRITTEN
from ottla.coordinator.timers import Timer
from ottla.protocol import messages as m
from ottla.protocol.errors import ApiError, Errors

from ..support.event_counts import EventCounts
from ..support.world import Answer, World

pytestmark = pytest.mark.long

PARTITIONS = 4000


def commit(group: str = "g", offset: int = 1, metadata: str = "", partitions: int = PARTITIONS) -> Any:
    r = m.OffsetCommitRequest
    parts = [
        r.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index in range(partitions)
    ]
    return r(group_id=group, topics=[r.OffsetCommitRequestTopic(name="t", partitions=parts)])


@pytest.fixture
def world() -> World:
    made = World(offsets_topic_num_partitions="1")
    topic = m.CreateTopicsRequest.CreatableTopic(name="t", num_partitions=PARTITIONS, replication_factor=1)
    made.ask("CreateTopics", 7, m.CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    made.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    return made


@pytest.mark.parametrize("metadata", ["", "metadata"])
def test_many_commits_are_encoded_in_steps(world: World, monkeypatch: pytest.MonkeyPatch, metadata: str) -> None:
    kind = LongCommits if metadata else Commits
    counts = EventCounts(world, monkeypatch, kind, "pack", lambda made, index: len(made))
    (topic,) = world.ask("OffsetCommit", 9, commit(metadata=metadata)).topics
    assert [one.error_code for one in topic.partitions] == [0] * PARTITIONS
    assert counts.count == PARTITIONS
    assert counts.most <= STEP_RECORDS


@pytest.mark.parametrize("metadata", ["", "metadata"])
def test_many_commits_are_decided_and_replayed_in_steps(
    world: World, monkeypatch: pytest.MonkeyPatch, metadata: str
) -> None:
    kind = LongCommits if metadata else Commits
    decided = EventCounts(world, monkeypatch, commits, "_commits", lambda shard, group, topic, some, *rest: len(some))
    replayed = EventCounts(world, monkeypatch, kind, "stored", lambda made, offset: len(made))
    answer = world.send("OffsetCommit", 9, commit(metadata=metadata))
    world.pass_ms(1)
    assert [one.error_code for one in answer.reply.topics[0].partitions] == [0] * PARTITIONS
    assert decided.count == replayed.count == PARTITIONS
    assert decided.most <= PIECE + 1
    assert replayed.most <= PIECE


def test_commits_of_many_topics_are_decided_and_replayed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    world, r = World(offsets_topic_num_partitions="1"), m.OffsetCommitRequest
    create = m.CreateTopicsRequest
    names = [f"t{number}" for number in range(600)]
    topics = [create.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    world.ask("CreateTopics", 7, create(topics=topics, timeout_ms=10_000))
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    decided = EventCounts(world, monkeypatch, commits, "_commits", lambda *arguments: 1)
    replayed = EventCounts(world, monkeypatch, GroupShard, "replay", lambda *arguments: 1)
    parts = [r.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
    request = r(group_id="g", topics=[r.OffsetCommitRequestTopic(name=name, partitions=parts) for name in names])
    assert len(world.ask("OffsetCommit", 9, request).topics) == len(names)
    assert decided.count == replayed.count == len(names)
    assert decided.most <= PIECE // TOPIC_WEIGHT
    assert replayed.most <= STEP_WRITTEN


def offsets(world: World, group: str = "g") -> list[int]:
    r = m.OffsetFetchRequest
    topic = r.OffsetFetchRequestTopics(name="t", partition_indexes=list(range(PARTITIONS)))
    answer = world.ask("OffsetFetch", 9, r(groups=[r.OffsetFetchRequestGroup(group_id=group, topics=[topic])]))
    return [one.committed_offset for one in answer.groups[0].topics[0].partitions]


def host_of(world: World) -> Any:
    (host,) = world.broker.groups.hosts.values()
    return host


def under_way(world: World, offset: int = 2) -> Answer:
    """Begins a long commit, which has replayed a part of its records then."""
    world.ask("OffsetCommit", 8, commit(group="first", partitions=1))  # the shard is loaded
    answer = world.send("OffsetCommit", 9, commit(offset=offset))
    runtime = host_of(world).runtime
    while not (runtime.long is not None and runtime._batch is not None):
        world.schedule.take_next()()
    assert 0 < runtime._batch.count < PARTITIONS
    assert not answer.done
    return answer


def test_what_comes_while_a_commit_takes_steps_sees_it_as_a_whole_or_not_at_all(world: World) -> None:
    """Offsets that are fetched are those before it. Other commits, markers and timers come after it."""
    world.ask("OffsetCommit", 9, commit(offset=1))
    long = under_way(world)
    assert host_of(world).read(lambda shard, as_of: {v[1] for v in shard.offsets.of("g").at(as_of).values()}) == {1}
    later = world.send("OffsetCommit", 8, commit(offset=3, partitions=1))
    other = world.send("OffsetCommit", 8, commit(group="other", offset=4, partitions=1))
    assert not later.done
    assert not other.done
    happened: list[str] = []
    host_of(world).when_free(lambda: happened.append("free"))
    assert not happened
    world.pass_ms(1)
    assert happened == ["free"]
    assert long.done
    assert later.done
    assert other.done
    assert offsets(world) == [3] + [2] * (PARTITIONS - 1)
    assert offsets(world, "other") == [4] + [-1] * (PARTITIONS - 1)


def test_a_timer_that_is_due_while_a_write_takes_steps_runs_after_it(world: World) -> None:
    long = under_way(world)
    host = host_of(world)
    ticked: list[bool] = []

    def due(now_ms: int) -> Result:
        ticked.append(host.runtime.long is not None)
        return Result()

    host.runtime.timers.set(Timer("test", 0, due))
    host._tick()
    assert not ticked
    world.pass_ms(1)
    assert ticked == [False]
    assert long.done


def test_a_long_commit_whose_shard_is_closed_is_answered_and_leaves_nothing(world: World) -> None:
    world.ask("OffsetCommit", 9, commit(offset=1))
    long, waits = under_way(world), world.send("OffsetCommit", 8, commit(offset=3, partitions=1))
    world.broker.groups.reload(host_of(world).partition)
    world.pass_ms(1)
    for answer in (long, waits):
        assert {one.error_code for one in answer.reply.topics[0].partitions} == {int(Errors.NOT_COORDINATOR)}
    assert offsets(world) == [1] * PARTITIONS


def test_a_long_commit_that_cannot_be_appended_leaves_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.ask("OffsetCommit", 9, commit(offset=1))
    long, host = under_way(world), host_of(world)

    def fail(batch: bytearray, now_ms: int) -> tuple[int, int]:
        raise ApiError(Errors.NOT_ENOUGH_REPLICAS)

    with monkeypatch.context() as patch:
        patch.setattr(host.runtime.writer, "append", fail)
        waits = world.send("OffsetCommit", 8, commit(offset=3, partitions=1))
        while not long.done:
            world.schedule.take_next()()
    world.pass_ms(1)
    assert {one.error_code for one in long.reply.topics[0].partitions} == {int(Errors.COORDINATOR_NOT_AVAILABLE)}
    assert waits.done
    assert set(offsets(world)[1:]) == {1}


def test_a_long_commit_that_is_too_large_for_a_batch_is_refused_as_a_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.ask("OffsetCommit", 9, commit(offset=1))
    monkeypatch.setattr(host_of(world).runtime.writer, "max_batch_bytes", lambda: 50_000)
    (topic,) = world.ask("OffsetCommit", 9, commit(offset=2)).topics
    assert {one.error_code for one in topic.partitions} == {int(Errors.UNKNOWN_SERVER_ERROR)}
    assert offsets(world) == [1] * PARTITIONS
    assert not host_of(world).runtime.journal.is_open


def test_many_writes_that_waited_are_made_some_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way(world)
    waiting = [world.send("OffsetCommit", 8, commit(f"g{number}", partitions=1)) for number in range(3 * STEP_WAITING)]
    counts = EventCounts(world, monkeypatch, GroupShard, "replay", lambda *arguments: len(arguments[-1]) == 1)
    world.pass_ms(1)
    assert all(one.done for one in waiting)
    assert counts.most <= STEP_WAITING
