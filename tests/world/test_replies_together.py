"""Replies to requests that arrived together: one write has them, in order, unless something else is due before."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.net.connection import TOGETHER_BYTES
from ottla.broker.net.dispatch import Dispatcher
from ottla.protocol import messages as m

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.topic_world import create
from ..support.wire import request_frame


def _produces(*numbers: int) -> bytes:
    return b"".join(request_frame("Produce", 9, produce_message("t", batch(b"value")), n) for n in numbers)


def _fetch(number: int) -> bytes:
    return request_frame("Fetch", 11, fetch_message("t", 0), number)


@pytest.fixture
def client() -> Client:
    world = ConnectedWorld()
    create(world, "t", 1)
    return world.connect()


def _writes(client: Client) -> int:
    return len(client.transport.writes)


def test_one_write_has_all_replies(client: Client) -> None:
    client.feed(_produces(1, 2, 3))
    assert _writes(client) == 1
    assert client.ids == [1, 2, 3]
    client.feed(_produces(4))
    assert _writes(client) == 2
    assert client.ids == [1, 2, 3, 4]


def test_a_reply_does_not_wait_for_requests_that_take_longer(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Dispatcher.handle

    def slow(self: Dispatcher, *arguments: Any) -> Any:
        pending = handle(self, *arguments)
        client.world.schedule.elapsed_ms += 1
        return pending

    monkeypatch.setattr(Dispatcher, "handle", slow)
    client.feed(_produces(1, 2, 3))
    assert _writes(client) == 3
    assert client.ids == [1, 2, 3]


def test_large_replies_do_not_wait_for_others(client: Client) -> None:
    count, request = 100, m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    client.feed(request_frame("ApiVersions", 3, request) * count)
    sizes = [len(data) for _, data in client.transport.writes]
    one = sum(sizes) // count
    assert len(client.frames) == count
    assert TOGETHER_BYTES <= max(sizes) < TOGETHER_BYTES + one


def test_replies_with_records_keep_their_place(client: Client) -> None:
    client.feed(_produces(1) + _fetch(2) + _produces(3, 4) + _fetch(5))
    assert client.ids == [1, 2, 3, 4, 5]


def test_a_request_that_waits_holds_no_reply_back(client: Client) -> None:
    client.feed(_produces(1) + request_frame("Fetch", 11, fetch_message("t", 1, wait_ms=500), 2) + _produces(3))
    assert client.ids == [1]
    client.world.pass_ms(500)
    assert client.ids == [1, 2, 3]


def test_replies_are_written_before_a_bad_request_closes_the_connection(client: Client) -> None:
    client.feed(_produces(1, 2) + b"\xff\xff\xff\xff")
    assert client.ids == [1, 2]
    assert client.closed


def test_replies_are_written_before_the_connection_freezes(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    handle, served = Dispatcher.handle, []

    def freezing(self: Dispatcher, *arguments: Any) -> Any:
        served.append(1)
        if len(served) == 3:
            client.connection.freeze()
        return handle(self, *arguments)

    monkeypatch.setattr(Dispatcher, "handle", freezing)
    client.feed(_produces(1, 2, 3))
    assert client.ids == [1, 2]
    client.connection.thaw()
    assert client.ids == [1, 2, 3]


def test_nothing_is_written_to_a_connection_that_was_lost(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    handle, served = Dispatcher.handle, []

    def losing(self: Dispatcher, *arguments: Any) -> Any:
        served.append(1)
        if len(served) == 2:
            client.lose()
        return handle(self, *arguments)

    monkeypatch.setattr(Dispatcher, "handle", losing)
    client.feed(_produces(1, 2, 3))
    assert client.ids == []
