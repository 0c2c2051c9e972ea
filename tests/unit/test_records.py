"""Record batches, message sets and compression."""

from __future__ import annotations

import random
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.protocol import compression, legacy, records
from ottla.protocol.compression import DecompressedTooLarge
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import Record, Template

optional_bytes = st.none() | st.binary(max_size=40)
some_records = st.lists(
    st.builds(
        Record,
        key=optional_bytes,
        value=optional_bytes,
        timestamp=st.integers(0, 2**45),
        headers=st.lists(st.tuples(st.text(max_size=5), optional_bytes), max_size=2),
    ),
    min_size=1,
    max_size=8,
)


@given(some_records, st.integers(0, 4), st.integers(0, 2**40))
def test_a_batch_reads_back_as_it_was_written(rows: list[Record], codec: int, base_offset: int) -> None:
    data = records.encode(rows, Template(codec=codec))
    records.set_offset_and_epoch(data, 0, base_offset, 3)
    (at,) = records.batches(data)
    assert at.header.crc == records.computed_crc(data, 0, len(data))
    assert at.header.max_timestamp == max(r.timestamp for r in rows)
    read = records.decode(data, at)
    assert [r.offset for r in read] == list(range(base_offset, base_offset + len(rows)))
    assert [(r.key, r.value, r.timestamp, list(r.headers)) for r in read] == [
        (r.key, r.value, r.timestamp, list(r.headers)) for r in rows
    ]


@given(st.binary(max_size=200), st.integers(0, 4), st.integers(0, 5))
def test_arbitrary_bytes_as_records_are_an_error_and_nothing_else(body: bytes, codec: int, count: int) -> None:
    header = struct.pack(
        ">qiibIhiqqqhii", 0, 49 + len(body), 0, 2, 0, codec, max(0, count - 1), 0, 0, -1, -1, -1, count
    )
    (at,) = records.batches(header + body)
    try:
        records.decode(header + body, at, limit=10_000)
    except MalformedMessage:
        return
    assert codec == 0 or count == 0 or body


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_bomb_is_refused_before_it_is_made(codec: int) -> None:
    bomb = compression.compress(codec, bytes(5 << 20))
    with pytest.raises(DecompressedTooLarge):
        compression.decompress(codec, bomb, 1 << 20)
    assert len(compression.decompress(codec, bomb, 5 << 20)) == 5 << 20


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_torn_data_is_an_error(codec: int) -> None:
    packed = compression.compress(codec, random.Random(1).randbytes(5000))
    with pytest.raises(MalformedMessage):
        compression.decompress(codec, packed[:-20])


def test_snappy_is_read_with_and_without_javas_framing() -> None:
    import snappy

    data = b"abc" * 40_000
    framed = compression.compress(compression.SNAPPY, data)
    assert framed.startswith(compression.XERIAL_MAGIC)
    assert compression.decompress(compression.SNAPPY, framed) == data
    assert compression.decompress(compression.SNAPPY, snappy.compress(data)) == data
    assert compression.decompress(compression.SNAPPY, framed + b"xyz") == data, "no size fits into three bytes"
    assert compression.decompress(compression.SNAPPY, framed + framed) == data + data
    for wrong in (framed[:12], framed + bytes(4), framed[:-1], framed + framed[:12]):
        with pytest.raises(compression.Undecodable):
            compression.decompress(compression.SNAPPY, wrong)


def test_gzip_ends_where_java_sees_no_other_member() -> None:
    data = b"abc" * 1000
    packed = compression.compress(compression.GZIP, data)
    for more in (b"x" * 50, packed[:10], packed[:18]):
        assert compression.decompress(compression.GZIP, packed + more) == data
    assert compression.decompress(compression.GZIP, packed + packed) == data + data
    with pytest.raises(compression.EndsEarly):
        compression.decompress(compression.GZIP, packed + packed[:19])


def test_the_time_of_append_is_every_records_time() -> None:
    data = records.encode([Record(None, b"a", 5), Record(None, b"b", 9)])
    (at,) = records.batches(data)
    records.set_max_timestamp(data, 0, at.header, True, 777)
    (at,) = records.batches(data)
    assert at.header.crc == records.computed_crc(data, 0, len(data))
    assert [r.timestamp for r in records.decode(data, at)] == [777, 777]


@pytest.mark.parametrize("length", [10, 54, 55, 56, 57, 58, 8180, 8181, 8182, 8183])
@pytest.mark.parametrize("first", [0, 1, 63, 64, 8100, 1_048_500])
def test_the_first_bytes_of_many_records_are_those_of_each(length: int, first: int) -> None:
    key = bytes(length)
    size = len(records.varint(length)) + length + 2  # with no value and no headers
    for count in (1, 63, 200):
        expected = []
        for index in range(first, first + count):
            body = bytearray()
            records.put_record(body, Record(key, None), 0, index)
            expected.append(bytes(body[:-size]))
        assert records.starts_of(size, first, count) == expected


def test_sequences_wrap_to_zero() -> None:
    assert records.increment_sequence(2**31 - 1, 1) == 0
    assert records.increment_sequence(2**31 - 2, 3) == 1


messages = st.lists(st.tuples(optional_bytes, optional_bytes, st.integers(0, 2**40)), min_size=1, max_size=5)


@given(messages, st.integers(0, 1), st.integers(0, 3), st.integers(0, 1000))
def test_message_sets_read_back_as_they_were_written(
    rows: list[tuple[bytes | None, bytes | None, int]], magic: int, codec: int, base: int
) -> None:
    wanted = [
        legacy.Message(base + n, key, value, magic, timestamp if magic else -1)
        for n, (key, value, timestamp) in enumerate(rows)
    ]
    assert legacy.decode(legacy.encode(wanted, codec)) == wanted


def test_a_message_with_a_wrong_crc_is_an_error() -> None:
    data = bytearray(legacy.encode([legacy.Message(0, b"k", b"v")]))
    data[-1] ^= 1
    with pytest.raises(MalformedMessage, match="wrong CRC"):
        legacy.decode(bytes(data))


def test_relative_offsets_inside_a_compressed_set_count_from_its_wrapper() -> None:
    """Version 1: the wrapper has the offset of the last message."""
    data = legacy.encode([legacy.Message(n, None, b"%d" % n, 1, 5) for n in (10, 11, 12)], compression.GZIP)
    (entry,) = legacy.entries(data)
    assert entry.offset == 12
    assert [m.offset for m in legacy.decode(data)] == [10, 11, 12]


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 5_000_000])
@pytest.mark.parametrize("repeats", [True, False])
def test_lz4_frames_of_any_ratio_within_their_limit(size: int, repeats: bool) -> None:
    """What is reserved for a frame follows its size and not the limit, so that a frame that holds much more takes
    several steps.
    """
    plain = bytes(size) if repeats else random.Random(1).randbytes(size)
    packed = compression.compress(compression.LZ4, plain)
    assert compression.decompress(compression.LZ4, packed, max(size, 1)) == plain
    for end in (1, 5, len(packed) // 2):
        with pytest.raises(MalformedMessage):
            compression.decompress(compression.LZ4, packed[:-end], 1 << 28)
    if size > 1:
        with pytest.raises(DecompressedTooLarge):
            compression.decompress(compression.LZ4, packed, size - 1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [compression.GZIP, compression.SNAPPY, compression.LZ4])
def test_legacy_messages_are_opened_chunk_by_chunk(magic: int, codec: int) -> None:
    wanted = [legacy.Message(7 + 2 * n, None, b"%d" % n, magic) for n in range(3000)]
    wanted.insert(100, legacy.Message(206, b"k", bytes(5 * compression.CHUNK_BYTES), magic))
    data = legacy.encode(wanted, codec)
    steps = list(legacy.contents(data))
    assert [message for some in steps for message in some] == wanted
    assert max(map(len, steps)) <= compression.CHUNK_BYTES // 26
    assert len(steps) > 2 * (magic + 1)


def test_a_legacy_bomb_is_stopped() -> None:
    """Neither what claims to be one huge message, nor what is none, is collected."""
    for inner, words in (
        (struct.pack(">qi", 0, 2**31 - 1) + bytes(100), "that holds none"),
        (struct.pack(">qi", 0, 14) + b"\7" * 100, "of an unknown version"),
        (bytes(100), "a message of 0 bytes"),
    ):
        wrapper = legacy.Message(0, None, compression.compress(compression.GZIP, inner + bytes(4 << 20)), 1)
        data = bytearray(legacy.encode([wrapper]))
        data[17] = compression.GZIP  # the attributes
        data[12:16] = struct.pack(">I", zlib.crc32(data[16:]))
        steps: list[object] = []
        with pytest.raises(MalformedMessage, match=words):
            steps.extend(legacy.contents(bytes(data)))
        assert steps == len(steps) * [[]]
        assert len(steps) < 5
