"""Quotas in a whole broker: what is measured, what a throttled client gets, and how long its connection is muted."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.peer import Peer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.share_world import acquired, ready
from ..support.share_world import produce as produce_records
from ..support.stories.topics import creatable
from ..support.world import World

A = m.AlterClientQuotasRequest
FULL = Errors.THROTTLING_QUOTA_EXCEEDED


def limit(world: World, client_id: str | None = None, **limits: float | None) -> None:
    """Sets limits of a client id, or of all that have none of their own; None removes one."""
    ops = [A.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in limits.items()]
    entity = [A.EntityData(entity_type="client-id", entity_name=client_id)]
    (entry,) = world.ask("AlterClientQuotas", 1, A(entries=[A.EntryData(entity=entity, ops=ops)])).entries
    assert entry.error_code == 0, entry.error_message


def create(world: World, name: str, partitions: int = 1, version: int = 7) -> tuple[int, int]:
    """Creates a topic; returns its error and the throttle time."""
    request = m.CreateTopicsRequest(timeout_ms=1000, topics=[creatable(name, partitions)])
    reply = world.ask("CreateTopics", version, request)
    return reply.topics[0].error_code, reply.throttle_time_ms


def produce(world: World, size: int, acks: int = 1) -> int:
    """Produces a record; returns the time for which the connection is muted."""
    answer = world.send("Produce", 9, produce_message("t", batch(b"x" * size), acks=acks))
    if acks:
        assert answer.reply.responses[0].partition_responses[0].error_code == 0
        assert answer.reply.throttle_time_ms == world.peer.throttle_ms
    return world.peer.throttle_ms


def fetched(reply: Any) -> int:
    return sum(len(part.records or b"") for topic in reply.responses for part in topic.partitions)


@pytest.fixture
def world() -> World:
    made = World()
    assert create(made, "t") == (0, 0)
    return made


def test_without_a_limit_nothing_is_measured(world: World) -> None:
    produce(world, 10_000)
    assert world.peer.usage is None
    limit(world, producer_byte_rate=1.0)
    assert produce(world, 1000) > 0
    limit(world, producer_byte_rate=None)
    assert produce(world, 10_000) == 0
    assert world.peer.usage is None


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_producer_beyond_its_byte_rate_is_muted(world: World, acks: int) -> None:
    limit(world, producer_byte_rate=1000.0)
    assert produce(world, 500, acks) == 0
    muted_ms = produce(world, 20_000, acks)
    assert 5_000 < muted_ms < 25_000
    world.pass_ms(60_000)
    assert produce(world, 500, acks) == 0


def test_a_throttled_fetch_is_empty_until_the_window_has_passed(world: World) -> None:
    limit(world, consumer_byte_rate=1000.0)
    for _ in range(4):
        produce(world, 2000)
    first = world.ask("Fetch", 12, fetch_message("t", 0))
    assert fetched(first) > 8000
    assert first.throttle_time_ms == 0
    waited_ms = 0
    while (reply := world.ask("Fetch", 12, fetch_message("t", 0))).throttle_time_ms:
        assert reply.responses == []
        assert reply.throttle_time_ms == world.peer.throttle_ms
        waited_ms += reply.throttle_time_ms
        world.pass_ms(reply.throttle_time_ms)
    assert 5_000 < waited_ms < 20_000
    assert fetched(reply) == fetched(first)


def test_a_throttled_fetch_of_a_session_keeps_its_news(world: World) -> None:
    produce(world, 5000)
    request = fetch_message("t", 0)
    request.session_epoch = 0
    request.session_id = 0
    full = world.ask("Fetch", 12, request)
    assert full.session_id
    limit(world, consumer_byte_rate=10.0)
    step = m.FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, session_id=full.session_id, session_epoch=1)
    first = world.ask("Fetch", 12, step)
    assert first.throttle_time_ms > 0
    assert (first.error_code, first.session_id, first.responses) == (0, full.session_id, [])
    limit(world, consumer_byte_rate=None)
    step.session_epoch = 2
    assert fetched(world.ask("Fetch", 12, step)) == fetched(full)


def test_a_throttled_first_fetch_makes_no_session(world: World) -> None:
    produce(world, 5000)
    limit(world, consumer_byte_rate=10.0)
    request = fetch_message("t", 0)
    request.session_epoch = request.session_id = 0
    reply = world.ask("Fetch", 12, request)
    assert (reply.session_id, reply.responses) == (0, [])
    assert world.broker.extensions["fetch_sessions"].sessions == {}


def test_a_throttled_share_fetch_has_no_records_which_stay_acquired() -> None:
    """Like confluent-kafka-python's test_throttle_cb_fires_under_quota."""
    w, consumer = ready(3)
    limit(w, consumer_byte_rate=10.0)
    reply = consumer.fetch()
    assert reply.throttle_time_ms > 0
    assert (reply.error_code, reply.responses) == (0, [])
    limit(w, consumer_byte_rate=None)
    assert consumer.got() == [], "all are acquired"
    w.pass_ms(30_000)
    assert consumer.got() == [(0, 2, 2)]


def test_a_throttled_share_fetch_answers_for_acknowledgements() -> None:
    w, consumer = ready(3)
    assert consumer.got() == [(0, 2, 1)]
    produce_records(w, b"more" * 100)
    limit(w, consumer_byte_rate=10.0)
    reply = consumer.fetch((0, 2, 1))
    assert reply.throttle_time_ms > 0
    (part,) = reply.responses[0].partitions
    assert (part.acknowledge_error_code, part.acquired_records, len(part.records)) == (0, [], 0)


def test_a_share_fetch_reads_no_more_than_its_quota_lets_through() -> None:
    w, consumer = ready(0)
    for _ in range(8):
        produce_records(w, bytes(700))
    limit(w, consumer_byte_rate=500.0)
    reply = consumer.fetch()
    assert (reply.throttle_time_ms, acquired(reply)) == (0, [(0, 2, 1)]), "5,000 bytes in its window"


def test_a_fetch_reads_no_more_than_its_quota_lets_through(world: World) -> None:
    for _ in range(10):
        produce(world, 1000)
    limit(world, consumer_byte_rate=400.0)  # 4,000 bytes in ten windows of a second
    first = world.ask("Fetch", 12, fetch_message("t", 0))
    assert 0 < first.throttle_time_ms < 500, "the rest of the reply is beyond the quota"
    world.pass_ms(first.throttle_time_ms)
    assert 3000 < fetched(world.ask("Fetch", 12, fetch_message("t", 0))) <= 4000


@pytest.mark.parametrize("version", [5, 7])
def test_partitions_beyond_the_mutation_rate(world: World, version: int) -> None:
    """New versions are refused until no partition is owed; old ones are only throttled."""
    limit(world, controller_mutation_rate=1.0)
    error, throttle_ms = create(world, "a", 12, version)
    assert (error, throttle_ms > 0) == (0, version == 5)
    error, throttle_ms = create(world, "b", 1, version)
    assert error == (FULL if version == 7 else 0)
    assert throttle_ms > 0
    world.pass_ms(throttle_ms)
    assert create(world, "c", 1, version)[0] == 0


def test_deletions_and_new_partitions_count_too(world: World) -> None:
    create(world, "a", 20)
    limit(world, controller_mutation_rate=1.0)
    deletion = m.DeleteTopicsRequest(timeout_ms=1000, topics=[m.DeleteTopicsRequest.DeleteTopicState(name="a")])
    assert world.ask("DeleteTopics", 6, deletion).responses[0].error_code == 0
    more = m.CreatePartitionsRequest(
        timeout_ms=1000, topics=[m.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=2, assignments=None)]
    )
    refused = world.ask("CreatePartitions", 3, more)
    assert (refused.results[0].error_code, refused.results[0].error_message) == (FULL, None)
    assert refused.throttle_time_ms > 0
    again = world.ask("DeleteTopics", 6, m.DeleteTopicsRequest(timeout_ms=1000, topics=deletion.topics))
    assert again.responses[0].error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_that_are_created_on_request_count_and_are_refused_in_silence(world: World) -> None:
    limit(world, controller_mutation_rate=1.0)
    create(world, "a", 20)
    request = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name="auto")])
    request.allow_auto_topic_creation = True
    reply = world.ask("Metadata", 12, request)
    assert reply.throttle_time_ms == 0
    world.pass_ms(1000)
    assert world.broker.topic("auto") is None
    world.pass_ms(30_000)
    world.ask("Metadata", 12, request)
    world.pass_ms(1000)
    assert world.broker.topic("auto") is not None


def test_the_time_of_requests_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request takes 10 ms here: 1 % of a second. The throttle time is at most one window."""
    limit(world, request_percentage=0.5)
    now = 0

    def work_ns() -> int:
        nonlocal now
        now += 5_000_000
        return now

    monkeypatch.setattr(world.schedule, "work_ns", work_ns)
    throttled = [world.ask("ApiVersions", 3, _versions()).throttle_time_ms for _ in range(12)]
    assert throttled[0] == 0
    assert 0 < throttled[-1] <= 1000
    answer = world.send("Produce", 9, produce_message("t", batch(b"x"), acks=0))
    assert answer.done
    assert world.peer.throttle_ms == 0, "a Produce without acks has no request quota"


def test_limits_are_there_after_a_restart(world: World) -> None:
    limit(world, producer_byte_rate=1.0)
    world.broker.stop()
    again = World(world.files)
    again.pass_ms(1)
    assert produce(again, 1000) > 0


def test_other_clients_are_not_throttled(world: World) -> None:
    limit(world, client_id="another", producer_byte_rate=1.0)
    assert produce(world, 10_000) == 0
    assert world.send("ApiVersions", 3, _versions(), Peer("PLAINTEXT", "127.0.0.1:9")).reply.throttle_time_ms == 0


def _versions() -> m.ApiVersionsRequest:
    return m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
