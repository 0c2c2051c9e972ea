"""Fetches that are served without decoding them: replies are the same as for those that are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support import repeated
from ..support.ask import batch, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.repeated import Refusing, assert_same_counts, counted
from ..support.topic_world import create, set_policy
from ..support.wire import request_frame

VERSIONS = range(4, 19)
R = m.FetchRequest


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How many fetches were not decoded, by the dispatcher that took them."""
    return counted(monkeypatch)


def connected() -> ConnectedWorld:
    world = ConnectedWorld(None, 0)
    create(world, "t", 3)
    create(world, "u", 1)
    for number in range(4):
        world.ask("Produce", 9, produce_message("t", batch(b"%d" % number), number % 2))
    world.pass_ms(100)
    return world


def fetch(world: ConnectedWorld, offsets: dict[tuple[str, int], int], **more: Any) -> m.FetchRequest:
    """A request for partitions from these offsets on."""
    made = R(max_wait_ms=10, min_bytes=1, max_bytes=1 << 20, **more)
    for (name, index), offset in offsets.items():
        topic_id = world.broker.groups.image.topic_id(name) or b"\7" * 16
        wanted = R.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        made.topics.append(R.FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted]))
    return made


def fetches(world: ConnectedWorld, client: Client, count: int, version: int = 12) -> list[int]:
    """Fetches one partition again and again; returns how many bytes of records came each time."""
    found = []
    for offset in range(count):
        answer = client.ask("Fetch", version, fetch(world, {("t", 0): offset}))
        found.append(len(answer.responses[0].partitions[0].records or b""))
    return found


class Side(repeated.Side):
    """One of the two brokers, with the topics."""

    def __init__(self, decodes: bool, is_traced: bool) -> None:
        super().__init__(connected(), decodes, is_traced)

    def fetch(self, number: int, version: int, change: int | None, offsets: dict[Any, int], **more: Any) -> None:
        """Sends a request with one bit changed, if `change` says which, and lets some time pass."""
        client = self.clients[number]
        body = bytearray(request_frame("Fetch", version, fetch(self.world, offsets, **more), number, "client")[4:])
        if change is not None:
            body[8 + change // 8 % (len(body) - 8)] ^= 1 << change % 8
        client.feed(len(body).to_bytes(4, "big") + bytes(body))
        self.world.pass_ms(1)

    def state(self) -> list[Any]:
        cache = self.world.broker.extensions.get("fetch_sessions")
        sessions = [(one.id, one.epoch, list(one.entries)) for one in cache.sessions.values()] if cache else []
        return [*super().state(), sessions]

    def session(self) -> tuple[int, int]:
        """Returns the id and the epoch of a session that is there."""
        cache = self.world.broker.extensions.get("fetch_sessions")
        found = next(reversed(cache.sessions.values()), None) if cache is not None else None
        return (found.id, found.epoch) if found is not None else (99, 1)

    def happens(self, event: str) -> None:
        world = self.world
        if event in ("held", "immediate"):
            set_policy(world, "t", event)
        elif event == "produce":
            world.ask("Produce", 9, produce_message("t", batch(b"more"), acks=1))
        elif event == "delete":
            world.ask("DeleteTopics", 4, m.DeleteTopicsRequest(topic_names=["u"], timeout_ms=1000))
        elif event == "create":
            create(world, "u", 1)
        world.pass_ms(5)


EVENTS = ("held", "immediate", "immediate", "produce", "produce", "produce", "delete", "create", "create", "")
ASKED: tuple[tuple[tuple[str, int], ...], ...] = ((), (("t", 0),), (("t", 0), ("t", 1)), (("u", 0), ("t", 7)))


@pytest.mark.long
@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_decoded_has_the_same_effect(seed: int, is_traced: bool, served: Counter[Any]) -> None:
    """Connections fetch the same again and again, while topics, logs, high watermarks and sessions change."""
    chance = random.Random(seed)
    sides = [Side(False, is_traced), Side(True, is_traced)]
    for _ in range(60):
        number, version, event = chance.randrange(3), chance.choice(VERSIONS), chance.choice(EVENTS)
        asked, has_session = chance.choice(ASKED), chance.random() < 0.6
        begins, isolation = chance.random() < 0.3, chance.randrange(2)
        for side in sides:
            side.happens(event)
        for _ in range(chance.randint(1, 6)):
            change = chance.randrange(4000) if chance.random() < 0.2 else None
            offsets = {one: chance.choice((0, 1, 2, 2, 3, 99, -1)) for one in asked}
            is_next = chance.random() < 0.9
            for side in sides:
                more: dict[str, Any] = {"isolation_level": isolation}
                if has_session and version >= 7:
                    session_id, epoch = side.session()
                    more["session_id"] = 0 if begins else session_id
                    more["session_epoch"] = 0 if begins else epoch + (not is_next)
                side.fetch(number, version, change, offsets, **more)
                side.settle(number)
        short, decoded = (side.state() for side in sides)
        for shown, expected in zip(short, decoded, strict=True):
            assert shown == expected, (event, version)
    assert_same_counts(sides, served, is_traced)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_served_from_any_offset(version: int, served: Counter[Any]) -> None:
    world = connected()
    sizes = fetches(world, world.connect(), 5, version)
    assert [size > 0 for size in sizes] == [True, True, False, False, False]
    assert served.total() == 3
    answer = world.connect().ask("Fetch", version, fetch(world, {("t", 0): 3}))
    assert answer.responses[0].partitions[0].error_code == Errors.OFFSET_OUT_OF_RANGE


def test_a_session_goes_on_without_decoding(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    found = client.ask("Fetch", 12, fetch(world, {("t", 0): 2}, session_epoch=0))
    epochs = range(1, 8)
    for epoch in epochs:
        answer = client.ask("Fetch", 12, fetch(world, {}, session_id=found.session_id, session_epoch=epoch))
        assert (answer.error_code, answer.session_id, answer.responses) == (0, found.session_id, [])
    assert served.total() == 6, "the first one and the next were decoded"
    answer = client.ask("Fetch", 12, fetch(world, {}, session_id=found.session_id, session_epoch=7))
    assert answer.error_code == Errors.INVALID_FETCH_SESSION_EPOCH
    assert served.total() == 7


def test_what_logs_requests_gets_each(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    fetches(world, client, 4)
    assert served.total() == 2
    notes = Notes()
    world.dispatcher.log = notes
    fetches(world, client, 3)
    assert (notes.offsets, served.total()) == ([0, 1, 2], 2)
    world.dispatcher.log = None
    fetches(world, client, 3)
    assert served.total() == 5


@pytest.mark.parametrize(("partition", "undecoded"), [(0, 2), (1, 5)])
def test_what_acts_on_requests_gets_those_that_it_is_for(partition: int, undecoded: int, served: Counter[Any]) -> None:
    world = connected()
    client, acting = world.connect(), Refusing(partition)
    fetches(world, client, 4)
    world.seam.add(acting)
    fetches(world, client, 3)
    assert (served.total(), acting.struck) == (undecoded, 5 - undecoded)


class Notes:
    """A log of requests."""

    def __init__(self) -> None:
        self.offsets: list[int] = []

    def request(self, context: Any, message: Any) -> None:
        self.offsets.append(message.topics[0].partitions[0].fetch_offset)

    def reply(self, context: Any, message: Any) -> None: ...


def test_a_fetch_that_forgets_partitions_is_not_kept(served: Counter[Any]) -> None:
    """It may name very many, and is sent once."""
    world = connected()
    client = world.connect()
    forgotten = [R.ForgottenTopic(topic="t", partitions=[1])]
    before = world.broker.kept_frames.size
    for _ in range(4):
        client.ask("Fetch", 12, fetch(world, {("t", 0): 0}, forgotten_topics_data=forgotten))
    assert (served.total(), world.broker.kept_frames.size) == (0, before)


def test_what_connections_keep_ends_with_them(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    before = world.broker.kept_frames.size
    fetches(world, client, 3)
    assert before + 20 < world.broker.kept_frames.size < before + 200
    client.lose()
    assert (served.total(), world.broker.kept_frames.size) == (1, before)
