"""Stops of a broker whose disk fails, and what the file system of the machine says."""

from __future__ import annotations

import errno
import os
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.storage.files import OsFiles

from ..support.ask import batch, fetch_message, produce_message
from ..support.failing_files import FailingFiles
from ..support.failing_world import (
    SETTINGS,
    abortion,
    ask,
    create,
    produce,
)
from ..support.world import World


@pytest.fixture
def files() -> FailingFiles:
    return FailingFiles()


# the end


def test_a_stop_syncs_what_changed_and_nothing_else(files: FailingFiles) -> None:
    world = World(files)
    for number in range(30):
        assert create(world, f"t{number}") == 0
    produce(world, "t7", b"x")
    assert world.broker.stop() is None
    for changed in ([], ["t3"], ["t3", "t20"]):
        again = World(files, 1)
        again.pass_ms(100)
        for name in changed:
            assert produce(again, name, b"x") == 0
        files.synced.clear()
        assert again.broker.stop() is None
        touched = {
            part for path in files.synced for part in path.split("/") if part.startswith("t") and part.endswith("-0")
        }
        assert touched == {f"{name}-0" for name in changed}


def test_a_stop_syncs_the_directory_of_many_new_logs_once_after_them(files: FailingFiles) -> None:
    world = World(files)
    names = [f"t{number}" for number in range(30)]
    assert [create(world, name) for name in names] == [0] * 30
    files.synced.clear()
    assert world.broker.stop() is None
    assert {f"/data/{name}-0" for name in names} <= set(files.synced)
    assert "/data" in files.synced[files.synced.index("/data/t29-0") :]
    assert files.synced.count("/data") < 10, "the checkpoints' and the metadata log's are among them"


def test_a_stop_is_not_clean_if_the_names_of_new_logs_are_not_durable(files: FailingFiles) -> None:
    world = World(files)
    assert create(world, "t") == 0
    fault = files.fail("sync", "/data", times=1)
    assert world.broker.stop() == "closing t-0: [Errno 5] Input/output error: '/data'"
    assert fault.hits == 1
    assert not files.exists("/data/.kafka_cleanshutdown")


def test_directories_of_deleted_partitions_that_a_stop_left_are_removed(files: FailingFiles) -> None:
    world = World(files, log_segment_delete_delay_ms="60000")
    for name in ("a", "b", "c"):
        assert create(world, name) == 0
    ask(world, "DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["a", "b"], timeout_ms=10_000))
    files.make_directory("/data/my-own-delete")
    assert sum(name.endswith("-delete") for name in files.names("/data")) == 3
    world.broker.stop()
    again = World(files, 1, log_segment_delete_delay_ms="60000")
    again.pass_ms(50_000)
    assert sum(name.endswith("-delete") for name in files.names("/data")) == 3
    again.pass_ms(60_000)
    assert [name for name in files.names("/data") if name.endswith("-delete")] == ["my-own-delete"]


def test_a_marker_whose_index_cannot_be_read_is_refused_before_anything_is_written(files: FailingFiles) -> None:
    """Its transaction would otherwise be aborted in the log and committed for consumers."""
    world = World(files, **SETTINGS)
    assert create(world, "t") == 0
    now = world.schedule.now_ms()  # otherwise the marker begins a segment
    data = batch(b"x", now=now, producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    message = produce_message("t", data)
    message.transactional_id = "x"
    ask(world, "Produce", 9, message)
    assert world.broker.stop() is None
    again = World(files, 1, **SETTINGS)
    again.pass_ms(100)
    fault = files.fail("exists", "/t-0/00000000000000000000.txnindex", errno.EMFILE, times=1)
    ask(again, "WriteTxnMarkers", 1, abortion("t", 2))
    assert fault.hits == 1
    assert again.broker.partitions.get("t", 0).end_offset == 1
    again.pass_ms(1000)
    ask(again, "WriteTxnMarkers", 1, abortion("t", 2))
    (answer,) = ask(again, "Fetch", 11, fetch_message("t", 0, isolation=1)).responses[0].partitions
    assert [one.first_offset for one in answer.aborted_transactions] == [0]


def test_a_sync_of_the_metadata_that_ends_after_the_stop_changes_nothing(files: FailingFiles) -> None:
    world = World(files)
    r = m.CreateTopicsRequest
    topic = r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    world.send("CreateTopics", 5, r(topics=[topic], timeout_ms=10_000))
    assert world.broker.stop() is None  # before the sync has ended
    files.met.clear()
    world.pass_ms(100_000)
    assert not [path for operation, path in files.met if operation == "write"]
    assert world.broker.metrics.bugs == 0
    again = World(files, 1)
    assert again.broker.topic("t") is not None, "the stop has made the record durable"


# the file system of the machine


def test_what_cannot_be_found_out_is_not_absent(tmp_path: Any) -> None:
    (tmp_path / "file").touch()
    files = OsFiles()
    assert files.exists(f"{tmp_path}/file")
    assert not files.exists(f"{tmp_path}/other")
    assert not files.exists(f"{tmp_path}/file/below")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="loop"):
        files.exists(f"{tmp_path}/loop")
    with pytest.raises(OSError, match="too long"):
        files.exists(f"{tmp_path}/{'x' * 300}")


@pytest.mark.parametrize("error_number", [errno.EIO, errno.ENOLCK])
def test_a_lock_that_cannot_be_had_is_not_said_to_be_held(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, error_number: int
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(error_number, os.strerror(error_number))

    monkeypatch.setattr("fcntl.lockf", fail)
    with pytest.raises(OSError, match=f"{os.strerror(error_number)}: '{tmp_path}/.lock'") as raised:
        OsFiles().lock(f"{tmp_path}/.lock")
    assert raised.value.errno == error_number


def test_an_error_names_its_file(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path decides which log directory goes offline."""
    files = OsFiles()
    handle = files.open(f"{tmp_path}/file", create=True)

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("os.fsync", fail)
    for work in (
        handle.sync,
        lambda: files.replace(f"{tmp_path}/small", b"x"),
        lambda: files.sync_directory(str(tmp_path)),
    ):
        with pytest.raises(OSError, match=f"Input/output error: '{tmp_path}"):
            work()
