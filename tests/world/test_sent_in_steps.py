"""A reply with records of very many partitions is sent in steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.broker.net.sending import PIECES_AT_ONCE
from ottla.protocol import messages as m
from ottla.storage.file_slice import FileSlice

from ..support.ask import batch
from ..support.connected import Client, ConnectedWorld
from ..support.event_counts import EventCounts
from ..support.topic_world import create

COUNT = 2 * PIECES_AT_ONCE


@pytest.fixture
def world() -> ConnectedWorld:
    made = ConnectedWorld()
    create(made, "t", COUNT)
    p = m.ProduceRequest
    data = [p.PartitionProduceData(index=index, records=batch(b"%d" % index)) for index in range(COUNT)]
    made.ask("Produce", 9, p(acks=-1, timeout_ms=1000, topic_data=[p.TopicProduceData(name="t", partition_data=data)]))
    return made


def fetching() -> m.FetchRequest:
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1000) for index in range(COUNT)]
    topics = [r.FetchTopic(topic="t", partitions=parts)]
    return r(max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics)


def after_some(world: ConnectedWorld, monkeypatch: pytest.MonkeyPatch, call: Callable[[], None]) -> None:
    """Has `call` come between two steps."""
    reads, read = [0], FileSlice.read

    def counted(*given: Any) -> bytes:
        reads[0] += 1
        if reads[0] == 1:
            world.schedule.soon(call)
        return read(*given)

    monkeypatch.setattr(FileSlice, "read", counted)


def holds(world: ConnectedWorld) -> int:
    logs = [one.open_log() for one in world.broker.partitions.of_topic("t")]
    return sum(segment.holds for log in logs for segment in log.segments)


def records_of(reply: Any) -> list[bytes]:
    return [bytes(one.records) for one in reply.responses[0].partitions]


def test_the_records_of_some_partitions_are_read_in_a_step(
    world: ConnectedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = records_of(world.ask("Fetch", 11, fetching()))
    read = EventCounts(world, monkeypatch, FileSlice, "read", lambda *_: 1)
    assert records_of(world.connect().ask("Fetch", 11, fetching())) == expected
    assert len(set(expected)) == read.count == COUNT
    assert read.most <= PIECES_AT_ONCE
    assert not holds(world)


def test_a_connection_that_breaks_between_two_steps_lets_go_of_the_files(
    world: ConnectedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = world.connect()
    after_some(world, monkeypatch, client.lose)
    client.send("Fetch", 11, fetching())
    world.pass_ms(10)
    assert 0 < len(client.transport.written) < 60 * COUNT
    assert not holds(world)


def test_a_peer_that_takes_nothing_more_between_two_steps_gets_the_rest_when_it_does(
    world: ConnectedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    client: Client = world.connect()
    after_some(world, monkeypatch, client.connection.pause_writing)
    number = client.send("Fetch", 11, fetching())
    client.send("Metadata", 12, m.MetadataRequest(topics=[]))
    world.pass_ms(10)
    assert client.ids == []
    client.connection.resume_writing()
    world.pass_ms(10)
    assert client.ids == [1, 2]
    assert len(set(records_of(client.reply(number)))) == COUNT
