"""Replies that are sent in pieces, and connections that are frozen, while the peer does not take what is sent."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.lab.faults.byte_actions import CorrelationId, Trickle, Truncate
from ottla.broker.lab.faults.request_actions import Close
from ottla.broker.lab.faults.rules import Fault, Faults
from ottla.protocol import messages as m

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create

GROUPS = "ListGroups", 4, m.ListGroupsRequest()


class Slow:
    """A broker whose replies come in pieces of ten bytes, a millisecond apart, and a client."""

    def __init__(self, *actions: Any) -> None:
        self.world = ConnectedWorld()
        create(self.world, "t")
        self.client: Client = self.world.connect()
        self.client.ask("Produce", 9, produce_message("t", batch(bytes(300))))
        faults = LabWorld(self.world).lab.part(Faults)
        for action in actions or (Trickle(piece_bytes=10, interval_ms=1),):
            faults.add(Fault(action=action))

    @property
    def writes(self) -> int:
        return len(self.client.transport.writes)


@pytest.mark.parametrize("request_of", [GROUPS, ("Fetch", 11, fetch_message("t", 0))], ids=["message", "records"])
def test_a_peer_that_takes_nothing_gets_no_more_pieces(request_of: Any) -> None:
    slow = Slow()
    slow.client.send(*request_of)
    slow.client.connection.pause_writing()
    before = slow.writes
    slow.world.pass_ms(1000)
    assert slow.writes == before
    slow.client.connection.resume_writing()
    slow.client.send(*GROUPS)
    slow.world.pass_ms(1000)
    assert slow.client.ids == [1, 2, 3]
    assert max(len(data) for _, data in slow.client.transport.writes[1:]) == 10


def test_a_reply_that_ends_the_connection_is_the_last_one_even_if_the_peer_reads_slowly() -> None:
    slow = Slow(Trickle(piece_bytes=10, interval_ms=1), Close(at="after-reply"))
    for _ in range(2):
        slow.client.send(*GROUPS)
    slow.client.connection.pause_writing()
    slow.client.connection.resume_writing()
    slow.world.pass_ms(1000)
    assert slow.client.ids == [1, 2]
    assert slow.client.closed


def test_a_frozen_connection_sends_no_more_pieces() -> None:
    slow = Slow()
    slow.client.send(*GROUPS)
    slow.client.connection.freeze()
    before = slow.writes
    slow.world.pass_ms(1000)
    assert slow.writes == before
    slow.client.connection.thaw()
    slow.world.pass_ms(1000)
    assert slow.client.ids == [1, 2]


def test_a_frozen_connection_sends_no_more_records_when_its_peer_reads_again() -> None:
    world = ConnectedWorld()
    create(world, "t")
    client = world.connect()
    client.ask("Produce", 9, produce_message("t", batch(bytes(300))))
    connection = client.connection
    connection.chunk_bytes = 10
    connection.pause_writing()
    client.send("Fetch", 11, fetch_message("t", 0))
    connection.freeze()
    connection.resume_writing()
    assert client.ids == [1]
    connection.thaw()
    world.pass_ms(0)
    assert client.ids == [1, 2]


def test_a_connection_that_thaws_while_it_waits_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only who reads notices that the peer has gone."""
    world = ConnectedWorld()
    create(world, "t")
    client = world.connect()
    client.send("Fetch", 11, fetch_message("t", 0, wait_ms=60_000))
    reads: list[bool] = []
    monkeypatch.setattr(client.transport, "pause_reading", lambda: reads.append(False))
    monkeypatch.setattr(client.transport, "resume_reading", lambda: reads.append(True))
    client.connection.freeze()
    client.connection.thaw()
    world.pass_ms(0)
    assert client.connection.is_waiting()
    assert reads == [False, True]


def test_a_reply_without_a_correlation_id_gets_no_wrong_one() -> None:
    slow = Slow(Truncate(keep_bytes=0), CorrelationId())
    before = len(slow.client.transport.written)
    slow.client.send(*GROUPS)
    assert slow.client.transport.written[before:] == bytes(4)


def test_an_empty_reply_is_not_truncated() -> None:
    slow = Slow(Close(at="middle", after_bytes=0), Truncate())
    before = len(slow.client.transport.written)
    slow.client.send(*GROUPS)
    assert slow.client.closed
    assert slow.client.transport.written[before:] == b""
