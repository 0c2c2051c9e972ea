"""Rounds of a broker with a ZooKeeper in memory, in which tools write at the worst moment."""

from __future__ import annotations

import json

from ottla.broker.later import Later, drive
from ottla.broker.zookeeper.zookeeper import ZooKeeper
from ottla.protocol import messages as m

from ..support.kazoo_double import KazooDouble, ScheduledThread
from ..support.world import World

TOPIC = "/brokers/topics/t"
ROUNDS_MS = 5000


def registered(client: KazooDouble) -> World:
    """A broker that is registered, with a topic of one partition."""
    w = World(ottla_emulate="1.1", node_id="7", zookeeper_connect="in-memory:1")
    broker = w.broker
    parts = broker.turn, broker.config, broker.nodes, broker.metadata, broker.image
    broker.zookeeper = ZooKeeper(*parts, ScheduledThread(w.schedule), lambda config: client)
    for step in (broker.zookeeper.connect, lambda: broker.zookeeper.register(broker.cluster_id)):
        waits: Later[None] = drive(step())
        w.pass_ms(ROUNDS_MS)
        assert waits.done
        assert waits.error is None, waits.error
    r = m.CreateTopicsRequest
    wanted = r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    assert not w.ask("CreateTopics", 2, r(topics=[wanted], timeout_ms=1000)).topics[0].error_code
    w.pass_ms(ROUNDS_MS)
    assert partitions(client) == ["0"]
    return w


def partitions(client: KazooDouble) -> list[str]:
    return sorted(json.loads(client.nodes[TOPIC].value)["partitions"])


def grow(w: World, count: int) -> None:
    r = m.CreatePartitionsRequest
    wanted = r.CreatePartitionsTopic(name="t", count=count, assignments=None)
    assert not w.ask("CreatePartitions", 0, r(topics=[wanted], timeout_ms=1000)).results[0].error_code


def test_partitions_that_a_tool_adds_between_the_reading_and_the_writing_of_a_round_are_kept() -> None:
    """The broker is about to write two partitions. Its write is refused, as the node has another version then; it reads
    the node again, finds what it does not know, and writes nothing. The next round takes the tool's partitions.
    """
    client = KazooDouble()
    w = registered(client)
    by_tool = [b'{"version":1,"partitions":{"0":[7],"1":[7],"2":[7]}}']

    def add(path: str) -> None:
        if path == TOPIC and by_tool:
            client.set(path, by_tool.pop())

    client.before_set = add
    grow(w, 2)
    w.pass_ms(ROUNDS_MS)
    found = w.broker.image.topics["t"]
    count = w.broker.image.partition_counts[found.id]
    assert not by_tool
    assert (count, partitions(client)) == (3, ["0", "1", "2"])
    states = [path for path in client.nodes if path.startswith(f"{TOPIC}/partitions/") and path.endswith("/state")]
    assert len(states) == count


def test_a_write_that_only_another_version_refuses_is_made_again_in_the_same_round() -> None:
    client = KazooDouble()
    w = registered(client)
    touched: list[str] = []

    def touch(path: str) -> None:
        if path == TOPIC and not touched:
            touched.append(path)
            client.set(path, client.nodes[path].value)

    client.before_set = touch
    grow(w, 2)
    w.pass_ms(100)
    assert touched
    assert partitions(client) == ["0", "1"]
