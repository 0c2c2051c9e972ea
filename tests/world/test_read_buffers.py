"""Requests of any size that a client sends ahead, in whatever pieces they arrive."""

from __future__ import annotations

import random

import pytest
from ottla.broker.lab.seam import Exchange, Interceptor
from ottla.broker.later import Later
from ottla.protocol import messages as m

from ..support.ask import batch, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.topic_world import create
from ..support.wire import request_frame


class Delaying(Interceptor):
    """Delays each Heartbeat."""

    def arrived(self, exchange: Exchange) -> Later[None] | None:
        context = exchange.context
        return context.broker.turn.pause(5) if context.api.name == "Heartbeat" else None


def produces(values: list[bytes]) -> list[bytes]:
    return [request_frame("Produce", 9, produce_message("t", batch(one)), at) for at, one in enumerate(values)]


def connected() -> tuple[ConnectedWorld, Client]:
    world = ConnectedWorld()
    create(world, "t", 1)
    return world, world.connect()


def written(world: ConnectedWorld) -> list[bytes]:
    """The batches of the log."""
    log = world.broker.partitions.by_name["t", 0].open_log()
    return [bytes(log.active.read_batch(one)) for one in log.active.scan()]


def buffers_made(client: Client, data: bytes, most: int) -> int:
    """Has bytes arrive, at most so many at a time; returns how many buffers the connection made for them."""
    shared = known = client.world.shared.view.obj
    made = 0
    for at in range(0, len(data), most):
        client.feed(data[at : at + most])
        buffer = client.connection.get_buffer(-1).obj
        made += buffer is not known and buffer is not shared
        known = buffer
    return made


@pytest.mark.parametrize(("most", "buffers"), [(7_000, 7), (64 << 10, 5), (256 << 10, 3)])
def test_the_buffer_of_one_request_is_used_for_the_next_of_another_size(most: int, buffers: int) -> None:
    (world, client), chance = connected(), random.Random(25)
    values = [chance.randbytes(chance.randint(600_000, 950_000)) for _ in range(10)]
    assert buffers_made(client, b"".join(produces(values)), most) <= buffers
    assert client.ids == list(range(10))
    assert [value in data for value, data in zip(values, written(world), strict=True)] == [True] * 10


def test_a_large_buffer_is_not_kept_for_a_small_request() -> None:
    _, client = connected()
    large, small = produces([bytes(900_000), bytes(1000)])
    client.feed(large + small[:-10])
    assert client.ids == [0]
    assert len(client.connection.get_buffer(-1)) < 8 << 10
    client.feed(small[-10:])
    assert client.ids == [0, 1]


def test_a_small_buffer_is_not_made_again_for_each_piece() -> None:
    _, client = connected()
    assert buffers_made(client, produces([bytes(100)])[0], 10) == 1
    assert client.ids == [0]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_requests_behind_one_that_waits_are_answered_in_their_order(seed: int) -> None:
    chance, sizes, values = random.Random(seed), (10, 3_000, 70_000, 300_000, 900_000), []
    world, client = connected()
    world.seam.add(Delaying())
    data = bytearray()
    for number in range(60):
        if chance.random() < 0.3:
            beat = m.HeartbeatRequest(group_id="g", member_id="m")
            data += request_frame("Heartbeat", 4, beat, number)
        else:
            values.append(chance.randbytes(chance.choice(sizes)))
            data += request_frame("Produce", 9, produce_message("t", batch(values[-1])), number)
    while data:
        count = chance.choice((1, 100, 7_000, 64 << 10, 256 << 10, 1 << 20))
        client.feed(bytes(data[:count]))
        del data[:count]
        if chance.random() < 0.5:
            world.pass_ms(3)
    world.pass_ms(60 * 5)
    assert client.ids == list(range(60))
    assert [value in data for value, data in zip(values, written(world), strict=True)] == [True] * len(values)


def test_a_connection_that_is_being_closed_holds_nothing_that_it_has_read() -> None:
    _, client = connected()
    client.feed(produces([bytes(300_000)])[0][:-1])
    connection = client.connection
    assert connection.held_bytes > 300_000
    connection.close()
    assert connection.held_bytes == 0
    assert len(connection.get_buffer(-1)) > 0, "there is room for what still arrives"
