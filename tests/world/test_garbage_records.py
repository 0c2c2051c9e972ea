"""Records that a client writes into the coordinators' topics (as `__admin_client`, Kafka's own exception): none of them
ends a coordinator.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from ottla.broker.shards.hosts import ShardHosts
from ottla.coordinator.format import group_key_names, share_key_names, transaction_key_names
from ottla.coordinator.lifecycle import State
from ottla.protocol import codec, records, schema
from ottla.protocol import messages as m
from ottla.protocol.records import Record, Template

from ..support.generate import Generator
from ..support.seeds import seeds
from ..support.topic_world import create
from ..support.world import World

pytestmark = pytest.mark.usefixtures("quiet")
SMALL = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "share_coordinator_state_topic_num_partitions": "1",
}
NAMES = {0: group_key_names, 1: transaction_key_names, 2: share_key_names}
KEYS = {0: "g", 1: "g", 2: "g:AAAAAAAAAAAAAAAAAAAAAQ:0"}


def family(world: World, kind: int) -> ShardHosts[Any]:
    found: tuple[ShardHosts[Any], ...] = (world.broker.groups, world.broker.transactions, world.broker.share_states)
    return found[kind]


def world_with(kind: int) -> World:
    world = World(None, 0, **SMALL)
    create(world, "t")
    (found,) = world.ask(
        "FindCoordinator", 6, m.FindCoordinatorRequest(key_type=kind, coordinator_keys=[KEYS[kind]])
    ).coordinators
    assert found.error_code == 0
    return world


def write(world: World, kind: int, rows: list[Record], **template: Any) -> None:
    """Appends a batch beside the coordinator."""
    data = records.encode(rows, Template(**template))
    world.broker.appender.store(family(world, kind).hosts[0].partition, data, list(records.batches(data)), 1)


def garbage(kind: int, chance: random.Random) -> Record:
    """A record whose key has a type of the topic, or nearly; what follows is bytes, or a message of the schema with any
    values.
    """
    number, name = chance.choice(sorted(NAMES[kind]().items()))
    head = number.to_bytes(2, "big")
    value_name = name.removesuffix("Key") + "Value"
    version = chance.choice(list(range(schema.load(value_name).valid.low, schema.load(value_name).valid.high + 1)))
    key = bytes(codec.build(name, 0, Generator(schema.load(name), 0, chance).message(), bytearray(head)))
    value: bytes | None = bytes(
        codec.build(
            value_name,
            version,
            Generator(schema.load(value_name), version, chance).message(),
            bytearray(version.to_bytes(2, "big")),
        )
    )
    how = chance.randrange(10)
    if how == 0:
        value = None
    elif how == 1:
        key = head + chance.randbytes(chance.randrange(10))
    elif how == 2:
        value = chance.randbytes(chance.randrange(40))
    elif how == 3:
        value = (value or b"")[: chance.randrange(10)]
    elif how == 4:
        key = chance.choice((b"", b"\0", b"\x7f\xff", b"\0\x63rest"))
    return Record(None if how == 5 else key, value)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("seed", seeds(10, quick=2))
def test_a_coordinator_loads_and_serves_whatever_its_log_holds(kind: int, seed: int) -> None:
    chance = random.Random(seed)
    world = world_with(kind)
    write(world, kind, [garbage(kind, chance) for _ in range(100)])
    write(
        world,
        kind,
        [garbage(kind, chance) for _ in range(20)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    owner = family(world, kind)
    world.broker.turn.event(lambda: owner.reload(owner.hosts[0].partition))
    world.pass_ms(100)
    assert owner.hosts[0].runtime.state is State.ACTIVE
    ask_all(world, kind)
    world.pass_ms(24 * 3_600_000 if seed == 9 else 700_000)  # expiry, sessions, transactions that take too long
    assert owner.hosts[0].runtime.state is State.ACTIVE
    ask_all(world, kind)
    assert world.broker.metrics.bugs == 0


def ask_all(world: World, kind: int) -> None:
    """The coordinator answers: its lists, whatever they name, and one who is new."""
    if kind == 0:
        listed = world.ask("ListGroups", 5, m.ListGroupsRequest())
        assert listed.error_code == 0
        for one in listed.groups[:20]:
            world.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=[one.group_id]))
            world.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[one.group_id]))
            world.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[one.group_id]))
            world.ask("OffsetFetch", 7, m.OffsetFetchRequest(group_id=one.group_id, topics=None))
        h = m.ConsumerGroupHeartbeatRequest
        join = h(
            group_id="new",
            member_id="m",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        assert world.ask("ConsumerGroupHeartbeat", 1, join).error_code == 0
    elif kind == 1:
        listed = world.ask("ListTransactions", 1, m.ListTransactionsRequest())
        assert listed.error_code == 0
        for one in listed.transaction_states[:20]:
            world.ask(
                "DescribeTransactions", 0, m.DescribeTransactionsRequest(transactional_ids=[one.transactional_id])
            )
            begin = m.InitProducerIdRequest(transactional_id=one.transactional_id, transaction_timeout_ms=1000)
            world.ask("InitProducerId", 4, begin)
        begin = m.InitProducerIdRequest(transactional_id="new", transaction_timeout_ms=1000)
        assert world.ask("InitProducerId", 4, begin).error_code == 0
    else:
        r = m.ReadShareGroupStateRequest
        found = world.broker.topic("t")
        assert found is not None
        part = r.PartitionData(partition=0, leader_epoch=0)
        request = r(group_id="g", topics=[r.ReadStateData(topic_id=found.id, partitions=[part])])
        assert world.ask("ReadShareGroupState", 0, request).results[0].partitions[0].error_code in (0, 42)


def test_a_batch_that_cannot_be_opened_is_left_out() -> None:
    world = world_with(2)
    data = records.encode([Record(b"\0\0", b"x")] * 3, Template(codec=1))
    data[records.HEADER_SIZE] ^= 0xFF  # gzip begins here
    data[17:21] = records.computed_crc(data, 0, len(data)).to_bytes(4, "big")
    owner = family(world, 2)
    world.broker.appender.store(owner.hosts[0].partition, data, list(records.batches(data)), 1)
    world.broker.turn.event(lambda: owner.reload(owner.hosts[0].partition))
    assert owner.hosts[0].runtime.state is State.ACTIVE
    assert owner.hosts[0].runtime.replay.skipped == 1
