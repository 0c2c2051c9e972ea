"""Logs in Kafka's files: reading, rolling, recovery, failures."""

from __future__ import annotations

import errno
import random

import pytest
from ottla.protocol import records
from ottla.protocol.records import Record
from ottla.storage import recovery, timestamps
from ottla.storage.files import HandlePool
from ottla.storage.index import AbortedTransaction
from ottla.storage.settings import LogSettings

from ..sim import logs as sim
from ..support.logs import (
    append,
    compact,
    contents,
    open_log,
    remove_due,
)
from ..support.memory_files import MemFiles
from ..support.seeds import in_turn, spans
from ..support.steps import result_of


@pytest.mark.parametrize("seeds", in_turn(spans(0, 1000, quick=15, each=50)))
def test_power_failures_lose_nothing_that_was_flushed(seeds: range) -> None:
    for seed in seeds:
        sim.run(seed)


@pytest.mark.parametrize("seed", range(20))
def test_after_a_clean_end_not_a_byte_hangs_on_the_power(files: MemFiles, seed: int) -> None:
    """What `.kafka_cleanshutdown` vouches for is believed without a look at the log: indexes, epochs and producers
    too.
    """
    log = open_log(files, segment_bytes=400, index_interval_bytes=1)
    for n in range(6):
        append(log, b"x" * 30, now=n, epoch=n // 3, producer_id=n, producer_epoch=0, base_sequence=0)
        if n == 2:
            log.flush_now()
    log.add_aborted(AbortedTransaction(0, 1, 0, 0, 0))
    log.set_topic_id(bytes(16))
    log.close()
    found = files.lose_power(random.Random(seed))
    assert {n: found.read(f"/d/t-0/{n}") for n in found.names("/d/t-0")} == {
        n: files.read(f"/d/t-0/{n}") for n in files.names("/d/t-0")
    }


@pytest.mark.parametrize("seed", range(20))
def test_what_compaction_put_in_place_is_durable_with_its_indexes(files: MemFiles, seed: int) -> None:
    log = open_log(files, segment_bytes=400, index_interval_bytes=1, cleanup_policy=("compact",))
    for n in range(9):
        append(log, b"x" * 30, now=n, keys=[b"%d" % (n % 4)])
    log.flush_now()
    assert compact(log, files, now=100)
    files.sync_directory("/d/t-0")
    kept = [segment.path(kind) for segment in log.segments[:-1] for kind in (".log", ".index", ".timeindex")]
    found = files.lose_power(random.Random(seed))
    assert kept
    assert [found.read(path) for path in kept] == [files.read(path) for path in kept]


def test_a_read_begins_with_the_batch_that_holds_the_offset(files: MemFiles) -> None:
    log = open_log(files)
    for _ in range(5):
        append(log, b"a", b"b", b"c")
    piece = log.read(7, 10_000, None, True)
    assert piece is not None
    assert records.header_at(bytes(piece)).base_offset == 6


def test_a_read_is_cut_at_its_size_but_has_one_whole_batch(files: MemFiles) -> None:
    log = open_log(files)
    append(log, b"x" * 1000)
    append(log, b"y" * 1000)
    one = log.read(0, 10, None, True)
    assert one is not None
    assert len(one) == records.header_at(bytes(one)).size
    partial = log.read(0, 1200, None, True)
    assert partial is not None
    assert len(partial) == 1200
    assert log.read(0, 0, None, False) is None


def test_a_read_that_began_before_a_deletion_ends_well(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=300, file_delete_delay_ms=100)
    for n in range(10):
        append(log, b"%d" % n * 100)
    piece = log.read(0, 10_000, None, True)
    assert piece is not None
    before = bytes(piece)
    log.advance_start(log.end_offset)
    log.remove_segments(log.segments[:-1], 0)
    remove_due(log, 1000)
    assert bytes(piece) == before, "the file is held"
    piece.release()
    remove_due(log, 1000)
    assert not log.removed
    assert not [n for n in files.names("/d/t-0") if n.endswith(".deleted")]


def test_segments_roll_by_size_time_index_and_offset_range(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=500)
    for _ in range(8):
        append(log, b"x" * 100)
    assert len(log.segments) > 2
    assert all(s.size <= 500 for s in log.segments)
    log = open_log(files, "time-0", segment_ms=1000)
    append(log, b"a", now=10)
    append(log, b"b", now=1010)
    assert len(log.segments) == 1
    append(log, b"c", now=1011)
    assert len(log.segments) == 2
    log = open_log(files, "timeless-0", segment_ms=1000)
    append(log, b"a", now=10, timestamp=records.NO_TIMESTAMP)
    append(log, b"b", now=1000, timestamp=5_000)
    assert len(log.segments) == 1, "records without a timestamp do not say how old the segment is"
    append(log, b"c", now=1001, timestamp=5_000)
    assert len(log.segments) == 2
    log = open_log(files, "index-0", segment_index_bytes=16, index_interval_bytes=0)
    for _ in range(10):
        append(log, b"x")
    assert len(log.segments) > 3


def test_a_segment_is_rolled_before_the_last_entry_of_its_time_index_is_used(files: MemFiles) -> None:
    """As in Kafka, which keeps it for the largest timestamp when the segment ends (`TimeIndex.isFull`)."""
    log = open_log(files, segment_index_bytes=4 * 12, index_interval_bytes=0)
    for now in range(1, 10):
        append(log, b"x", now=now)
    assert log.bases == [0, 4, 8]


def test_timestamps_lead_to_offsets(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=400, index_interval_bytes=100)
    for n in range(50):
        append(log, b"a", now=1000 + 10 * n)
    for n in range(50):
        found = result_of(timestamps.first_from(log, 1000 + 10 * n))
        assert found is not None
        assert (found.offset, found.timestamp) == (n, 1000 + 10 * n)
        between = result_of(timestamps.first_from(log, 995 + 10 * n))
        assert between is not None
        assert between.offset == n
    assert result_of(timestamps.first_from(log, 5000)) is None
    largest = result_of(timestamps.largest(log))
    assert largest is not None
    assert largest.offset == 49


@pytest.mark.long
@pytest.mark.parametrize("damage", ["cut", "garbage", "zeros", "flip", "half"])
@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_tail_is_cut_at_the_first_wrong_byte(files: MemFiles, damage: str, seed: int) -> None:
    chance = random.Random(seed)
    log = open_log(files, segment_bytes=chance.choice((400, 100_000)))
    for n in range(20):
        append(log, b"%d" % n, chance.randbytes(chance.randrange(100)), epoch=n // 8)
    log.close()
    whole = contents(log)
    path, size = log.active.path(".log"), log.active.size
    handle = files.open(path)
    if damage == "cut":
        handle.truncate(chance.randrange(size))
    elif damage == "garbage":
        handle.write_at(size, chance.randbytes(chance.randint(1, 200)))
    elif damage == "zeros":
        handle.write_at(size, bytes(chance.randint(1, 200)))
    elif damage == "flip":
        last = list(log.active.scan())[-1]
        at = last.position + chance.randrange(21, last.size)  # what the CRC covers
        handle.write_at(at, bytes([handle.read_at(at, 1)[0] ^ 0x40]))
    else:
        batch = bytes(records.encode([Record(b"k", b"v" * 50, 0)]))
        handle.write_at(size, batch[: chance.randint(1, len(batch) - 1)])
    again = open_log(files, clean=False)
    assert contents(again) == whole[: len(contents(again))]
    if damage in ("garbage", "zeros", "half"):
        assert contents(again) == whole
    assert again.epochs.latest <= 2
    append(again, b"goes on", epoch=3)
    again.close()
    assert contents(open_log(files))[-1][2] == b"goes on"


def test_indexes_are_rebuilt_when_they_are_missing_or_invalid(files: MemFiles) -> None:
    log = open_log(files, index_interval_bytes=50)
    for n in range(30):
        append(log, b"%d" % n, now=n)
    log.close()
    files.remove(log.active.path(".index"))
    files.open(log.active.path(".timeindex")).write_at(0, b"\xff" * 25)
    again = open_log(files, index_interval_bytes=50)
    assert len(again.active.index) > 5
    assert contents(again) == contents(log)
    found = result_of(timestamps.first_from(again, 12))
    assert found is not None
    assert found.offset == 12


def test_a_full_disk_is_an_error_and_the_log_stays_as_it_was(files: MemFiles) -> None:
    log = open_log(files)
    append(log, b"kept")
    files.fail_writes = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space"):
        append(log, b"lost")
    files.fail_writes = None
    assert log.end_offset == 1
    append(log, b"next")
    assert [v for _, _, v in contents(log)] == [b"kept", b"next"]


def test_a_rename_that_ends_badly_leaves_no_file_open_under_the_old_name(
    files: MemFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another log may get the name, and must not write into files of the one that was renamed."""
    pool, rename = HandlePool(files), files.rename

    def interrupted(source: str, target: str) -> None:
        rename(source, target)
        raise RuntimeError

    old = recovery.open_now(pool, "/d/t-0", LogSettings(), 0, clean=True)
    append(old, b"old")
    monkeypatch.setattr(files, "rename", interrupted)
    with pytest.raises(RuntimeError):
        old.move("/d/t-0.delete")
    monkeypatch.undo()
    new = recovery.open_now(pool, "/d/t-0", LogSettings(), 0, clean=True)
    append(new, b"new")
    assert [value for _, _, value in contents(open_log(files, "t-0"))] == [b"new"]


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_of_many_small_segments_is_opened_in_steps(clean: bool, files: MemFiles) -> None:
    log = open_log(files)
    for n in range(100):
        append(log, b"%d" % n)
        log.roll(0)
    log.close()
    steps = list(recovery.open_log(HandlePool(files, 8), "/d/t-0", LogSettings(), 0, clean=clean))
    assert len(steps) >= 100 // recovery.SEGMENTS_STEP


def test_a_new_log_is_as_one_that_was_opened_in_an_empty_directory(files: MemFiles) -> None:
    topic_id = bytes(range(16))
    opened = open_log(files)
    opened.set_topic_id(topic_id)
    opened.assign_epoch(7, 0)
    found = {name: files.read(f"/d/t-0/{name}") for name in files.names("/d/t-0")}
    created = recovery.create_log(HandlePool(files), "/d/u-0", LogSettings(), 0, topic_id, 7)
    assert {name: files.read(f"/d/u-0/{name}") for name in files.names("/d/u-0")} == found
    for log in (opened, created):
        append(log, b"x", epoch=7)
    assert (created.start_offset, created.end_offset, created.recovery_point) == (0, 1, 0)
    assert created.epochs.entries == opened.epochs.entries
    created_job, opened_job = (log.close_job() for log in (created, opened))
    assert created_job.paths == [path.replace("/t-0/", "/u-0/") for path in opened_job.paths]
    assert created_job.directories == ["/d/u-0", "/d"]


@pytest.mark.parametrize("leader_epoch", [0, 123])
def test_a_power_failure_leaves_a_new_log_that_can_be_opened(leader_epoch: int) -> None:
    topic_id = bytes(range(16))
    for seed in range(60):
        files = MemFiles()
        files.make_directory("/d")
        files.sync_directory("/")
        recovery.create_log(HandlePool(files), "/d/t-0", LogSettings(), 0, topic_id, leader_epoch)
        files.sync_directory("/d")
        after = files.lose_power(random.Random(seed))
        log = result_of(
            recovery.open_log(HandlePool(after), "/d/t-0", LogSettings(), 0, clean=False, topic_id=topic_id)
        )
        assert log.topic_id in (None, topic_id)
        assert log.epochs.entries in ([], [(leader_epoch, 0)])
        assert log.end_offset == 0
