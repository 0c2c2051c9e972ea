"""Configurations with several nodes: each is asked of its node, and holds there. The answers are those of three brokers
of Apache Kafka 4.4.0.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records as batches
from ottla.protocol.errors import Errors

from ..support.ask import produce_message
from ..support.dynamic import described_broker, set_broker
from ..support.node_world import NODES, cluster, create, records
from ..support.world import World

BACKOFF = "log.cleaner.backoff.ms"
TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
Said = tuple[str, str | None]


@pytest.fixture(scope="module")
def shared() -> World:
    return cluster(log_dirs="/a,/b")


def altered(world: World, at: int, kind: int, name: str, key: str, value: str) -> Said:
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name=key, config_operation=0, value=value)
    resource = r.AlterConfigsResource(resource_type=kind, resource_name=name, configs=[change])
    (answer,) = world.at(at, "IncrementalAlterConfigs", 1, r(resources=[resource])).responses
    world.pass_ms(10)
    return Errors(answer.error_code).name, answer.error_message


def replaced(world: World, at: int, name: str, value: str) -> Said:
    r = m.AlterConfigsRequest
    resource = r.AlterConfigsResource(resource_type=BROKER, resource_name=name)
    resource.configs = [r.AlterableConfig(name=BACKOFF, value=value)]
    (answer,) = world.at(at, "AlterConfigs", 2, r(resources=[resource])).responses
    return Errors(answer.error_code).name, answer.error_message


def described(world: World, at: int, kind: int, name: str, key: str) -> Any:
    r = m.DescribeConfigsRequest
    resource = r.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[key])
    (answer,) = world.at(at, "DescribeConfigs", 4, r(resources=[resource], include_synonyms=True)).results
    if answer.error_code:
        return Errors(answer.error_code).name, answer.error_message
    return [(one.value, one.config_source, [(s.value, s.source) for s in one.synonyms]) for one in answer.configs]


def test_a_node_is_asked_for_its_own_configuration_only(shared: World) -> None:
    for other in ("2", "9"):
        words = f"Unexpected broker id, expected 1, but received {other}"
        assert altered(shared, 1, BROKER, other, BACKOFF, "100") == ("INVALID_REQUEST", words)
        assert replaced(shared, 1, other, "100") == ("INVALID_REQUEST", words)
        words = f"Unexpected broker id, expected 1 or empty string, but received {other}"
        assert described(shared, 1, BROKER, other, BACKOFF) == ("INVALID_REQUEST", words)
    assert altered(shared, 1, LOGGER, "2", "kafka.server.KafkaApis", "DEBUG") == (
        "INVALID_REQUEST",
        "Unexpected node id. Expected 1, but received 2",
    )
    assert described(shared, 1, LOGGER, "2", "kafka.server.KafkaApis") == (
        "INVALID_REQUEST",
        "Unexpected broker id, expected 1 but received 2",
    )


def test_a_nodes_own_value_is_over_that_of_all(shared: World) -> None:
    assert altered(shared, 2, BROKER, "2", BACKOFF, "100") == ("NONE", None)
    assert altered(shared, 3, BROKER, "", BACKOFF, "200") == ("NONE", None)
    of_all = ("200", 3, [("200", 3), ("15000", 5)])
    assert [described(shared, node, BROKER, str(node), BACKOFF) for node in NODES] == [
        [of_all],
        [("100", 2, [("100", 2), ("200", 3), ("15000", 5)])],
        [of_all],
    ]
    assert [described(shared, node, BROKER, "", BACKOFF) for node in NODES] == [[("200", 3, [("200", 3)])]] * 3
    settings = shared.broker.settings
    assert [settings.of_node(one.config).value(BACKOFF) for one in shared.broker.nodes] == [200, 100, 200]
    assert set_broker(shared, BACKOFF, None, "2", 2) == (0, None)
    assert set_broker(shared, BACKOFF, None, "") == (0, None)
    assert described_broker(shared, BACKOFF, "2", 2) == (0, {BACKOFF: ("15000", 5)})


def test_other_resources_are_asked_of_any_node(shared: World) -> None:
    assert altered(shared, 2, CLIENT_METRICS, "s", "interval.ms", "1000") == ("NONE", None)
    assert described(shared, 3, CLIENT_METRICS, "s", "interval.ms") == [("1000", 7, [("1000", 7)])]
    key = "consumer.session.timeout.ms"
    assert altered(shared, 3, GROUP, "g", key, "50000") == ("NONE", None)
    assert described(shared, 1, GROUP, "g", key) == [("50000", 8, [("50000", 8), ("45000", 5)])]
    assert altered(shared, 2, TOPIC, "t", "retention.ms", "77") == ("NONE", None)
    assert [described(shared, node, TOPIC, "t", "retention.ms")[0][:2] for node in NODES] == [("77", 1)] * 3


def cordoned(world: World, node: int) -> list[str]:
    results = world.at(node, "DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
    return [one.log_dir for one in results if one.is_cordoned]


def homes(world: World, node: int, topic: str) -> list[str]:
    """The directories in which a node has replicas of a topic."""
    results = world.at(node, "DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
    return [one.log_dir for one in results for t in one.topics if t.name == topic for _ in t.partitions]


def test_a_node_cordons_its_own_directories(shared: World) -> None:
    key = "cordoned.log.dirs"
    assert altered(shared, 2, BROKER, "3", key, "*")[0] == "INVALID_REQUEST"
    assert altered(shared, 2, BROKER, "2", key, "/a") == ("NONE", None)
    assert [cordoned(shared, node) for node in NODES] == [[], ["/a"], []]
    for number in range(4):
        create(shared, f"half-{number}", [1, 2, 3])
    shared.pass_ms(10)
    assert {path for number in range(4) for path in homes(shared, 2, f"half-{number}")} == {"/b"}
    assert {path for number in range(4) for path in homes(shared, 1, f"half-{number}")} == {"/a", "/b"}
    assert altered(shared, 2, BROKER, "2", key, "*") == ("NONE", None)
    assert described_broker(shared, key, "1") == (0, {key: ("", 5)})
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="three", num_partitions=1, replication_factor=3)
    (answer,) = shared.at(3, "CreateTopics", 7, r(topics=[topic], timeout_ms=1000)).topics
    assert answer.error_code == Errors.INVALID_REPLICATION_FACTOR
    assert set_broker(shared, key, None, "2", 2) == (0, None)


def test_a_replica_of_one_node_moves_and_the_log_with_the_last(shared: World) -> None:
    create(shared, "m", [1, 2])
    shared.pass_ms(10)
    partition = shared.broker.partitions.by_name["m", 0]
    source = shared.broker.partitions.directory_of[partition].path
    target = "/b" if source == "/a" else "/a"
    r = m.AlterReplicaLogDirsRequest
    wanted = r.AlterReplicaLogDir(path=target, topics=[r.AlterReplicaLogDirTopic(name="m", partitions=[0])])

    def move(node: int) -> int:
        (result,) = shared.at(node, "AlterReplicaLogDirs", 2, r(dirs=[wanted])).results
        shared.pass_ms(2000)
        return int(result.partitions[0].error_code)

    assert move(3) == Errors.REPLICA_NOT_AVAILABLE, "which is in Kafka, too, what a broker without a replica says"
    assert move(2) == 0
    assert [homes(shared, node, "m") for node in NODES] == [[source], [target], []]
    assert shared.files.exists(f"{source}/m-0")
    assert move(1) == 0
    assert [homes(shared, node, "m") for node in NODES] == [[target], [target], []]
    assert shared.files.exists(f"{target}/m-0")
    assert not shared.files.exists(f"{source}/m-0")


def compacts_within(world: World, node: int, topic: str, ms: int) -> bool:
    """Whether a topic is compacted in time after a key has got three values."""
    create(world, topic, [node], cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01")
    world.pass_ms(10)
    for number in range(3):
        data = bytes(batches.encode([batches.Record(b"k", b"%d" % number, world.schedule.now_ms())]))
        reply = world.at(node, "Produce", 9, produce_message(topic, data, 0))
        assert reply.responses[0].partition_responses[0].error_code == 0
        world.pass_ms(10)
    world.pass_ms(ms)
    return b"0" not in records(world, node, topic=topic)


def test_a_node_compacts_what_it_leads_at_its_own_pace() -> None:
    world = cluster()
    assert altered(world, 2, BROKER, "2", BACKOFF, "100") == ("NONE", None)
    assert altered(world, 3, BROKER, "3", "log.cleaner.io.max.bytes.per.second", "1") == ("NONE", None)
    world.pass_ms(15_000)
    assert [compacts_within(world, node, f"of-{node}", 1000) for node in NODES] == [False, True, False]
    world.pass_ms(30_000)
    assert [b"0" in records(world, node, topic=f"of-{node}") for node in NODES] == [False, False, True]
    assert [compacts_within(world, node, f"again-{node}", 30_000) for node in NODES[:2]] == [True, True]
    world.pass_ms(400_000)
    assert b"0" not in records(world, 3, topic="of-3"), "node 3 takes a second for a byte, and gets there"
