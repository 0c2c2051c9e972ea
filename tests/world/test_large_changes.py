"""What a client asks of the controller may write 10,000 records, as with Kafka; smaller bounds stand for that."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.coordinator.metadata import controller
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.node_world import cluster, happens
from ..support.world import World

REFUSED = "POLICY_VIOLATION", "Unable to perform excessively large batch operation."


@pytest.fixture
def w() -> World:
    return cluster()


def answer(reply: Any) -> tuple[str, str | None]:
    return Errors(reply.error_code).name, getattr(reply, "error_message", None)


def bound_to(records: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller, "RECORDS_PER_REQUEST", records)


def test_a_broker_of_too_many_partitions_is_not_unregistered(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four partitions change, and the record of the broker is the fifth."""
    request = m.UnregisterBrokerRequest(broker_id=3)
    bound_to(4, monkeypatch)
    assert answer(w.ask("UnregisterBroker", 0, request)) == REFUSED
    assert 3 in w.broker.image.brokers
    bound_to(5, monkeypatch)
    assert answer(w.ask("UnregisterBroker", 0, request)) == ("NONE", "")


def test_a_node_of_too_many_partitions_is_removed(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """This is no request of Kafka's."""
    bound_to(1, monkeypatch)
    happens(w, "remove", 3)
    assert 3 not in w.broker.image.brokers


def test_too_many_elections_are_refused(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for what in ("stop", "begin"):
        happens(w, what, 1)
        happens(w, what, 3)
    w.pass_ms(1000)
    bound_to(1, monkeypatch)
    request = m.ElectLeadersRequest(election_type=0, topic_partitions=None, timeout_ms=1000)
    assert answer(w.ask("ElectLeaders", 2, request))[0] == "POLICY_VIOLATION"
    bound_to(2, monkeypatch)
    assert answer(w.ask("ElectLeaders", 2, request))[0] == "NONE"
