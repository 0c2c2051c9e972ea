"""Which replicas and which ports the nodes of a handover get."""

from __future__ import annotations

from collections import Counter

import pytest
from ottla.coordinator.metadata.registration import Broker, Endpoint
from ottla.coordinator.metadata.state import MetadataState, Partition, Topic

from ottla.handover import HandoverRefused
from ottla.handover.layout import Wanted, kafka_nodes, ottla_nodes, placed
from ottla.handover.replicas import choose
from ottla.handover.source import Source, SourceDirectory

TOPIC = b"t" * 16


def source_of(*partitions: Partition, nodes: tuple[int, ...] = (1,), topic: str = "orders") -> Source:
    image = MetadataState()
    for node in nodes:
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 9091 + node)
        image.brokers[node] = Broker(node, 7, b"", (endpoint,), None, True, False, ())
    image.topics[topic] = Topic(topic, TOPIC)
    image.partition_counts[TOPIC] = len(partitions)
    image.partitions = {(TOPIC, one.index): one for one in partitions}
    directory = SourceDirectory("/data", b"d" * 16, nodes[0], "cluster", True, {}, {}, {}, {})
    directory.nodes = frozenset(nodes)
    return Source([directory], image, offset=9, epoch=1)


def partition(index: int, *replicas: int, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()) -> Partition:
    return Partition(TOPIC, index, replicas, replicas, 1, 0, 0, (), adding=adding, removing=removing)


def test_the_same_nodes_keep_their_replicas() -> None:
    source = source_of(partition(0, 2, 1), partition(1, 3, 2), nodes=(1, 2, 3))
    planned = placed(source, kafka_nodes(source, Wanted(3), "/out"), Wanted(3))
    assert planned.is_kept
    assert planned.replicas == {(TOPIC, 0): (2, 1), (TOPIC, 1): (3, 2)}


def test_a_reassignment_has_happened_after_a_handover() -> None:
    source = source_of(partition(0, 3, 1, 2, adding=(3,), removing=(1,)), nodes=(1, 2, 3))
    planned = placed(source, kafka_nodes(source, Wanted(), "/out"), Wanted())
    assert planned.replicas == {(TOPIC, 0): (3, 2)}


def test_more_nodes_share_the_replicas_evenly() -> None:
    source = source_of(*(partition(n, 1) for n in range(9)))
    planned = placed(source, kafka_nodes(source, Wanted(3), "/out"), Wanted(3, replicas=2))
    assert not planned.is_kept
    assert Counter(one for of in planned.replicas.values() for one in of) == {1: 6, 2: 6, 3: 6}
    assert Counter(of[0] for of in planned.replicas.values()) == {1: 3, 2: 3, 3: 3}


def test_a_coordinators_topic_gets_three_replicas_as_far_as_there_are_nodes() -> None:
    source = source_of(partition(0, 1), topic="__consumer_offsets")
    for nodes, count in ((2, 2), (5, 3)):
        planned = placed(source, kafka_nodes(source, Wanted(nodes), "/out"), Wanted(nodes))
        assert len(planned.replicas[TOPIC, 0]) == count


def test_nodes_on_one_host_have_different_ports_and_on_several_the_same() -> None:
    source = source_of()
    here = kafka_nodes(source, Wanted(3), "/out")
    assert [one.endpoints[0].port for one in here] == [9092, 9093, 9094]
    assert [one.controller.port for one in here] == [9095, 9096, 9097], "9093 and 9094 are taken"
    apart = kafka_nodes(source, Wanted(2, hosts=("a", "b")), "/out")
    assert [(one.endpoints[0].host, one.endpoints[0].port) for one in apart] == [("a", 9092), ("b", 9092)]
    assert [(one.controller.host, one.controller.port) for one in apart] == [("a", 9093), ("b", 9093)]


def test_ports_end() -> None:
    with pytest.raises(HandoverRefused, match=r"no port is left on 127\.0\.0\.1"):
        kafka_nodes(source_of(), Wanted(2, controller_port=65535), "/out")


def test_ottlas_nodes_follow_each_other_and_share_a_directory() -> None:
    source = source_of(partition(0, 2, 9), nodes=(2, 9))
    nodes = ottla_nodes(source, Wanted(2), "/out")
    assert [one.id for one in nodes] == [2, 3]
    assert len({one.path for one in nodes}) == 1
    assert len({one.directory_id for one in nodes}) == 2
    assert not placed(source, nodes, Wanted(2)).is_kept, "node 9 is none of them"


@pytest.mark.parametrize(
    ("leader", "isr", "ends", "chosen", "is_doubtful"),
    [
        (2, (1, 2, 3), (5, 5, 5), 2, False),
        (-1, (1, 3), (5, 9, 6), 3, False),
        (-1, (), (5, 9, 6), 2, True),
    ],
    ids=["the leader's", "the longest in sync", "the longest, where none is in sync"],
)
def test_one_replica_of_several_counts(
    leader: int, isr: tuple[int, ...], ends: tuple[int, ...], chosen: int, is_doubtful: bool
) -> None:
    state = Partition(TOPIC, 0, (1, 2, 3), isr, leader, 0, 0, ())
    source = source_of(state, nodes=(1, 2, 3))
    source.directories = []
    for node, end in zip((1, 2, 3), ends, strict=True):
        key = "orders", 0
        one = SourceDirectory(f"/absent/{node}", bytes([node]) * 16, node, "cluster", True, {key: end}, {}, {}, {})
        one.partitions, one.nodes = {key: 100}, frozenset((node,))
        source.directories.append(one)
    source.image.topic_names[TOPIC] = "orders"
    choice = choose(source)
    home = choice.homes[TOPIC, 0]
    assert home is not None
    assert (home.node_id, choice.doubtful == [state], choice.missing) == (chosen, is_doubtful, [])
