"""Transactions in a log: markers, the index of aborted ones, verification, recovery, and what compaction makes of
them.
"""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from ottla.protocol import records
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Record, Template
from ottla.storage import cleaning
from ottla.storage.aborted import aborted_between, packed_between, unpacked
from ottla.storage.files import HandlePool
from ottla.storage.index import AbortedIndex, AbortedTransaction
from ottla.storage.log import Log
from ottla.storage.producers import Producers
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from ..support.logs import cleaned
from ..support.memory_files import MemFiles

DAY_MS = 86_400_000


def open_log(files: MemFiles, clean: bool = True, recovery_point: int = 0, **settings: Any) -> Log:
    compacted = {
        "cleanup_policy": ("compact",),
        "min_cleanable_dirty_ratio": 0.0,
        "segment_bytes": 150,
        "delete_retention_ms": DAY_MS,
    }
    return open_now(
        HandlePool(files, 8),
        "/d/t-0",
        LogSettings(**{**compacted, **settings}),
        0,
        clean=clean,
        recovery_point=recovery_point,
    )


def write(log: Log, pid: int | None, key: bytes, value: bytes | None = b"v", epoch: int = 0, sequence: int = 0) -> int:
    """A record, in a transaction of `pid` unless that is None."""
    template = (
        Template()
        if pid is None
        else Template(producer_id=pid, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    )
    data = records.encode([Record(key, value, 5)], template)
    return log.append(data, list(records.batches(data)), 0, 0).base_offset


def end(log: Log, pid: int, committed: bool = True, epoch: int = 0, now_ms: int = 0) -> int:
    marker = Record(struct.pack(">hh", 0, int(committed)), struct.pack(">hi", 0, 3), 5)
    data = records.encode([marker], Template(producer_id=pid, producer_epoch=epoch, transactional=True, control=True))
    return log.append(data, list(records.batches(data)), 0, now_ms).base_offset


def contents(log: Log) -> list[tuple[int, bytes | None]]:
    """Offset and key of every record; markers as `commit` and `abort`."""
    found: list[tuple[int, bytes | None]] = []
    for segment, batch in log.batches_from(log.start_offset):
        assert batch.header is not None
        for r in records.decode(segment.read_batch(batch), records.BatchAt(0, batch.header)):
            kind = (b"abort", b"commit")[(r.key or b"")[3]] if batch.header.is_control else r.key
            found.append((r.offset, kind))
    return found


def aborted(log: Log) -> list[tuple[int, int, int]]:
    return [(t.producer_id, t.first_offset, t.last_offset) for t in aborted_between(log, 0, log.end_offset)]


def test_markers_and_producers_have_the_time_of_the_append_where_records_have_it() -> None:
    """In Kafka 4.4 too (`make chance ARGS="3058 1 changed"`); the records themselves are of the time 5."""
    files = MemFiles()
    log = open_log(files, message_timestamp_type="LogAppendTime")
    data = records.encode(
        [Record(b"a", b"v", 5)], Template(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    )
    log.append(data, list(records.batches(data)), 0, 1000)
    assert log.producers.by_id[1].last_timestamp == 1000
    assert log.producers.by_id[1].batches[-1].timestamp == 1000  # which a duplicate is answered with
    end(log, 1, now_ms=2000)
    written = [batch.header for _, batch in log.batches_from(0) if batch.header is not None]
    assert [(one.is_control, one.is_append_time, one.max_timestamp) for one in written] == [
        (False, True, 1000),
        (True, True, 2000),
    ]
    assert log.producers.by_id[1].last_timestamp == 2000


# the index


def test_aborted_transactions_are_found_by_the_offsets_they_cover() -> None:
    index = AbortedIndex()
    for entry in ((1, 0, 10, 5), (2, 5, 12, 13), (3, 20, 30, 25), (4, 25, 31, 32)):
        index.append(AbortedTransaction(0, *entry))
    for offset, upper, found, is_all in (
        (0, 1, [1], True),
        (0, 20, [1, 2], True),
        (11, 13, [2], True),
        (13, 20, [], True),
        (13, 40, [3, 4], False),
        (32, 99, [], False),
    ):
        some = index.overlapping(offset, upper, 9)
        assert ([t.producer_id for t in some.found], some.is_all, some.upper) == (found, is_all, upper), (offset, upper)
    some = index.overlapping(0, 40, 1)
    assert ([t.producer_id for t in some.found], some.is_all, some.upper) == ([1, 2], True, 11)  # 2 is open at 10
    assert len(AbortedIndex(bytes(index.data) + b"torn")) == 4
    assert index.is_sane(0, 32)
    assert not index.is_sane(0, 31)
    assert not AbortedIndex(bytes(index.data) + b"torn").is_sane(0, 32)


def test_a_transaction_that_is_aborted_segments_later_is_listed(files: MemFiles) -> None:
    log = open_log(files)
    write(log, 1, b"a")
    for n in range(4):
        write(log, None, b"plain %d" % n)
    assert end(log, 1, committed=False) == 5
    assert len(log.segments) > 2
    assert aborted(log) == [(1, 0, 5)]
    assert [t.last_stable_offset for t in aborted_between(log, 0, 6)] == [6]


def test_aborted_transactions_are_listed_in_the_order_in_which_they_ended(files: MemFiles) -> None:
    """As in Kafka's index; a client looks for the first offsets itself."""
    log = open_log(files)
    for pid in (1, 2, 3):
        write(log, pid, b"%d" % pid)
    ends = {pid: end(log, pid, committed=False) for pid in (2, 3, 1)}
    assert aborted(log) == [(2, 1, ends[2]), (3, 2, ends[3]), (1, 0, ends[1])]


@pytest.mark.parametrize("seed", range(8))
def test_packed_entries_are_those_that_are_found_one_by_one(files: MemFiles, seed: int) -> None:
    """Also of transactions that are open beyond the segments asked for, or began before them."""
    chance, log, opened = random.Random(seed), open_log(files), set[int]()
    for step in range(60):
        pid = chance.choice((1, 2, 3))
        if pid in opened and chance.random() < 0.4:
            end(log, pid, committed=chance.random() < 0.4)
            opened.discard(pid)
        else:
            write(log, pid, b"%d" % step)
            opened.add(pid)
    assert len(log.segments) > 3
    for offset in range(0, log.end_offset, 3):
        for upper in range(offset, log.end_offset, 5):
            found = unpacked(packed_between(log, offset, upper), offset, upper)
            assert found == aborted_between(log, offset, upper)


def test_a_plan_does_not_look_at_each_aborted_transaction(files: MemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(files, segment_bytes=1 << 20)
    for n in range(300):
        write(log, 1, b"%d" % n, sequence=n)
        end(log, 1, committed=False)
    log.roll(0)
    looks = 0
    entry = AbortedIndex.entry

    def counted(index: AbortedIndex, slot: int) -> AbortedTransaction:
        nonlocal looks
        looks += 1
        return entry(index, slot)

    monkeypatch.setattr(AbortedIndex, "entry", counted)
    plan = cleaning.plan(log, log.end_offset, 0)
    assert plan is not None
    assert len(unpacked(plan.job(log.end_offset).aborted, 0, log.end_offset)) == 300
    assert looks <= len(log.segments)


@pytest.mark.parametrize("clean", [True, False])
def test_the_index_and_open_transactions_survive(files: MemFiles, clean: bool) -> None:
    """After a crash the index is made again, for transactions too that began in segments which need no recovery."""
    log = open_log(files)
    write(log, 1, b"a")
    write(log, 2, b"b")
    write(log, 3, b"c")
    durable = log.end_offset
    end(log, 1, committed=False)
    end(log, 3)
    if clean:
        log.close()
    else:
        log.flush_now()
        for segment in log.segments:
            segment.close_files()
    again = open_log(files, clean=clean, recovery_point=log.end_offset if clean else durable)
    assert aborted(again) == [(1, 0, 3)]
    assert again.producers.open_transactions == {2: 1}
    assert again.producers.first_unstable_offset(again.end_offset) == 1
    assert again.producers.by_id[1].coordinator_epoch == 3


# the first unstable offset


def test_an_end_is_stable_below_the_high_watermark(files: MemFiles) -> None:
    log = open_log(files)
    write(log, 1, b"a")
    write(log, 2, b"b")
    end(log, 1)
    assert log.producers.first_unstable_offset(2) == 0
    assert log.producers.first_unstable_offset(3) == 1, "its marker is below the high watermark now"
    end(log, 2)
    assert log.producers.first_unstable_offset(3) == 1
    assert log.producers.first_unstable_offset(4) is None


def test_the_first_unstable_offset_is_that_of_all_transactions_which_are_not_replicated(files: MemFiles) -> None:
    chance, log = random.Random(7), open_log(files)
    begun: dict[int, int] = {}
    ended: list[tuple[int, int]] = []  # the first offset, and that of the marker
    high_watermark = 0
    for _ in range(400):
        producer_id = chance.randrange(6)
        if producer_id in begun:
            ended.append((begun.pop(producer_id), log.end_offset))
            end(log, producer_id)
        else:
            begun[producer_id] = log.end_offset
            write(log, producer_id, b"a")
        if chance.random() < 0.4:
            high_watermark = chance.randint(high_watermark, log.end_offset)
            unstable = [*begun.values(), *(first for first, marker in ended if marker >= high_watermark)]
            assert log.producers.first_unstable_offset(high_watermark) == min(unstable, default=None)


# verification and markers


def refused(call: Any) -> int:
    with pytest.raises(ApiError) as error:
        call()
    return error.value.code


def header(pid: int, epoch: int = 0, sequence: int = 0) -> Any:
    return records.header_at(
        records.encode(
            [Record(None, b"v", 5)],
            Template(producer_id=pid, producer_epoch=epoch, base_sequence=sequence, transactional=True),
        )
    )


def test_the_first_batch_needs_its_verification() -> None:
    producers = Producers()
    assert refused(lambda: producers.check_verified(1, 0, None)) == Errors.INVALID_TXN_STATE
    found = producers.begin_verification(1, 0, 0, raises=True, now_ms=0)
    assert found is not None
    assert producers.begin_verification(1, 0, 3, raises=True, now_ms=0) is found, "another batch that waits"
    producers.check_verified(1, 0, found)
    assert refused(lambda: producers.check(header(1, sequence=3), 0)) == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.check(header(1), 0)
    producers.update(header(1), 0)
    assert producers.begin_verification(1, 0, 1, raises=True, now_ms=0) is None, "its transaction is open"
    producers.check_verified(1, 0, None)
    assert (
        refused(lambda: producers.begin_verification(1, -1, 1, raises=True, now_ms=0)) == Errors.INVALID_PRODUCER_EPOCH
    )


@pytest.mark.parametrize("raises", [True, False])
def test_a_marker_in_between_makes_a_verification_void(files: MemFiles, raises: bool) -> None:
    """Unless it ended the transaction before, and the verification is of the epoch that it raised to (KIP-890)."""
    log = open_log(files)
    producers = log.producers
    late = producers.begin_verification(1, 0, 0, raises, now_ms=0)
    end(log, 1, epoch=1)
    assert refused(lambda: producers.check_verified(1, 1, late)) == Errors.INVALID_TXN_STATE
    next_one = producers.begin_verification(1, 1, 0, raises, now_ms=0)
    end(log, 1, epoch=1)
    if raises:
        producers.check_verified(1, 1, next_one)
    else:
        assert refused(lambda: producers.check_verified(1, 1, next_one)) == Errors.INVALID_TXN_STATE


def test_a_producer_of_version_2_begins_at_sequence_0() -> None:
    producers = Producers()
    producers.begin_verification(1, 0, 5, raises=True, now_ms=0)
    assert refused(lambda: producers.check(header(1, sequence=5), 0)) == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers = Producers()
    producers.begin_verification(1, 0, 5, raises=False, now_ms=0)
    producers.check(header(1, sequence=5), 0)


def test_old_markers_are_refused() -> None:
    producers = Producers()
    producers.check_marker(1, 0, 0, 2, 0)
    producers.update(header(1, epoch=4), 0)
    assert refused(lambda: producers.check_marker(1, 3, 0, 0, 1)) == Errors.INVALID_PRODUCER_EPOCH
    producers.check_marker(1, 4, 0, 0, 1)
    assert refused(lambda: producers.check_marker(1, 4, 0, 2, 1)) == Errors.INVALID_PRODUCER_EPOCH
    producers.check_marker(1, 5, 0, 2, 1)
    producers.by_id[1].transaction_first_offset = -1
    producers.check_marker(1, 4, 0, 2, 1)  # a repeated one
    producers.by_id[1].coordinator_epoch = 7
    assert refused(lambda: producers.check_marker(1, 5, 6, 2, 1)) == Errors.TRANSACTION_COORDINATOR_FENCED


def test_verifications_are_forgotten() -> None:
    producers = Producers()
    producers.begin_verification(1, 0, 0, raises=True, now_ms=0)
    producers.expire(99, 100)
    assert producers.verifying
    producers.expire(100, 100)
    assert not producers.verifying


# compaction


def compact(log: Log, files: MemFiles, now: int = 0, keys_max: int = cleaning.KEYS_MAX) -> bool:
    log.roll(now)
    first_open = log.producers.first_open_offset
    plan = cleaning.plan(log, log.end_offset if first_open is None else first_open, now)
    if plan is None or not plan.is_due:
        return False
    cleaning.swap(log, plan, cleaned(files, plan.job(log.end_offset, keys_max)), now)
    return True


def test_what_was_aborted_goes_and_supersedes_nothing(files: MemFiles) -> None:
    log = open_log(files)
    write(log, None, b"k")
    write(log, 1, b"k")
    write(log, 1, b"other", sequence=1)
    end(log, 1, committed=False)
    write(log, None, b"z")
    assert compact(log, files)
    assert contents(log) == [(0, b"k"), (3, b"abort"), (4, b"z")]
    assert aborted(log) == [(1, 1, 3)], "as long as the marker is there a reader may ask"


def test_aborted_transactions_that_the_map_does_not_reach_are_still_known(files: MemFiles) -> None:
    log = open_log(files, segment_bytes=1 << 20)
    write(log, None, b"a")
    write(log, 1, b"b")
    write(log, None, b"c")
    write(log, 1, b"d", sequence=1)
    end(log, 1, committed=False)
    write(log, 2, b"e")
    end(log, 2, committed=False)
    write(log, None, b"z")
    assert compact(log, files, keys_max=1)
    rest = [(4, b"abort"), (5, b"e"), (6, b"abort"), (7, b"z")]
    assert contents(log) == [(0, b"a"), (2, b"c"), (3, b"d"), *rest]
    assert aborted(log) == [(1, 1, 4), (2, 5, 6)]
    assert compact(log, files, keys_max=1)
    assert contents(log) == [(0, b"a"), (2, b"c"), (4, b"abort"), (6, b"abort"), (7, b"z")]
    assert aborted(log) == [(1, 1, 4), (2, 5, 6)]


def test_what_was_committed_supersedes(files: MemFiles) -> None:
    log = open_log(files)
    write(log, None, b"k")
    write(log, 1, b"k")
    end(log, 1)
    write(log, None, b"z")
    assert compact(log, files)
    assert contents(log) == [(1, b"k"), (2, b"commit"), (3, b"z")]


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_goes_some_time_after_its_records(files: MemFiles, committed: bool) -> None:
    log = open_log(files)
    write(log, 1, b"k")
    end(log, 1, committed)
    write(log, 1, b"k", sequence=1)
    end(log, 1)
    log.roll(0)

    def kinds(now: int) -> list[bytes | None]:
        write(log, None, b"n%d" % now)
        assert compact(log, files, now)
        return [kind for offset, kind in contents(log) if offset < 4]

    mark = b"commit" if committed else b"abort"
    assert kinds(0) == [mark, b"k", b"commit"], "its records went in this round"
    assert kinds(1) == [mark, b"k", b"commit"], "from now on it has a day"
    assert kinds(DAY_MS) == [mark, b"k", b"commit"]
    assert kinds(DAY_MS + 1) == [b"k", b"commit"]
    assert aborted(log) == []


def test_a_transaction_that_is_open_is_not_compacted(files: MemFiles) -> None:
    log = open_log(files)
    write(log, None, b"k")
    write(log, None, b"k")
    write(log, None, b"x" * 60)
    write(log, 1, b"k")
    write(log, None, b"y" * 60)
    log.roll(0)
    assert compact(log, files)
    assert [offset for offset, _ in contents(log)] == [1, 2, 3, 4]


def test_the_last_word_of_a_producer_stays_as_an_empty_batch(files: MemFiles) -> None:
    log = open_log(files)
    write(log, 1, b"k", epoch=2, sequence=0)
    end(log, 1, committed=False, epoch=2)
    write(log, None, b"z")
    assert compact(log, files)
    assert contents(log) == [(1, b"abort"), (2, b"z")]
    bases = [batch.base_offset for _, batch in log.batches_from(0)]
    assert bases == [0, 1, 2]
    log.close()
    for name in files.names("/d/t-0"):
        if name.endswith(".snapshot"):
            files.remove(f"/d/t-0/{name}")
    assert open_log(files).producers.by_id[1].last_sequence == 0
