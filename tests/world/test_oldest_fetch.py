"""The fetch and multi-fetch requests of before 0.8, byte by byte (`ottla.emulate.oldest.fetch`)."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from ottla.broker.net.dispatch import Refused
from ottla.protocol import legacy
from ottla.protocol.compression import GZIP
from ottla.protocol.legacy import Message

from ..support.emulated import put, with_topic
from ..support.world import World

UNKNOWN, OFFSET_OUT_OF_RANGE, WRONG_PARTITION = -1, 1, 3


def wanted(topic: bytes, partition: int, offset: int, bytes_max: int) -> bytes:
    return struct.pack(">h", len(topic)) + topic + struct.pack(">iqi", partition, offset, bytes_max)


def fetch(topic: bytes, partition: int, offset: int, bytes_max: int = 1 << 20) -> bytes:
    return struct.pack(">h", 1) + wanted(topic, partition, offset, bytes_max)


def multi_fetch(*fetches: bytes) -> bytes:
    return struct.pack(">hh", 2, len(fetches)) + b"".join(fetches)


def entry(offset: int, value: bytes) -> bytes:
    """A message as on disk: offset, length, checksum, magic, attributes, length of the key, length of the value."""
    message = b"\0\0" + struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    return struct.pack(">qiI", offset, 4 + len(message), zlib.crc32(message)) + message


def sent(world: World, frame: bytes) -> bytes:
    replies: list[bytes] = []

    def take(answer: Any, is_closed: bool) -> None:
        assert not is_closed
        replies.append(bytes(answer.head))

    world.dispatcher.handle(world.peer, memoryview(bytearray(frame)), take)
    world.pass_ms(100)
    (reply,) = replies
    return reply


@pytest.fixture
def world() -> World:
    made = with_topic("0.8.2", ottla_emulate_oldest_fetch="true")
    for value in (b"one", b"two", b"three"):
        assert put(made, legacy.encode([Message(0, None, value, 0)])).error_code == 0
    return made


def test_a_fetch_is_answered_with_a_length_an_error_and_messages(world: World) -> None:
    messages = entry(0, b"one") + entry(1, b"two") + entry(2, b"three")
    assert sent(world, fetch(b"t", 0, 0)) == struct.pack(">ih", 2 + len(messages), 0) + messages
    assert sent(world, fetch(b"t", 0, 2)) == struct.pack(">ih", 2 + len(entry(2, b"three")), 0) + entry(2, b"three")
    assert sent(world, fetch(b"t", 0, 3)) == bytes.fromhex("000000020000")


def test_one_reply_in_numbers(world: World) -> None:
    """Total length 31, no error, offset 0, message length 17, checksum, magic 0, attributes 0, no key, "one"."""
    message = "0000000000000000 00000011 0c94f89c 00 00 ffffffff 00000003 6f6e65"
    reply = bytes.fromhex(f"0000001f 0000 {message}")
    assert sent(world, fetch(b"t", 0, 0, len(entry(0, b"one")))) == reply


def test_a_multi_fetch_is_answered_with_a_send_for_each_fetch(world: World) -> None:
    first, second = entry(0, b"one"), entry(2, b"three")
    sends = (
        struct.pack(">ih", 2 + len(first), 0) + first,
        struct.pack(">ih", 2, WRONG_PARTITION),
        struct.pack(">ih", 2 + len(second), 0) + second,
        struct.pack(">ih", 2, OFFSET_OUT_OF_RANGE),
    )
    asked = multi_fetch(
        wanted(b"t", 0, 0, len(first)),
        wanted(b"absent", 0, 0, 100),
        wanted(b"t", 0, 2, 100),
        wanted(b"t", 0, 99, 100),
    )
    assert sent(world, asked) == struct.pack(">ih", 2 + sum(map(len, sends)), 0) + b"".join(sends)
    assert sent(world, multi_fetch(wanted(b"t", 0, 2, 100))) == struct.pack(">ih", 2 + len(sends[2]), 0) + sends[2]


def test_a_message_larger_than_the_buffer_comes_in_part_and_the_client_doubles_its_buffer(world: World) -> None:
    assert put(world, legacy.encode([Message(0, None, b"x" * 1000, 0)])).error_code == 0
    large, size, tries = entry(3, b"x" * 1000), 50, 0
    while True:
        reply = sent(world, fetch(b"t", 0, 3, size))
        assert reply == struct.pack(">ih", 2 + min(size, len(large)), 0) + large[:size]
        if list(legacy.entries(reply[6:])):
            break
        size, tries = size * 2, tries + 1
    assert (size, tries) == (1600, 5)


def test_a_compressed_set_is_returned_as_it_is_stored(world: World) -> None:
    assert (
        put(world, legacy.encode([Message(0, None, b"a" * 99, 0), Message(1, None, b"b" * 99, 0)], GZIP)).error_code
        == 0
    )
    reply = sent(world, fetch(b"t", 0, 3))
    assert [(one.offset, one.value) for one in legacy.decode(reply[6:])] == [(3, b"a" * 99), (4, b"b" * 99)]


def test_requests_of_0_8_are_served_as_without_it(world: World) -> None:
    request = struct.pack(">hhih", 1, 0, 7, 1) + b"x" + struct.pack(">iiiih", -1, 0, 0, 1, 1) + b"t"
    request += struct.pack(">iiqi", 1, 0, 2, 100)
    assert sent(world, request)[4:8] == struct.pack(">i", 7)
    plain = with_topic("0.8.2")
    with pytest.raises(Refused):
        sent(plain, fetch(b"t", 0, 0))
    with pytest.raises(Refused):
        sent(with_topic("0.10.2", ottla_emulate_oldest_fetch="true"), fetch(b"t" * 9, 0, 0))


@pytest.mark.parametrize(
    "frame",
    [
        fetch(b"t", 0, 0)[:-1],
        fetch(b"t", 0, 0) + b"x",
        struct.pack(">hh", 1, 2) + b"\xff\xff" + bytes(16),
        struct.pack(">hh", 1, 30_000) + b"t",
        multi_fetch(wanted(b"t", 0, 0, 1))[:-3],
        struct.pack(">hh", 2, 32_767) + wanted(b"t", 0, 0, 1),
        multi_fetch(*[wanted(b"t", 0, 0, 1)] * 1001),
        multi_fetch(struct.pack(">h", -5) + bytes(20)),
    ],
)
def test_what_is_no_such_request_closes_the_connection(world: World, frame: bytes) -> None:
    with pytest.raises(Refused):
        sent(world, frame)


def test_many_fetches_share_a_bound_and_odd_sizes_get_nothing(world: World) -> None:
    for size in (0, -1, -(2**31)):
        assert sent(world, fetch(b"t", 0, 0, size)) == struct.pack(">ih", 2, 0)
    reply = sent(world, multi_fetch(*[wanted(b"t", 0, 0, 2**31 - 1)] * 1000))
    assert len(reply) == 6 + 1000 * (6 + 3 * 29 + 2)
    assert put(world, legacy.encode([Message(0, None, b"x" * 900_000, 0)])).error_code == 0
    reply = sent(world, multi_fetch(*[wanted(b"t", 0, 3, 1_000_000)] * 1000))
    assert 7 << 20 < len(reply) < (8 << 20) + 6 * 1001
    assert world.broker.metrics.bugs == 0
