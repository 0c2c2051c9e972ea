"""A log directory that cannot be opened at start: its partitions are offline, the others serve, as in Kafka."""

from __future__ import annotations

import errno
from collections import Counter

import pytest
from ottla.broker.steps import STEP_ELEMENTS
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.failing_files import FailingFiles
from ..support.topic_world import create, produced, read
from ..support.world import World

PARTITIONS = 4


def produce(world: World, index: int, name: str = "t") -> int:
    return int(produced(world.ask("Produce", 9, produce_message(name, batch(b"x"), index))).error_code)


def lived(files: FailingFiles) -> tuple[World, list[int]]:
    """A broker with two log directories, and which partitions lie in the second."""
    world = World(files, log_dirs="/a,/b")
    create(world, "t", PARTITIONS)
    assert [produce(world, index) for index in range(PARTITIONS)] == [0] * PARTITIONS
    return world, [index for index in range(PARTITIONS) if files.exists(f"/b/t-{index}")]


@pytest.mark.long
@pytest.mark.parametrize("operation", ["read", "names", "exists"])
@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("recovery", ["strict", "salvage"])
def test_the_others_serve_and_its_partitions_come_back_with_it(
    operation: str, clean: bool, recovery: str, caplog: pytest.LogCaptureFixture
) -> None:
    files = FailingFiles()
    world, inside = lived(files)
    assert len(inside) == PARTITIONS // 2
    if clean:
        assert world.broker.stop() is None
    for ending in ("/b", "/b/meta.properties"):
        files.fail(operation, ending)
    world = World(files, 1, log_dirs="/a,/b", ottla_recovery=recovery)
    world.pass_ms(1000)
    assert [one.path for one in world.broker.log_directories.all if one.failed] == ["/b"]
    assert "log directory /b failed" in caplog.text
    assert [produce(world, index) for index in range(PARTITIONS)] == [
        Errors.KAFKA_STORAGE_ERROR if index in inside else 0 for index in range(PARTITIONS)
    ]
    (topic,) = world.ask("Metadata", 8, m.MetadataRequest(topics=None)).topics
    assert [
        (p.error_code, p.leader_id, list(p.offline_replicas))
        for p in sorted(topic.partitions, key=lambda p: p.partition_index)
    ] == [(Errors.LEADER_NOT_AVAILABLE, -1, [1]) if index in inside else (0, 1, []) for index in range(PARTITIONS)]
    described = world.ask("DescribeLogDirs", 4, m.DescribeLogDirsRequest(topics=None)).results
    assert [(one.log_dir, one.error_code) for one in described] == [("/a", 0), ("/b", Errors.KAFKA_STORAGE_ERROR)]
    assert create(world, "new", PARTITIONS) == 0
    assert [produce(world, index, "new") for index in range(PARTITIONS)] == [0] * PARTITIONS, (
        "in the directory that is left"
    )
    assert not any(files.exists(f"/a/t-{index}") for index in inside)
    assert world.broker.stop() is None
    assert not world.fatal
    files.faults.clear()
    well = World(files, 2, log_dirs="/a,/b")
    well.pass_ms(1000)
    assert [produce(well, index) for index in range(PARTITIONS)] == [0] * PARTITIONS
    assert [well.broker.partitions.by_name["t", index].end_offset for index in range(PARTITIONS)] == [
        2 if index in inside else 3 for index in range(PARTITIONS)
    ]
    assert len(read(well, "new")) == 1


def leadership(world: World, index: int) -> tuple[object, ...]:
    request = m.DescribeTopicPartitionsRequest(
        topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name="t")], response_partition_limit=100
    )
    (topic,) = world.ask("DescribeTopicPartitions", 0, request).topics
    one = topic.partitions[index]
    return one.leader_id, one.leader_epoch, one.isr_nodes, one.eligible_leader_replicas, one.last_known_elr


def test_the_partitions_of_a_failed_directory_have_no_leader_until_it_is_back() -> None:
    """As in Kafka: without a clean shutdown, no replica is known to have all records (KIP-966)."""
    files = FailingFiles()
    world, (index, *_) = lived(files)
    assert leadership(world, index) == (1, 0, [1], [], [])
    files.fail("write", f"/b/t-{index}/00000000000000000000.log")
    assert produce(world, index) == Errors.KAFKA_STORAGE_ERROR
    world.pass_ms(1000)
    assert leadership(world, index) == (-1, 1, [], [1], [1])
    (broker,) = world.broker.image.brokers.values()
    assert broker.log_dirs == (world.broker.log_directories.all[0].id,)
    assert world.broker.stop() is None
    for _ in range(2):
        files.faults.clear()
        files.fail("read", "/b/meta.properties")
        world = World(files, 1, log_dirs="/a,/b")
        world.pass_ms(1000)
        assert leadership(world, index) == (-1, 1, [], [], [1])
        world.broker.stop()
    files.faults.clear()
    world = World(files, 1, log_dirs="/a,/b")
    world.pass_ms(1000)
    assert leadership(world, index) == (1, 2, [1], [], [])
    assert produce(world, index) == 0


def test_old_fetches_get_an_error_that_their_clients_know() -> None:
    files = FailingFiles()
    world, (index, *_) = lived(files)
    files.fail("write", f"/b/t-{index}/00000000000000000000.log")
    produce(world, index)
    codes = [
        world.ask("Fetch", version, fetch_message("t", 0, index)).responses[0].partitions[0].error_code
        for version in (4, 5, 6, 11)
    ]
    old, new = Errors.NOT_LEADER_OR_FOLLOWER, Errors.KAFKA_STORAGE_ERROR
    assert codes == [old, old, new, new]


def test_the_directory_of_the_metadata_must_be_usable() -> None:
    files = FailingFiles()
    lived(files)
    files.fail("read", "/a/meta.properties")
    with pytest.raises(OSError, match=r"a/meta\.properties"):
        World(files, 1, log_dirs="/a,/b")


def test_a_process_without_descriptors_does_not_take_the_directory_for_failed() -> None:
    files = FailingFiles()
    lived(files)
    files.fail("read", "/b/meta.properties", errno.EMFILE)
    with pytest.raises(OSError, match=r"b/meta\.properties"):
        World(files, 1, log_dirs="/a,/b")


def test_many_partitions_go_offline_at_once_and_are_closed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    world, count = World(log_dirs="/a,/b"), 2 * STEP_ELEMENTS + 100
    assert create(world, "t", 2 * count) == 0
    monkeypatch.setattr(world.schedule, "soon", lambda call: world.schedule.later(1, call))
    replicas = world.broker.replicas
    closed: list[int] = []
    monkeypatch.setattr(replicas, "closed", lambda partition: closed.append(world.schedule.monotonic_ms()))
    failed = world.broker.log_directories.all[1]
    world.broker.log_directories.io_failed(failed, OSError(errno.EIO, "broken"))
    lost = [partition for partition, where in world.broker.partitions.directory_of.items() if where is failed]
    assert len(lost) >= count
    assert all(partition.offline and partition.log is None for partition in lost)
    world.pass_ms(100)
    assert len(closed) == len(lost)
    assert max(Counter(closed).values()) <= STEP_ELEMENTS
