"""Faults in the bytes of replies and in what they say."""

from __future__ import annotations

from typing import Any

import pytest
from crc32c import crc32c
from ottla.broker.lab.damage import cut, flip, repeat
from ottla.broker.lab.faults.byte_actions import CorrelationId, Flip, Trickle, Truncate, Twice
from ottla.broker.lab.faults.content_actions import DamageRecords, StaleLeader, Vanish
from ottla.broker.lab.faults.rules import Fault, Faults
from ottla.broker.replies import Reply
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create
from ..support.wire import request_frame

GROUPS = "ListGroups", 4, m.ListGroupsRequest()


class Late:
    """Records that count how often they are released."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.released = 0

    def __len__(self) -> int:
        return len(self.data)

    def __bytes__(self) -> bytes:
        return self.data

    def read(self, start: int, length: int) -> bytes:
        return self.data[start : start + length]

    def release(self) -> None:
        self.released += 1


def reply_of(parts: list[tuple[int, Late]]) -> Reply:
    return Reply(bytearray(b"0123456789"), list(parts))


def sent(reply: Reply) -> bytes:
    """What a connection would send; releases the records."""
    out = bytearray(reply.head)
    for place, part in reversed(reply.parts):
        out[place:place] = bytes(part)
    assert len(out) == reply.size
    reply.release()
    return bytes(out)


PLACES = [[], [(10, b"abcde")], [(4, b"abcde")], [(4, b"abc"), (4, b"de"), (7, b"fgh")], [(0, b"a"), (10, b"b")]]


@pytest.mark.parametrize("places", PLACES)
def test_replies_are_cut_and_changed_and_repeated_wherever_their_records_are(places: list[tuple[int, bytes]]) -> None:
    def made() -> tuple[Reply, list[Late]]:
        parts = [(place, Late(data)) for place, data in places]
        return reply_of(parts), [part for _, part in parts]

    whole = sent(made()[0])
    for at in range(len(whole)):
        reply, parts = made()
        cut(reply, at)
        assert sent(reply) == whole[:at]
        assert [one.released for one in parts] == [1] * len(parts)
        reply, parts = made()
        flip(reply, at, 0x01)
        assert sent(reply) == whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        assert [one.released for one in parts] == [1] * len(parts)
    reply, parts = made()
    repeat(reply)
    assert sent(reply) == whole * 2
    assert [one.released for one in parts] == [1] * len(parts)


class Damaged:
    """A broker with a topic that has three batches, a client, and a fault."""

    def __init__(self, action: Any, api: str | None = "ListGroups", **fault: Any) -> None:
        self.world = ConnectedWorld()
        self.client = self.world.connect()
        for name in ("a", "b"):
            create(self.world, name)
            for value in (b"1", b"2", b"3"):
                self.client.ask("Produce", 9, produce_message(name, batch(value)))
        self.before = len(self.client.transport.written)
        self.faults = LabWorld(self.world).lab.part(Faults)
        self.rule = self.faults.add(Fault(api=api, action=action, **fault))

    def send(self, name: str, version: int, message: Any) -> bytes:
        """Sends a request; returns the bytes that come."""
        self.client.send(name, version, message)
        self.world.pass_ms(60_000)
        data = self.client.transport.written[self.before :]
        self.before += len(data)
        return data

    def fetch(self, topic: str, client: Client | None = None) -> Any:
        return (client or self.client).ask("Fetch", 11, fetch_message(topic, 0)).responses[0].partitions[0]


def whole_reply() -> bytes:
    damaged = Damaged(Twice(), times=1)
    damaged.faults.clear()
    return damaged.send(*GROUPS)


def test_a_truncated_reply() -> None:
    whole = whole_reply()
    found = Damaged(Truncate(keep_bytes=7)).send(*GROUPS)
    assert found == b"\0\0\0\x07" + whole[4:11]
    half = Damaged(Truncate()).send(*GROUPS)
    assert len(half) == 4 + (len(whole) - 4) // 2
    assert int.from_bytes(half[:4], "big") == len(half) - 4


def test_a_flipped_bit() -> None:
    whole = whole_reply()
    assert Damaged(Flip(bit=9)).send(*GROUPS) == whole[:5] + bytes([whole[5] ^ 0x40]) + whole[6:]
    by_chance = {Damaged(Flip(), seed=seed).send(*GROUPS) for seed in (1, 2, 3, 4)}
    assert len(by_chance) > 1
    assert Damaged(Flip(), seed=1).send(*GROUPS) in by_chance
    for found in by_chance:
        assert sum(bin(a ^ b).count("1") for a, b in zip(found, whole, strict=True)) == 1


def test_a_reply_that_comes_twice_and_a_wrong_correlation_id() -> None:
    whole = whole_reply()
    assert Damaged(Twice()).send(*GROUPS) == whole * 2
    wrong = int.from_bytes(whole[4:8], "big") + 3
    assert Damaged(CorrelationId(by=3)).send(*GROUPS) == whole[:4] + wrong.to_bytes(4, "big") + whole[8:]


def test_a_reply_that_comes_byte_by_byte() -> None:
    damaged = Damaged(Trickle(interval_ms=5))
    before = len(damaged.client.transport.writes)
    assert damaged.send(*GROUPS) == whole_reply()
    writes = damaged.client.transport.writes[before:]
    assert {len(data) for _, data in writes} == {1}
    assert writes[-1][0] - writes[0][0] == 5 * (len(writes) - 1)


@pytest.mark.parametrize("early_ms", range(3))
def test_a_request_that_arrives_before_a_slow_reply_is_complete(early_ms: int) -> None:
    """The last byte is on its way for an interval, in which a client that has it sends its next request."""
    damaged = Damaged(Trickle(interval_ms=2), times=1)
    whole = whole_reply()
    client, world = damaged.client, damaged.world
    client.send(*GROUPS)
    world.pass_ms(2 * len(whole) - early_ms)
    client.send("ListGroups", 4, m.ListGroupsRequest())
    world.pass_ms(60_000)
    assert client.ids == list(range(1, len(client.ids) + 1))
    assert len(client.ids) == 8  # six produced, the slow one, the next one


def test_replies_to_requests_that_arrived_with_a_slow_one_are_not_slow() -> None:
    damaged = Damaged(Trickle(interval_ms=1), "ListGroups")
    before = len(damaged.client.transport.writes)
    other = request_frame("Heartbeat", 4, m.HeartbeatRequest(group_id="g", member_id="m"), 1)
    damaged.client.feed(other + request_frame(*GROUPS, 2) + other)
    damaged.world.pass_ms(60_000)
    sizes = [len(data) for _, data in damaged.client.transport.writes[before:]]
    assert sizes[0] == sizes[-1] > 1 == max(sizes[1:-1])
    assert damaged.client.ids[-3:] == [1, 2, 1]


def test_records_from_files_are_damaged_too() -> None:
    damaged = Damaged(Twice(), "Fetch")
    found = damaged.send("Fetch", 11, fetch_message("a", 0))
    assert found[: len(found) // 2] == found[len(found) // 2 :]
    log = damaged.world.broker.partitions.by_name["a", 0].open_log()
    assert sum(segment.holds for segment in log.segments) == 0


def test_a_wrong_crc_in_the_records_of_a_topic() -> None:
    damaged = Damaged(DamageRecords(), None, topic="a", times=1)
    bad, good = damaged.fetch("a").records, damaged.fetch("a").records
    assert damaged.fetch("b").records
    assert [index for index, (x, y) in enumerate(zip(bad, good, strict=True)) if x != y] == [17]
    assert damaged.rule.applied == 1


def test_wrong_offsets() -> None:
    damaged = Damaged(DamageRecords("records", "offsets", by=-1), None, topic="a")
    offsets = [at.header.base_offset for at in records.batches(damaged.fetch("a").records)]
    assert offsets == [-1, 1, 2]


def test_an_unknown_codec_with_a_right_crc() -> None:
    damaged = Damaged(DamageRecords("records", "codec"), None, topic="a")
    found = list(records.batches(damaged.fetch("a").records))
    assert [at.header.codec for at in found] == [7, 0, 0]
    data = bytes(damaged.fetch("a").records)
    size = 12 + int.from_bytes(data[8:12], "big")
    assert int.from_bytes(data[17:21], "big") == crc32c(data[21:size])


def test_a_fetch_without_records_does_not_count() -> None:
    damaged = Damaged(DamageRecords(), None, topic="a")
    damaged.client.ask("Fetch", 11, fetch_message("a", 3))
    assert (damaged.rule.matched, damaged.rule.applied) == (0, 0)


TOPIC = m.MetadataRequest.MetadataRequestTopic


def test_topics_vanish_from_metadata() -> None:
    damaged = Damaged(Vanish(), None, topic="a")
    ask = damaged.client.ask
    everything = ask("Metadata", 12, m.MetadataRequest(topics=None))
    assert [topic.name for topic in everything.topics] == ["b"]
    named = ask("Metadata", 12, m.MetadataRequest(topics=[TOPIC(name="a"), TOPIC(name="b")])).topics
    codes = {topic.name: topic.error_code for topic in named}
    assert codes == {"a": Errors.UNKNOWN_TOPIC_OR_PARTITION, "b": 0}
    by_id = TOPIC(name=None, topic_id=damaged.world.broker.image.topics["a"].id)
    (found,) = ask("Metadata", 12, m.MetadataRequest(topics=[by_id])).topics
    assert (found.name, found.topic_id, found.error_code) == (None, by_id.topic_id, Errors.UNKNOWN_TOPIC_ID)
    described = ask("DescribeTopicPartitions", 0, m.DescribeTopicPartitionsRequest(topics=[]))
    assert [topic.name for topic in described.topics] == ["b"]
    assert damaged.rule.applied == 4


def test_stale_leaders() -> None:
    damaged = Damaged(StaleLeader(leader=9, epoch_by=-1), None, topic="a")
    found = damaged.client.ask("Metadata", 12, m.MetadataRequest(topics=[TOPIC(name="a"), TOPIC(name="b")]))
    leaders = {t.name: (t.partitions[0].leader_id, t.partitions[0].leader_epoch) for t in found.topics}
    assert leaders == {"a": (9, -1), "b": (1, 0)}


def test_a_leader_epoch_that_is_much_too_high_stays_a_number_of_32_bits() -> None:
    damaged = Damaged(StaleLeader(epoch_by=1), None, topic="a")
    damaged.faults.add(Fault(topic="a", action=StaleLeader(epoch_by=0x7FFFFFFF)))
    found = damaged.client.ask("Metadata", 12, m.MetadataRequest(topics=[TOPIC(name="a")]))
    assert found.topics[0].partitions[0].leader_epoch == 0x7FFFFFFF
