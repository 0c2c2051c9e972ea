"""Instances of Kafka Streams meet each error that is declared for the heartbeat of their group (KIP-1071), once, as
members that have a task: they go on, join again, or end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest
from ottla.broker.apis.k88_streams_group_heartbeat import ERRORS
from ottla.protocol.errors import CODES, Errors

from ottla.lab_faults import FaultRule
from ottla.testing import Broker

from ..support.streams_programs import Programs

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
HEARTBEAT: Final = "StreamsGroupHeartbeat"


def exception(error: str) -> str:
    """Returns the name of the error's exception in Java."""
    return "".join(word.capitalize() for word in error.removesuffix("_FAILED").split("_")) + "Exception"


GOES_ON, JOINS_AGAIN = "goes on", "joins again"
SETTINGS: dict[str, object] = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 50,
    "group.streams.heartbeat.interval.ms": 100,
}
BESIDE_EACH_OTHER = 4
ENDS = (
    *("INVALID_GROUP_ID", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
    *("UNSUPPORTED_VERSION", "INVALID_REQUEST", "GROUP_ID_NOT_FOUND", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID"),
    *("UNRELEASED_INSTANCE_ID", "STREAMS_INVALID_TOPOLOGY", "STREAMS_INVALID_TOPOLOGY_EPOCH"),
    "STREAMS_TOPOLOGY_FENCED",
)
# StreamsGroupHeartbeatRequestManager.onErrorResponse: what is fatal there ends the stream thread with the exception of
# the error, and by default the instance with it (its state is ERROR). FENCED_INSTANCE_ID is none that it names in
# kafka-clients 4.3.1, with which Streams runs here, and what it does not name is fatal. 4.4.0, in which the consumer
# below Streams is tried (error_differences.py), has a case for it, which throws for a member without an instance id
# before it is fatal: there the consumer goes on
DOES = {
    **dict.fromkeys(("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"), GOES_ON),
    **dict.fromkeys(("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH"), JOINS_AGAIN),
    **{error: f"ends with {exception(error)}" for error in ENDS},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    found = Programs()
    yield found
    found.close()


def heartbeats(broker: Broker, group: str) -> int:
    """How many a group was sent by the clients that are connected."""
    return sum(
        count
        for one in broker.lab.clients()
        if group in one["groups"]
        for api, count in one["requests"].items()
        if api.split()[0] == HEARTBEAT
    )


def met(broker: Broker, programs: Programs, error: str) -> str:
    """Lets an application with one instance meet an error; returns what it does."""
    group = f"meets-{CODES[error]}"
    rules: list[FaultRule] = []
    before: list[int] = []
    does: list[str] = []

    def fail(_: str) -> str:
        rules.append(broker.lab.fault("error", error=error, api=HEARTBEAT, group=group, times=1))
        return "fails"

    def since(_: str) -> str:
        """The heartbeats since the error was seen: one that came with it may be among them."""
        if not rules[0].applied:
            return "0"
        before[:] = before or [heartbeats(broker, group)]
        return str(heartbeats(broker, group) - before[0])

    def done(words: str) -> str:
        does.append(words)
        return "heard"

    actions: dict[str, Callable[[str], str]] = {"fail": fail, "since": since, "does": done}
    programs.run("error", group, broker.bootstrap_servers, actions)
    assert rules[0].applied == 1
    return does[0]


def test_an_instance_meets_each_error_of_its_groups_heartbeat(broker: Broker, programs: Programs) -> None:
    errors = sorted({Errors(code).name for place in ERRORS for code in place.errors})
    with ThreadPoolExecutor(BESIDE_EACH_OTHER) as pool:
        does = dict(zip(errors, pool.map(lambda error: met(broker, programs, error), errors), strict=True))
    assert does == DOES
