"""The memory of indexes: bounded, however long the logs are, and read again when they are needed."""

from __future__ import annotations

import gc

import pytest
from ottla.storage import loaded_indexes
from ottla.storage.index import OffsetIndex, TimeIndex
from ottla.storage.layout import INDEX, INDEX_ENTRY, TIME_INDEX_ENTRY
from ottla.storage.log import Log
from ottla.storage.segment import IndexDamaged
from ottla.storage.timestamps import first_from

from ..support.logs import append, open_log, remove_due
from ..support.memory_files import MemFiles
from ..support.steps import result_of

SEGMENTS = 12
BATCHES = 10  # of a segment
SEGMENT_INDEX_BYTES = (BATCHES - 1) * (INDEX_ENTRY.size + TIME_INDEX_ENTRY.size)
SEGMENTS_MAX = 3  # whose indexes may be in memory
END = SEGMENTS * BATCHES


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_indexes, "INDEX_BYTES_MAX", SEGMENTS_MAX * SEGMENT_INDEX_BYTES)


def opened(files: MemFiles) -> Log:
    return open_log(files, segment_bytes=1 << 20, index_interval_bytes=0, retention_ms=-1, file_delete_delay_ms=0)


@pytest.fixture
def log(files: MemFiles) -> Log:
    return filled(files)


def filled(files: MemFiles) -> Log:
    made = opened(files)
    for number in range(END):
        append(made, b"value", timestamp=number)
        if number % BATCHES == BATCHES - 1:
            made.roll(0)
    return made


def index_bytes() -> int:
    """Those in memory, of all logs."""
    gc.collect()
    return sum(len(one.data) for one in gc.get_objects() if isinstance(one, OffsetIndex | TimeIndex))


def read_all(log: Log) -> None:
    for offset in range(END):
        piece = log.read(offset, 1, None, True)
        assert piece is not None
        assert piece.position == log.position_of(offset)[1]
        piece.release()


def time_of(log: Log, timestamp: int) -> int:
    found = result_of(first_from(log, timestamp))
    assert found is not None
    return found.offset


def test_a_log_that_grows_does_not_take_more_memory(log: Log) -> None:
    assert index_bytes() <= (SEGMENTS_MAX + 1) * SEGMENT_INDEX_BYTES


def test_what_was_freed_is_read_again(log: Log) -> None:
    read_all(log)
    for timestamp in (3, 57, END - 1):
        assert time_of(log, timestamp) == timestamp
    assert index_bytes() <= (SEGMENTS_MAX + 1) * SEGMENT_INDEX_BYTES


def test_a_start_does_not_keep_what_it_has_looked_at(files: MemFiles) -> None:
    filled(files).close()
    again = opened(files)
    assert index_bytes() <= (SEGMENTS_MAX + 1) * SEGMENT_INDEX_BYTES
    read_all(again)
    append(again, b"more")
    assert again.end_offset == END + 1


def test_a_segment_that_is_used_again_and_again_stays(
    files: MemFiles, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.position_of(5)
    found: list[str] = []
    read = files.read

    def noted(path: str) -> bytes:
        found.append(path)
        return read(path)

    monkeypatch.setattr(files, "read", noted)
    for offset in range(0, END, BATCHES):
        log.position_of(offset + 5)
        log.position_of(5)
    assert len(found) >= SEGMENTS - SEGMENTS_MAX - 1
    assert log.segments[0].path(INDEX) not in found


def test_what_is_not_in_its_file_as_a_whole_stays(log: Log) -> None:
    first = log.segments[0]
    read_all(log)
    log.position_of(5)
    first.reset_indexes()
    for offset in range(BATCHES, END):
        log.position_of(offset)
    assert len(first.index) == 0, "not the entries that are in the file"


def test_an_index_is_compared_with_the_log_whenever_it_is_read(files: MemFiles, log: Log) -> None:
    path = log.segments[0].path(INDEX)
    true, false = INDEX_ENTRY.pack(5, 370), INDEX_ENTRY.pack(5, 371)
    assert true in files.read(path)
    files.replace(path, files.read(path).replace(true, false))
    with pytest.raises(IndexDamaged):
        log.position_of(5)


def test_what_was_removed_is_not_counted(log: Log) -> None:
    read_all(log)
    log.remove_segments(log.segments[:-1], 0)
    remove_due(log, 0)
    assert log.pool.indexes.bytes == 0
