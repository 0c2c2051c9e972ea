"""What a request may be: bytes of its frame by its API, elements in its arrays, and what its reply may take."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import pytest
from ottla.broker.connection_rates import Verdict
from ottla.broker.metrics import Metrics
from ottla.broker.net.connection import FRAMES_AT_ONCE, Connection
from ottla.broker.net.dispatch import Dispatcher, Refused
from ottla.broker.net.limits import elements_max
from ottla.broker.net.listening import IdlePoll, SharedBuffer
from ottla.broker.net.sending import Pipe
from ottla.broker.peer import SecurityProtocol
from ottla.protocol import codec, schema
from ottla.protocol import messages as m
from ottla.protocol.errors import MalformedMessage, TooManyElements

from ..support.floods import counted_elements
from ..support.generate import Generator, all_schemas
from ..support.machine import VirtualMachine
from ..support.wire import request_frame
from ..support.world import World

METADATA = 3


@pytest.mark.long
def test_elements_are_counted_over_the_whole_request_in_both_forms() -> None:
    chance = random.Random(18)
    for name, version in all_schemas():
        if not name.endswith("Request"):
            continue
        message = Generator(schema.load(name), version, chance, unknown_tags=False, present=1.0).message()
        data = bytes(codec.build(name, version, message))
        count = counted_elements(message)
        tags = _tag_count(data, name, version)
        assert codec.parse(name, version, data, 0, count + tags) == message
        assert codec.parse_checked(name, version, data, 0, count + tags)[0] == message
        if count + tags:
            for parse in (codec.parse, codec.parse_checked):
                with pytest.raises(TooManyElements):
                    parse(name, version, data, 0, count + tags - 1)


def _tag_count(data: bytes, name: str, version: int) -> int:
    """How many tagged fields a message has: what it counts beyond the elements of its arrays."""
    low = 0
    counted = counted_elements(codec.parse(name, version, data))
    while True:
        try:
            codec.parse(name, version, data, 0, counted + low)
            return low
        except TooManyElements:
            low += 1
            assert low < 100


def test_the_array_that_has_too_many_is_named() -> None:
    r = m.OffsetFetchRequest
    group = r.OffsetFetchRequestGroup(
        group_id="g", topics=[r.OffsetFetchRequestTopics(name="t", partition_indexes=[0] * 8)] * 2
    )
    data = bytes(codec.build("OffsetFetchRequest", 8, r(groups=[group] * 10)))
    assert codec.parse("OffsetFetchRequest", 8, data, 0, 10 * (1 + 2 + 16))
    with pytest.raises(TooManyElements, match=r"^groups\.topics\.partition_indexes: "):
        codec.parse("OffsetFetchRequest", 8, data, 0, 10 * (1 + 2 + 16) - 1)


def test_unknown_tagged_fields_count() -> None:
    data = bytes(
        codec.build("MetadataRequest", 12, m.MetadataRequest(unknown_tags=[(100 + n, b"") for n in range(50)]))
    )
    assert codec.parse("MetadataRequest", 12, data, 0, 50)
    with pytest.raises(TooManyElements):
        codec.parse("MetadataRequest", 12, data, 0, 49)


def test_why_a_large_request_is_malformed_is_looked_for_in_its_beginning_only() -> None:
    topics = [m.MetadataRequest.MetadataRequestTopic(name="t")] * (codec.EXPLAINED_ELEMENTS + 1)
    data = bytes(codec.build("MetadataRequest", 12, m.MetadataRequest(topics=topics)))
    with pytest.raises(MalformedMessage, match="malformed after the first 2000 elements"):
        codec.parse("MetadataRequest", 12, data[:-2], 0, 100_000)


def test_a_request_with_too_many_elements_ends_the_connection() -> None:
    world = World()
    topics = [m.MetadataRequest.MetadataRequestTopic(name="t")] * (elements_max(METADATA) + 1)
    with pytest.raises(Refused, match="topics: more elements"):
        world.send("Metadata", 12, m.MetadataRequest(topics=topics))
    assert not world.ask("Metadata", 12, m.MetadataRequest(topics=[])).topics


class _Transport:
    """A transport that remembers whether it was closed."""

    def __init__(self) -> None:
        self.closed = False
        self.written = bytearray()

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        pass

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


class _Server:
    """As much of a server as a connection needs."""

    def __init__(self, world: World) -> None:
        self.broker = world.broker
        self.dispatcher = world.dispatcher
        self.shared = SharedBuffer()
        self.pipe = Pipe()
        self.poll = IdlePoll(VirtualMachine(), 0)
        self.metrics = Metrics()

    def connected(self, connection: Connection) -> bool:
        return True

    def admit(self, connection: Connection) -> None:
        connection.admitted(Verdict(is_served=True))

    def gate(self, connection: Connection) -> Dispatcher:
        return self.dispatcher

    def held(self, connection: Connection, more: int) -> None: ...

    def again(self, connection: Connection) -> None:
        self.broker.schedule.soon(connection.serve_again)


def _received(world: World, *pieces: bytes) -> tuple[Connection, _Transport]:
    """A connection that got the pieces, as long as it was open."""
    transport = _Transport()
    connection = Connection(cast(Any, _Server(world)), "PLAINTEXT", SecurityProtocol.PLAINTEXT)
    connection.connection_made(cast(asyncio.Transport, transport))
    for piece in pieces:
        if transport.closed:
            break
        buffer = connection.get_buffer(-1)
        assert len(buffer) >= len(piece)
        buffer[: len(piece)] = piece
        connection.buffer_updated(len(piece))
    return connection, transport


def _announced(size: int, key: int, version: int) -> bytes:
    return size.to_bytes(4, "big") + key.to_bytes(2, "big") + version.to_bytes(2, "big")


@pytest.mark.parametrize("pieces", [(8,), (4, 4), (1, 6, 1)])
def test_a_frame_too_large_for_its_api_is_refused_when_its_key_is_there(pieces: tuple[int, ...]) -> None:
    start = _announced((4 << 20) + 1, METADATA, 12)
    at, parts = 0, []
    for size in pieces:
        parts.append(start[at : at + size])
        at += size
    connection, transport = _received(World(), *parts)
    assert transport.closed
    assert connection.buffered_bytes() <= 64 << 10


def test_a_frame_of_records_may_be_larger() -> None:
    _, transport = _received(World(), _announced(50 << 20, 0, 9))
    assert not transport.closed
    _, transport = _received(World(), _announced((100 << 20) + 1, 0, 9))
    assert transport.closed


def test_a_large_frame_for_no_api_is_refused() -> None:
    _, transport = _received(World(), _announced(5 << 20, 999, 0))
    assert transport.closed


def test_a_frame_within_its_limit_is_served_however_it_comes() -> None:
    frame = request_frame("Metadata", 12, m.MetadataRequest(topics=[]))
    _, transport = _received(World(), *(frame[at : at + 3] for at in range(0, len(frame), 3)))
    assert transport.written
    assert not transport.closed


def test_requests_that_came_together_are_served_some_in_a_turn() -> None:
    """One read holds thousands of small ones."""
    frame, count, world = request_frame("ApiVersions", 3, m.ApiVersionsRequest()), 1000, World()
    served = [0]
    handle = Dispatcher.handle

    def counted(self: Dispatcher, *arguments: Any) -> Any:
        served[-1] += 1
        return handle(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Dispatcher, "handle", counted)
        serve = Connection._serve_frames

        def noted(self: Connection, view: memoryview) -> None:
            served.append(0)
            serve(self, view)

        patched.setattr(Connection, "_serve_frames", noted)
        _, transport = _received(world, frame * count)
        assert sum(served) == FRAMES_AT_ONCE
        world.pass_ms(1)
    assert sum(served) == count
    assert max(served) == FRAMES_AT_ONCE
    assert len(transport.written) % count == 0
    assert not transport.closed
