"""The search of a segment for an offset."""

from __future__ import annotations

import random
import struct

import pytest
from ottla.protocol import records
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.records import Record, Template
from ottla.storage import segment
from ottla.storage.batch_info import BatchInfo, info_at
from ottla.storage.files import HandlePool
from ottla.storage.segment import SCAN_BYTES, Segment
from ottla.storage.truncation import truncate

from ..support.logs import append, open_log
from ..support.memory_files import MemFiles


def _batch(chance: random.Random, offset: int) -> tuple[bytes, int]:
    """A batch or an entry of a message set, and the offset after it."""
    size = chance.choice((0, 0, 10, 200, SCAN_BYTES))
    if chance.random() < 0.3:
        magic = chance.randrange(2)
        body = bytes(14 + 8 * magic + size)
        return struct.pack(">qi4xb", offset, len(body), magic) + body[5:], offset + 1
    rows = [Record(b"k", bytes(size), 0) for _ in range(chance.choice((1, 1, 7)))]
    return bytes(records.encode(rows, Template(base_offset=offset))), offset + len(rows)


def _segment(data: bytes) -> Segment:
    files = MemFiles()
    files.make_directory("/d")
    made = Segment(HandlePool(files, 8), "/d", 0, 0, len(data))
    made.create()
    made.handle.write_at(0, data)
    return made


@pytest.mark.parametrize("seed", range(30))
def test_a_search_finds_what_a_scan_of_all_batches_finds(seed: int) -> None:
    chance = random.Random(seed)
    data, offset = b"", 0
    for _ in range(chance.randrange(1, 60)):
        made, offset = _batch(chance, offset + chance.choice((0, 0, 5)))
        data += made
    if seed % 3 == 1:
        data = data[: -chance.randrange(1, 70)]
    elif seed % 3 == 2:
        place = chance.randrange(len(data))
        data = data[:place] + chance.randbytes(30) + data[place + 30 :]
    found = _segment(data)
    for end in (len(data), chance.randrange(len(data) + 1)):
        batches = list(found.scan(0, end))
        for wanted in range(offset + 1):
            expected = next((one for one in batches if one.last_offset >= wanted), None)
            assert found.find(wanted, end) == expected


def test_a_search_makes_no_objects_of_the_batches_before_an_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [0]

    def counted(buf: bytes, start: int, position: int) -> BatchInfo | None:
        made[0] += 1
        return info_at(buf, start, position)

    monkeypatch.setattr(segment, "info_at", counted)
    data = b"".join(bytes(records.encode([Record(b"", b"", 0)], Template(base_offset=n))) for n in range(500))
    found = _segment(data)
    batches = [found.find(n) for n in (0, 40, 499)]
    assert [one and one.base_offset for one in batches] == [0, 40, 499]
    assert made[0] <= 2 * (2 + len(data) // (SCAN_BYTES - 100))


def test_readers_at_the_end_of_the_log_read_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every record whose consumers wait for it is read so: one read of the file for its bytes, none to find them."""
    log = open_log(MemFiles())
    for _ in range(3):
        append(log, b"a", b"b")
    whole = log.read(4, 1000, None, True)
    assert whole is not None
    asked: list[int] = []
    monkeypatch.setattr(Segment, "read", lambda self, position, length: asked.append(position))
    pieces = [log.read(offset, 1000, None, True) for offset in (4, 5)]
    assert [piece and (piece.position, piece.length) for piece in pieces] == [(whole.position, whole.length)] * 2
    assert log.position_of(5) == (log.active, whole.position)
    assert not asked


def test_the_newest_batch_is_not_found_after_a_truncation() -> None:
    log = open_log(MemFiles())
    append(log, b"a")
    append(log, b"b", b"c")
    truncate(log, 2)
    assert log.active.place(2, log.active.size) is None
    assert log.read(1, 1000, None, True) is None


def test_damage_before_the_only_batch_of_a_closed_segment_is_found() -> None:
    """Kafka's PlaintextAdminIntegrationTest writes a header with the size 0 before it."""
    log = open_log(MemFiles())
    append(log, b"a", b"b")
    log.roll(0)
    closed = log.segments[0]
    closed.handle.write_at(0, bytes(12) + closed.read(0, closed.size))
    with pytest.raises(ApiError) as refused:
        log.read(0, 1000, None, True)
    assert refused.value.code == Errors.CORRUPT_MESSAGE
