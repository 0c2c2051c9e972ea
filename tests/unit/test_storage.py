"""Logs in Kafka's files: reading, rolling, recovery, retention, compaction, failures."""

from __future__ import annotations

import errno
import random
from typing import Any

import pytest
from ottla.protocol import legacy, records
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Record, Template
from ottla.storage import checkpoints, cleaning, layout, retention
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.files import HandlePool, MemFiles
from ottla.storage.index import AbortedTransaction, decode_aborted, encode_aborted
from ottla.storage.layout import parse_partition_directory
from ottla.storage.log import Log
from ottla.storage.producers import CorruptSnapshot, Producers
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from .. import sim


@pytest.fixture
def files() -> MemFiles:
    made = MemFiles()
    made.make_directory("/d")
    return made


def open_log(files: MemFiles, name: str = "t-0", now: int = 0, clean: bool = True, recovery_point: int = 0, **settings: Any) -> Log:
    return open_now(HandlePool(files, 8), f"/d/{name}", LogSettings(**settings), now, clean=clean, recovery_point=recovery_point)


def append(log: Log, *values: bytes | None, now: int = 0, epoch: int = 0, keys: list[bytes] | None = None, **template: Any) -> int:
    rows = [Record(keys[i] if keys else b"k", v, now) for i, v in enumerate(values)]
    data = records.encode(rows, Template(**template))
    return log.append(data, list(records.batches(data)), epoch, now).base_offset


def contents(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    found = []
    for segment, batch in log.batches_from(log.start_offset):
        assert batch.header is not None
        for r in records.decode(segment.read_batch(batch), records.BatchAt(0, batch.header)):
            found.append((r.offset, r.key, r.value))
    return found


@pytest.mark.parametrize("first", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(100, 1000, 100))])
def test_power_failures_lose_nothing_that_was_flushed(first: int) -> None:
    for seed in range(first, first + 100):
        sim.run(seed)


@pytest.mark.parametrize("seed", range(20))
def test_after_a_clean_end_not_a_byte_hangs_on_the_power(files: MemFiles, seed: int) -> None:
    """What `.kafka_cleanshutdown` vouches for is believed without a look at the log: indexes, epochs and producers too."""
    log = open_log(files, segment_bytes=400, index_interval_bytes=1)
    for n in range(6):
        append(log, b"x" * 30, now=n, epoch=n // 3, producer_id=n, producer_epoch=0, base_sequence=0)
        if n == 2:
            log.flush_now()
    log.add_aborted(AbortedTransaction(0, 1, 0, 0, 0))
    log.set_topic_id(bytes(16))
    log.close()
    found = files.lose_power(random.Random(seed))
    assert {n: found.read(f"/d/t-0/{n}") for n in found.names("/d/t-0")} == {n: files.read(f"/d/t-0/{n}") for n in files.names("/d/t-0")}


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
    log.remove_files(1000)
    assert bytes(piece) == before, "the file is held"
    piece.release()
    log.remove_files(1000)
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
    log = open_log(files, "index-0", segment_index_bytes=16, index_interval_bytes=0)
    for _ in range(10):
        append(log, b"x")
    assert len(log.segments) > 3


def test_timestamps_lead_to_offsets(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=400, index_interval_bytes=100)
    for n in range(50):
        append(log, b"a", now=1000 + 10 * n)
    for n in range(50):
        found = log.offset_for_timestamp(1000 + 10 * n)
        assert found is not None
        assert (found.offset, found.timestamp) == (n, 1000 + 10 * n)
        between = log.offset_for_timestamp(995 + 10 * n)
        assert between is not None
        assert between.offset == n
    assert log.offset_for_timestamp(5000) is None
    largest = log.largest_timestamp()
    assert largest is not None
    assert largest.offset == 49


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


def test_indexes_are_made_anew_when_they_are_gone_or_nonsense(files: MemFiles) -> None:
    log = open_log(files, index_interval_bytes=50)
    for n in range(30):
        append(log, b"%d" % n, now=n)
    log.close()
    files.remove(log.active.path(".index"))
    files.open(log.active.path(".timeindex")).write_at(0, b"\xff" * 25)
    again = open_log(files, index_interval_bytes=50)
    assert len(again.active.index) > 5
    assert contents(again) == contents(log)
    found = again.offset_for_timestamp(12)
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


def test_a_truncated_log_forgets_everything_behind(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=300, index_interval_bytes=1)
    for n in range(12):
        append(log, b"%d" % n * 40, now=n, epoch=n // 4, producer_id=1, producer_epoch=0, base_sequence=n)
    log.truncate_to(6, 0)
    assert (log.end_offset, log.epochs.latest, log.producers.by_id[1].last_sequence) == (6, 1, 5)
    assert [o for o, _, _ in contents(log)] == list(range(6))
    largest = log.largest_timestamp()
    assert largest is not None
    assert largest.offset == 5
    assert append(log, b"on", epoch=2) == 6
    log.close()
    assert contents(open_log(files)) == contents(log)


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


# compaction


def compact(log: Log, files: MemFiles, now: int = 0) -> bool:
    plan = cleaning.plan(log, log.end_offset, now)
    if plan is None or not plan.is_due:
        return False
    cleaning.swap(log, plan, cleaning.run(files, plan.job(log.end_offset)), now)
    return True


def latest(log: Log) -> dict[bytes | None, bytes | None]:
    return {key: value for _, key, value in contents(log)}


@pytest.mark.parametrize("seed", range(10))
def test_compaction_keeps_the_last_value_of_every_key_and_every_offset(files: MemFiles, seed: int) -> None:
    chance = random.Random(seed)
    log = open_log(files, segment_bytes=500, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=10**9)
    for n in range(60):
        keys = [b"%d" % chance.randrange(8) for _ in range(chance.randint(1, 3))]
        append(log, *[None if chance.random() < 0.2 else b"v%d" % n for _ in keys], keys=keys, codec=chance.choice((0, 1, 2)))
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


def test_tombstones_go_after_their_time(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=100, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=1000)
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
    log = open_log(files, segment_bytes=100, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, min_compaction_lag_ms=500)
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
    outcome = cleaning.run(files, plan.job(log.end_offset))
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


# message sets of older versions


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_a_segment_of_message_sets_is_opened_recovered_and_served(files: MemFiles, magic: int, codec: int) -> None:
    files.make_directory("/d/old-0")
    data = b""
    for n in range(0, 9, 3):
        rows = [legacy.Message(n + i, b"k", b"v%d" % (n + i), magic, 1000 + n + i if magic else -1) for i in range(3)]
        data += legacy.encode(rows, codec)
    handle = files.open("/d/old-0/00000000000000000000.log", create=True)
    handle.write_at(0, data + data[:20])
    log = open_log(files, "old-0", clean=False)
    assert log.end_offset == 9
    assert log.active.size == len(data)
    piece = log.read(4, 10_000, None, True)
    assert piece is not None
    assert legacy.decode(bytes(piece))[-1].value == b"v8"
    if magic:
        found = log.offset_for_timestamp(1004)
        assert found is not None
        assert found.offset == 4
    assert append(log, b"new") == 9


# producers


def sent(producers: Producers, sequence: int, count: int = 1, pid: int = 1, epoch: int = 0, offset: int = 0) -> None:
    data = records.encode([Record(None, b"v", 5)] * count, Template(producer_id=pid, producer_epoch=epoch, base_sequence=sequence))
    header = records.header_at(data)
    producers.check(header, offset)
    producers.update(header, offset)


def test_five_batches_are_remembered() -> None:
    producers = Producers()
    for n in range(7):
        sent(producers, n, offset=10 + n)
    for n, known in ((1, False), (2, True), (6, True)):
        data = records.encode([Record(None, b"v", 5)], Template(producer_id=1, producer_epoch=0, base_sequence=n))
        duplicate = producers.find_duplicate(records.header_at(data))
        assert (duplicate is not None) is known
        if duplicate is not None:
            assert duplicate.first_offset == 10 + n


@pytest.mark.parametrize(
    ("sequence", "epoch", "code"),
    [
        (3, 0, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (1, 0, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (5, 1, Errors.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (2, -1, Errors.INVALID_PRODUCER_EPOCH),
    ],
)
def test_what_does_not_follow_is_refused(sequence: int, epoch: int, code: int) -> None:
    producers = Producers()
    sent(producers, 0, 2)
    with pytest.raises(ApiError) as refused:
        sent(producers, sequence, epoch=epoch)
    assert refused.value.code == code


def test_sequences_wrap_and_new_epochs_begin_at_zero() -> None:
    producers = Producers()
    sent(producers, 2**31 - 1, pid=3)
    sent(producers, 0, pid=3)
    sent(producers, 0, pid=3, epoch=1)
    sent(producers, 4711, pid=4)  # nothing is known of it


def test_a_snapshot_reads_back_and_a_damaged_one_is_refused() -> None:
    producers = Producers()
    sent(producers, 0, 3, pid=8, epoch=2, offset=40)
    again = Producers()
    again.load_snapshot(producers.snapshot(), 43)
    assert again.by_id[8].last_sequence == 2
    assert again.by_id[8].last_offset == 42
    for damaged in (b"", b"\0\1", producers.snapshot()[:-1], producers.snapshot()[:-1] + b"!"):
        with pytest.raises(CorruptSnapshot):
            again.load_snapshot(damaged, 43)


def test_silent_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    producers = Producers()
    sent(producers, 0, pid=1)
    data = records.encode([Record(None, b"v", 5)], Template(producer_id=2, producer_epoch=0, base_sequence=0, transactional=True))
    producers.update(records.header_at(data), 1)
    producers.expire(5 + 1000, 1000)
    assert list(producers.by_id) == [2]
    assert producers.first_open_offset == 1


# small files


def test_leader_epochs_answer_as_kafkas_cache() -> None:
    epochs = LeaderEpochs([(1, 0), (3, 10), (5, 20)])
    assert epochs.end_offset_for(5, 33) == (5, 33)
    assert epochs.end_offset_for(3, 33) == (3, 20)
    assert epochs.end_offset_for(4, 33) == (3, 20)
    assert epochs.end_offset_for(0, 33) == (0, 0)
    assert epochs.end_offset_for(6, 33) == (-1, -1)
    assert epochs.epoch_at(15) == 3
    assert epochs.truncate_from_end(12)
    assert epochs.entries == [(1, 0), (3, 10)]
    assert epochs.truncate_from_start(11)
    assert epochs.entries == [(3, 11)]


def test_checkpoints_are_kafkas_text() -> None:
    data = checkpoints.encode_offsets({("t", 1): 5, ("a", 0): 7})
    assert data == b"0\n2\na 0 7\nt 1 5\n"
    assert checkpoints.decode_offsets(data) == {("t", 1): 5, ("a", 0): 7}
    assert checkpoints.decode_epochs(b"0\n2\n0 0\n3 17\n") == [(0, 0), (3, 17)]
    for damaged in (b"1\n0\n", b"0\n2\na 0 7\n", b"x", b"0\n1\na b c\n"):
        with pytest.raises(checkpoints.CorruptCheckpoint):
            checkpoints.decode_offsets(damaged)
    topic_id = bytes(range(16))
    assert checkpoints.decode_partition_metadata(checkpoints.encode_partition_metadata(topic_id)) == topic_id


def test_aborted_transactions_have_kafkas_34_bytes() -> None:
    one = AbortedTransaction(0, 7, 10, 20, 21)
    assert len(encode_aborted(one)) == 34
    assert decode_aborted(encode_aborted(one) * 2 + b"rest") == [one, one]


def test_directories_are_named_after_topic_and_partition() -> None:
    assert parse_partition_directory("my-topic-12") == ("my-topic", 12)
    assert parse_partition_directory("t-0.abc-delete") is None
    assert parse_partition_directory("no") is None


def test_files_allocated_in_advance_end_with_their_last_batch_once_they_are_closed(files: MemFiles) -> None:
    """As Kafka's: the whole segment's length at once, cut when it is rolled or closed; what a crash leaves of it is passed over."""
    log = open_log(files, segment_bytes=1000, preallocate=True)
    first, second = (f"/d/t-0/{layout.file_name(offset, layout.LOG)}" for offset in (0, 1))
    assert files.size(first) == 1000
    append(log, b"one")
    written = log.active.size
    assert files.size(first) == 1000
    log.roll(0)
    assert (files.size(first), files.size(second)) == (written, 1000)
    append(log, b"two")
    log.flush_now()
    again = open_log(files, clean=False, segment_bytes=1000, preallocate=True)
    assert [value for _, _, value in contents(again)] == [b"one", b"two"]
    assert files.size(second) == again.active.size
    again.close()
    log = open_log(files, "t-1", segment_bytes=1000, preallocate=True)
    append(log, b"three")
    log.close()
    assert files.size(f"/d/t-1/{layout.file_name(0, layout.LOG)}") == written + 2
