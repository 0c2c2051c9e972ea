"""The search of a segment for an offset."""

from __future__ import annotations

import random
import struct

import pytest
from ottla.protocol import records
from ottla.protocol.records import Record, Template
from ottla.storage import segment
from ottla.storage.batch_info import BatchInfo, info_at
from ottla.storage.files import HandlePool
from ottla.storage.segment import SCAN_BYTES, Segment

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
