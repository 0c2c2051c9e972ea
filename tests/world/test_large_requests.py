"""Requests that name thousands of things are read, and their replies encoded, in steps, whatever their API."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.net.context import Context
from ottla.broker.net.large_replies import STEP_ENCODED, Encoding
from ottla.coordinator.batch import STEP_RECORDS
from ottla.coordinator.group.format import Commits
from ottla.coordinator.group.offsets.fetch import STEP_PARTITIONS
from ottla.protocol import codec, records
from ottla.protocol import messages as m
from ottla.protocol.emit import PAUSE_ELEMENTS
from ottla.protocol.encoded import Encoded
from ottla.protocol.errors import Errors

from ..support.turns import Turns
from ..support.world import World

COUNT = 5 * PAUSE_ELEMENTS


def listing(count: int = COUNT) -> Any:
    """Asks for the offsets of topics that do not exist."""
    r = m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    return r(replica_id=-1, topics=[r.ListOffsetsTopic(name=f"t{number}", partitions=parts) for number in range(count)])


def test_a_very_large_request_is_read_in_steps_and_others_are_served_in_between() -> None:
    world = Turns()
    answer = world.send("ListOffsets", 7, listing())
    handled = world.broker.metrics.apis[2, 7]
    steps = 0
    while not handled.count:
        assert world.send("Metadata", 12, m.MetadataRequest(topics=[])).done
        world.broker.turn._next_step()
        steps += 1
    assert steps == 2 * COUNT // PAUSE_ELEMENTS  # topics, and a partition of each
    world.pass_ms(100)
    assert {topic.name for topic in answer.reply.topics} == {f"t{number}" for number in range(COUNT)}
    codes = {topic.partitions[0].error_code for topic in answer.reply.topics}
    assert codes == {int(Errors.UNKNOWN_TOPIC_OR_PARTITION)}
    assert world.broker.metrics.errors[2, int(Errors.UNKNOWN_TOPIC_OR_PARTITION)] == COUNT


def test_a_request_whose_connection_is_lost_while_it_is_read_is_not_served() -> None:
    world = World()
    answer = world.send("ListOffsets", 7, listing())
    world.broker.turn._next_step()
    answer.waiting.cancel()
    world.pass_ms(100)
    assert not answer.done
    assert not world.broker.metrics.apis[2, 7].count
    assert not world.broker.turn.has_steps


def test_a_request_that_turns_out_to_have_too_many_elements_closes_the_connection() -> None:
    """In the step that counts them."""
    world = World()
    api = world.dispatcher.apis[2]
    before, api.elements_max = api.elements_max, 2 * COUNT - 1
    try:
        answer = world.send("ListOffsets", 7, listing())
        assert not answer.done
        world.pass_ms(100)
    finally:
        api.elements_max = before
    assert answer.closed
    assert answer.reply is None
    assert world.broker.metrics.malformed == 1
    assert world.broker.limits.counts["request-elements"] == 1


def steps_of(world: World, reply: Any) -> int:
    """Encodes a reply to OffsetFetch; returns in how many steps."""
    context = Context(world.broker, world.dispatcher.apis[9], 9, 0, None, world.peer)
    return sum(1 for _ in Encoding(context).steps(reply))


def fetched(groups: int, topics: int, partitions: int) -> Any:
    r = m.OffsetFetchResponse
    reply = r()
    for number in range(groups):
        group = r.OffsetFetchResponseGroup(group_id=f"g{number}")
        for name in range(topics):
            topic = r.OffsetFetchResponseTopics(name=f"t{name}")
            topic.partitions = [r.OffsetFetchResponsePartitions(partition_index=index) for index in range(partitions)]
            group.topics.append(topic)
        reply.groups.append(group)
    return reply


@pytest.mark.parametrize(
    "shape", [(3 * STEP_ENCODED, 0, 0), (1, 3 * STEP_ENCODED, 0), (1, 1, 3 * STEP_ENCODED), (3, 2, STEP_ENCODED)]
)
def test_a_reply_is_encoded_in_steps_at_whatever_level_it_is_large(shape: tuple[int, int, int]) -> None:
    world = World()
    expected = bytes(codec.build("OffsetFetchResponse", 9, fetched(*shape)))
    reply = fetched(*shape)
    assert 2 <= steps_of(world, reply) <= 8
    assert isinstance(reply.groups, Encoded)
    assert bytes(codec.build("OffsetFetchResponse", 9, reply)) == expected


def test_a_small_reply_stays_as_it_is() -> None:
    reply = fetched(2, 4, STEP_ENCODED // 16)
    assert not steps_of(World(), reply)
    assert isinstance(reply.groups, list)


def test_a_reply_beyond_its_budget_is_given_up() -> None:
    world = World()
    world.broker.config.values["ottla.reply.max.bytes"] = 60_000
    answer = world.send("ListOffsets", 7, listing())
    world.pass_ms(100)
    assert answer.closed
    assert answer.reply is None
    assert world.broker.limits.counts["reply-bytes"] == 1


def committing(offset: int, partitions: int) -> Any:
    r = m.OffsetCommitRequest
    parts = [
        r.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset) for index in range(partitions)
    ]
    return r(group_id="g", topics=[r.OffsetCommitRequestTopic(name="t", partitions=parts)])


@pytest.mark.long
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_offsets_of_many_partitions_are_read_in_steps_and_are_those_of_one_moment(named: bool, stable: bool) -> None:
    world, count = Turns(), 3 * STEP_PARTITIONS
    c = m.CreateTopicsRequest
    topic = c.CreatableTopic(name="t", num_partitions=count, replication_factor=1)
    world.ask("CreateTopics", 7, c(topics=[topic], timeout_ms=10_000))
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    world.ask("OffsetCommit", 9, committing(1, count))
    r = m.OffsetFetchRequest
    topics = [r.OffsetFetchRequestTopics(name="t", partition_indexes=list(range(count)))] if named else None
    request = r(groups=[r.OffsetFetchRequestGroup(group_id="g", topics=topics)], require_stable=stable)
    world.turns = 0
    answer = world.send("OffsetFetch", 9, request)
    if named:
        world.broker.turn._next_step()  # in which it is handled
    changed = world.send("OffsetCommit", 9, committing(2, 1))
    assert changed.done
    assert not answer.done
    world.pass_ms(100)
    (found,) = answer.reply.groups[0].topics
    assert [(one.partition_index, one.committed_offset) for one in found.partitions] == [(i, 1) for i in range(count)]
    assert world.turns >= 3


def sent_in_steps() -> tuple[World, Any, Any]:
    """Commits offsets of so many partitions that their records are encoded in steps, the first of which is done.
    Returns the world, the group's shard and the answer.
    """
    world, count = World(offsets_topic_num_partitions="1"), 1000
    c = m.CreateTopicsRequest
    topic = c.CreatableTopic(name="t", num_partitions=count, replication_factor=1)
    world.ask("CreateTopics", 7, c(topics=[topic], timeout_ms=10_000))
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    world.ask("OffsetCommit", 9, committing(1, 1))
    request = committing(5, count)
    request.topics = request.topics * (2 * STEP_RECORDS // count + 1)
    answer = world.send("OffsetCommit", 9, request)
    (host,) = world.broker.groups.hosts.values()
    while not host._is_encoding:
        world.broker.turn._next_step()
    return world, host, answer


def offsets_of(world: World) -> list[int]:
    r = m.OffsetFetchRequest
    topic = r.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])
    reply = world.ask("OffsetFetch", 9, r(groups=[r.OffsetFetchRequestGroup(group_id="g", topics=[topic])]))
    return [one.committed_offset for one in reply.groups[0].topics[0].partitions]


def codes_of(answer: Any) -> set[int]:
    return {one.error_code for topic in answer.reply.topics for one in topic.partitions}


@pytest.mark.long
def test_very_many_commits_are_encoded_in_steps_and_others_join_their_batch() -> None:
    world, host, answer = sent_in_steps()
    joined = world.send("OffsetCommit", 9, committing(7, 1))
    assert not answer.done
    assert not joined.done
    assert offsets_of(world) == [1, -1]
    written = host.runtime.last_written_offset
    world.pass_ms(100)
    assert codes_of(answer) == codes_of(joined) == {0}
    assert offsets_of(world) == [7, 5]
    data = bytes(host.partition.open_log().read(written, 1 << 30, None, True))
    assert [at.header.last_offset_delta for at in records.batches(data)] == [(2 * STEP_RECORDS // 1000 + 1) * 1000]


def test_a_batch_that_is_being_encoded_ends_with_its_shard() -> None:
    world, host, answer = sent_in_steps()
    world.broker.turn.event(lambda: world.broker.groups.reload(host.partition))
    world.pass_ms(100)
    assert codes_of(answer) == {Errors.NOT_COORDINATOR}
    assert offsets_of(world) == [1, -1]


def test_a_batch_whose_next_records_cannot_be_encoded_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _, answer = sent_in_steps()
    with monkeypatch.context() as patch:
        patch.setattr(Commits, "pack", lambda *of: 1 // 0)
        world.pass_ms(100)
    assert codes_of(answer) == {Errors.UNKNOWN_SERVER_ERROR}
    assert offsets_of(world) == [1, -1]
