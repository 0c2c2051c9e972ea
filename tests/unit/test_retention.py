"""What of a log is deleted, and what compaction keeps."""

from __future__ import annotations

import errno
import random
from typing import Any

import pytest
from ottla.storage import cleaning, retention
from ottla.storage.log import Log

from ..support.logs import (
    append,
    cleaned,
    compact,
    contents,
    open_log,
    remove_due,
)
from ..support.memory_files import MemFiles

# retention


def filled(files: MemFiles, **settings: Any) -> Log:
    log = open_log(files, segment_bytes=300, **settings)
    for n in range(10):
        append(log, b"x" * 150, now=1000 * n)
    return log


def test_retention_by_time_never_goes_beyond_the_high_watermark(files: MemFiles) -> None:
    log = filled(files, retention_ms=2000)
    assert [s.base_offset for s in retention.due(log, 5, 9000)] == [0, 1, 2, 3, 4]
    assert [s.base_offset for s in retention.due(log, 10, 8500)] == [0, 1, 2, 3, 4, 5, 6]
    assert len(retention.due(log, 10, 100_000)) == 10
    log.remove_segments(retention.due(log, 10, 100_000), 0)
    assert (log.start_offset, log.end_offset) == (10, 10)
    assert append(log, b"on") == 10


def test_retention_by_size_and_by_start(files: MemFiles) -> None:
    log = filled(files, retention_ms=-1, retention_bytes=700)
    gone = retention.due(log, 10, 0)
    assert 0 < len(gone) < 9
    assert log.size - sum(s.size for s in gone) >= 700
    log = open_log(files, "s-0", segment_bytes=300, retention_ms=-1)
    for _ in range(6):
        append(log, b"x" * 150)
    log.advance_start(3)
    assert [s.base_offset for s in retention.due(log, 6, 0)] == [0, 1, 2]


def test_a_compacted_log_is_not_deleted_by_time(files: MemFiles) -> None:
    log = filled(files, retention_ms=1, cleanup_policy=("compact",))
    assert retention.due(log, 10, 100_000) == []


def compacted(files: MemFiles, segment_bytes: int = 1 << 20, delete_retention_ms: int = 86_400_000) -> Log:
    """A log that is compacted as soon as it has anything new."""
    return open_log(
        files,
        segment_bytes=segment_bytes,
        cleanup_policy=("compact",),
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=delete_retention_ms,
    )


def latest(log: Log) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in contents(log)}


@pytest.mark.parametrize("seed", range(10))
def test_compaction_keeps_the_last_value_of_every_key_and_every_offset(files: MemFiles, seed: int) -> None:
    chance = random.Random(seed)
    log = compacted(files, segment_bytes=500, delete_retention_ms=10**9)
    for n in range(60):
        keys = [b"%d" % chance.randrange(8) for _ in range(chance.randint(1, 3))]
        append(
            log,
            *[None if chance.random() < 0.2 else b"v%d" % n for _ in keys],
            keys=keys,
            codec=chance.choice((0, 1, 2)),
        )
        if chance.random() < 0.1:
            before = latest(log)
            compact(log, files)
            assert latest(log) == before
    append(log, b"once more" * 60, keys=[b"1"])
    log.roll(0)
    before, everything = latest(log), contents(log)
    assert compact(log, files)
    assert latest(log) == before
    assert set(contents(log)) <= set(everything), "a record keeps its offset"
    clean = [c for c in contents(log) if c[0] < log.first_dirty_offset]
    assert len({key for _, key, _ in clean}) == len(clean)
    assert not compact(log, files), "there is nothing left to do"
    for offset, _, _ in contents(log):
        assert log.read(offset, 1, None, True) is not None
    log.close()
    assert contents(open_log(files, cleanup_policy=("compact",))) == contents(log)


def test_a_compaction_takes_as_many_keys_as_its_map_has_room_for(files: MemFiles) -> None:
    """It may end within a segment, and the next one goes on from there: Kafka's goes as far."""
    log = compacted(files)
    for n in range(24):
        append(log, b"%d" % n, keys=[b"%d" % (n % 12)])
    log.roll(0)
    reached = []
    while compact(log, files, keys_max=5):
        reached.append(log.first_dirty_offset)
    assert reached == [5, 10, 15, 20, 24]
    assert contents(log) == [(n, b"%d" % (n % 12), b"%d" % n) for n in range(12, 24)]


def test_a_batch_of_more_keys_than_the_map_has_room_for_is_compacted(files: MemFiles) -> None:
    log = compacted(files)
    keys = [b"%d" % n for n in range(5)]
    for n in range(3):
        append(log, *[b"%d" % n] * 5, keys=keys)
    log.roll(0)
    while compact(log, files, keys_max=2):
        pass
    assert latest(log) == dict.fromkeys(keys, b"2")
    assert len(contents(log)) == 5


def test_a_tombstone_beyond_the_map_stays_after_its_time(files: MemFiles) -> None:
    """The value that it deletes is still there."""
    log = compacted(files)
    append(log, b"value", keys=[b"gone"])
    append(log, b"value", keys=[b"other"])
    append(log, None, keys=[b"gone"], delete_horizon_ms=1)
    log.roll(0)
    assert compact(log, files, now=10, keys_max=1)
    assert log.first_dirty_offset == 1
    assert contents(log) == [(0, b"gone", b"value"), (1, b"other", b"value"), (2, b"gone", None)]
    assert compact(log, files, now=10, keys_max=2)
    assert contents(log) == [(1, b"other", b"value")]


@pytest.mark.parametrize("keys_max", [1, 3, 7])
def test_small_maps_leave_the_same_records_as_a_large_one(files: MemFiles, keys_max: int) -> None:
    chance = random.Random(keys_max)
    log = compacted(files, segment_bytes=500, delete_retention_ms=10**9)
    for n in range(60):
        keys = [b"%d" % chance.randrange(20) for _ in range(chance.randint(1, 3))]
        append(log, *[None if chance.random() < 0.2 else b"v%d" % n for _ in keys], keys=keys)
        if chance.random() < 0.1:
            before, reached = latest(log), log.first_dirty_offset
            if compact(log, files, keys_max=keys_max):
                assert log.first_dirty_offset > reached
            assert latest(log) == before
    log.roll(0)
    before = latest(log)
    while compact(log, files, keys_max=keys_max):
        assert latest(log) == before
    rest = [key for _, key, _ in contents(log)]
    assert len(rest) == len(before)
    assert set(rest) == set(before)


def test_tombstones_go_after_their_time(files: MemFiles) -> None:
    log = open_log(
        files, segment_bytes=100, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000
    )
    append(log, b"a", keys=[b"gone"])
    append(log, None, keys=[b"gone"])
    append(log, b"b", keys=[b"stays"])
    log.roll(0)
    assert compact(log, files, now=0)
    assert (1, b"gone", None) in contents(log)
    append(log, b"c", keys=[b"more"])
    log.roll(0)
    assert compact(log, files, now=2000)
    assert b"gone" not in latest(log)
    assert latest(log) == {b"stays": b"b", b"more": b"c"}


def test_what_is_too_young_is_not_compacted(files: MemFiles) -> None:
    log = open_log(
        files, segment_bytes=100, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, min_compaction_lag_ms=500
    )
    for n in range(6):
        append(log, b"x" * 40, keys=[b"k"], now=100 * n)
    assert not compact(log, files, now=400)
    assert compact(log, files, now=800)
    assert next(o for o, _, _ in contents(log)) == 3


def test_the_last_batch_of_a_producer_stays_as_an_empty_one(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=100, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    append(log, b"x" * 40, keys=[b"k"], producer_id=7, producer_epoch=2, base_sequence=0)
    append(log, b"y" * 40, keys=[b"k"])
    log.roll(0)
    assert compact(log, files)
    log.close()
    for name in files.names("/d/t-0"):
        if name.endswith(".snapshot"):
            files.remove(f"/d/t-0/{name}")
    assert open_log(files, cleanup_policy=("compact",)).producers.by_id[7].last_sequence == 0


@pytest.mark.parametrize("crash_after", range(12))
def test_a_crash_in_the_middle_of_a_swap_leaves_one_or_the_other(files: MemFiles, crash_after: int) -> None:
    log = open_log(files, segment_bytes=200, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    for n in range(12):
        append(log, b"%d" % n * 20, keys=[b"%d" % (n % 2)])
    before = latest(log)
    plan = cleaning.plan(log, log.end_offset, 0)
    assert plan is not None
    outcome = cleaned(files, plan.job(log.end_offset))
    left = crash_after
    rename = files.rename

    def failing(old: str, new: str) -> None:
        nonlocal left
        if left == 0:
            raise OSError(errno.EIO, "the process ended here")
        left -= 1
        rename(old, new)

    files.rename = failing  # type: ignore[method-assign]
    try:
        cleaning.swap(log, plan, outcome, 0)
    except OSError:
        files.rename = rename  # type: ignore[method-assign]
    again = open_log(files, cleanup_policy=("compact",), clean=False, recovery_point=log.end_offset)
    assert latest(again) == before
    assert again.end_offset == 12


def test_a_reader_of_a_segment_that_was_compacted_twice_gets_what_the_segment_had(files: MemFiles) -> None:
    """Both wait for `file.delete.delay.ms`, and have files of their own."""
    log = open_log(files, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, file_delete_delay_ms=100)
    pieces = []
    for now, value in enumerate((b"a", b"b", b"c")):
        append(log, value * 50, keys=[b"k"])
        append(log, value * 50, keys=[b"%d" % now])
        log.roll(now)
        piece = log.read(0, 10_000, None, True)
        assert piece is not None
        pieces.append((piece, bytes(piece)))
        assert compact(log, files, now)
    assert [bytes(piece) for piece, _ in pieces] == [before for _, before in pieces]
    for piece, before in pieces:
        assert bytes(piece) == before
        piece.release()
        remove_due(log, 1000)
    assert not log.removed
    assert not [name for name in files.names("/d/t-0") if name.endswith(".deleted")]
