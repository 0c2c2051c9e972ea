"""What a broker finds in its metadata log and snapshots after a crash or damage."""

from __future__ import annotations

import pytest
from ottla.broker.replica.directories import DirectoryError
from ottla.protocol import records

from ..support.failing_files import FailingFiles
from ..support.memory_files import MemFiles
from ..support.recovery_world import (
    create,
    directories,
    flip,
    lived,
    read,
    started,
    write,
)
from ..support.world import World

METADATA = "/data/__cluster_metadata-0"


METADATA_LOG = f"{METADATA}/00000000000000000000.log"


# the metadata log


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("where", [0.1, 0.5, 0.99])
def test_a_flipped_byte_in_the_metadata_log_stops_the_start(clean: bool, where: float) -> None:
    files = lived("a", "b", clean=clean)
    flip(files, METADATA_LOG, int(files.size(METADATA_LOG) * where))
    before = {path: files.read(f"/data/{path}") for path in ("a-0/00000000000000000000.log", "meta.properties")}
    with pytest.raises(
        DirectoryError, match=rf"{METADATA_LOG}: position \d+, offset \d+: .* was committed.*ottla.recovery=salvage"
    ):
        World(files)
    assert directories(files) == ["__cluster_metadata-0", "a-0", "b-0"]
    assert all(files.read(f"/data/{path}") == data for path, data in before.items())


def test_what_is_left_serves_when_the_operator_lets_the_broker_go_on(caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a", "b")
    data = files.read(METADATA_LOG)
    flip(files, METADATA_LOG, data.rindex(b"\2b") - 70)  # in the batch of the second topic's creation
    world = started(files, ottla_recovery="salvage")
    assert "a" in world.broker.image.topics
    assert "b" not in world.broker.image.topics
    assert read(world, "a") == [b"0", b"1", b"2"]
    kept = [name for name in directories(files) if name.startswith("b-0.") and name.endswith("-stray")]
    assert len(kept) == 1
    assert f"/data/{kept[0]}" in caplog.text
    assert "continuing with the data that remains" in caplog.text
    create(world, "b")
    assert read(world, "b") == []
    world.broker.stop()
    again = started(world.files)  # without being told again
    assert sorted(again.broker.image.topics) == ["a", "b"]


def test_an_end_that_a_crash_tore_is_cut_and_said(caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a", "b")
    whole = files.read(METADATA_LOG)
    write(files, METADATA_LOG, whole + whole[-100:-30])
    world = started(files)
    assert sorted(world.broker.image.topics) == ["a", "b"]
    assert f"{METADATA_LOG}: position {len(whole)}, offset " in caplog.text
    assert "70 bytes" in caplog.text


def test_a_metadata_log_cut_at_the_end_of_a_batch_stops_the_start() -> None:
    files = lived("a", "b")
    data = files.read(METADATA_LOG)
    last = [at.position for at in records.batches(data)][-1]
    write(files, METADATA_LOG, data[:last])
    with pytest.raises(DirectoryError, match=r"the metadata log ends at offset \d+, but offset \d+ was committed"):
        World(files)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("gone", [[METADATA_LOG], [METADATA]], ids=["log", "directory"])
def test_partition_directories_without_metadata_stop_the_start(gone: list[str], clean: bool) -> None:
    files = lived("a", "b", clean=clean)
    for path in gone:
        if path == METADATA:
            files.remove_tree(path)
        else:
            files.remove(path)
    for _ in range(2):  # a refused start leaves nothing that would make the next one look right
        with pytest.raises(
            DirectoryError,
            match=r"the metadata log is missing, but there are 2 partition directories, for example /data/a-0",
        ):
            World(files)
    assert sorted(started(files, ottla_recovery="salvage").broker.image.topics) == []


def test_an_empty_metadata_log_beside_partition_directories_stops_the_start() -> None:
    files = lived("a", clean=True)
    write(files, METADATA_LOG, b"")
    with pytest.raises(DirectoryError, match="metadata log"):
        World(files)


def without_flushed_offset(files: MemFiles) -> MemFiles:
    """As Kafka leaves a directory."""
    files.remove(f"{METADATA}/flushed-offset")
    return files


@pytest.mark.parametrize("clean", [True, False])
def test_without_a_flushed_offset_batches_after_the_damage_show_that_it_is_no_torn_end(clean: bool) -> None:
    files = without_flushed_offset(lived("a", "b", clean=clean))
    flip(files, METADATA_LOG, files.size(METADATA_LOG) // 2)
    with pytest.raises(DirectoryError, match=rf"{METADATA_LOG}: position \d+"):
        World(files)


def test_a_start_that_was_refused_is_refused_again_after_a_clean_stop() -> None:
    """The mark of the clean stop proves that the damaged end was durable: it stays until a start goes on."""
    files = without_flushed_offset(lived("a", "b", clean=True))
    flip(files, METADATA_LOG, files.size(METADATA_LOG) - 1)
    before = files.read(METADATA_LOG)
    for _ in range(2):
        with pytest.raises(DirectoryError, match=rf"{METADATA_LOG}: position \d+"):
            World(files)
    assert files.read(METADATA_LOG) == before


def test_a_start_that_another_directory_refuses_leaves_the_marks_of_the_clean_stop() -> None:
    files = lived("a", clean=True, log_dirs="/one,/two")
    meta = files.read("/two/meta.properties")
    write(files, "/two/meta.properties", meta.replace(b"node.id=1", b"node.id=2"))
    with pytest.raises(DirectoryError, match="belongs to node 2"):
        World(files, log_dirs="/one,/two")
    assert [files.exists(f"/{name}/.kafka_cleanshutdown") for name in ("one", "two")] == [True, True]
    write(files, "/two/meta.properties", meta)
    world = started(files, log_dirs="/one,/two")
    assert [one.clean for one in world.broker.log_directories.all] == [True, True]
    assert [files.exists(f"/{name}/.kafka_cleanshutdown") for name in ("one", "two")] == [False, False]


@pytest.mark.parametrize("operation", ["remove", "sync"])
def test_a_directory_whose_mark_cannot_be_removed_is_offline(operation: str, caplog: pytest.LogCaptureFixture) -> None:
    files = FailingFiles()
    assert World(files, log_dirs="/one,/two").broker.stop() is None
    files.fail(operation, "/two/.kafka_cleanshutdown" if operation == "remove" else "/two")
    world = started(files, log_dirs="/one,/two")
    assert [one.failed for one in world.broker.log_directories.all] == [False, True]
    assert world.broker.image.brokers[1].log_dirs == (world.broker.log_directories.all[0].id,)
    assert "log directory /two failed" in caplog.text
    assert not world.fatal


def test_a_damaged_flushed_offset_is_said_and_judged_without(caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a")
    write(files, f"{METADATA}/flushed-offset", b"nonsense")
    assert "a" in started(files).broker.image.topics
    assert f"{METADATA}/flushed-offset: neither slot can be read" in caplog.text


def snapshots(files: MemFiles) -> list[str]:
    return [name for name in files.names(METADATA) if name.endswith(".checkpoint")]


def with_snapshots() -> MemFiles:
    world = World()
    for n in range(30):
        create(world, f"t{n:02}")
        if n in (9, 19, 24):
            world.broker.metadata.snapshots.take_now()
            world.pass_ms(70_000)  # the segments before it are removed
    return world.files


def test_two_snapshots_are_kept_and_the_log_from_the_older_one_on() -> None:
    files = with_snapshots()
    older, newer = snapshots(files)
    segments = [name for name in files.names(METADATA) if name.endswith(".log")]
    assert segments[0][:20] <= older[:20] < newer[:20]


def test_the_older_snapshot_serves_where_the_newest_is_damaged(caplog: pytest.LogCaptureFixture) -> None:
    files = with_snapshots()
    newest = f"{METADATA}/{snapshots(files)[-1]}"
    flip(files, newest, files.size(newest) // 2)
    world = started(files)
    assert sorted(world.broker.image.topics) == [f"t{n:02}" for n in range(30)]
    assert f"{newest}: position " in caplog.text
    assert files.exists(f"{newest}.damaged")


def test_a_damaged_snapshot_without_the_log_before_it_stops_the_start() -> None:
    files = with_snapshots()
    older, newer = snapshots(files)
    flip(files, f"{METADATA}/{newer}", files.size(f"{METADATA}/{newer}") // 2)
    files.remove(f"{METADATA}/{older}")
    with pytest.raises(DirectoryError, match=rf"{newer}: position \d+.*the log begins at offset \d+"):
        World(files)
    assert len(started(files, ottla_recovery="salvage").broker.image.topics) > 4  # those of the log at least
    assert started(files).broker.image.topics


def test_nonsense_in_quorum_state_is_said_and_the_log_knows_better(caplog: pytest.LogCaptureFixture) -> None:
    files = lived("a")
    epoch = started(files).broker.metadata.partition.leader_epoch
    write(files, f"{METADATA}/quorum-state", b'{"leaderEpoch": 99999999999}')
    world = started(files)
    assert world.broker.metadata.partition.leader_epoch == epoch + 1
    assert f"{METADATA}/quorum-state" in caplog.text
