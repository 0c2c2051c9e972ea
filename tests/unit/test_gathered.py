"""Batches that are gathered for one write: when they may be, and what is left of them if they cannot be written."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import records
from ottla.protocol.records import BatchAt, Record, Template
from ottla.storage import files as storage_files
from ottla.storage.files import OsFiles
from ottla.storage.gathered import Gathered
from ottla.storage.log import Log
from ottla.storage.segment import Segment

from ..support.logs import append, open_log
from ..support.memory_files import MemFiles

NOW = 1_000_000


def made(count: int = 1, timestamp: int = NOW, **template: Any) -> tuple[bytearray, BatchAt]:
    data = bytearray(records.encode([Record(None, b"v", timestamp)] * count, Template(**template)))
    return data, BatchAt(0, records.header_at(data))


def gathered(log: Log, *batches: tuple[bytearray, BatchAt], epoch: int = 0) -> Gathered:
    found = Gathered(log, epoch, NOW)
    for data, at in batches:
        assert found.has_room(at.header)
        found.add(data, at)
    return found


def test_the_log_is_as_it_was_until_they_are_written(files: MemFiles) -> None:
    log = open_log(files)
    append(log, b"first")
    found = gathered(log, made(2), made())
    assert (log.end_offset, log.active.size, found.end_offset, len(found)) == (1, log.active.size, 4, 2)
    found.write(NOW)
    assert log.end_offset == 4
    data = log.active.read(0, log.active.size)
    assert [at.header.base_offset for at in records.batches(data)] == [0, 1, 3]


def test_producers_are_as_they_were_if_they_cannot_be_written(files: MemFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(files)
    append(log, b"first")
    gathered(log, made(producer_id=7, producer_epoch=1, base_sequence=0)).write(NOW)
    before = log.producers.snapshot(), log.end_offset, log.active.size
    found = gathered(
        log,
        made(producer_id=7, producer_epoch=1, base_sequence=1),
        made(producer_id=7, producer_epoch=2, base_sequence=0),
        made(producer_id=8, producer_epoch=0, base_sequence=0),
    )
    assert log.producers.snapshot() != before[0]
    monkeypatch.setattr(files, "before_write", _fails)
    with pytest.raises(OSError, match="full"):
        found.write(NOW)
    assert (log.producers.snapshot(), log.end_offset, log.active.size) == before
    repeated = made(producer_id=7, producer_epoch=1, base_sequence=0)[1].header
    assert log.producers.find_duplicate(repeated) is not None
    assert log.producers.by_id.keys() == {7}


def _fails(size: int) -> None:
    raise OSError(28, "full")


def test_markers_transactions_new_epochs_and_times_of_the_broker_are_not_gathered(files: MemFiles) -> None:
    log = open_log(files)
    append(log, b"first")
    header = made()[1].header
    assert Gathered(log, 0, NOW).has_room(header)
    for bit in (records.CONTROL_MASK, records.TRANSACTIONAL_MASK):
        assert not Gathered(log, 0, NOW).has_room(header._replace(attributes=bit))
    assert not Gathered(log, 1, NOW).has_room(header)
    log.settings = log.settings._replace(message_timestamp_type="LogAppendTime")
    assert not Gathered(log, 0, NOW).has_room(header)


@pytest.mark.parametrize("seed", range(60))
def test_what_has_room_is_written_where_it_would_be_if_each_were_appended_alone(files: MemFiles, seed: int) -> None:
    chance = random.Random(seed)
    settings: dict[str, Any] = {
        "segment_bytes": chance.choice((500, 2000, 1 << 20)),
        "segment_ms": chance.choice((20, 2000, 1 << 40)),
        "segment_jitter_ms": chance.choice((0, 9)),
        "segment_index_bytes": chance.choice((48, 96, 1 << 20)),
        "index_interval_bytes": chance.choice((0, 100, 4096)),
    }
    is_timed = chance.random() < 0.7
    together, alone = (open_log(files, name, NOW, **settings) for name in ("a-0", "a-1"))
    alone.partition = together.partition  # the jitter is that of the partition
    written = 0
    for step in range(60):
        now = NOW + step
        batches = [(chance.randint(1, 5), now + chance.randrange(5)) for _ in range(chance.randint(1, 5))]
        if not is_timed:
            batches = [(count, -1) for count, _ in batches]
        for one in batches:
            data, at = made(*one)
            alone.append(data, [at], 0, now)
        found = Gathered(together, 0, now)
        for one in batches:
            data, at = made(*one)
            if found.has_room(at.header):
                found.add(data, at)
                continue
            if len(found):
                found.write(now)
            together.append(data, [at], 0, now)
            found = Gathered(together, 0, now)
        if len(found):
            found.write(now)
            written += 1
    assert [shown(one) for one in together.segments] == [shown(one) for one in alone.segments]
    assert written


def shown(segment: Segment) -> tuple[object, ...]:
    return segment.base_offset, segment.read(0, segment.size), bytes(segment.index.data), bytes(segment.times.data)


@pytest.mark.parametrize("has_pwritev", [True, False])
@pytest.mark.parametrize("count", [1, 2, 1300])
def test_pieces_are_written_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, has_pwritev: bool
) -> None:
    if not has_pwritev:
        monkeypatch.setattr(storage_files, "_pwritev", storage_files._joined)
    pieces = [b"%d," % number for number in range(count)]
    handle = OsFiles().open(str(tmp_path / "f"), create=True)
    handle.write_at(0, b"head")
    handle.write_all_at(4, pieces)
    assert handle.read_at(0, 1 << 20) == b"head" + b"".join(pieces)


def test_what_a_write_has_left_of_the_pieces_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def little(fd: int, pieces: Any, position: int) -> int:
        return os.pwrite(fd, b"".join(pieces)[:4], position)

    monkeypatch.setattr(storage_files, "_pwritev", little)
    handle = OsFiles().open(str(tmp_path / "f"), create=True)
    handle.write_all_at(0, [b"abc", b"def", b"ghi"])
    assert handle.read_at(0, 100) == b"abcdefghi"
