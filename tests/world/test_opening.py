"""The logs that a request needs, where they are many and not open: they are opened some at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.replica.opening import OPENED_AT_ONCE
from ottla.broker.replica.replica_manager import OPEN_STEP
from ottla.protocol import messages as m

from ..support.ask import batch, produce_message
from ..support.topic_world import create, opened, turns_take_a_millisecond
from ..support.world import World

MANY = 2 * OPEN_STEP + 10


def test_a_produce_to_many_new_logs_opens_them_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    turns_take_a_millisecond(world, monkeypatch)
    assert create(world, "many", MANY) == 0
    before = opened(world)
    wanted = produce_message("many", batch(b"x"), before)
    (topic_data,) = wanted.topic_data
    topic_data.partition_data = [
        m.ProduceRequest.PartitionProduceData(index=index, records=bytes(topic_data.partition_data[0].records))
        for index in range(before, MANY)
    ]
    answer = world.send("Produce", 9, wanted)
    assert not answer.done
    assert opened(world) == before + OPENED_AT_ONCE
    world.pass_ms(100)
    (found,) = answer.reply.responses
    assert [one.error_code for one in found.partition_responses] == [0] * (MANY - before)


def fetch_of(name: str, indexes: range) -> m.FetchRequest:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=index, partition_max_bytes=1000) for index in indexes]
    return r(max_bytes=1000, session_epoch=-1, topics=[r.FetchTopic(topic=name, partitions=parts)])


def list_offsets_of(name: str, indexes: range) -> m.ListOffsetsRequest:
    r = m.ListOffsetsRequest
    parts = [r.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in indexes]
    return r(replica_id=-1, topics=[r.ListOffsetsTopic(name=name, partitions=parts)])


@pytest.mark.parametrize(
    ("api", "version", "ask"), [("Fetch", 11, fetch_of), ("ListOffsets", 7, list_offsets_of)], ids=["fetch", "offsets"]
)
def test_what_reads_many_new_logs_opens_them_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch, api: str, version: int, ask: Callable[[str, range], Any]
) -> None:
    world = World()
    turns_take_a_millisecond(world, monkeypatch)
    assert create(world, "many", MANY) == 0
    before = opened(world)
    answer = world.send(api, version, ask("many", range(before, MANY)))
    assert not answer.done
    while opened(world) == before:  # a Fetch looks first, in steps of its own
        world.schedule.take_next()()
    assert opened(world) == before + OPENED_AT_ONCE
    world.pass_ms(100)
    (found,) = answer.reply.responses if api == "Fetch" else answer.reply.topics
    assert [one.error_code for one in found.partitions] == [0] * (MANY - before)
