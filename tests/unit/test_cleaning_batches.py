"""Compaction writes what one would write that opens every record twice, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest
from ottla.protocol import records, spans
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import BatchAt, BatchHeader, Record, Template
from ottla.storage import batch_reader, cleaning, cleaning_batches
from ottla.storage.batch_reader import BatchReader
from ottla.storage.cleaning_batches import LastOffsets
from ottla.storage.layout import CLEANED
from ottla.storage.log import Log

from ..support.logs import append, cleaned, open_log
from ..support.memory_files import MemFiles

RETENTION_MS = 1000


def open_compacted(files: MemFiles, segment_bytes: int = 3000) -> Log:
    return open_log(
        files,
        segment_bytes=segment_bytes,
        cleanup_policy=("compact",),
        min_cleanable_dirty_ratio=0.0,
        delete_retention_ms=RETENTION_MS,
    )


def some_records(chance: random.Random) -> list[Record]:
    def one() -> Record:
        key = None if chance.random() < 0.05 else b"key-%d" % chance.randrange(40)
        value = None if chance.random() < 0.1 else chance.randbytes(chance.choice((0, 5, 70)))
        headers = [("name", b"value")] if chance.random() < 0.2 else []
        return Record(key, value, 1000 + chance.randrange(2000), headers=headers)

    return [one() for _ in range(chance.randrange(1, 9))]


def some_batch(chance: random.Random, odd: bool) -> bytearray:
    """A batch as a broker writes it, or one that it would only write without validation: damaged, or with offsets that
    its header does not have.
    """
    rows = some_records(chance)
    append_time = chance.choice((None, None, 4000))
    template = Template(codec=chance.choice((0, 0, 1, 2, 3, 4)), append_time=append_time)
    way = chance.randrange(6) if odd else -1
    if way == 0:
        rows[0].offset, template.last_offset_delta = 30, 0
    data = records.encode(rows, template)
    if way in (1, 2):
        data[-1] ^= 0x55
    if way == 2:
        data[17:21] = records.computed_crc(data, 0, len(data)).to_bytes(4, "big")
    return data


def expected(log: Log, plan: cleaning.Plan) -> bytes:
    """What stays of the segments, batch by batch. No producer has its last batch among them."""
    latest: dict[bytes, int] = {}
    found = []
    for segment in plan.segments:
        for batch in segment.scan():
            data, header = segment.read_batch(batch), batch.header
            assert header is not None
            rows = None
            if records.computed_crc(data, 0, len(data)) == header.crc:
                with suppress(MalformedMessage):
                    rows = records.decode(data, BatchAt(0, header))
            found.append((data, header, rows))
            if rows is not None and segment.base_offset >= plan.first_dirty:
                latest.update([(row.key, row.offset) for row in rows if row.key is not None])
    return b"".join(kept_of(*one, latest, plan.now_ms) for one in found)


def kept_of(
    data: bytes, header: BatchHeader, rows: list[Record] | None, latest: dict[bytes, int], now_ms: int
) -> bytes | bytearray:
    if rows is None:
        return data
    horizon = header.delete_horizon_ms
    expired = horizon is not None and horizon <= now_ms
    kept = [row for row in rows if row.key is not None and latest.get(row.key, -1) <= row.offset]
    kept = [row for row in kept if row.value is not None or not expired]
    has_new = horizon is None and any(row.value is None for row in kept)
    if kept == rows and not has_new:
        return data
    template = Template(
        header.base_offset,
        header.partition_leader_epoch,
        header.codec,
        header.max_timestamp if header.is_append_time else None,
        last_offset_delta=header.last_offset_delta,
        delete_horizon_ms=now_ms + RETENTION_MS if has_new else horizon,
    )
    return records.encode(kept, template) if kept else b""


def written(files: MemFiles, log: Log) -> bytes:
    names = [name for name in files.names(log.directory) if name.endswith(f".log{CLEANED}")]
    return b"".join(files.read(f"{log.directory}/{name}") for name in names)


@pytest.mark.long
@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_what_stays_is_the_same_as_with_all_records_read(files: MemFiles, seed: int, odd: bool) -> None:
    chance = random.Random(seed)
    log = open_compacted(files)
    for round_number in range(3):
        for _ in range(40):
            data = some_batch(chance, odd)
            log.append(data, list(records.batches(data)), 0, 0)
        log.roll(0)
        plan = cleaning.plan(log, log.end_offset, round_number * (RETENTION_MS + 1))
        assert plan is not None
        stays = expected(log, plan)
        outcome = cleaned(files, plan.job(log.end_offset + 1))
        assert written(files, log) == stays
        cleaning.swap(log, plan, outcome, plan.now_ms)


def test_a_batch_that_comes_before_its_offset_supersedes_as_it_comes(files: MemFiles) -> None:
    """As in a log that something else has written: with the last batch that has a key, and not with the highest
    offset.
    """
    log = open_compacted(files)
    for n in range(4):
        append(log, b"%d" % n, keys=[b"key"])
    log.roll(0)
    *_, last = log.segments[0].scan()
    data = bytearray(log.segments[0].read_batch(last))
    records.set_offset_and_epoch(data, 0, 0, 0)
    log.segments[0].handle.write_at(last.position, data)
    plan = cleaning.plan(log, log.end_offset, 0)
    assert plan is not None
    cleaned(files, plan.job(log.end_offset))
    assert len(written(files, log)) == log.segments[0].size, "1 and 2 are above the offset that came last"


def test_a_record_outside_of_its_batch_is_compared_by_its_own_offset(files: MemFiles) -> None:
    log = open_compacted(files)
    data = records.encode([Record(b"key", b"far", offset=30)], Template(last_offset_delta=0))
    log.append(data, list(records.batches(data)), 0, 0)
    append(log, b"later", keys=[b"key"])
    log.roll(0)
    plan = cleaning.plan(log, log.end_offset, 0)
    assert plan is not None
    cleaned(files, plan.job(log.end_offset))
    assert len(written(files, log)) == log.segments[0].size


def test_a_batch_in_many_pieces_is_opened_again(files: MemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans, "PIECE_RECORDS", 2)
    log = open_compacted(files)
    keys = [b"%d" % n for n in range(4 * cleaning_batches.HELD_PIECES)]
    append(log, *keys, keys=keys)
    append(log, b"later", keys=[keys[0]])
    log.roll(0)
    plan = cleaning.plan(log, log.end_offset, 0)
    assert plan is not None
    stays = expected(log, plan)
    cleaned(files, plan.job(log.end_offset))
    assert written(files, log) == stays


def test_batches_without_records_that_stay_are_read_once(files: MemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_compacted(files)
    for n in range(20):
        append(log, b"%d" % n, b"once", keys=[b"key", b"%d" % (n // 10)])
    log.roll(0)
    opened = []

    def counted(buf: bytes, at: BatchAt) -> Iterator[spans.Piece]:
        opened.append(at.header.base_offset)
        yield from found(buf, at)

    found = spans.pieces
    monkeypatch.setattr(spans, "pieces", counted)
    plan = cleaning.plan(log, log.end_offset, 0)
    assert plan is not None
    cleaned(files, plan.job(log.end_offset))
    assert opened == [*range(0, 40, 2), 18, 38]


def test_a_segment_that_the_map_does_not_reach_is_opened() -> None:
    latest = LastOffsets()
    data = bytes(records.encode([Record(b"key", b"value")]))
    header = records.header_at(data)
    assert not latest.supersedes(header, 0)


@pytest.mark.parametrize("largest", [100, batch_reader.LARGE_BYTES + 1, 2 * batch_reader.WINDOW_BYTES])
def test_a_reader_finds_all_batches_with_their_bytes(files: MemFiles, largest: int) -> None:
    chance = random.Random(largest)
    log = open_compacted(files, segment_bytes=1 << 30)
    for _ in range(200):
        append(log, bytes(chance.randrange(chance.choice((100, largest)))))
    segment = log.segments[0]
    segment.handle.write_at(segment.size, b"no batch" * 10)
    segment.size += 80
    reader, found = BatchReader(segment), []
    for info in reader.infos():
        found.append(info)
        if chance.random() < 0.5:
            read = reader.read(info)
            assert read.whole(info.size) == segment.read_batch(info)
    assert found == list(segment.scan())
    assert found[-1].last_offset == 199
