"""Requests about very many topics: no step of the loop does much for each. Bytecodes and turns are counted."""

from __future__ import annotations

import pytest
from ottla.broker.steps import STEP_ELEMENTS
from ottla.protocol import messages as m

from ..support.step_work import longest_step_of
from ..support.turns import Turns
from ..support.world import World

pytestmark = pytest.mark.long

COUNT = 2000
NAMES = [f"t{number:04}" for number in range(COUNT)]


@pytest.fixture(scope="module")
def world() -> World:
    made = World()
    r = m.CreateTopicsRequest
    topics = [r.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in NAMES]
    answer = made.ask("CreateTopics", 7, r(topics=topics, timeout_ms=60_000))
    assert {one.error_code for one in answer.topics} == {0}
    return made


def named(names: list[str]) -> m.MetadataRequest:
    r = m.MetadataRequest
    return r(topics=[r.MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=True)


def test_metadata_of_topics_by_name(world: World) -> None:
    """Which of them are requested, and which there are, is found in steps."""
    wanted = [*NAMES, *NAMES[::-1]]
    answer = world.ask("Metadata", 12, named(wanted))
    assert [(one.error_code, one.name) for one in answer.topics] == [(0, name) for name in NAMES]
    assert longest_step_of(world, "Metadata", 12, named(wanted)) < 45 * COUNT


def test_a_description_of_topics_by_name_sorts_them_in_a_step_of_its_own() -> None:
    world, turns = Turns(), []
    for count in (STEP_ELEMENTS, STEP_ELEMENTS + 1):
        names = [f"a-topic-that-does-not-exist-{number:04}" for number in range(count)]
        r = m.DescribeTopicPartitionsRequest
        request = r(topics=[r.TopicRequest(name=name) for name in names[::-1]], response_partition_limit=count)
        world.turns = 0
        answer = world.ask("DescribeTopicPartitions", 0, request)
        assert [one.name for one in answer.topics] == names
        turns.append(world.turns)
    assert turns[1] == turns[0] + 1


def test_topics_that_are_deleted_leave_in_steps(world: World) -> None:
    """Also the pieces of replies that are kept for them."""
    r = m.DeleteTopicsRequest
    world.ask("DeleteTopics", 6, r(topics=[r.DeleteTopicState(name="t1999")], timeout_ms=60_000))  # makes what reads it
    world.ask("Metadata", 12, named(NAMES[:-1]))
    gone = NAMES[: COUNT // 2]
    before = world.broker.partitions.pieces.bytes
    request = r(topics=[r.DeleteTopicState(name=name) for name in gone], timeout_ms=60_000)
    assert longest_step_of(world, "DeleteTopics", 6, request) < 210 * COUNT
    assert 0.4 * before < world.broker.partitions.pieces.bytes < 0.6 * before
    left = world.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics
    assert [one.name for one in left] == NAMES[COUNT // 2 : -1]
