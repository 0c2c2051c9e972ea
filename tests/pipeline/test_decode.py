"""Records by columns are the records that the protocol's own codec reads, whatever is in them; damage is noticed, in
its batch alone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.pipeline.batches import crc_verdicts, scan
from ottla.pipeline.decode import SECTION_RECORDS, sections, starts_of
from ottla.pipeline.decode import overlapping as decode_words
from ottla.pipeline.files import PADDING
from ottla.pipeline.opened import Broken, Opened, open_batches
from ottla.protocol import compression, legacy, records
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import HEADER_SIZE, Record, Template

from .decoded import by_codec, by_columns

FIELD = st.none() | st.binary(max_size=200)
HEADERS = st.lists(st.tuples(st.text(max_size=8), FIELD), max_size=3)
RECORDS = st.lists(
    st.tuples(FIELD, FIELD, st.integers(-1, 1 << 40) | st.integers(-1, 1 << 56), HEADERS, st.integers(1, 1 << 20)),
    min_size=1, max_size=8
)  # fmt: skip
BATCHES = st.lists(
    st.tuples(RECORDS, st.sampled_from(range(5)), st.booleans(), st.integers(-1, 1 << 40)), min_size=1, max_size=6
)


def written(made: Any) -> bytes:
    data, offset = bytearray(), 0
    for rows, codec, append_time, producer_id in made:
        base, batch = offset, []
        for key, value, timestamp, headers, step in rows:
            batch.append(Record(key, value, timestamp, offset, headers))
            offset += step
        data += records.encode(
            batch,
            Template(base_offset=base, codec=codec, append_time=77 if append_time else None, producer_id=producer_id),
        )
    return bytes(data)


@pytest.mark.long
@given(BATCHES)
def test_columns_are_what_the_codec_reads(made: Any) -> None:
    data = written(made)
    assert by_columns(data) == by_codec(data)


def long_batch(values: Any, count: int = 1000, **settings: Any) -> bytes:
    made = [
        Record(b"k%d" % n if n % 3 else None, values(n), 1_700_000_000_000 + n, n, [("h", b"x")] if n % 50 == 0 else [])
        for n in range(count)
    ]
    return bytes(records.encode(made, Template(**settings)))


LIKE_RECORDS = long_batch(lambda n: b"v", 400)[HEADER_SIZE:]
VALUES: dict[str, Callable[[int], bytes | None]] = {
    "text": lambda n: b"some text %d" % n,
    "of all lengths": lambda n: bytes(chr(97 + n % 26), "ascii") * (n * n % 300),
    "null": lambda n: None,
    "zeros": lambda n: bytes(100),
    "random": lambda n: random.Random(n).randbytes(120),
    "like records": lambda n: LIKE_RECORDS[n * 7 % 900 : n * 7 % 900 + 400],
    "one that is long": lambda n: b"x" * (70_000 if n == 500 else 10),
}


@pytest.mark.parametrize("codec", [0, 3])
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_long_batches_are_read_in_sections(values: Any, codec: int) -> None:
    data = long_batch(values, codec=codec)
    assert by_columns(data) == by_codec(data)


def test_sections_are_what_they_say() -> None:
    """Cut where records start, with as many records as lie between; a batch that compaction went through stays one
    piece.
    """
    data = np.frombuffer(long_batch(VALUES["text"]) + bytes(PADDING), np.uint8)
    starts, counts, ends = (np.array([n]) for n in (HEADER_SIZE, 1000, len(data) - PADDING))
    at, count, behind = sections(data, decode_words(data), starts, counts, ends, np.array([True]))
    assert len(at) >= 1000 // SECTION_RECORDS - 1
    assert int(count.sum()) == 1000
    assert (at[1:] == behind[:-1]).all()
    assert behind[-1] == ends[0]
    bodies, _ = starts_of(decode_words(data), starts, counts)
    assert set((at + 1).tolist()) <= set(bodies.tolist()), "sizes have one byte here"
    holes = bytes(records.encode([Record(None, b"v%d" % n, 0, n * 2) for n in range(500)], Template(base_offset=0)))
    assert by_columns(holes) == by_codec(holes)


def test_numbers_of_nine_bytes_are_read_by_hand() -> None:
    data = bytes(records.encode([Record(None, b"a", 5), Record(None, b"b", (1 << 62) + 5)])) + bytes(
        records.encode([Record(None, b"c", 6)])
    )
    assert by_columns(data) == by_codec(data)


@pytest.mark.parametrize("codec", range(4))  # zstd came with the format after these
@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets(magic: int, codec: int) -> None:
    messages = [
        legacy.Message(7 + n, b"k", None if n == 1 else b"v%d" % n, magic, 1000 + n if magic else -1) for n in range(3)
    ]
    data = legacy.encode(messages, codec)
    assert [row[0] for row in by_columns(data)] == [one.offset for one in legacy.decode(data)]
    assert [row[1:4] for row in by_columns(data)] == [
        (one.timestamp, one.key, one.value) for one in legacy.decode(data)
    ]


@given(BATCHES, st.data())
def test_a_damaged_batch_is_noticed_and_the_others_are_read(made: Any, chance: Any) -> None:
    """What is opened after a byte was changed is what the codec reads; only the batch with the byte may be lost."""
    data = bytearray(written(made))
    table = scan(bytes(data), 0, len(data)).table
    hit = chance.draw(st.integers(0, len(table) - 1))
    start, size = int(table["position"][hit]), int(table["length"][hit]) + records.LOG_OVERHEAD
    where = chance.draw(st.integers(start + records.HEADER_SIZE, start + size - 1))
    data[where] ^= chance.draw(st.integers(1, 255))
    assert crc_verdicts(bytes(data), table).tolist() == [n != hit for n in range(len(table))]
    offsets = []
    for group in open_batches(bytes(data), table, with_headers=True, limit_bytes=1 << 20):
        if isinstance(group, Broken):
            assert group.position == start
        else:
            offsets.append(group.offset)
    wanted = []
    for at in records.batches(bytes(data)):
        try:
            wanted += [one.offset for one in records.decode(bytes(data), at, 1 << 20)]
        except MalformedMessage:
            assert at.position == start
    assert np.concatenate([*offsets, np.empty(0, np.int64)]).tolist() == wanted


def test_a_decompression_bomb_is_an_error_and_no_memory() -> None:
    bomb = bytes(records.encode([Record(None, bytes(10 << 20))], Template(codec=compression.ZSTD)))
    whole = bomb + bytes(records.encode([Record(None, b"after", offset=1)], Template(base_offset=1)))
    found = list(open_batches(whole, scan(whole, 0, len(whole)).table, limit_bytes=1 << 20))
    assert isinstance(found[0], Broken)
    assert "more than" in found[0].problem
    assert isinstance(found[1], Opened)


@given(st.binary(max_size=400))
def test_anything_is_scanned(data: bytes) -> None:
    found = scan(data, 0, len(data))
    assert 0 <= found.end <= len(data)
    for group in open_batches(data, found.table, with_headers=True, limit_bytes=1 << 20):
        assert isinstance(group, Opened | Broken)
