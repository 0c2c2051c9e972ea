"""Requests of brokers and controllers that a client sends to a broker that emulates an earlier release. Kafka's replies
to such a client, whose controller epoch is over, are those of 0.8.2.2, 0.10.2.2 and 1.1.1, asked once.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest
from ottla.broker.emulation.between_brokers import NAMES, versions_of
from ottla.broker.emulation.releases import releases
from ottla.broker.net.dispatch import Refused
from ottla.protocol import messages as m

from ..support.emulated import world_of
from ..support.world import World

HEAD = struct.Struct(">hhih")
LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN = range(4, 8)
EPOCH_OVER = struct.pack(">ii", 1, 0)


def answered(world: World, frame: bytes) -> bytes:
    """What the broker answers to a frame, without the size of its reply."""
    replies: list[bytes] = []

    def take(answer: Any, is_closed: bool) -> None:
        assert not is_closed
        replies.append(bytes(answer.head))

    world.dispatcher.handle(world.peer, memoryview(bytearray(frame)), take)
    (reply,) = replies
    assert int.from_bytes(reply[:4], "big") == len(reply) - 4
    return reply[4:]


def head(key: int, version: int) -> bytes:
    return HEAD.pack(key, version, 7, 1) + b"x"


@pytest.mark.parametrize(
    ("release", "replies"),
    [
        ("0.8.2", ("00000007000b00000000", "00000007000b00000000", "00000007ffff", "00000007ffff00000000")),
        ("0.10.2", ("00000007000b00000000", "00000007000b00000000", "00000007000b", "00000007000800000000")),
        ("1.1", ("00000007000b00000000", "00000007000b00000000", "00000007000b", "00000007000800000000")),
    ],
)
def test_a_client_is_answered_as_by_kafka_after_the_epoch_that_it_names(release: str, replies: tuple[str, ...]) -> None:
    world = world_of(release)
    for key, reply in zip((LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA), replies, strict=False):
        assert answered(world, head(key, 0) + EPOCH_OVER + bytes(20)).hex() == reply, NAMES[key]
    absent = HEAD.pack(CONTROLLED_SHUTDOWN, 0, 7, 0)[:8] + struct.pack(">i", 99)
    assert answered(world, absent).hex() == replies[3]


def test_a_client_shuts_no_broker_down() -> None:
    for release, code in (("0.9", 31), ("2.8", 31)):
        world = world_of(release)
        reply = answered(world, head(CONTROLLED_SHUTDOWN, 1) + struct.pack(">i", world.broker.config.node_id))
        assert struct.unpack_from(">h", reply, 4) == (code,)


def test_newer_versions_have_compact_lists_and_tags() -> None:
    world = world_of("2.8")
    for key, version, reply in (
        (LEADER_AND_ISR, 3, "00000007000b00000000"),
        (LEADER_AND_ISR, 5, "0000000700000b0100"),
        (STOP_REPLICA, 3, "0000000700000b0100"),
        (UPDATE_METADATA, 7, "0000000700000b00"),
    ):
        assert answered(world, head(key, version) + b"\0" + EPOCH_OVER).hex() == reply, (key, version)
    shutdown = head(CONTROLLED_SHUTDOWN, 3) + b"\0" + struct.pack(">iqb", 99, 0, 0)
    assert answered(world, shutdown).hex() == "000000070000080100"


def test_a_principal_without_the_right_is_refused() -> None:
    world = world_of("1.1", authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer")
    for key in NAMES:
        assert struct.unpack_from(">h", answered(world, head(key, 0) + bytes(20)), 4) == (31,), NAMES[key]


def test_what_a_release_does_not_serve_or_what_ends_too_early_closes_the_connection() -> None:
    for release, frame in (
        ("1.1", head(LEADER_AND_ISR, 2)),
        ("1.1", head(STOP_REPLICA, -1)),
        ("1.1", HEAD.pack(LEADER_AND_ISR, 0, 7, 9) + b"x"),
        ("1.1", head(CONTROLLED_SHUTDOWN, 1) + b"\0\0"),
        ("3.3", head(LEADER_AND_ISR, 0)),
        ("4.3", head(CONTROLLED_SHUTDOWN, 1) + bytes(4)),
    ):
        with pytest.raises(Refused):
            answered(world_of(release), frame)


def test_they_are_listed_as_the_release_lists_them() -> None:
    for name, release in releases().items():
        if release.is_before(0, 10):
            assert versions_of(release).keys() == NAMES.keys()
            continue
        listed = world_of(name).ask("ApiVersions", 0, m.ApiVersionsRequest()).api_keys
        found = {one.api_key: (one.min_version, one.max_version) for one in listed if one.api_key in NAMES}
        assert found == {key: tuple(release.apis[key]) for key in NAMES if key in release.apis}, name
        assert [one.api_key for one in listed] == sorted(one.api_key for one in listed)
