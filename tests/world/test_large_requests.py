"""Produces of about a megabyte that a client sends ahead, in whatever pieces they arrive."""

from __future__ import annotations

import random

import pytest

from ..support.ask import batch, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.topic_world import create
from ..support.wire import request_frame


def sent_ahead(values: list[bytes]) -> bytes:
    return b"".join(
        request_frame("Produce", 9, produce_message("t", batch(value)), number) for number, value in enumerate(values)
    )


def buffers_made(client: Client, data: bytes, most: int) -> int:
    """Has bytes arrive, at most so many at a time; returns how many buffers the connection made for them."""
    connection, left, made = client.connection, memoryview(data), 0
    shared = known = client.world.shared.view.obj
    while left:
        view = connection.get_buffer(-1)
        count = min(len(view), len(left), most)
        view[:count] = left[:count]
        left = left[count:]
        connection.buffer_updated(count)
        view = connection.get_buffer(-1)
        made += view.obj is not known and view.obj is not shared
        known = view.obj
        client.world.pass_ms(0)
    return made


@pytest.mark.parametrize(("most", "buffers"), [(7_000, 7), (64 << 10, 5), (256 << 10, 3), (1 << 20, 3)])
def test_the_buffer_of_one_request_is_used_for_the_next_of_another_size(most: int, buffers: int) -> None:
    world, chance = ConnectedWorld(), random.Random(25)
    create(world, "t", 1)
    client = world.connect()
    values = [chance.randbytes(chance.randint(600_000, 950_000)) for _ in range(10)]
    assert buffers_made(client, sent_ahead(values), most) <= buffers
    assert client.ids == list(range(10))
    log = world.broker.partitions.by_name["t", 0].open_log()
    written = [log.active.read_batch(one) for one in log.active.scan()]
    assert [value in data for value, data in zip(values, written, strict=True)] == [True] * 10


def test_a_large_buffer_is_not_kept_for_a_small_request() -> None:
    world = ConnectedWorld()
    create(world, "t", 1)
    client = world.connect()
    client.feed(sent_ahead([bytes(900_000), bytes(1000)])[:-10])
    assert client.ids == [0]
    assert len(client.connection.get_buffer(-1)) < 8 << 10
    client.feed(sent_ahead([bytes(1000)])[-10:])
    assert client.ids == [0, 1]
