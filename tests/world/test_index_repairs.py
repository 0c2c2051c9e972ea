"""An index that is found damaged is rebuilt in steps, while its log is in use; a question about a log looks at few of
its batches at a time.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.apis import _fetch_reading
from ottla.broker.replica import fetch_reads, replica_manager
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.errors import Errors
from ottla.storage import aborted, segment
from ottla.storage.batch_info import passed_over
from ottla.storage.layout import INDEX, INDEX_ENTRY, TIME_INDEX, TIME_INDEX_ENTRY, TXN_INDEX, TXN_INDEX_ENTRY
from ottla.storage.rebuilding import STEP_BATCHES
from ottla.storage.segment import SCAN_BATCHES_MAX, Segment

from ..sim.indexes import end, write
from ..sim.producers import committed_rows
from ..support.ask import batch, fetch_message, produce_message
from ..support.memory_files import MemFiles
from ..support.topic_world import create, produced, set_policy
from ..support.turns import Turns
from ..support.world import World

BATCHES = 4 * STEP_BATCHES
LOG = "/data/t-0/00000000000000000000"
ENTRIES = {INDEX: INDEX_ENTRY, TIME_INDEX: TIME_INDEX_ENTRY, TXN_INDEX: TXN_INDEX_ENTRY}
FOUND_AT = BATCHES // 2
STORAGE_ERROR = int(Errors.KAFKA_STORAGE_ERROR)


def log_of(world: World) -> Any:
    return world.broker.partitions.get("t", 0).open_log()


def grown(world: World) -> None:
    """What was appended to the log without a request is committed."""
    partition = world.broker.partitions.get("t", 0)
    world.broker.turn.event(lambda: world.broker.high_watermarks.appended(partition))


def written(transactions: int = 0) -> MemFiles:
    """A log of many batches, in one segment, of a broker that was stopped in order; it ends with aborted
    transactions.
    """
    world = World()
    assert create(world, "t", index_interval_bytes="10") == 0
    assert create(world, "other") == 0
    log = log_of(world)
    rows = [batch(b"%d" % n, now=1000 + 10 * n) for n in range(BATCHES - 2 * transactions)]
    data = bytearray(b"".join(rows))
    log.append(data, list(records.batches(data)), 0, 0)
    for n in range(transactions):
        write(log, 90_000, 1, producer_id=1, producer_epoch=0, base_sequence=n, transactional=True)
        end(log, 1, False, 90_000)
    grown(world)
    assert world.broker.stop() is None
    return world.files


def damage(files: MemFiles, suffix: str, at: int = FOUND_AT) -> None:
    """Changes the first number of an entry, so that nothing is wrong at sight."""
    entry = ENTRIES[suffix]
    handle = files.open(LOG + suffix)
    values = list(entry.unpack(handle.read_at(at * entry.size, entry.size)))
    changed = {INDEX: 1, TIME_INDEX: 0, TXN_INDEX: 1}[suffix]
    values[changed] += 1
    handle.write_at(at * entry.size, entry.pack(*values))


class Opened(Turns):
    """A broker on damaged files, which counts the turns that are waited for."""

    def __init__(self, files: MemFiles) -> None:
        super().__init__(files)
        self.pass_ms(10)
        self.turns = 0

    def fetched(self, offset: int, isolation: int = 0) -> Any:
        answer = self.send("Fetch", 11, fetch_message("t", offset, isolation=isolation))
        assert answer.done
        return answer.reply.responses[0].partitions[0]


def test_a_damaged_offset_index_is_rebuilt_in_steps(caplog: pytest.LogCaptureFixture) -> None:
    files = written()
    damage(files, INDEX)
    world = Opened(files)
    segment = log_of(world).active
    assert world.fetched(FOUND_AT + 1).error_code == STORAGE_ERROR
    assert "00000000000000000000.index: a position is not that of a batch; rebuilding the index" in caplog.text
    answers = [
        produced(world.send("Produce", 9, produce_message("t", batch(b"%d" % n))).reply)
        for n in range(BATCHES, BATCHES + 3)
    ]
    assert [(one.error_code, one.base_offset) for one in answers] == [(0, BATCHES), (0, BATCHES + 1), (0, BATCHES + 2)]
    assert world.fetched(FOUND_AT // 2).error_code == 0
    assert world.send("Fetch", 11, fetch_message("other", 0)).reply.responses[0].partitions[0].error_code == 0
    assert world.turns == 1
    world.pass_ms(10)
    assert world.turns > BATCHES // STEP_BATCHES
    for offset in (FOUND_AT + 1, BATCHES + 2):
        found = world.fetched(offset)
        assert found.error_code == 0
        assert records.header_at(bytes(found.records)).base_offset == offset
    assert segment is log_of(world).active
    assert len(segment.index) >= BATCHES - 2
    assert not log_of(world).damaged
    assert world.broker.stop() is None
    caplog.clear()
    again = Opened(files)
    for offset in range(0, BATCHES + 3, 50):
        assert again.fetched(offset).error_code == 0
    assert not caplog.text


def test_a_damaged_time_index_is_rebuilt_in_steps() -> None:
    files = written()
    damage(files, TIME_INDEX)
    world = Opened(files)
    r = m.ListOffsetsRequest
    timestamp = 1000 + 10 * (FOUND_AT + 1) + 5
    part = r.ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=-1)
    request = r(replica_id=-1, topics=[r.ListOffsetsTopic(name="t", partitions=[part])])
    asked = world.send("ListOffsets", 7, request)
    assert asked.reply.topics[0].partitions[0].error_code == STORAGE_ERROR
    assert world.turns == 1
    world.pass_ms(10)
    assert world.turns > BATCHES // STEP_BATCHES
    answer = world.send("ListOffsets", 7, request).reply.topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (0, FOUND_AT + 2)


def test_damaged_aborted_transactions_are_rebuilt_in_steps() -> None:
    transactions = 100
    files = written(transactions)
    first = BATCHES - 2 * transactions
    damage(files, TXN_INDEX, at=50)
    files.remove(f"/data/t-0/{BATCHES:020d}.snapshot")
    world = Opened(files)
    world.turns = 0
    found = world.fetched(first, isolation=1)
    assert (found.error_code, bytes(found.records), found.aborted_transactions) == (STORAGE_ERROR, b"", None)
    log = log_of(world)
    assert not log.active.holds
    write(log, 90_000, 1, producer_id=1, producer_epoch=0, base_sequence=transactions, transactional=True)
    end(log, 1, False, 90_000)  # while the others are looked for
    grown(world)
    world.pass_ms(10)
    assert world.turns > BATCHES // STEP_BATCHES
    found = world.fetched(first, isolation=1)
    assert [(one.producer_id, one.first_offset) for one in found.aborted_transactions] == [
        (1, first + 2 * n) for n in range(transactions + 1)
    ]


def test_a_high_watermark_moves_over_a_damaged_index() -> None:
    """Fetches that wait are answered, and appends are acknowledged."""
    files = written()
    damage(files, INDEX)
    world = Opened(files)
    partition = world.broker.partitions.get("t", 0)
    partition.reset_high_watermark(10)
    waiting = world.send("Fetch", 11, fetch_message("t", 10, wait_ms=5000))
    acknowledged = partition.wait_for(FOUND_AT + 1)
    assert not waiting.done
    partition.advance(FOUND_AT + 1)
    assert waiting.reply.responses[0].partitions[0].error_code == STORAGE_ERROR
    assert acknowledged.done
    assert acknowledged.error is None
    world.pass_ms(10)
    assert world.fetched(10).error_code == 0


def test_an_index_that_is_missing_at_the_start_is_rebuilt_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    files = written()
    files.remove(LOG + INDEX)
    monkeypatch.setattr(replica_manager.ReplicaManager, "_open_later", lambda self: None)
    monkeypatch.setattr(replica_manager, "OPEN_STEP", 0)
    monkeypatch.setattr(replica_manager, "STEP_NS", 0)
    monkeypatch.setattr(replica_manager, "STEPS_AT_ONCE", 2)
    world = World(files)
    partition = world.broker.partitions.get("t", 0)
    answer = world.send("Fetch", 11, fetch_message("t", 0)).reply.responses[0].partitions[0]
    assert answer.error_code == Errors.NOT_LEADER_OR_FOLLOWER
    steps = 0
    while partition.log is None:
        world.broker.turn.event(world.broker.replicas._open_on)
        steps += 1
    assert steps >= BATCHES // STEP_BATCHES - 2
    assert partition.open_log().end_offset == BATCHES


def test_an_index_of_too_few_entries_is_rebuilt() -> None:
    """One that was cut is as right as the whole one, but leads to scans of the whole segment."""
    world = World()
    assert create(world, "t", index_interval_bytes="10") == 0
    count = SCAN_BATCHES_MAX + 200
    data = bytearray(b"".join(batch(b"", now=1000 + n) for n in range(count)))
    log_of(world).append(data, list(records.batches(data)), 0, 0)
    grown(world)
    assert world.broker.stop() is None
    files = world.files
    files.open(LOG + INDEX).truncate(INDEX_ENTRY.size)
    files.open(LOG + TIME_INDEX).truncate(TIME_INDEX_ENTRY.size)
    world = Opened(files)
    assert world.fetched(count - 1).error_code == STORAGE_ERROR
    world.pass_ms(10)
    assert world.fetched(count - 1).error_code == 0
    assert world.turns > count // STEP_BATCHES


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many batches scans and searches have looked at, as the only element."""
    counted = [0]
    scan = Segment.scan

    def passing(buf: bytes, offset: int, end: int) -> tuple[int, int]:
        start, count = passed_over(buf, offset, end)
        counted[0] += count
        return start, count

    def counting(self: Segment, position: int = 0, end: int | None = None) -> Any:
        for found in scan(self, position, end):
            counted[0] += 1
            yield found

    monkeypatch.setattr(Segment, "scan", counting)
    monkeypatch.setattr(segment, "passed_over", passing)
    return counted


def test_the_interval_between_index_entries_is_bounded(scanned: list[int]) -> None:
    """Whatever a topic says: otherwise a fetch looks at every batch before its offset."""
    world = World()
    assert create(world, "t", index_interval_bytes=str(2**31 - 1)) == 0
    count = 5000
    data = bytearray(b"".join(batch(b"", now=1000) for _ in range(count)))
    log_of(world).append(data, list(records.batches(data)), 0, 0)
    grown(world)
    scanned[0] = 0
    found = world.send("Fetch", 11, fetch_message("t", count - 1)).reply.responses[0].partitions[0]
    assert found.error_code == 0
    assert records.header_at(bytes(found.records)).base_offset == count - 1
    assert scanned[0] < 1200


def test_batches_before_a_timestamp_are_passed_over_in_steps(scanned: list[int]) -> None:
    """Entries of the time index ascend, so batches of lower timestamps have none."""
    files = MemFiles()
    world = Opened(files)
    assert create(world, "t", index_interval_bytes="10") == 0
    rows = [batch(b"", now=now) for now in (5000, *[1000] * BATCHES, 9000)]
    data = bytearray(b"".join(rows))
    log_of(world).append(data, list(records.batches(data)), 0, 0)
    grown(world)
    world.turns = scanned[0] = 0
    r = m.ListOffsetsRequest
    part = r.ListOffsetsPartition(partition_index=0, timestamp=7000, current_leader_epoch=-1)
    asked = world.send("ListOffsets", 7, r(replica_id=-1, topics=[r.ListOffsetsTopic(name="t", partitions=[part])]))
    assert not asked.done
    assert scanned[0] <= 3 * STEP_BATCHES
    world.pass_ms(10)
    assert asked.reply.topics[0].partitions[0].offset == BATCHES + 1
    assert world.turns > 1


def test_a_marker_that_cannot_be_read_is_not_guessed(caplog: pytest.LogCaptureFixture) -> None:
    """Its transaction may have been aborted: readers of committed records get none of this segment, others get all."""
    files = written(10)
    damage(files, TXN_INDEX, at=5)
    log = files.open(LOG + ".log")
    world = Opened(files)
    segment = log_of(world).active
    place = segment.find(BATCHES - 5).position
    data = bytearray(segment.read(place, segment.size - place))
    at = place + records.HEADER_SIZE
    log.write_at(at, bytes([data[records.HEADER_SIZE] ^ 0x40]))  # the size of its record
    for _ in range(3):
        assert world.fetched(BATCHES - 20, isolation=1).error_code == STORAGE_ERROR
        world.pass_ms(10)
    assert caplog.text.count("cannot be rebuilt") == 1
    assert world.fetched(BATCHES - 20).error_code == 0


def test_many_aborted_transactions_are_rebuilt_and_not_compared_one_by_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aborted, "CHECKED_MAX", 20)
    checks = [0]
    is_true = aborted._is_true

    def counted(*arguments: Any) -> bool:
        checks[0] += 1
        return is_true(*arguments)

    monkeypatch.setattr(aborted, "_is_true", counted)
    world = Opened(written(transactions=100))
    first = BATCHES - 200
    assert world.fetched(first + 180, isolation=1).error_code == 0
    assert checks[0] <= 20
    assert world.fetched(first, isolation=1).error_code == STORAGE_ERROR
    assert "too many entries" in caplog.text
    world.pass_ms(10)
    assert len(world.fetched(first, isolation=1).aborted_transactions) == 100
    assert checks[0] <= 20
    assert world.broker.stop() is None
    monkeypatch.setattr(aborted, "LOADED_MAX", 50)
    again = Opened(world.files)
    assert again.fetched(first + 180, isolation=1).error_code == STORAGE_ERROR
    again.pass_ms(10)
    assert len(again.fetched(first, isolation=1).aborted_transactions) == 100
    assert checks[0] <= 20


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
def test_a_reply_lists_a_bounded_number_of_aborted_transactions(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its records end where the list would become longer; a reader gets what it gets without the bound."""
    monkeypatch.setattr(fetch_reads, "ABORTED_MAX", most)
    world = World()
    assert create(world, "t", segment_bytes="1048576", index_interval_bytes="100") == 0
    log, sent = log_of(world), dict.fromkeys(range(1, 5), 0)
    expected: list[bytes | None] = []
    for n in range(60):
        rows = {pid: n * 10 + pid for pid in sent if (n + pid) % pid == 0 or pid == 1}
        for pid in rows:
            write(log, n, 1, producer_id=pid, producer_epoch=0, base_sequence=sent[pid], transactional=True)
            sent[pid] += 1
        if n == 30:
            log.roll(0)
        for pid in sent:
            if n % pid == pid - 1 or n == 59:
                end(log, pid, False, 0)
        write(log, 1000 + n, 1)
        expected.append(b"%d" % (1000 + n))
    grown(world)
    found: list[bytes | None] = []
    offset, replies = 0, 0
    while offset < log.end_offset:
        part = world.send("Fetch", 11, fetch_message("t", offset, isolation=1)).reply.responses[0].partitions[0]
        assert part.error_code == 0
        found += [value for _, value in committed_rows(part.records, part.aborted_transactions, offset)]
        offset = max(at.header.next_offset for at in records.batches(part.records))
        replies += 1
    assert found == expected
    assert (replies > 10) == (most < 10)


def test_aborted_transactions_beyond_a_thousand_count_for_the_bytes_of_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply about many partitions lists no more of them than one about few."""
    world = World()
    assert create(world, "t", partitions=3) == 0
    for index in range(3):
        partition = world.broker.partitions.get("t", index)
        for n in range(3):
            write(partition.open_log(), 0, 1, producer_id=1, producer_epoch=0, base_sequence=n, transactional=True)
            end(partition.open_log(), 1, False, 0)
        world.broker.turn.event(lambda partition=partition: world.broker.high_watermarks.appended(partition))  # type: ignore[misc]
    r = m.FetchRequest
    parts = [r.FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=100_000) for index in range(3)]
    request = r(topics=[r.FetchTopic(topic="t", partitions=parts)], max_bytes=5 * _fetch_reading.ABORTED_BYTES)
    for isolation_level, free, expected in ((0, 0, [None] * 3), (1, 1000, [3, 3, 3]), (1, 0, [3, 3, None])):
        request.isolation_level = isolation_level
        monkeypatch.setattr(_fetch_reading, "ABORTED_FREE", free)
        answers = world.send("Fetch", 11, request).reply.responses[0].partitions
        assert [bool(len(one.records)) for one in answers] == [isolation_level == 0 or bool(one) for one in expected]
        aborted = [one.aborted_transactions for one in answers]
        assert [None if one is None else len(one) for one in aborted] == expected
        assert not any(one.error_code for one in answers)


def test_followers_that_are_some_bytes_behind_cost_no_scan_of_the_segment(scanned: list[int]) -> None:
    world = World()
    assert create(world, "t") == 0
    log = log_of(world)
    data = bytearray(b"".join(batch(b"", now=1000) for _ in range(3000)))
    log.append(data, list(records.batches(data)), 0, 0)
    set_policy(world, "t", "bytes=5000")
    partition = world.broker.partitions.get("t", 0)
    scanned[0] = 0
    grown(world)
    size = log.size // 3000
    assert partition.high_watermark == (log.size - 5000) // size
    assert scanned[0] < 200
