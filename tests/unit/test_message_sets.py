"""Logs of message sets of versions 0 and 1: what is appended is found, recovered, deleted and compacted."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.broker.steps import all_at_once
from ottla.protocol import legacy
from ottla.protocol.compression import GZIP, NONE
from ottla.protocol.legacy import Message
from ottla.storage import retention, timestamps
from ottla.storage.log import Log
from ottla.storage.message_sets import append_messages

from ..support.logs import compact, open_log
from ..support.memory_files import MemFiles

T = 1_700_000_000_000


def append(
    log: Log, *rows: tuple[bytes, bytes | None], magic: int = 1, codec: int = NONE, now: int = 0, time: int = T
) -> None:
    start = log.end_offset
    given = [Message(start + i, key, value, magic, time if magic else -1) for i, (key, value) in enumerate(rows)]
    append_messages(log, legacy.encode(given, codec), now)


def told(log: Log, start: int = 0) -> list[tuple[int, bytes | None]]:
    return [
        (one.offset, one.value)
        for segment, batch in log.batches_from(start)
        for one in legacy.decode(segment.read_batch(batch))
    ]


def filled(files: MemFiles, magic: int, codec: int, **settings: Any) -> Log:
    log = open_log(files, segment_bytes=1000, index_interval_bytes=100, **settings)
    for n in range(30):
        append(log, (b"a", b"%d" % n * 20), (b"b", b"x" * 20), magic=magic, codec=codec, now=n, time=T + n)
    return log


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_each_offset_is_found_by_the_index_also_after_a_restart_and_a_crash(
    files: MemFiles, magic: int, codec: int
) -> None:
    log = filled(files, magic, codec)
    assert (log.end_offset, len(log.segments) > 2, len(log.segments[0].index) > 1) == (60, True, True)
    whole = told(log)
    assert [offset for offset, _ in whole] == list(range(60))
    for is_clean in (None, True, False):
        if is_clean is not None:
            log.close()
            log = open_log(files, clean=is_clean, segment_bytes=1000, index_interval_bytes=100)
        for offset in (0, 1, 17, 30, 59):
            piece = log.read(offset, 10_000, None, True)
            assert piece is not None
            found = legacy.decode(bytes(piece))
            first = offset if codec == NONE else offset - offset % 2
            assert (found[0].offset, found[0].value) == (first, whole[first][1])
            piece.release()
        append(log, (b"a", b"more"), magic=magic, codec=codec)
        whole.append((len(whole), b"more"))
        assert told(log) == whole


@pytest.mark.parametrize("magic", [0, 1])
def test_a_crash_cuts_a_log_at_the_first_message_that_is_wrong(files: MemFiles, magic: int) -> None:
    log = filled(files, magic, NONE)
    path, size = log.active.path(".log"), log.active.size
    last = log.end_offset
    log.close()
    handle = files.open(path)
    handle.write_at(size - 3, b"???")
    log = open_log(files, clean=False, segment_bytes=1000)
    assert log.end_offset == last - 1
    assert told(log)[-1][0] == last - 2


def test_times_are_found_in_messages_of_version_1(files: MemFiles) -> None:
    for codec in (NONE, GZIP):
        log = filled(files, 1, codec, name=f"t-{codec}")
        found = all_at_once(timestamps.first_from(log, T + 17))
        assert found is not None
        assert (found.offset, found.timestamp, found.leader_epoch) == (34, T + 17, -1)
        assert all_at_once(timestamps.first_from(log, T + 30)) is None


def test_messages_without_times_are_deleted_by_the_last_write_to_their_segment(files: MemFiles) -> None:
    log = filled(files, 0, NONE, retention_ms=10)
    written = [one.modified_ms for one in log.segments]
    assert written == sorted(set(written)), "each segment was written later than the one before it"
    assert [one.modified_ms for one in retention.due(log, 60, written[1] + 11)] == written[:2]


@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("magic", [0, 1])
def test_compaction_keeps_the_last_message_of_each_key(files: MemFiles, magic: int, codec: int) -> None:
    log = filled(files, magic, codec, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    log.roll(0)
    assert compact(log, files)
    assert told(log) == [(58, b"29" * 20), (59, b"x" * 20)]
    (entry, *_) = [legacy.decode(segment.read_batch(batch))[0] for segment, batch in log.batches_from(0)]
    assert (entry.magic, entry.timestamp) == (magic, T + 29 if magic else -1)
    log.close()
    assert told(open_log(files)) == [(58, b"29" * 20), (59, b"x" * 20)]


def test_a_compressed_message_that_keeps_a_part_has_its_offsets(files: MemFiles) -> None:
    for magic in (0, 1):
        log = open_log(files, f"t-{magic}", cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
        append(log, (b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"d", b"4"), magic=magic, codec=GZIP)
        append(log, (b"a", b"5"), (b"d", b"6"), magic=magic, codec=GZIP)
        log.roll(0)
        compact(log, files)
        assert told(log) == [(1, b"2"), (2, b"3"), (4, b"5"), (5, b"6")]


def test_a_deletion_goes_when_its_segment_is_old_enough(files: MemFiles) -> None:
    settings: dict[str, Any] = {
        "cleanup_policy": ("compact",),
        "min_cleanable_dirty_ratio": 0.0,
        "delete_retention_ms": 1000,
        "segment_bytes": 60,
    }
    files.now_ms = 1000
    log = open_log(files, **settings)
    for at, (key, value) in ((1000, (b"a", None)), (1500, (b"b", b"x" * 30)), (2500, (b"c", b"x" * 30))):
        files.now_ms = at
        append(log, (key, value), now=at)
    log.roll(0)
    compact(log, files)
    assert [offset for offset, _ in told(log)] == [0, 1, 2], "nothing was cleaned before"
    files.now_ms = 3000
    append(log, (b"d", b"x" * 30), now=3000)
    log.roll(0)
    compact(log, files)
    assert [offset for offset, _ in told(log)] == [1, 2, 3]
