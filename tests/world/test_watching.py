"""Watchers of the lab's seam: they see what is sent, whoever has changed it, and change nothing."""

from __future__ import annotations

import pytest
from ottla.broker import bugs
from ottla.broker.lab.seam import (
    CLOSE,
    NO_REPLY,
    Asked,
    Attached,
    Exchange,
    Interceptor,
    Line,
    Outcome,
    Outgoing,
    Watch,
    Watcher,
)
from ottla.broker.replies import Reply, Send
from ottla.protocol import messages as m
from ottla.protocol.structs import Struct

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.topic_world import create

METADATA = "Metadata", 12, m.MetadataRequest(topics=[])


class Watching(Watcher):
    """Notes what is sent: the size of the reply, None for none."""

    def __init__(self) -> None:
        self.seen: list[tuple[int | None, bool]] = []

    def watching(self, line: Line) -> Watch:
        return self.watch

    def watch(self, number: int, context: Asked, request: Struct, frame: memoryview, send: Send) -> Send:
        def sent(reply: Reply | None, end: bool) -> None:
            self.seen.append((None if reply is None else reply.size, end))
            send(reply, end)

        return sent


class Changing(Interceptor):
    """Follows what others only watch, and cuts the reply; or answers instead of the handler."""

    order = 30

    def __init__(self, instead: Outcome | None = None) -> None:
        self.instead = instead

    def arrived(self, exchange: Exchange) -> Outcome | None:
        exchange.follow(self)
        return self.instead

    def encoded(self, exchange: Exchange, outgoing: Outgoing) -> None:
        assert outgoing.reply is not None
        outgoing.reply = Reply(outgoing.reply.head[:9], [])
        outgoing.end = True


def started(*interceptors: Attached) -> tuple[ConnectedWorld, Client]:
    world = ConnectedWorld()
    create(world, "orders", 1)
    client = world.connect()
    for one in interceptors:
        world.seam.add(one)
    return world, client


def test_a_watcher_sees_each_reply_and_that_there_is_none() -> None:
    first, second = Watching(), Watching()
    _, client = started(first, second)
    client.ask(*METADATA)
    client.send("Produce", 9, produce_message("orders", batch(b"x"), acks=0))
    client.ask("Fetch", 12, fetch_message("orders", 1, wait_ms=500))  # it waits
    assert first.seen == [(4 + len(client.frames[0]), False), (None, False), (4 + len(client.frames[1]), False)]
    assert second.seen == first.seen


def test_a_watcher_sees_what_others_have_made_of_a_reply() -> None:
    watching = Watching()
    _, client = started(watching, Changing())
    client.send(*METADATA)
    assert watching.seen == [(9, True)]
    assert len(client.transport.written) == 9


@pytest.mark.parametrize(("instead", "is_end"), [(NO_REPLY, False), (CLOSE, True)])
def test_a_watcher_sees_that_another_lets_nothing_be_sent(instead: Outcome, is_end: bool) -> None:
    watching = Watching()
    _, client = started(watching, Changing(instead))
    client.send(*METADATA)
    assert watching.seen == [(None, is_end)]
    assert client.closed == is_end


def test_a_watcher_that_fails_is_a_bug_and_the_reply_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    watching, other = Watching(), Watching()
    monkeypatch.setattr(watching, "watch", "not a function")
    _, client = started(watching, other)
    before = bugs.count()
    client.ask(*METADATA)
    assert bugs.count() == before + 1
    assert len(other.seen) == 1


@pytest.mark.parametrize("test_of", ["not a function", lambda api: "not a function"])
def test_an_interceptor_that_fails_to_say_what_concerns_it_lets_the_request_pass(
    monkeypatch: pytest.MonkeyPatch, test_of: object
) -> None:
    failing = Changing()
    monkeypatch.setattr(failing, "test_of", test_of)
    _, client = started(failing)
    before = bugs.count()
    client.ask(*METADATA)
    assert bugs.count() == before + 1


def test_a_lost_connection_has_nothing_sent_to_watch() -> None:
    watching = Watching()
    world, client = started(watching)
    client.send("Fetch", 12, fetch_message("orders", 0, wait_ms=500))
    client.lose()
    world.pass_ms(1000)
    assert watching.seen == []
