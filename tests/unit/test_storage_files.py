"""Segments of older formats, what is remembered of producers, and the small files beside a log."""

from __future__ import annotations

import random

import pytest
from ottla.protocol import legacy, records
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Record, Template
from ottla.storage import checkpoints, layout, timestamps
from ottla.storage.epochs import LeaderEpochs
from ottla.storage.index import AbortedTransaction, decode_aborted, encode_aborted
from ottla.storage.layout import parse_partition_directory
from ottla.storage.producers import CorruptSnapshot, Producers

from ..support.logs import (
    append,
    contents,
    open_log,
)
from ..support.memory_files import MemFiles
from ..support.steps import result_of

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
        found = result_of(timestamps.first_from(log, 1004))
        assert found is not None
        assert found.offset == 4
    assert append(log, b"new") == 9


# producers


def sent(producers: Producers, sequence: int, count: int = 1, pid: int = 1, epoch: int = 0, offset: int = 0) -> None:
    data = records.encode(
        [Record(None, b"v", 5)] * count, Template(producer_id=pid, producer_epoch=epoch, base_sequence=sequence)
    )
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
    data = records.encode(
        [Record(None, b"v", 5)], Template(producer_id=2, producer_epoch=0, base_sequence=0, transactional=True)
    )
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
    """As Kafka's: the whole segment's length at once, cut when it is rolled or closed; what a crash leaves of it is
    passed over.
    """
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


def test_a_flush_during_a_move_does_not_count(files: MemFiles) -> None:
    """The job did not find the files under their old names: nothing was synced."""
    log = open_log(files)
    append(log, b"durable")
    log.flush_now()
    append(log, b"kept")
    job = log.flush_job()
    assert job.paths
    assert not job.directories
    log.move(f"{log.directory}-moved")
    job.run()
    log.flushed(job, 0)
    assert log.recovery_point == 1
    later = log.flush_job()
    assert log.active.path(".log") in later.paths
    assert not [path for path in later.paths if not path.startswith(log.directory)]
    later.run()
    log.flushed(later, 0)
    assert log.recovery_point == 2
    left = files.lose_power(random.Random(1))
    assert left.size(log.active.path(".log")) == log.active.size


def test_an_earlier_job_that_ends_after_a_later_one_takes_nothing_back(files: MemFiles) -> None:
    log = open_log(files)
    append(log, b"1")
    first = log.flush_job()
    append(log, b"2")
    second = log.flush_job()
    assert set(first.paths) <= set(second.paths)
    second.run()
    log.flushed(second, 0)
    log.flushed(first, 0)
    assert log.recovery_point == 2
    assert log.unflushed_since_ms is None
