"""Worlds that emulate an earlier release, and what its clients send them."""

from __future__ import annotations

from typing import Any

from ottla.protocol import legacy
from ottla.protocol import messages as m
from ottla.protocol.compression import NONE
from ottla.protocol.legacy import Message

from .ask import produce_message
from .topic_world import produced
from .world import World


def world_of(release: str, **settings: str) -> World:
    return World(ottla_emulate=release, **settings)


def with_topic(release: str, name: str = "t", **settings: str) -> World:
    """A world with a topic, which the oldest releases make when it is asked for."""
    world = world_of(release, **settings)
    r = m.MetadataRequest
    world.ask("Metadata", 0, r(topics=[r.MetadataRequestTopic(name=name)]))
    world.pass_ms(100)
    return world


def sent(*values: bytes, magic: int = 0, codec: int = NONE) -> bytes:
    return legacy.encode([Message(i, b"k", value, magic) for i, value in enumerate(values)], codec)


def put(world: World, data: bytes, version: int = 0, acks: int = 1, name: str = "t") -> Any:
    return produced(world.ask("Produce", version, produce_message(name, data, acks=acks)))


def fetched(world: World, offset: int = 0, version: int = 0, bytes_max: int = 1 << 20, name: str = "t") -> Any:
    r = m.FetchRequest
    wanted = r.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=bytes_max)
    request = r(replica_id=-1, max_wait_ms=0, topics=[r.FetchTopic(topic=name, partitions=[wanted])])
    return world.ask("Fetch", version, request).responses[0].partitions[0]


def messages_in(answer: Any) -> list[tuple[int, bytes | None]]:
    return [(one.offset, one.value) for one in legacy.decode(bytes(answer.records))]


def answered(world: World, frame: bytes) -> bytes:
    """What the broker answers to a frame, without the size of its reply."""
    replies: list[bytes] = []

    def take(answer: Any, is_closed: bool) -> None:
        assert not is_closed
        replies.append(bytes(answer.head) + b"".join(map(bytes, answer.parts)))

    world.dispatcher.handle(world.peer, memoryview(bytearray(frame)), take)
    (reply,) = replies
    assert int.from_bytes(reply[:4], "big") == len(reply) - 4
    return reply[4:]
