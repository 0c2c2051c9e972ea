"""Clients of all kinds meet faults, and do what they should: they deliver each record once, retry, or raise an error.

Each client produces and consumes by a small program of its own. The rules are staggered by `nth`, so that each attempt
meets the next fault.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from ottla.protocol import records

from ottla.lab_faults import FaultRule
from ottla.testing import Broker

from ..support.ask import create, fetch_message
from ..support.wire import Wire
from .fault_clients import CLIENTS, TIMEOUT_MS, WANTED, Program, librdkafka, program, values_of

__all__ = ["program"]
pytestmark = pytest.mark.slow
LONGER = f"{2 * TIMEOUT_MS}ms"
every_client = pytest.mark.parametrize("program", CLIENTS, indirect=True)


@pytest.fixture
def topic(broker: Broker) -> Iterator[str]:
    name = f"faults-{uuid.uuid4().hex[:8]}"
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, name)
    yield name
    broker.lab.reset()


def log_of(broker: Broker, topic: str) -> list[str]:
    """The values in a topic, without what clients do of them."""
    with Wire(broker.bootstrap_servers) as wire:
        (part,) = wire.ask("Fetch", 11, fetch_message(topic, 0)).responses[0].partitions
    return [(r.value or b"").decode() for at in records.batches(part.records) for r in records.decode(part.records, at)]


def staggered(broker: Broker, *faults: tuple[str, dict[str, Any]]) -> list[FaultRule]:
    """Adds rules, of which the n-th is for the n-th of the requests."""
    return [broker.lab.fault(kind, nth=n, **more) for n, (kind, more) in enumerate(faults, 1)]


@every_client
def test_an_idempotent_producer_delivers_each_record_once(broker: Broker, topic: str, program: Program) -> None:
    produce = {"api": "Produce", "topic": topic}
    rules = staggered(
        broker,
        ("error", {**produce, "error": "NOT_LEADER_OR_FOLLOWER"}),
        ("close", {**produce, "at": "middle"}),
        ("error", {**produce, "error": "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "at": "reply"}),
        ("delay", {**produce, "ms": LONGER, "at": "reply"}),
        ("throttle", {**produce, "ms": 300}),
        ("close", {**produce, "at": "request"}),
        ("trickle", {**produce, "interval_ms": 2}),
    )
    stale = broker.lab.fault("stale-leader", api="Metadata", topic=topic, nth=2, epoch_by=-1)
    assert program(broker, "produce", topic, "") == []
    assert log_of(broker, topic) == WANTED
    assert [rule.applied for rule in rules] == [1] * len(rules)
    assert stale.matched > 0


# Java's producer loses such a request until its delivery times out; librdkafka and kafkajs report errors
@pytest.mark.parametrize("program", CLIENTS[1:5], indirect=True)
def test_an_idempotent_producer_survives_replies_that_are_wrong(broker: Broker, topic: str, program: Program) -> None:
    produce = {"api": "Produce", "topic": topic}
    rules = staggered(broker, ("truncate", {**produce, "keep_bytes": 12}), ("correlation-id", produce))
    assert program(broker, "produce", topic, "") == []
    assert log_of(broker, topic) == WANTED
    assert [rule.applied for rule in rules] == [1] * len(rules)


@every_client
def test_a_consumer_reads_each_record_once(broker: Broker, topic: str, program: Program) -> None:
    librdkafka(broker, "produce", topic, "")
    fetch = {"api": "Fetch", "topic": topic}
    rules = staggered(
        broker,
        ("error", {**fetch, "error": "NOT_LEADER_OR_FOLLOWER"}),
        ("close", {**fetch, "at": "middle"}),
        ("delay", {**fetch, "ms": LONGER, "at": "reply"}),
        ("throttle", {**fetch, "ms": 200}),
    )
    group = {"group": topic, "times": 1}
    with ExitStack() as more:
        of_group = [
            more.enter_context(broker.lab.fault("error", api=api, error=error, **group))
            for api, error in (
                ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
                ("JoinGroup", "COORDINATOR_LOAD_IN_PROGRESS"),
                ("OffsetFetch", "COORDINATOR_LOAD_IN_PROGRESS"),
                ("OffsetCommit", "NOT_COORDINATOR"),
            )
        ]
        assert values_of(program(broker, "consume", topic, topic)) == WANTED
    assert [rule.applied for rule in of_group] == [1] * len(of_group)
    assert rules[0].applied == 1
    assert sum(rule.applied for rule in rules) >= 2


@every_client
def test_a_consumer_meets_damaged_records_and_reads_on(broker: Broker, topic: str, program: Program) -> None:
    librdkafka(broker, "produce", topic, "")
    with broker.lab.fault("records", damage="crc", api="Fetch", topic=topic, times=2) as rule:
        assert values_of(program(broker, "consume", topic, topic)) == WANTED
        assert rule.applied in (1, 2)  # kafkajs 2 does not check the CRC


# without kafka-python 3.0, whose poll never returns after a batch that it cannot decompress (`Fetcher.fetch_records`)
@pytest.mark.parametrize("program", [CLIENTS[0], *CLIENTS[2:]], indirect=True)
def test_a_consumer_meets_an_unknown_codec_and_reads_on(broker: Broker, topic: str, program: Program) -> None:
    librdkafka(broker, "produce", topic, "")
    with broker.lab.fault("records", damage="codec", api="Fetch", topic=topic, times=2) as rule:
        found = program(broker, "consume", topic, topic)
    assert values_of(found) == WANTED
    errors = [line for line in found if line.startswith("error ")]
    assert (len(errors), rule.applied) in ((2, 2), (0, 1))  # kafkajs tries again without a word


# The first batch has the offset 1000. librdkafka, kafka-python and kafkajs go on with the next batch. The others' next
# offset is 1001: franz-go and sarama get OFFSET_OUT_OF_RANGE and begin again. Not here: aiokafka loses the next batch,
# and Java's consumer all that follow in the reply, in silence.
@pytest.mark.parametrize("program", [*CLIENTS[:2], *CLIENTS[3:6]], indirect=True)
def test_a_consumer_meets_wrong_offsets_and_reads_on(
    broker: Broker, topic: str, program: Program, request: pytest.FixtureRequest
) -> None:
    librdkafka(broker, "produce", topic, "")
    with broker.lab.fault("records", damage="offsets", api="Fetch", topic=topic, times=1) as rule:
        found = program(broker, "consume", topic, topic)
    assert rule.applied == 1
    told = {"franz-go": "lost records", "sarama": "outside the range"}.get(request.node.callspec.params["program"])
    if told is None:
        assert found == [f"value {value}" for value in WANTED]
        return
    first, error, *again = found
    assert (first, told in error) == ("value v0", True)
    assert again == [f"value {value}" for value in WANTED][: len(again)]
