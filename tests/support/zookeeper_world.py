"""A whole broker in virtual time that is registered in a ZooKeeper in memory, and what both have."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from ottla.broker.later import Later, drive
from ottla.broker.net.zookeeper import make_coordinators_topics
from ottla.broker.zookeeper.neighbours import Ask, Neighbours
from ottla.broker.zookeeper.zookeeper import ZooKeeper
from ottla.coordinator.metadata.state import TOPIC
from ottla.protocol import messages as m
from ottla.protocol.zookeeper_values import EndPoint

from .kazoo_double import KazooDouble, ScheduledThread
from .memory_files import MemFiles
from .world import World

ROUNDS_MS = 5000
CHANGES = "/config/changes"


def unanswered(at: EndPoint, frames: list[bytes]) -> list[bytes]:
    raise OSError(f"{at} does not answer {len(frames)} requests")


def started(client: KazooDouble, files: MemFiles | None = None, release: str = "1.1", **settings: str) -> World:
    """Starts a broker that registers."""
    return started_beside(unanswered, client, files, release, has_coordinators=False, **settings)


async def nothing() -> None:
    """Prepares nothing."""


def started_beside(
    ask: Ask,
    client: KazooDouble,
    files: MemFiles | None = None,
    release: str = "1.1",
    *,
    has_coordinators: bool = False,
    **settings: str,
) -> World:
    """Starts a broker that registers. `ask`: reaches the brokers of Kafka beside it; `has_coordinators`: whether it
    makes the topics of the coordinators for them.
    """
    given = {"delete_topic_enable": "true", **settings}
    w = World(files, ottla_emulate=release, node_id="7", zookeeper_connect="in-memory:1", **given)
    broker = w.broker
    parts = broker.turn, broker.config, broker.nodes, broker.metadata, broker.image
    thread = ScheduledThread(w.schedule)
    topics = partial(make_coordinators_topics, broker) if has_coordinators else nothing
    neighbours = Neighbours(broker.turn, broker.image, broker.nodes.by_id, thread, ask, topics)
    broker.zookeeper = ZooKeeper(*parts, w.files, thread, lambda _: client, lambda _: None, neighbours)
    for step in (broker.zookeeper.connect, lambda: broker.zookeeper.register(broker.cluster_id)):
        waits: Later[None] = drive(step())
        w.pass_ms(ROUNDS_MS)
        assert waits.done
        assert waits.error is None, waits.error
    return w


def restarted(w: World, client: KazooDouble, release: str = "1.1", **settings: str) -> World:
    """Starts a broker again after its process was killed, and ZooKeeper can be reached again."""
    client.end()
    return started(client, w.files, release, **settings)


def create(w: World, name: str, partitions: int = 1, **config: str) -> None:
    r = m.CreateTopicsRequest
    wanted = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    wanted.configs = [r.CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in config.items()]
    assert not w.ask("CreateTopics", 2, r(topics=[wanted], timeout_ms=1000)).topics[0].error_code


def delete(w: World, name: str) -> None:
    asked = m.DeleteTopicsRequest(topic_names=[name], timeout_ms=1000)
    assert not w.ask("DeleteTopics", 1, asked).responses[0].error_code


def grow(w: World, name: str, count: int) -> None:
    r = m.CreatePartitionsRequest
    wanted = r.CreatePartitionsTopic(name=name, count=count, assignments=None)
    assert not w.ask("CreatePartitions", 0, r(topics=[wanted], timeout_ms=1000)).results[0].error_code


def configure(w: World, name: str, **config: str) -> None:
    """Replaces the configuration of a topic."""
    r = m.AlterConfigsRequest
    values = [r.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in config.items()]
    asked = r(resources=[r.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=values)])
    assert not w.ask("AlterConfigs", 0, asked).responses[0].error_code


def here(w: World) -> dict[str, tuple[int, dict[str, str]]]:
    """Returns the number of partitions and the configuration of each topic of the broker."""
    image = w.broker.image
    return {
        name: (image.partition_counts[topic.id], dict(image.config_of(TOPIC, name)))
        for name, topic in sorted(image.topics.items())
    }


def there(client: KazooDouble) -> dict[str, tuple[int, dict[str, str]]]:
    """Returns the same of ZooKeeper's topics. Each partition must have a state."""
    found: dict[str, tuple[int, dict[str, str]]] = {}
    for path in sorted(client.nodes):
        name = path.removeprefix("/brokers/topics/")
        if name != path and "/" not in name:
            partitions = value(client, path)["partitions"]
            states = [one for one in client.nodes if one.startswith(f"{path}/partitions/") and one.endswith("/state")]
            assert len(states) == len(partitions), states
            found[name] = len(partitions), config_there(client, f"topics/{name}")
    left = {path for path in client.nodes if path.startswith("/config/topics/")}
    assert left <= {f"/config/topics/{name}" for name in found}
    return found


def config_there(client: KazooDouble, entity: str) -> dict[str, str]:
    path = f"/config/{entity}"
    found: dict[str, str] = value(client, path)["config"] if path in client.nodes else {}
    return found


def value(client: KazooDouble, path: str) -> Any:
    return json.loads(client.nodes[path].value)


def tool_creates(client: KazooDouble, name: str, partitions: int = 1) -> None:
    data = {"version": 1, "partitions": {str(index): [7] for index in range(partitions)}}
    with client.tool():
        put(client, f"/brokers/topics/{name}", data)


def tool_configures(client: KazooDouble, entity: str, config: dict[str, str]) -> None:
    """Writes a configuration as ConfigCommand does."""
    with client.tool():
        put(client, f"/config/{entity}", {"version": 1, "config": config})
        change = json.dumps({"version": 2, "entity_path": entity}).encode()
        client.create(f"{CHANGES}/config_change_", change, sequence=True)


def put(client: KazooDouble, path: str, found: object) -> None:
    data = json.dumps(found).encode()
    if path in client.nodes:
        client.set(path, data)
    else:
        client.create(path, data, makepath=True)
