"""What the clients of the simulator of connections ask: requests that are answered at once, later, with records from
files, in steps or not at all, and frames that end their connection.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.frames import framed

from ..support.ask import batch, fetch_message, produce_message
from ..support.wire import request_frame
from ..support.world import World

PLAIN = "plain"  # no fault, hold or quota is for it
CLIENT_IDS = ("quota", "f", "f", "h", "fh")  # faults are for those with f, holds for those with h
TOPIC = "t"
Made = tuple[str, int, Any]


@dataclass(frozen=True)
class Asked:
    """A request. `is_plain`: nothing but its answer is a good answer. `is_bad`: the connection may be closed."""

    name: str
    number: int
    client_id: str
    frame: bytes = field(repr=False)
    has_reply: bool = True
    is_bad: bool = False

    @property
    def is_plain(self) -> bool:
        return self.client_id == PLAIN and not self.is_bad


def _metadata(world: World, chance: random.Random, count: int, length: int) -> Made:
    names = [f"{n:0{length}}" for n in range(count)]
    topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return "Metadata", 12, m.MetadataRequest(topics=topics, allow_auto_topic_creation=False)


def _join(world: World, chance: random.Random) -> Made:
    r = m.JoinGroupRequest
    message = r(
        group_id="g",
        session_timeout_ms=6000,
        rebalance_timeout_ms=chance.choice((100, 500)),
        protocol_type="consumer",
        protocols=[r.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    return "JoinGroup", 3, message


def _produce(world: World, chance: random.Random, acks: int) -> Made:
    data = batch(chance.randbytes(chance.choice((1, 100, 700))))
    return "Produce", 9, produce_message(TOPIC, data, acks=acks)


def _fetch(world: World, chance: random.Random) -> Made:
    end = world.broker.partitions.by_name[TOPIC, 0].end_offset
    return "Fetch", 11, fetch_message(TOPIC, chance.randint(max(0, end - 8), end), max_bytes=chance.choice((1, 3000)))


def _poll(world: World, chance: random.Random) -> Made:
    end = world.broker.partitions.by_name[TOPIC, 0].end_offset
    return "Fetch", 11, fetch_message(TOPIC, end, wait_ms=chance.choice((1, 20, 400)))


def _create(world: World, chance: random.Random) -> Made:
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name=f"made-{chance.randrange(3)}", num_partitions=1, replication_factor=1)
    return "CreateTopics", 5, r(topics=[topic], timeout_ms=1000)


KINDS: dict[str, Callable[[World, random.Random], Made]] = {
    "groups": lambda world, chance: ("ListGroups", 4, m.ListGroupsRequest()),
    "heartbeat": lambda world, chance: ("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m")),
    "metadata": lambda world, chance: _metadata(world, chance, chance.randrange(4), 4),
    "in turns": lambda world, chance: _metadata(world, chance, 100, 100),
    "in steps": lambda world, chance: _metadata(world, chance, 180, 200),
    "produce": lambda world, chance: _produce(world, chance, chance.choice((1, -1))),
    "silent": lambda world, chance: _produce(world, chance, 0),
    "fetch": _fetch,
    "poll": _poll,
    "join": _join,
    "create": _create,
    "unsupported": lambda world, chance: ("ApiVersions", 3, m.ApiVersionsRequest(client_software_name="a")),
}
BAD = {
    "an unknown API": framed(b"\x7f\xff\0\0\0\0\0\1\xff\xff"),
    "a negative size": b"\xff\xff\xff\xff",
    "a short frame": framed(b"\0\0\0\0"),
    "half a request": framed(b"\0\x10\0\x04\0\0\0\1\0\x10x"),
}
HUGE = (100 << 20).to_bytes(4, "big") + b"\0\x10\0\x04"  # announces more than its API takes


def request(world: World, chance: random.Random, kind: str, number: int, client_id: str) -> Asked:
    """Returns a request of a kind."""
    name, version, message = KINDS[kind](world, chance)
    frame = request_frame(name, version, message, number, client_id)
    if kind == "unsupported":
        frame = frame[:6] + b"\0\x63" + frame[8:]
    return Asked(name, number, client_id, frame, has_reply=kind != "silent")


def bad(chance: random.Random, number: int) -> Asked:
    """Returns a frame that ends the connection."""
    name = chance.choice(("huge", *BAD))
    return Asked(name, number, "", HUGE if name == "huge" else BAD[name], is_bad=True)


def login(chance: random.Random, client_ids: Sequence[str]) -> list[Asked]:
    """Returns the exchange of a client of the SASL listener, by tokens with or without headers; some are wrong, and
    some begin with another request than they may.
    """
    token = b"\0alice\0" + chance.choice((b"secret", b"secret", b"secret", b"wrong"))
    version = chance.randrange(2)
    hello = m.SaslHandshakeRequest(mechanism=chance.choice(("PLAIN", "PLAIN", "PLAIN", "OTHER")))
    wanted: list[Made] = [("SaslHandshake", version, hello)]
    if chance.random() < 0.3:
        asks = m.ApiVersionsRequest(client_software_name="a", client_software_version="1")
        wanted.insert(0, ("ApiVersions", 3, asks))
    if version:
        wanted.append(("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token)))
    if chance.random() < 0.1:
        wanted.insert(chance.randrange(len(wanted)), ("ListGroups", 4, m.ListGroupsRequest()))
    found = []
    for number, made in enumerate(wanted):
        client_id = chance.choice(client_ids)
        found.append(Asked(made[0], number, client_id, request_frame(*made, number, client_id)))
    if not version:
        found.append(Asked("a token", len(wanted), "", framed(token)))
    return found
