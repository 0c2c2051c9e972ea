"""Replicas that move to another log directory while the broker serves (AlterReplicaLogDirs, KIP-113)."""

from __future__ import annotations

import copy
import errno
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.dynamic import set_broker
from ..support.failing_files import FailingFiles
from ..support.memory_files import MemFiles
from ..support.node_world import NODES, cluster
from ..support.topic_world import create, produced, read
from ..support.world import World

DIRECTORIES = "/a,/b,/c"
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


def world_of(files: MemFiles | None = None, seed: int = 0, **settings: str) -> World:
    return World(files, seed, **{"log_dirs": DIRECTORIES, **settings})


def moved(world: World, path: str, topic: str = "t", index: int = 0, node: int = 1) -> int:
    """Asks for a directory; returns the error."""
    r = m.AlterReplicaLogDirsRequest
    topics = [r.AlterReplicaLogDirTopic(name=topic, partitions=[index])]
    request = r(dirs=[r.AlterReplicaLogDir(path=path, topics=topics)])
    (result,) = world.at(node, "AlterReplicaLogDirs", 2, request).results
    assert result.topic_name == topic
    return int(result.partitions[0].error_code)


def described(world: World, topic: str = "t", node: int = 1) -> dict[str, list[tuple[int, int, int, bool]]]:
    """The logs of a topic by directory: partition, size, lag, and whether it is a copy."""
    results = world.at(node, "DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
    return {
        one.log_dir: [
            (p.partition_index, p.partition_size, p.offset_lag, p.is_future_key)
            for found in one.topics
            if found.name == topic
            for p in found.partitions
        ]
        for one in results
    }


def home(world: World, topic: str = "t", index: int = 0) -> str:
    found = described(world, topic)
    return next(path for path, logs in found.items() if any(p == index and not copy for p, _, _, copy in logs))


def other(world: World) -> str:
    return next(path for path in DIRECTORIES.split(",") if path != home(world))


def write(world: World, *values_: bytes, **more: Any) -> None:
    for value in values_:
        assert produced(world.ask("Produce", 9, produce_message("t", batch(value), **more))).error_code == 0


def named(world: World, topic: str = "t") -> list[str]:
    """The directories that the metadata names for the replicas of partition 0."""
    image = world.broker.image
    state = image.partitions[image.topics[topic].id, 0]
    paths = {id_: one.path for one in world.broker.log_directories.all for id_ in one.ids}
    return [paths[one] for one in state.directories]


def arrives(world: World, path: str) -> None:
    for _ in range(2000):
        if home(world) == path and not len(world.broker.replicas.moves):
            return
        world.pass_ms(10)
    raise AssertionError(described(world))


def started(files: MemFiles | None = None, **settings: str) -> World:
    world = world_of(files, 0, **settings)
    assert create(world, "t", segment_bytes="1048576") == 0
    write(world, *[b"%d" % number for number in range(10)])
    return world


def test_a_log_moves_with_all_that_it_has_while_it_is_written() -> None:
    world = started(num_replica_alter_log_dirs_threads="1")
    write(world, *[bytes(300_000)] * 8)  # several segments
    log = world.broker.partitions.by_name["t", 0].open_log()
    target = other(world)
    assert moved(world, target) == 0
    for number in range(10, 20):
        write(world, b"%d" % number)
    arrives(world, target)
    assert world.broker.partitions.by_name["t", 0].log is log, "nothing is opened again"
    assert log.directory == f"{target}/t-0"
    write(world, b"after")
    assert len(read(world, "t")) > 0
    assert log.end_offset == 29
    assert named(world) == [target]
    world.pass_ms(100_000)  # the old directory is removed
    assert [name for path in DIRECTORIES.split(",") for name in world.files.names(path) if name.startswith("t-0")] == [
        "t-0"
    ]
    assert world.broker.stop() is None
    again = world_of(world.files, 1)
    again.pass_ms(100)
    assert home(again) == target
    assert again.broker.partitions.by_name["t", 0].end_offset == 29
    assert read(again, "t")[:3] == [b"0", b"1", b"2"]


def test_a_throttle_holds_a_move_and_directories_show_how_far_it_is() -> None:
    world = started()
    write(world, *[bytes(1000)] * 30)
    assert set_broker(world, THROTTLE, "1000") == (0, None)
    source, target = home(world), other(world)
    size = described(world)[source][0][1]
    assert moved(world, target) == 0
    world.pass_ms(3000)
    ((_, copied, left, is_copy),) = described(world)[target]
    assert is_copy
    assert 0 < copied < size
    assert 0 < left < 40
    assert described(world)[source] == [(0, size, 0, False)]
    assert home(world) == source
    assert set_broker(world, THROTTLE, None) == (0, None)
    arrives(world, target)


def test_a_move_ends_where_the_present_directory_is_asked_for() -> None:
    world = started()
    set_broker(world, THROTTLE, "1")
    source, target = home(world), other(world)
    assert moved(world, target) == 0
    assert moved(world, target) == 0, "asked for again"
    (third,) = {"/a", "/b", "/c"} - {source, target}
    assert moved(world, third) == 0
    assert [len(described(world)[path]) for path in (source, target, third)] == [1, 0, 1]
    assert moved(world, source) == 0
    assert [len(described(world)[path]) for path in (source, target, third)] == [1, 0, 0]
    world.pass_ms(100_000)
    assert home(world) == source
    assert not any(name.endswith("-future") for path in DIRECTORIES.split(",") for name in world.files.names(path))
    write(world, b"after")


def test_what_cannot_move_gets_kafkas_errors() -> None:
    world = started()
    assert moved(world, "/nowhere") == Errors.LOG_DIR_NOT_FOUND
    assert moved(world, "/b/") == Errors.LOG_DIR_NOT_FOUND
    assert moved(world, "b") == Errors.LOG_DIR_NOT_FOUND
    assert moved(world, "/b", "absent") == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert moved(world, "/b", "t", 7) == Errors.UNKNOWN_TOPIC_OR_PARTITION
    assert moved(world, "/b", "n" * 215) == Errors.INVALID_TOPIC_EXCEPTION
    assert moved(world, home(world)) == 0


def test_a_partition_that_does_not_exist_yet_is_created_in_the_directory_that_was_asked_for() -> None:
    world = world_of()
    for name, path in {"x": "/c", "y": "/b", "z": "/c"}.items():
        assert moved(world, path, name) == Errors.UNKNOWN_TOPIC_OR_PARTITION
        create(world, name)
        world.pass_ms(10)
        assert (home(world, name), named(world, name)) == (path, [path])


def test_new_partitions_go_where_the_fewest_are_and_the_metadata_follows() -> None:
    world = world_of()
    for name in ("t", "u", "v"):
        create(world, name)
    assert {home(world, name) for name in ("t", "u", "v")} == {"/a", "/b", "/c"}
    world.pass_ms(10)
    assert [named(world, name) for name in ("t", "u", "v")] == [[home(world, name)] for name in ("t", "u", "v")]


def test_a_cordoned_directory_takes_no_replicas() -> None:
    world = started()
    assert set_broker(world, "cordoned.log.dirs", "/nowhere") == (
        Errors.INVALID_REQUEST,
        "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries "
        ": /nowhere",
    )
    assert set_broker(world, "cordoned.log.dirs", "/a", "")[0] == Errors.INVALID_REQUEST
    source, target = home(world), other(world)
    assert set_broker(world, "cordoned.log.dirs", target) == (0, None)
    shown = world.ask("DescribeLogDirs", 5, m.DescribeLogDirsRequest(topics=None)).results
    assert [one.log_dir for one in shown if one.is_cordoned] == [target]
    assert moved(world, target) == Errors.INVALID_REPLICA_ASSIGNMENT
    create(world, "many", 6)
    assert len(described(world, "many")[target]) == 0
    assert set_broker(world, "cordoned.log.dirs", "*") == (0, None)
    assert create(world, "none") == Errors.INVALID_REPLICATION_FACTOR
    write(world, b"still served")
    world.broker.stop()
    again = world_of(world.files, 1)
    assert create(again, "none") == Errors.INVALID_REPLICATION_FACTOR, "a dynamic configuration outlives the broker"
    assert set_broker(again, "cordoned.log.dirs", None) == (0, None)
    assert create(again, "none") == 0
    assert home(again) == source


@pytest.mark.parametrize("ending", ["kill", "clean"])
def test_a_move_begins_again_after_a_start(ending: str) -> None:
    world = started()
    set_broker(world, THROTTLE, "1")
    target = other(world)
    moved(world, target)
    world.pass_ms(2000)
    if ending == "clean":
        assert world.broker.stop() is None
    again = world_of(copy.deepcopy(world.files), 1)
    again.pass_ms(100)
    assert any(is_copy for *_, is_copy in described(again)[target])
    set_broker(again, THROTTLE, None)
    arrives(again, target)
    assert again.broker.partitions.by_name["t", 0].end_offset == 10


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
def test_no_power_failure_during_a_move_loses_what_was_acknowledged(seed: int) -> None:
    """Each append is synced before it is acknowledged."""
    world = world_of(None, seed)
    create(world, "t", flush_messages="1", segment_bytes="1048576")
    write(world, *[b"%d" % number for number in range(5)])
    target = other(world)
    moved(world, target)
    for number in range(5, 5 + seed % 7):
        write(world, b"%d" % number)
        world.pass_ms(seed % 3)
    done = world.broker.partitions.by_name["t", 0].high_watermark
    again = world_of(world.lose_power(), seed + 1)
    for _ in range(100):
        again.pass_ms(100)
    assert not len(again.broker.replicas.moves)
    assert read(again, "t")[:done] == [b"%d" % number for number in range(done)]


@pytest.mark.parametrize("operation", ["write", "sync", "rename", "make"])
def test_a_directory_that_fails_takes_only_the_copy_with_it(operation: str) -> None:
    files = FailingFiles()
    world = started(files)
    source, target = home(world), next(path for path in ("/b", "/c") if path != home(world))
    for ending in ("-future", ".log"):
        files.fail(operation, ending)
    fault_only_in(files, target)
    code = moved(world, target)
    assert code in (0, Errors.KAFKA_STORAGE_ERROR)
    for _ in range(50):
        world.pass_ms(100)
    files.faults.clear()
    assert [one.path for one in world.broker.log_directories.all if one.failed] == [target]
    assert home(world) == source
    assert not len(world.broker.replicas.moves)
    write(world, b"after")
    assert moved(world, "/c" if target == "/b" else "/b") == Errors.KAFKA_STORAGE_ERROR, "while a directory is offline"


def fault_only_in(files: FailingFiles, target: str) -> None:
    meet = files.meet

    def only(operation: str, path: str) -> None:
        if path.startswith(f"{target}/t-0"):
            meet(operation, path)

    files.meet = only  # type: ignore[method-assign]


def test_a_disk_without_descriptors_for_a_moment_delays_a_move() -> None:
    files = FailingFiles()
    world = started(files)
    source, target = home(world), other(world)
    fault = files.fail("open", ".log", errno.EMFILE, 3)
    fault_only_in(files, target)
    assert moved(world, target) == 0
    arrives(world, target)
    assert fault.hits == 3
    assert source != target


def test_a_move_ends_where_something_has_the_name_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    files = FailingFiles()
    world = started(files)
    source, target = home(world), other(world)
    rename = files.rename

    def refused(old: str, new: str) -> None:
        if new == f"{target}/t-0":
            raise OSError(errno.ENOTEMPTY, "Directory not empty", new)
        rename(old, new)

    files.rename = refused  # type: ignore[method-assign]
    assert moved(world, target) == 0
    world.pass_ms(5000)
    assert (len(world.broker.replicas.moves), home(world), named(world)) == (0, source, [source])
    assert f"its move to {target} ends" in caplog.text
    world.pass_ms(100_000)
    assert [name for name in files.names(target) if name.startswith("t-0")] == []


@pytest.mark.parametrize("renames", [0, 1], ids=["it gets its name back", "its directory fails"])
def test_a_copy_whose_new_name_is_not_durable_is_not_left_beside_the_log(renames: int) -> None:
    files = FailingFiles()
    world = started(files)
    source, target = home(world), other(world)
    sync, left = files.sync_directory, [1]

    def refused(path: str) -> None:
        if path == target and left and files.exists(f"{target}/t-0"):
            left.clear()
            files.fail("rename", "/t-0", errno.ENOENT, renames)
            raise OSError(errno.EMFILE, "Too many open files", path)
        sync(path)

    files.sync_directory = refused  # type: ignore[method-assign]
    assert moved(world, target) == 0
    world.pass_ms(5000)
    write(world, b"after")
    failed = [one.path for one in world.broker.log_directories.all if one.failed]
    assert (home(world), failed, left) == ((source, [target], []) if renames else (target, [], []))
    assert (len(world.broker.replicas.moves), read(world, "t")[-1]) == (0, b"after")


def test_a_topic_that_is_deleted_takes_its_copy_with_it() -> None:
    world = started()
    set_broker(world, THROTTLE, "1")
    moved(world, other(world))
    world.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000))
    world.pass_ms(100_000)
    assert [name for path in DIRECTORIES.split(",") for name in world.files.names(path) if "t-0" in name] == []


def test_compaction_waits_for_a_move() -> None:
    world = world_of()
    create(world, "t", cleanup_policy="compact", segment_ms="1", min_cleanable_dirty_ratio="0.01")
    for number in range(20):
        data = bytes(records.encode([records.Record(b"k", b"%d" % number, world.schedule.now_ms())]))
        assert produced(world.ask("Produce", 9, produce_message("t", data))).error_code == 0
        world.pass_ms(10)
    set_broker(world, THROTTLE, "1")
    target = other(world)
    moved(world, target)
    assert not world.broker.replicas.cleaner.clean_one()
    set_broker(world, THROTTLE, None)
    arrives(world, target)
    assert world.broker.replicas.cleaner.clean_one()


def test_deleted_records_do_not_come_back_with_a_crash_after_a_move() -> None:
    world = started()
    r = m.DeleteRecordsRequest
    part = r.DeleteRecordsPartition(partition_index=0, offset=6)
    topics = [r.DeleteRecordsTopic(name="t", partitions=[part])]
    assert world.ask("DeleteRecords", 2, r(topics=topics, timeout_ms=1000)).topics[0].partitions[0].error_code == 0
    world.broker.replicas.checkpoints.begin_round = lambda: None  # type: ignore[method-assign]  # it comes too late
    target = other(world)
    moved(world, target)
    arrives(world, target)
    again = world_of(world.lose_power(), 1)
    again.pass_ms(100)
    assert again.broker.partitions.by_name["t", 0].start_offset == 6
    assert read(again, "t", 6)[:1] == [b"6"]


def test_indexes_of_an_earlier_process_move_too(caplog: pytest.LogCaptureFixture) -> None:
    world = world_of()
    create(world, "t")
    write(world, *[bytes(1000)] * 20)
    assert world.broker.stop() is None
    world = world_of(world.files, 1)
    target = other(world)
    moved(world, target)
    arrives(world, target)
    write(world, *[bytes(1000)] * 20)
    assert world.broker.stop() is None
    index = world.files.read(f"{target}/t-0/00000000000000000000.index")
    world = world_of(world.files, 2)
    world.pass_ms(100)
    assert len(read(world, "t", 35)) == 5
    assert len(index) >= 8 * 8
    assert index[:4] != bytes(4)
    assert "rebuilding" not in caplog.text


@pytest.mark.parametrize(("operation", "ending"), [("make", "-future"), ("open", "partition.metadata")])
def test_a_move_that_cannot_begin_leaves_nothing_behind(operation: str, ending: str) -> None:
    """It would begin again after a start, and the log would not be compacted."""
    files = FailingFiles()
    world = started(files)
    target = other(world)
    files.fail(operation, ending, errno.EMFILE, 1)
    fault_only_in(files, target)
    assert moved(world, target) == Errors.KAFKA_STORAGE_ERROR
    assert [name for name in files.names(target) if name.endswith("-future")] == []
    assert not world.broker.replicas.cleaner.paused
    assert moved(world, target) == 0
    arrives(world, target)


@pytest.mark.parametrize(("operation", "ending"), [("make", "-future"), ("open", "partition.metadata")])
def test_a_copy_that_cannot_begin_again_at_once_does_so_later(operation: str, ending: str) -> None:
    files = FailingFiles()
    world = started(files)
    target = other(world)
    set_broker(world, THROTTLE, "1")
    assert moved(world, target) == 0
    world.pass_ms(5000)
    fault = files.fail(operation, ending, errno.EMFILE, 3)
    fault_only_in(files, target)
    partition = world.broker.partitions.by_name["t", 0]
    world.broker.turn.event(lambda: world.broker.replicas.reopen(partition))
    set_broker(world, THROTTLE, None)
    arrives(world, target)
    assert fault.hits == 3
    world.pass_ms(100_000)
    assert [name for path in DIRECTORIES.split(",") for name in files.names(path) if name.startswith("t-0")] == ["t-0"]


def test_the_log_moves_with_replicas_that_move_at_the_same_time() -> None:
    world = cluster(log_dirs=DIRECTORIES)
    write(world, b"first", bytes(400_000))
    target = other(world)
    for node in NODES:
        assert moved(world, target, node=node) == 0
    world.pass_ms(5000)
    partition = world.broker.partitions.by_name["t", 0]
    assert (named(world), partition.open_log().directory) == ([target] * 3, f"{target}/t-0")
    assert world.broker.partitions.directory_of[partition].path == target


def test_compaction_waits_for_a_copy_while_another_replica_of_the_partition_arrives() -> None:
    world = cluster(log_dirs=DIRECTORIES)
    write(world, b"first", bytes(400_000))
    target = other(world)
    (third,) = {*DIRECTORIES.split(",")} - {target, home(world)}
    for node in (2, 3):
        assert moved(world, target, node=node) == 0
    world.pass_ms(5000)
    set_broker(world, THROTTLE, "1", "1")
    assert moved(world, target) == 0
    assert moved(world, third, node=2) == 0
    world.pass_ms(5000)
    assert named(world) == [home(world), third, target]
    assert [*world.broker.replicas.cleaner.paused] == [world.broker.partitions.by_name["t", 0]]
