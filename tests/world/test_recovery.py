"""What a broker finds in its directories after a crash or damage."""

from __future__ import annotations

import errno
import logging
from typing import Any

import pytest
from ottla.broker.replica.directories import DirectoryError
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors
from ottla.storage import checkpoints

from ..support.memory_files import MemFiles
from ..support.recovery_world import (
    create,
    directories,
    flip,
    lived,
    produce,
    read,
    started,
    write,
)
from ..support.world import World

# directories that belong to no partition


def test_directories_of_no_topic_are_set_aside_as_in_kafka(caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a", clean=True)
    for name in ("00000000000000000000.log", "partition.metadata", "leader-epoch-checkpoint"):
        write(files, f"/data/b-0/{name}", files.read(f"/data/a-0/{name}"))
    files.make_directory("/data/b-0")
    write(files, "/data/a-0/partition.metadata", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABA")
    world = started(files)
    assert read(world, "a") == []
    world.pass_ms(200_000)
    kept = directories(files)
    assert [name for name in kept if not name.endswith("-stray")] == ["__cluster_metadata-0", "a-0"]
    strays = [name for name in kept if name.endswith("-stray")]
    assert [name[:4] for name in strays] == ["a-0.", "b-0."]
    assert all(
        files.exists(f"/data/{name}/00000000000000000000.log") and f"/data/{name}" in caplog.text for name in strays
    )


# one partition's trouble


def nonsense(files: MemFiles, case: str) -> str:
    path = f"/data/b-0/{case}"
    write(files, path, b"\xff\xfe nonsense\n")
    return path


@pytest.mark.parametrize("case", ["partition.metadata", "x.log", "x.snapshot", "0.log"])
def test_nonsense_in_one_directory_is_that_partitions_trouble(case: str, caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a", "b", "c", clean=True)
    path = nonsense(files, case)
    world = started(files)
    assert read(world, "a") == read(world, "c") == [b"0", b"1", b"2"]
    assert produce(world, "b", b"3") == Errors.KAFKA_STORAGE_ERROR
    topics = world.ask("Metadata", 8, m.MetadataRequest(topics=None)).topics
    states = {
        t.name: (t.partitions[0].error_code, t.partitions[0].leader_id, list(t.partitions[0].offline_replicas))
        for t in topics
    }
    assert states == {"a": (0, 1, []), "b": (Errors.LEADER_NOT_AVAILABLE, -1, [1]), "c": (0, 1, [])}
    errors = [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]
    assert len(errors) == 1
    assert "partition b-0 is offline" in errors[0]
    assert path.rpartition("/")[2] in errors[0]
    assert "/data/b-0" in errors[0]
    world.broker.stop()
    files.remove(path)
    if case == "partition.metadata":
        return
    assert read(started(files), "b") == [b"0", b"1", b"2"]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EISDIR, errno.EINVAL])
def test_a_file_that_cannot_be_read_is_one_partitions_trouble(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    files = lived("a", "b", "c", clean=True)
    reads = files.read

    def failing(path: str) -> bytes:
        if path.startswith("/data/b-0/"):
            raise OSError(code, "cannot", path)
        return reads(path)

    monkeypatch.setattr(files, "read", failing)
    world = started(files)
    assert read(world, "a") == read(world, "c") == [b"0", b"1", b"2"]
    assert produce(world, "b", b"3") == Errors.KAFKA_STORAGE_ERROR
    assert not world.fatal


@pytest.mark.parametrize(
    "data", [b"hello\n", b"\xff\xfe", b"0\n2\n0 0\n", b""], ids=["text", "bytes", "short", "empty"]
)
def test_leader_epochs_are_read_from_the_log_where_their_file_is_damaged(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    files = lived("a", clean=True)
    before = files.read("/data/a-0/leader-epoch-checkpoint")
    write(files, "/data/a-0/leader-epoch-checkpoint", data)
    world = started(files)
    assert read(world, "a") == [b"0", b"1", b"2"]
    assert files.read("/data/a-0/leader-epoch-checkpoint") == before
    assert not data or "/data/a-0/leader-epoch-checkpoint" in caplog.text


def test_a_directory_that_is_missing_takes_its_partition_offline(caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a", "b", clean=True)
    files.remove_tree("/data/a-0")
    world = started(files)
    assert produce(world, "a", b"x") == Errors.KAFKA_STORAGE_ERROR
    assert read(world, "b") == [b"0", b"1", b"2"]
    assert "/data/a-0 is missing; it held records up to offset 3" in caplog.text


def test_what_is_left_of_an_earlier_topic_is_set_aside_even_without_its_segments() -> None:
    """After a crash it may be there in part; the topic of that name that was created later has nothing in it."""
    files = lived("t")
    for name in files.names("/data/t-0"):
        if name != "partition.metadata":
            files.remove(f"/data/t-0/{name}")
    write(files, "/data/t-0/partition.metadata", checkpoints.encode_partition_metadata(b"another topic..."))
    world = started(files)
    assert produce(world, "t", b"x") == 0
    assert sum(name.endswith("-stray") for name in files.names("/data")) == 1


def test_what_recovery_cuts_below_the_high_watermark_is_an_error(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    create(world, "a")
    for n in range(5):
        produce(world, "a", b"%d" % n)
    world.broker.replicas.save_checkpoints()
    path = "/data/a-0/00000000000000000000.log"
    flip(world.files, path, world.files.size(path) // 2)
    again = started(world.files)
    assert len(read(again, "a")) == 2
    (error,) = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert error.startswith(f"{path}: position 138, offset 2: a batch with a wrong CRC; 207 bytes")
    assert error.endswith("would be truncated, but offset 5 was committed")


def test_a_coordinator_leaves_out_a_batch_whose_crc_is_wrong_and_names_its_file(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World(offsets_topic_num_partitions="1")
    create(world, "a")
    for _ in range(3):
        world.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
        world.pass_ms(20)
    r = m.OffsetCommitRequest
    for offset in (5, 6):
        part = r.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topics = [r.OffsetCommitRequestTopic(name="a", partitions=[part])]
        answer = world.ask("OffsetCommit", 7, r(group_id="g", generation_id_or_member_epoch=-1, topics=topics))
        assert answer.topics[0].partitions[0].error_code == 0
    assert world.broker.stop() is None
    path = "/data/__consumer_offsets-0/00000000000000000000.log"
    at = list(records.batches(world.files.read(path)))[-1]
    flip(world.files, path, at.position + at.header.size - 3)  # in the value of the last commit
    started(world.files, offsets_topic_num_partitions="1")
    assert f"{path}: position {at.position}: the CRC of the batch is wrong" in caplog.text


# the log directories


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"version=1\nnode.id=x\ncluster.id=c\ndirectory.id=d\n", b"", b"version=1\n"]
)
def test_meta_properties_that_cannot_be_read_stop_the_start(data: bytes) -> None:
    files = lived("a", clean=True)
    write(files, "/data/meta.properties", data)
    with pytest.raises(DirectoryError, match=r"/data/meta\.properties"):
        World(files)


def test_meta_properties_that_are_missing_beside_partitions_stop_the_start() -> None:
    files = lived("a", clean=True)
    files.remove("/data/meta.properties")
    with pytest.raises(
        DirectoryError, match=r"/data/meta\.properties is missing, but the directory holds 2 partitions"
    ):
        World(files)
    assert read(started(files, ottla_recovery="salvage"), "a") == [b"0", b"1", b"2"]


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    ],
)
@pytest.mark.parametrize(
    "data", [b"hello\n", b"\xff\xfe", b"0\n1\na 0 -5\n", b"0\n1\na 0\n"], ids=["text", "bytes", "negative", "short"]
)
@pytest.mark.parametrize("clean", [True, False])
def test_checkpoints_that_cannot_be_read_are_said_and_done_without(
    name: str, data: bytes, clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    files = lived("a", clean=clean)
    write(files, f"/data/{name}", data)
    assert read(started(files), "a") == [b"0", b"1", b"2"]
    assert f"/data/{name}: " in caplog.text


def test_a_directory_twice_is_used_once_and_said(caplog: pytest.LogCaptureFixture) -> None:
    world = World(log_dirs="/data,/data/")
    assert [one.path for one in world.broker.log_directories.all] == ["/data"]
    assert "log.dirs: /data is listed twice" in caplog.text


def test_a_directory_by_two_names_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    files = lived("a", clean=True)
    before = {name: files.read(f"/data/{name}") for name in files.names("/data") if name.endswith("checkpoint")}
    monkeypatch.setattr(files, "real", lambda path: "/data")
    with pytest.raises(DirectoryError, match="/link and /data are the same directory"):
        World(files, log_dirs="/data,/link")
    assert before == {name: files.read(f"/data/{name}") for name in before}


def test_a_copied_directory_stops_the_start() -> None:
    files = lived("a", clean=True)
    files.make_directory("/copy")
    write(files, "/copy/meta.properties", files.read("/data/meta.properties"))
    with pytest.raises(DirectoryError, match=r"/copy and /data have the same directory\.id"):
        World(files, log_dirs="/data,/copy")


@pytest.mark.parametrize("what", ["fail_writes", "fail_syncs"])
def test_a_full_disk_at_the_stop_is_a_reason_and_not_a_clean_mark(what: str) -> None:
    world = World()
    create(world, "a")
    produce(world, "a", b"x")
    setattr(world.files, what, OSError(errno.ENOSPC, "No space left on device"))
    assert "No space left on device" in str(world.broker.stop())
    assert not world.files.exists("/data/.kafka_cleanshutdown")
    world.files.fail_writes = world.files.fail_syncs = None
    assert read(started(world.files), "a") == [b"x"]


def test_a_full_disk_at_the_start_is_an_error_of_the_directory() -> None:
    files: Any = lived("a")
    files.fail_writes = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left"):
        World(files)
    files.fail_writes = None
    assert read(started(files), "a") == [b"0", b"1", b"2"]
