"""What each node has as its own, though one process serves all: quotas, limits of connections, defaults of topics,
levels of loggers and metrics.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from ottla.broker import loggers
from ottla.broker.config.config import ConfigError
from ottla.broker.connection_rates import Verdict
from ottla.broker.lab.exposition import render
from ottla.broker.limits import CONNECTIONS, CONNECTIONS_PER_IP
from ottla.broker.net.connection_counts import ConnectionCounts
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.dynamic import set_broker
from ..support.lab import LabWorld
from ..support.node_world import NODES, cluster, create, happens, state
from ..support.world import World

A = m.AlterClientQuotasRequest


@pytest.fixture
def world() -> World:
    made = cluster()
    create(made, "led", [1, 2], [2, 3], [3, 1])
    return made


def limit(world: World, kind: str, name: str | None, **limits: float) -> None:
    """Sets limits of a kind of entity; None for all without one of their own."""
    entity = [A.EntityData(entity_type=kind, entity_name=name)]
    ops = [A.OpData(key=key, value=value) for key, value in limits.items()]
    (entry,) = world.ask("AlterClientQuotas", 1, A(entries=[A.EntryData(entity=entity, ops=ops)])).entries
    assert entry.error_code == 0


def produce(world: World, node: int, size: int) -> Any:
    return world.at(node, "Produce", 10, produce_message("led", batch(bytes(size)), node - 1, 1))


def error(reply: Any) -> str:
    return Errors(reply.responses[0].partition_responses[0].error_code).name


# quotas


def test_what_a_client_used_at_one_node_does_not_count_at_another(world: World) -> None:
    limit(world, "client-id", None, producer_byte_rate=1000.0, consumer_byte_rate=3000.0)
    produced = [produce(world, node, size) for node, size in ((2, 20_000), (1, 20_000), (3, 10))]
    assert [one.throttle_time_ms > 0 for one in produced] == [True, True, False]
    fetched = [world.at(node, "Fetch", 11, fetch_message("led", 0, node - 1)) for node in (1, 1, 2)]
    assert [one.throttle_time_ms > 0 for one in fetched] == [False, True, False]


def test_mutations_count_for_all_nodes(world: World) -> None:
    limit(world, "client-id", None, controller_mutation_rate=1.0)
    r = m.CreateTopicsRequest
    for node, count, code in ((1, 50, 0), (2, 1, Errors.THROTTLING_QUOTA_EXCEEDED)):
        topic = r.CreatableTopic(name=f"of-{node}", num_partitions=count, replication_factor=1)
        assert world.at(node, "CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics[0].error_code == code


# groups


def has_partitions(world: World, node: int, group: str) -> bool:
    """Whether the second of two members has partitions soon."""
    r = m.ConsumerGroupHeartbeatRequest
    epochs, owned = {"m1": 0, "m2": 0}, dict[str, Any]()
    for _ in range(30):
        for member, epoch in epochs.items():
            beat = r(group_id=group, member_id=member, member_epoch=epoch, topic_partitions=owned.get(member, []))
            beat.rebalance_timeout_ms, beat.subscribed_topic_names = 10_000, ["led"]
            reply = world.at(node, "ConsumerGroupHeartbeat", 1, beat)
            assert reply.error_code == 0
            epochs[member] = reply.member_epoch
            if reply.assignment is not None:
                given = reply.assignment.topic_partitions
                owned[member] = [r.TopicPartitions(topic_id=t.topic_id, partitions=t.partitions) for t in given]
        world.pass_ms(200)
    return bool(owned.get("m2"))


def test_groups_obey_the_node_that_coordinates_them(world: World) -> None:
    assert set_broker(world, "group.consumer.assignment.interval.ms", "15000", "2", at=2) == (0, None)
    world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    groups = {world.broker.groups.host(name).partition.leader: name for name in map("g{}".format, range(20))}
    assert [has_partitions(world, node, groups[node]) for node in NODES] == [True, False, True]


# connections


def test_a_node_limits_its_own_connections(world: World) -> None:
    assert set_broker(world, "max.connections", "2", "2", at=2) == (0, None)
    assert set_broker(world, "max.connections.per.ip", "1", "3", at=3) == (0, None)
    counts = ConnectionCounts(world.broker, 100)
    views = [world.dispatchers[node].broker for node in NODES]
    found = {
        node: [counts.at(view).opened("PLAINTEXT", "10.0.0.1") for _ in range(3)]
        for node, view in zip(NODES, views, strict=True)
    }
    assert found == {1: [None] * 3, 2: [None, None, CONNECTIONS], 3: [None, CONNECTIONS_PER_IP, CONNECTIONS_PER_IP]}
    counts.at(views[2]).closed("PLAINTEXT", "10.0.0.1")
    assert counts.at(views[2]).opened("PLAINTEXT", "10.0.0.2") is None
    assert set_broker(world, "max.connections", None, "2", at=2) == (0, None)
    counts.load()
    assert counts.at(views[1]).opened("PLAINTEXT", "10.0.0.1") is CONNECTIONS, "who follows the metadata hears of it"


def test_all_nodes_share_what_open_files_allow(world: World) -> None:
    counts = ConnectionCounts(world.broker, 4)
    opened = [
        counts.at(world.dispatchers[node].broker).opened("PLAINTEXT", f"10.0.0.{node}") for node in (1, 2, 3, 1, 2)
    ]
    assert opened == [None] * 4 + [CONNECTIONS]


def accepted(world: World, node: int, count: int, host: str = "10.0.0.1") -> int:
    """How many of so many new connections to a node are served at once."""
    verdicts: list[Verdict] = []
    for _ in range(count):
        world.dispatchers[node].broker.connection_rates.opened("PLAINTEXT", host, verdicts.append)
    return sum(one.is_served for one in verdicts)


def test_a_node_has_rates_of_connections_of_its_own(world: World) -> None:
    assert set_broker(world, "max.connection.creation.rate", "1", "2", at=2) == (0, None)
    assert [accepted(world, node, 50) for node in NODES] == [50, 10, 50]
    limit(world, "ip", "10.0.0.9", connection_creation_rate=1.0)
    assert [accepted(world, node, 50, "10.0.0.9") for node in (1, 3)] == [10, 10]


# defaults of topics


def test_a_leader_obeys_the_defaults_of_its_own_node(world: World) -> None:
    assert set_broker(world, "message.max.bytes", "1000", "2", at=2) == (0, None)
    assert [error(produce(world, node, 5000)) for node in NODES] == ["NONE", "MESSAGE_TOO_LARGE", "NONE"]
    partition = world.broker.partitions.by_name["led", 1]
    assert partition.open_log().settings.max_message_bytes == 1000
    happens(world, "stop", 2)
    assert state(world, 1, "led")[0] == 3
    assert partition.open_log().settings.max_message_bytes > 5000
    moved = world.at(3, "Produce", 10, produce_message("led", batch(bytes(5000)), 1, 1))
    assert error(moved) == "NONE"


def test_a_new_topic_and_one_with_its_own_value_obey_too(world: World) -> None:
    assert set_broker(world, "log.retention.ms", "4321", "3", at=3) == (0, None)
    create(world, "fresh", [3, 1], [1, 3])
    create(world, "own", [3, 1], retention_ms="77")
    world.pass_ms(10)
    logs = [world.broker.partitions.by_name[key].open_log() for key in (("fresh", 0), ("fresh", 1), ("own", 0))]
    assert [one.settings.retention_ms for one in logs] == [4321, 604_800_000, 77]


# what the configuration gives to one node


GIVEN = {
    "ottla.node.2.log.retention.hours": "1",
    "ottla.node.2.message.max.bytes": "1000",
    "ottla.node.3.max.connections": "1",
    "ottla.node.3.listeners": "PLAINTEXT://127.0.0.1:7777",
    "ottla.node.1.broker.rack": "here",
}


def retention(w: World, node: int) -> tuple[str, int, list[tuple[str, str, int]]]:
    r = m.DescribeConfigsRequest
    wanted = r.DescribeConfigsResource(resource_type=2, resource_name="led", configuration_keys=["retention.ms"])
    (answer,) = w.at(node, "DescribeConfigs", 4, r(resources=[wanted], include_synonyms=True)).results
    (found,) = answer.configs
    return found.value, found.config_source, [(one.name, one.value, one.source) for one in found.synonyms]


def test_a_node_has_what_it_alone_is_given() -> None:
    w = cluster(**GIVEN)
    create(w, "led", [1, 2], [2, 3], [3, 1])
    assert [error(produce(w, node, 5000)) for node in NODES] == ["NONE", "MESSAGE_TOO_LARGE", "NONE"]
    assert [retention(w, node)[0] for node in NODES] == ["604800000", "3600000", "604800000"]
    assert w.broker.partitions.by_name["led", 1].open_log().settings.retention_ms == 3_600_000
    counts = ConnectionCounts(w.broker, 100).at(w.dispatchers[3].broker)
    assert [counts.opened("PLAINTEXT", "10.0.0.1") for _ in range(2)] == [None, CONNECTIONS]
    found = w.at(2, "Metadata", 12, m.MetadataRequest(topics=[])).brokers
    assert [(one.node_id, one.port, one.rack) for one in found] == [(1, 9092, "here"), (2, 9093, None), (3, 7777, None)]
    assert w.broker.config.warnings == []


def test_a_node_with_listeners_of_its_own_has_no_others() -> None:
    nodes = cluster(**GIVEN).broker.nodes
    assert [list(map(str, one.config.listeners)) for one in nodes] == [
        [f"PLAINTEXT://127.0.0.1:{port}"] for port in (9092, 9093, 7777)
    ]


def test_what_is_given_shows_as_static_below_what_is_dynamic() -> None:
    w = cluster(**{"ottla.node.2.log.retention.ms": "777"})
    create(w, "led", [2])
    assert retention(w, 2)[:2] == ("777", 4)
    assert set_broker(w, "log.retention.ms", "888", "2", at=2) == (0, None)
    shown = [("log.retention.ms", "888", 2), ("log.retention.ms", "777", 4), ("log.retention.hours", "168", 5)]
    assert retention(w, 2) == ("888", 2, shown)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("ottla.node.4.log.retention.ms", "1", "there is no node 4, only 1 to 3"),
        ("ottla.node.x.log.retention.ms", "1", "no key of one node"),
        ("ottla.node.2.log.dirs", "/a", "no key of one node"),
        ("ottla.node.2.log.retention.ms", "soon", "Not a number of type LONG"),
        ("ottla.node.2.log.retention.ms", "0", "log.retention.ms must be unlimited"),
        ("ottla.node.2.listeners", "OTHER://127.0.0.1:1", "must have the names of the first node's: PLAINTEXT"),
    ],
)
def test_what_a_node_cannot_be_given(key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        cluster(**{key: value})


# loggers


@pytest.fixture
def levels() -> Iterator[None]:
    known = {one: one.level for one in (logging.getLogger("ottla"), loggers.requests, loggers.rights)}
    yield
    for one, level in known.items():
        one.setLevel(level)


@pytest.mark.usefixtures("levels")
def test_each_node_has_levels_of_its_own(world: World) -> None:
    of = {node: world.dispatchers[node].broker.loggers for node in NODES}
    name = loggers.requests.name.removeprefix("ottla.")
    below = logging.getLogger("ottla.kafka.request.logger.below")
    of[2].set_level(name, "DEBUG")
    assert [of[node].level(name) for node in NODES] == ["WARN", "DEBUG", "WARN"]
    assert [of[node].lets_pass(loggers.requests, logging.DEBUG) for node in NODES] == [False, True, False]
    assert below.isEnabledFor(logging.DEBUG), "what is of no node is written if any node lets it pass"
    of[2].set_level("root", "TRACE")
    of[2].set_level(name, None)
    assert [of[node].level(name) for node in NODES] == ["WARN", "TRACE", "WARN"]
    for one in of.values():
        one.set_level(name, "ERROR")
    assert loggers.requests.level == logging.ERROR
    assert [of[node].level("root") for node in NODES][1] == "TRACE"


# metrics


def samples(world: World, name: str) -> list[str]:
    text = b"".join(render(LabWorld(world).lab.server)).decode()
    return [line for line in text.splitlines() if line.startswith(f"{name}{{")]


def test_metrics_have_the_node(world: World) -> None:
    limit(world, "client-id", None, producer_byte_rate=1e9)
    produce(world, 2, 100)
    name = "kafka_network_RequestMetrics_Requests_total"
    assert f'{name}{{node="2",request="Produce",version="10"}} 1.0' in samples(world, name)
    assert not [line for line in samples(world, name) if 'node="1",request="Produce"' in line]
    rates = samples(world, "kafka_server_Produce_byte_rate")
    assert [line.partition("}")[0] for line in rates] == [
        'kafka_server_Produce_byte_rate{client_id="wire",node="2",user=""'
    ]
    accepts = samples(world, "kafka_server_socket_server_metrics_broker_connection_accept_rate")
    assert len(accepts) == len(NODES)
