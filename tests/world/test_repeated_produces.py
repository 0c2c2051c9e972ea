"""Produce requests that are served without decoding them: replies and logs are the same as for those that are."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from ottla.protocol import compression, records
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support import repeated
from ..support.ask import batch, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.failing_appends import fail_appends
from ..support.repeated import Refusing, assert_same_counts, counted
from ..support.topic_world import create, set_policy
from ..support.wire import request_frame

NOW = 1_700_000_000_000
VERSIONS = range(3, 14)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Counter[Any]:
    """How many requests were not decoded, by the dispatcher that took them."""
    return counted(monkeypatch)


def connected(**settings: str) -> ConnectedWorld:
    world = ConnectedWorld(None, 0, **settings)
    create(world, "t", 3)
    create(world, "u", 1, max_message_bytes="300", min_insync_replicas="1")
    create(world, "compact", 1, cleanup_policy="compact")
    world.pass_ms(100)
    return world


def message(world: ConnectedWorld, topic: str, data: bytes | None, version: int, **more: Any) -> m.ProduceRequest:
    made: m.ProduceRequest = produce_message(topic, data, **more)
    made.topic_data[0].topic_id = (
        world.broker.groups.image.topic_id(topic) or b"\7" * 16 if version >= 13 else bytes(16)
    )
    return made


def produces(world: ConnectedWorld, client: Client, count: int, version: int = 9, **more: Any) -> list[int]:
    """Produces one record again and again; returns the error codes of the replies."""
    codes = []
    for number in range(count):
        data = more.pop("data", None) or batch(b"%d" % number, now=NOW)
        answer = client.ask("Produce", version, message(world, "t", data, version, **more))
        codes.append(answer.responses[0].partition_responses[0].error_code)
    return codes


class Side(repeated.Side):
    """One of the two brokers, with the topics."""

    def __init__(self, decodes: bool, is_traced: bool) -> None:
        super().__init__(connected(), decodes, is_traced)

    def produce(self, number: int, version: int, shape: Callable[[], dict[str, Any]], change: Any) -> None:
        """Sends a request, whose frame `change` may change, and lets a little time pass."""
        client, more = self.clients[number], shape()
        frame = request_frame("Produce", version, message(self.world, version=version, **more), number, "client")
        client.feed(change(frame) if change is not None else frame)
        self.world.pass_ms(1)

    def state(self) -> list[Any]:
        logs = [p.open_log().active for _, p in sorted(self.world.broker.partitions.by_name.items())]
        return [*super().state(), [bytes(one.read(0, one.size)) for one in logs]]

    def happens(self, event: str) -> None:
        world = self.world
        if event in ("held", "immediate", "lag=5ms"):
            set_policy(world, "t", event)
        elif event == "fail":
            fail_appends(world, *(p for (name, _), p in world.broker.partitions.by_name.items() if name == "t"))
        elif event == "mend":
            fail_appends(world)
        elif event == "delete":
            world.ask("DeleteTopics", 4, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
        elif event == "create":
            create(world, "t", 3)
        world.pass_ms(5)


EVENTS = ("held", "immediate", "immediate", "lag=5ms", "fail", "mend", "mend", "delete", "create", "create", "", "")


def shapes(chance: random.Random) -> list[Callable[[], dict[str, Any]]]:
    """Requests, most of which are like each other."""
    value = chance.randbytes(chance.choice((1, 50, 200, 20_000)))
    sequence = chance.randrange(4)
    acks, partition = chance.choice((-1, -1, 1, 0)), chance.choice((0, 0, 1, 2, 7))

    def usual(**template: Any) -> Callable[[], dict[str, Any]]:
        data = batch(value, b"x" * 9, now=template.pop("now", NOW), **template)
        return lambda: {"topic": "t", "data": data, "partition": partition, "acks": acks, "timeout_ms": 10}

    idempotent = usual(producer_id=5, producer_epoch=0, base_sequence=sequence)
    return [
        *[usual(), usual(), idempotent, usual(codec=compression.ZSTD), usual(codec=compression.GZIP)],
        *[usual(now=1), usual(producer_id=5, producer_epoch=0, base_sequence=1, transactional=True)],
        lambda: {"topic": "t", "data": batch(value, now=NOW)[:-1], "acks": acks},
        lambda: {"topic": "t", "data": chance.choice((None, b"", b"short", bytes(70))), "acks": acks},
        lambda: {"topic": "u", "data": batch(value, now=NOW), "acks": acks},
        lambda: {"topic": "compact", "data": batch(value, now=NOW), "acks": acks},
        lambda: {"topic": "__consumer_offsets", "data": batch(value, now=NOW), "acks": acks},
    ]


def change_of(chance: random.Random) -> Callable[[bytes], bytes] | None:
    """What happens to frames: most often nothing; otherwise a bit, some bytes more or fewer, with the right length."""
    kind, place = chance.randrange(12), chance.random()

    def change(frame: bytes) -> bytes:
        body = bytearray(frame[4:])
        at = 8 + int(place * (len(body) - 8)) if kind else 8 + int(place * 60) % (len(body) - 8)
        if kind < 2:
            body[at] ^= 1 << int(place * 1000) % 8
        elif kind == 2:
            body += b"\0more"[: 1 + int(place * 5)]
        else:
            del body[at:]
        return len(body).to_bytes(4, "big") + bytes(body)

    return change if kind < 4 else None


@pytest.mark.long
@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_not_decoded_has_the_same_effect(seed: int, is_traced: bool, served: Counter[Any]) -> None:
    """Connections produce the same again and again, while topics, logs and high watermarks change."""
    chance = random.Random(seed)
    sides = [Side(False, is_traced), Side(True, is_traced)]
    for _ in range(60):
        number, version, event = chance.randrange(3), chance.choice(VERSIONS), chance.choice(EVENTS)
        shape = chance.choice(shapes(chance) if chance.random() < 0.5 else shapes(chance)[:3])
        for side in sides:
            side.happens(event)
        for _ in range(chance.randint(1, 6)):
            change, state = change_of(chance), chance.getstate()
            for side in sides:
                chance.setstate(state)
                side.produce(number, version, shape, change)
            for side in sides:
                side.settle(number)
        short, decoded = (side.state() for side in sides)
        for shown, expected in zip(short, decoded, strict=True):
            assert shown == expected, (event, version)
    assert_same_counts(sides, served, is_traced)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_is_served_for_any_partition_and_size(version: int, served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    assert produces(world, client, 2, version) == [0, 0]
    assert served.total() == 0
    for size in (1, 100, 200, 20_000):
        for partition in (0, 1, 2):
            data = batch(b"y" * size, now=NOW)
            answer = client.ask("Produce", version, message(world, "t", data, version, partition=partition))
            part = answer.responses[0].partition_responses[0]
            assert (part.index, part.error_code, part.log_append_time_ms) == (partition, 0, -1)
            assert part.base_offset == world.broker.partitions.get("t", partition).end_offset - 1
    assert served.total() == 12
    log = world.broker.partitions.get("t", 2).open_log().active
    assert [
        len(one.value or b"")
        for at in records.batches(log.read(0, log.size))
        for one in records.decode(log.read(0, log.size), at)
    ] == [1, 100, 200, 20_000]


def test_what_several_steps_need_is_kept(served: Counter[Any]) -> None:
    """A compacted topic's records are looked at, which takes steps: the buffer of the connection is used again."""
    world = connected()
    client = world.connect()
    r = m.ProduceRequest
    value = random.Random(1).randbytes(3 << 20)
    data = bytes(records.encode([records.Record(b"k", value, NOW)], records.Template(codec=compression.GZIP)))
    for _ in range(4):
        topic = r.TopicProduceData(name="compact", partition_data=[r.PartitionProduceData(index=0, records=data)])
        answer = client.ask("Produce", 9, r(acks=-1, timeout_ms=1000, topic_data=[topic]))
        assert answer.responses[0].partition_responses[0].error_code in (0, Errors.MESSAGE_TOO_LARGE)
    assert served.total() == 2


def test_quotas_and_what_acts_on_requests_get_each(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    assert produces(world, client, 4) == [0] * 4
    assert served.total() == 2
    world.dispatcher.log = Notes()
    produces(world, client, 3)
    assert (world.dispatcher.log.topics, served.total()) == (["t"] * 3, 2)
    world.dispatcher.log = None
    produces(world, client, 3)
    assert served.total() == 5


def test_what_acts_on_requests_gets_those_that_it_is_for(served: Counter[Any]) -> None:
    world = connected()
    client, acting = world.connect(), Refusing(1)
    produces(world, client, 4)
    world.seam.add(acting)
    assert produces(world, client, 3) == [0] * 3
    assert (served.total(), acting.struck) == (5, 0)
    assert produces(world, client, 2, partition=1) == [Errors.UNKNOWN_SERVER_ERROR] * 2
    assert (served.total(), acting.struck) == (5, 2)
    assert produces(world, client, 3) == [0] * 3
    assert served.total() == 8


class Notes:
    """A log of requests."""

    def __init__(self) -> None:
        self.topics: list[str] = []

    def request(self, context: Any, message: Any) -> None:
        self.topics.append(message.topic_data[0].name)

    def reply(self, context: Any, message: Any) -> None: ...


def test_what_connections_keep_ends_with_them(served: Counter[Any]) -> None:
    world = connected()
    client = world.connect()
    produces(world, client, 3)
    assert 20 < world.broker.kept_frames.size < 100
    client.lose()
    assert (served.total(), world.broker.kept_frames.size) == (1, 0)
