"""Requests of brokers and controllers that a client sends to a broker that emulates an earlier release. Kafka's replies
to such a client, whose controller epoch is over, are those of 0.8.2.2, 0.10.2.2 and 1.1.1, asked once.
"""

from __future__ import annotations

import struct

import pytest
from ottla.broker.emulation.between_brokers import ALTER_PARTITION, NAMES, OLDEST, versions_of
from ottla.broker.emulation.releases import releases
from ottla.broker.net.dispatch import Refused
from ottla.protocol import messages as m

from ..support.emulated import answered, world_of

HEAD = struct.Struct(">hhih")
LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, CONTROLLED_SHUTDOWN = range(4, 8)
EPOCH_OVER = struct.pack(">ii", 1, 0)
NO_BROKER = struct.pack(">iq", 9, -1)


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


def test_a_block_of_producer_ids_needs_an_epoch_that_only_zookeeper_has() -> None:
    for number, reply in ((1, "4d"), (9, "66")):
        frame = head(67, 0) + b"\0" + struct.pack(">iq", number, 5) + b"\0"
        assert answered(world_of("3.2"), frame).hex() == "00000007000000000000" + reply + "00" * 13


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
    for key in OLDEST:
        assert struct.unpack_from(">h", answered(world, head(key, 0) + bytes(20)), 4) == (31,), NAMES[key]
    world = world_of("3.2", authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer")
    refused = answered(world, head(ALTER_PARTITION, 1) + b"\0" + NO_BROKER + b"\1\0")
    assert refused.hex() == "000000070000000000001f0100"


def test_what_a_release_does_not_serve_or_what_ends_too_early_closes_the_connection() -> None:
    for release, frame in (
        ("1.1", head(LEADER_AND_ISR, 2)),
        ("1.1", head(STOP_REPLICA, -1)),
        ("1.1", HEAD.pack(LEADER_AND_ISR, 0, 7, 9) + b"x"),
        ("1.1", head(CONTROLLED_SHUTDOWN, 1) + b"\0\0"),
        ("3.3", head(LEADER_AND_ISR, 0)),
        ("4.3", head(CONTROLLED_SHUTDOWN, 1) + bytes(4)),
        ("3.9", head(ALTER_PARTITION, 0) + bytes(20)),
        ("2.6", head(ALTER_PARTITION, 0) + bytes(20)),
    ):
        with pytest.raises(Refused):
            answered(world_of(release), frame)


def test_they_are_listed_as_the_release_lists_them() -> None:
    for name, release in releases().items():
        if release.is_before(0, 10):
            assert versions_of(release).keys() == set(OLDEST)
            continue
        listed = world_of(name).ask("ApiVersions", 0, m.ApiVersionsRequest()).api_keys
        found = {one.api_key: (one.min_version, one.max_version) for one in listed if one.api_key in NAMES}
        assert found == {key: tuple(release.apis[key]) for key in NAMES if key in release.apis}, name
        assert [one.api_key for one in listed] == sorted(one.api_key for one in listed)
