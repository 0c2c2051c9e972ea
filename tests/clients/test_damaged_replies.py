"""Replies that are cut, numbered wrongly, sent twice or byte by byte: clients go on, or give the connection up, and
read everything once; kafkajs gives up at a reply that it cannot read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.ask import create, produce
from ..support.poll import until
from ..support.wire import Wire
from .fault_clients import CLIENTS, WANTED, Program, program, values_of

__all__ = ["program"]
pytestmark = pytest.mark.slow
SOME = [CLIENTS[0], *CLIENTS[5:]]  # librdkafka, kafkajs and Java
# Java's consumer raises an error, and its successor reads on; of a reply that comes twice it does so if the second one
# meets a request
ERRORS = {("java", "truncate"): "SchemaException", ("java", "correlation-id"): "CorrelationIdMismatchException"}
GIVEN_UP = {*ERRORS, ("librdkafka", "correlation-id")}
"""Where the client gives the connection up: librdkafka waits for the right reply until the request times out."""
DAMAGES: dict[str, dict[str, Any]] = {
    "truncate": {"keep_bytes": 20},
    "correlation-id": {},
    "twice": {},
    "trickle": {"piece_bytes": 1, "interval_ms": 0},
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "trace.jsonl"


@pytest.fixture(scope="module")
def broker(trace: Path) -> Iterator[Broker]:
    with Broker({"ottla.trace": trace, "group.initial.rebalance.delay.ms": 0}) as running:
        yield running


def fetching(trace: Path, broker: Broker, name: str) -> dict[int, str]:
    """By the number of the connection, the clients that have fetched, once the trace has all until now."""
    with Wire(broker.bootstrap_servers, client_id=name) as wire:
        wire.ask("Metadata", 9, m.MetadataRequest(topics=[]))

    def events() -> list[dict[str, Any]]:
        text = trace.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    until(lambda: any(one.get("client_id") == name for one in events()), "the trace")
    return {one["connection"]: one["client_id"] for one in events() if one.get("api") == "Fetch"}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("program", SOME, indirect=True)
def test_a_consumer_meets_a_damaged_reply(
    broker: Broker, trace: Path, program: Program, damage: str, request: pytest.FixtureRequest
) -> None:
    client = request.node.callspec.params["program"]
    topic = f"{client}-{damage}"
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, topic)
        for value in WANTED:
            assert produce(wire, topic, value.encode()).error_code == 0
    before = fetching(trace, broker, f"before {topic}")
    with broker.lab.fault(damage, api="Fetch", topic=topic, times=1, **DAMAGES[damage]) as rule:
        if (client, damage) == ("kafkajs", "truncate"):
            with pytest.raises(AssertionError, match="failed: KafkaJSNonRetriableError"):
                program(broker, "consume", topic, topic)
            return
        found = program(broker, "consume", topic, topic)
        assert (values_of(found), rule.applied) == (WANTED, 1)
    errors = " ".join(line for line in found if line.startswith("error "))
    told = ERRORS.get((client, damage), "")
    assert told in errors
    after = fetching(trace, broker, f"after {topic}")
    if (client, damage) in GIVEN_UP:
        assert len(after.keys() - before.keys()) >= 2, after
