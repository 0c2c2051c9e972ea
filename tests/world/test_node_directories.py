"""A log directory that fails for one of several nodes: it takes that node's replicas, and no others."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.node_commands import nodes_table

from ..support.lab import LabWorld
from ..support.node_world import NODES, cluster, create, happens, produce, records, state
from ..support.world import World


def world_of() -> World:
    world = cluster(log_dirs="/a,/b")
    for number in range(4):
        create(world, f"x{number}", [1, 2, 3], min_insync_replicas="1")
    create(world, "alone", [2])
    world.pass_ms(10)
    return world


def directory(world: World, topic: str) -> str:
    return world.broker.partitions.directory_of[world.broker.partitions.by_name[topic, 0]].path


def fail(world: World, node: int, path: str) -> None:
    LabWorld(world).ask(f"POST /v1/nodes/{node}/failed-directories", directory=path)
    world.pass_ms(100)


def shown(world: World, node: int) -> dict[str, int]:
    results = world.at(node, "DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
    return {one.log_dir: one.error_code for one in results}


def listed(world: World) -> list[list[str]]:
    """The first and the last column of `ottla node list`."""
    lines = nodes_table(LabWorld(world).ask("GET /v1/nodes")["nodes"])
    return [[line.split()[0], line.split()[-1]] for line in lines]


def test_its_replicas_are_offline_and_others_lead() -> None:
    world = world_of()
    inside = [f"x{n}" for n in range(4) if directory(world, f"x{n}") == "/a"]
    outside = [f"x{n}" for n in range(4) if directory(world, f"x{n}") == "/b"]
    assert inside
    assert outside
    fail(world, 1, "/a")
    assert [shown(world, node)["/a"] for node in NODES] == [Errors.KAFKA_STORAGE_ERROR, 0, 0]
    assert [shown(world, node)["/b"] for node in NODES] == [0, 0, 0]
    for topic in inside:
        assert state(world, 0, topic) == (2, 1, [2, 3], [], [])
        assert produce(world, 1, topic=topic).error_code == Errors.KAFKA_STORAGE_ERROR
        assert produce(world, 2, topic=topic).error_code == 0
        topics = world.at(3, "Metadata", 12, m.MetadataRequest(topics=None)).topics
        assert [one.partitions[0].offline_replicas for one in topics if one.name == topic] == [[1]]
        world.pass_ms(60_000)
        assert state(world, 0, topic)[2] == [2, 3], "it does not come back by itself"
    for topic in outside:
        assert state(world, 0, topic) == (1, 0, [1, 2, 3], [], [])
        assert produce(world, 1, topic=topic).error_code == 0
    assert listed(world)[:2] == [["node", "failed"], ["1", "/a"]]
    assert not world.fatal
    happens(world, "stop", 1)
    happens(world, "begin", 1)
    world.pass_ms(1000)
    assert shown(world, 1) == {"/a": 0, "/b": 0}
    assert listed(world)[0] == ["node", "listeners"]
    for topic in inside:
        assert state(world, 0, topic)[2] == [1, 2, 3]
        assert records(world, 2, topic=topic) == [b"v"]


def test_a_partition_whose_only_replica_is_there_has_no_leader_until_the_node_starts() -> None:
    world = world_of()
    fail(world, 2, directory(world, "alone"))
    assert state(world, 0, "alone") == (-1, 1, [], [2], [2])
    assert produce(world, 2, topic="alone").error_code == Errors.KAFKA_STORAGE_ERROR
    happens(world, "stop", 2)
    happens(world, "begin", 2)
    assert state(world, 0, "alone")[0] == 2
    assert produce(world, 2, topic="alone").error_code == 0


def test_what_cannot_fail_is_refused() -> None:
    site = LabWorld(world_of())
    route = "POST /v1/nodes/{}/failed-directories"
    assert site.refused(route.format(9), {"directory": "/a"}) == (404, "there is no node 9")
    assert site.refused(route.format(1), {"directory": "/c"}) == (404, "there is no log directory /c")
    site.ask(route.format(1), directory="/b")
    site.world.pass_ms(100)
    assert site.refused(route.format(1), {"directory": "/b"}) == (409, "/b has failed already")
    words = "/a is the last log directory of node 1: stop or kill the node"
    assert site.refused(route.format(1), {"directory": "/a"}) == (409, words)


@pytest.mark.parametrize(("path", "refused"), [("/a", "/a has the metadata log: the broker would end"), ("/b", None)])
def test_with_one_node_a_directory_fails_for_the_broker(path: str, refused: str | None) -> None:
    site = LabWorld(World(log_dirs="/a,/b"))
    route = "POST /v1/nodes/1/failed-directories"
    if refused:
        assert site.refused(route, {"directory": path}) == (409, refused)
    else:
        site.ask(route, directory=path)
        assert shown(site.world, 1) == {"/a": 0, "/b": Errors.KAFKA_STORAGE_ERROR}
    assert not site.world.fatal


def test_replicas_that_follow_again_leave_out_those_of_a_failed_directory() -> None:
    world = world_of()
    topic = next(f"x{n}" for n in range(4) if directory(world, f"x{n}") == "/a")
    fail(world, 3, "/a")
    produce(world, 1, topic=topic)
    happens(world, "hold", 3)
    happens(world, "release", 3)
    world.pass_ms(1000)
    replicas = world.broker.partitions.by_name[topic, 0].replica_set
    assert replicas is not None
    assert state(world, 0, topic)[2] == [1, 2]
    assert world.broker.partitions.of_node(3).replica_end(world.broker.partitions.by_name[topic, 0]) == 0
