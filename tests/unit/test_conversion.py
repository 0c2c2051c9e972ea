"""Batches become message sets of versions 0 and 1, and message sets become batches."""

from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import lz4.frame
import pytest
from ottla.broker.steps import all_at_once
from ottla.protocol import compression, legacy, lz4_frames, records
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from ottla.protocol.conversion import newer, older_set
from ottla.protocol.errors import ApiError, Errors, MalformedMessage
from ottla.protocol.legacy import Message
from ottla.protocol.records import BatchAt, Record, Template

from ..support.converted import converted, down

T = 1_700_000_000_000
CHECKS = legacy.Checks(versions=True, bases=True)
CODECS = [NONE, GZIP, SNAPPY, LZ4]
RECORDS = [
    Record(b"k", b"v0", T, 100),
    Record(None, b"v1", T + 5, 101, (("name", b"value"),)),
    Record(b"", None, T + 3, 103),
    Record(b"k", b"x" * 300, T, 104),
]


def batch(codec: int = NONE, **fields: Any) -> bytes:
    return bytes(records.encode(RECORDS, Template(base_offset=100, codec=codec, **fields)))


def up(buf: bytes, message_bytes_max: int = 1 << 20) -> bytearray:
    return all_at_once(newer(buf, message_bytes_max, CHECKS))


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_becomes_messages_with_its_offsets_keys_and_values(codec: int) -> None:
    for magic in (0, 1):
        found, end = down(batch(codec), magic)
        assert [(m.offset, m.key, m.value) for m in found] == [(r.offset, r.key, r.value) for r in RECORDS]
        assert {m.magic for m in found} == {magic}
        assert [m.timestamp for m in found] == [r.timestamp if magic else -1 for r in RECORDS]
        assert end == 105


def test_lengths_and_offsets_beyond_their_range_are_damage() -> None:
    body = bytearray()
    records.put_record(body, Record(None, b"v", T), 0, 0)
    for at, number in ((3, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"), (4, b"\xfe\xff\xff\xff\x7f")):
        record = body[1:at] + number + body[at + 1 :]
        template = Template(base_offset=1)
        damaged = records.batch_of(bytearray([2 * len(record)]) + record, template, 1, 0, T, T)
        with pytest.raises(MalformedMessage, match="beyond its range"):
            down(bytes(damaged), 1)


def test_an_uncompressed_message_has_the_bytes_of_the_format() -> None:
    made, _ = converted(batch(), 0, 104, 1 << 20)
    body = b"\0\0" + struct.pack(">i", 1) + b"k" + struct.pack(">i", 300) + b"x" * 300
    assert made == struct.pack(">qiI", 104, len(body) + 4, zlib.crc32(body)) + body


def test_messages_before_the_offset_are_left_out_unless_they_are_compressed() -> None:
    assert [m.offset for m in down(batch(), 1, 102)[0]] == [103, 104]
    assert [m.offset for m in down(batch(GZIP), 1, 102)[0]] == [100, 101, 103, 104]


def test_a_compressed_message_of_version_1_has_relative_offsets_and_the_largest_timestamp() -> None:
    made, _ = converted(batch(GZIP), 1, 0, 1 << 20)
    (entry,) = legacy.entries(made)
    assert (entry.offset, entry.timestamp, entry.codec) == (104, T + 5, GZIP)
    inner = compression.decompress(GZIP, made[entry.position + 34 : entry.position + entry.size])
    assert [one.offset for one in legacy.entries(inner)] == [0, 1, 3, 4]


@pytest.mark.parametrize("codec", CODECS)
def test_the_log_append_time_is_that_of_every_message(codec: int) -> None:
    found, _ = down(batch(codec, append_time=T + 99), 1)
    assert {(m.timestamp, m.append_time) for m in found} == {(T + 99, True)}


def test_markers_of_transactions_are_left_out_and_passed() -> None:
    marker = bytes(records.encode([Record(b"\0\0\0\1", b"\0\0\0\0\0\0", T)], Template(base_offset=7, control=True)))
    assert down(marker, 0) == ([], 8)


def test_zstd_has_no_old_form() -> None:
    with pytest.raises(ApiError) as caught:
        down(batch(ZSTD), 1)
    assert caught.value.code == Errors.UNSUPPORTED_COMPRESSION_TYPE


def test_conversion_ends_when_the_bytes_are_enough() -> None:
    several = b"".join(bytes(records.encode([Record(b"k", b"v", T)], Template(base_offset=base))) for base in range(10))
    found, end = down(several, 0, 0, 60)
    assert ([m.offset for m in found], end) == ([0, 1, 2], 3)


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_every_length_are_read(seed: int) -> None:
    chance = random.Random(seed)
    made = [
        Record(
            chance.choice((None, chance.randbytes(chance.choice((0, 1, 63, 64, 200))))),
            chance.choice((None, chance.randbytes(chance.choice((0, 1, 62, 63, 64, 8191, 8192, 70_000))))),
            T + chance.choice((0, 1, -1, 63, -64, 64, 10**6, -(10**12))),
            offset * chance.choice((1, 1, 1, 100)) if seed else offset,
        )
        for offset in range(200)
    ]
    found, _ = down(bytes(records.encode(made)), 1)
    assert [(m.offset, m.key, m.value, m.timestamp) for m in found] == [
        (r.offset, r.key, r.value, r.timestamp) for r in made if r.offset >= 0
    ]


def alike(chance: random.Random) -> list[Record]:
    """Runs of records that differ in numbers and bytes only, and some records between them that differ in shape."""
    made: list[Record] = []
    offset, timestamp = 1000, T
    while len(made) < 400:
        key_bytes, value_bytes = chance.choice((None, 0, 1, 70)), chance.choice((None, 0, 5, 100, 9000))
        step_ms, gap = chance.choice((0, 0, 1, 9, -3, 70, 10**7)), chance.choice((1, 1, 1, 3, -2))
        for _ in range(chance.choice((1, 2, 30, 90))):
            key = None if key_bytes is None else chance.randbytes(key_bytes)
            value = None if value_bytes is None else chance.randbytes(value_bytes)
            made.append(Record(key, value, timestamp, offset, (("h", b"1"),) if chance.random() < 0.02 else ()))
            timestamp += step_ms
            offset += gap
    return made


@pytest.mark.long
@pytest.mark.parametrize("codec", [NONE, GZIP])
@pytest.mark.parametrize("append_time", [None, T + 99])
@pytest.mark.parametrize("seed", range(6))
def test_runs_of_records_of_one_shape_have_the_bytes_of_single_messages(
    seed: int, append_time: int | None, codec: int
) -> None:
    given = alike(random.Random(seed))
    stored = bytes(records.encode(given, Template(base_offset=1000, codec=codec, append_time=append_time)))
    first = 0 if codec else 1100
    is_append_time = append_time is not None
    for magic in (0, 1):
        since = 1000 if codec and magic else 0
        wanted = b"".join(
            legacy.entry_of(
                Message(
                    r.offset, r.key, r.value, magic, append_time or r.timestamp, NONE, bool(magic) and is_append_time
                ),
                r.offset - since,
                NONE,
            )
            for r in given
            if r.offset >= first
        )
        made, end = converted(stored, magic, first, 1 << 30)
        if codec:
            (entry,) = legacy.entries(made)
            assert (entry.offset, entry.magic) == (given[-1].offset, magic)
            largest = append_time or max(r.timestamp for r in given)
            assert entry.timestamp == (largest if magic else -1)
            made = compression.decompress(codec, made[entry.position + (34 if magic else 26) :])
        assert made == wanted
        assert end == given[-1].offset + 1


def test_lengths_below_minus_one_are_null_in_every_record_of_a_run() -> None:
    stored = bytes(records.encode([Record(None, None, T, offset) for offset in range(50)]))
    head, body = stored[: records.HEADER_SIZE], stored[records.HEADER_SIZE :]
    assert body.count(b"\x01\x01\x00") == 50
    made, _ = converted(head + body.replace(b"\x01\x01\x00", b"\x03\x05\x00"), 1, 0, 1 << 20)
    assert made == legacy.encode([Message(offset, None, None, 1, T) for offset in range(50)])


def test_an_offset_before_the_first_is_left_out_within_a_run_too() -> None:
    stored = bytes(records.encode([Record(None, b"v", T, offset) for offset in (5, 6, 1, 7)], Template(base_offset=0)))
    assert [m.offset for m in down(stored, 1, 4)[0]] == [5, 6, 7]


A_RECORD = Record(b"k", b"12345", T, 0)
AS_LONG = {
    "a longer timestamp and no key": Record(None, b"12345", T + 256, 1),
    "a longer offset and no key": Record(None, b"12345", T, 128),
    "a longer key": Record(b"k\n", b"1234", T, 1),
    "a header": Record(b"k", b"123", T, 1, (("", b""),)),
}


@pytest.mark.parametrize("name", AS_LONG)
def test_a_record_of_the_same_length_may_have_another_shape(name: str) -> None:
    given = [A_RECORD, AS_LONG[name]]
    made, _ = converted(bytes(records.encode(given)), 1, 0, 1 << 20)
    assert made == legacy.encode([Message(r.offset, r.key, r.value, 1, r.timestamp) for r in given])


def test_a_run_ends_with_the_records_that_the_batch_claims() -> None:
    stored = bytearray(records.encode([Record(b"k", b"v", T, offset) for offset in range(50)]))
    for claim in (1, 2, 3, 49, 51):
        struct.pack_into(">i", stored, 57, claim)
        with pytest.raises(MalformedMessage):
            down(bytes(stored), 0)


def test_a_large_batch_is_converted_in_steps() -> None:
    large = [Record(b"k", bytes(1000), T, offset) for offset in range(500)]
    work = older_set(bytes(records.encode(large)), 0, 0, 1 << 20)
    assert sum(1 for _ in work) > 5


def test_messages_of_old_logs_lose_their_timestamps_for_the_oldest_clients() -> None:
    for codec in (NONE, GZIP):
        stored = legacy.encode([Message(5, b"k", b"v", 1, T), Message(6, None, b"w", 1, T)], codec)
        for magic, timestamp in ((1, T), (0, -1)):
            found, end = down(stored, magic)
            assert [(m.offset, m.value, m.magic, m.timestamp) for m in found] == [
                (5, b"v", magic, timestamp),
                (6, b"w", magic, timestamp),
            ]
            assert end == 7


@pytest.mark.parametrize("claim", [3, 5])
def test_a_batch_with_another_number_of_records_is_malformed(claim: int) -> None:
    data = bytearray(batch())
    struct.pack_into(">i", data, 57, claim)
    with pytest.raises(MalformedMessage):
        down(bytes(data), 0)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_set_becomes_one_batch(magic: int, codec: int) -> None:
    given = [Message(i, r.key, r.value, magic, r.timestamp if magic else -1) for i, r in enumerate(RECORDS)]
    made = up(legacy.encode(given, codec))
    header = records.header_at(made)
    assert (header.codec, header.producer_id, header.base_sequence) == (codec, -1, -1)
    assert header.max_timestamp == (T + 5 if magic else -1)
    found = records.decode(made, BatchAt(0, header))
    assert [(r.offset, r.key, r.value, r.timestamp) for r in found] == [
        (m.offset, m.key, m.value, m.timestamp) for m in given
    ]
    assert records.computed_crc(made, 0, len(made)) == header.crc


def test_several_compressed_messages_become_one_batch_of_the_last_codec() -> None:
    given = legacy.encode([Message(0, None, b"a", 0)]) + b"".join(
        legacy.encode([Message(0, None, value, 0), Message(1, None, value, 0)], codec)
        for codec, value in ((GZIP, b"b"), (SNAPPY, b"c"))
    )
    made = up(given)
    header = records.header_at(made)
    assert header.codec == SNAPPY
    assert [r.value for r in records.decode(made, BatchAt(0, header))] == [b"a", b"b", b"b", b"c", b"c"]


def test_the_end_of_a_message_that_is_cut_is_ignored() -> None:
    given = legacy.encode([Message(0, None, b"a", 0), Message(1, None, b"b", 0)])
    made = up(given[:-1])
    assert records.header_at(made).record_count == 1
    assert up(given[:20]) == up(b"") == b""


def wrapped(value: bytes, codec: int = GZIP, magic: int = 1) -> bytes:
    return legacy.entry_of(Message(0, None, value, magic, T), 0, codec)


GOOD = legacy.encode([Message(0, None, b"a", 1, T), Message(1, None, b"b", 1, T)])
NESTED = wrapped(compression.compress(GZIP, wrapped(compression.compress(GZIP, GOOD))))
WRONG_INNER_CRC = wrapped(compression.compress(GZIP, GOOD[:-1] + b"x"))
OTHER_VERSION = wrapped(compression.compress(GZIP, legacy.encode([Message(0, None, b"a", 0)])))
BAD = {
    "a wrong checksum": GOOD[:-1] + b"x",
    "a compressed message in a compressed message": NESTED,
    "a wrong checksum inside": WRONG_INNER_CRC,
    "another version inside": OTHER_VERSION,
    "a compressed message without a value": legacy.entry_of(Message(0, None, None, 1, T), 0, GZIP),
    "an empty compressed message": wrapped(compression.compress(GZIP, b"")),
    "zstd": wrapped(compression.compress(ZSTD, GOOD), ZSTD),
}
UNREADABLE = {
    "a codec that does not exist": wrapped(GOOD, 7),
    "a field beyond the message": legacy.ENTRY.pack(0, 14 + 8)
    + struct.pack(">I", zlib.crc32(b"\1\0" + bytes(8) + b"\0\0\0\1" + b"\0\0\0\1"))
    + b"\1\0"
    + bytes(8)
    + b"\0\0\0\1"
    + b"\0\0\0\1",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_kafka_fails_to_read_is_an_unknown_error(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        up(UNREADABLE[name])
    assert caught.value.code == Errors.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("name", BAD)
def test_bad_sets_are_corrupt(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        up(BAD[name])
    assert caught.value.code == Errors.CORRUPT_MESSAGE


def test_what_cannot_be_decompressed_is_an_unknown_error_as_in_kafka() -> None:
    with pytest.raises(ApiError) as caught:
        up(wrapped(b"nonsense"))
    assert caught.value.code == Errors.UNKNOWN_SERVER_ERROR


def test_offsets_that_lie_do_no_harm() -> None:
    lying = [Message(9, None, b"a", 1, T), Message(-(2**60), None, b"b", 1, T), Message(9, None, b"c", 1, T)]
    inner = b"".join(legacy.entry_of(m, m.offset, NONE) for m in lying)
    made = up(wrapped(compression.compress(GZIP, inner)))
    found = records.decode(made, BatchAt(0, records.header_at(made)))
    assert [(r.offset, r.value) for r in found] == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_a_message_that_is_too_large_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        up(GOOD, message_bytes_max=20)
    assert caught.value.code == Errors.MESSAGE_TOO_LARGE


def test_many_compressed_messages_together_hold_no_more_than_one_may() -> None:
    bomb = wrapped(compression.compress(GZIP, legacy.encode([Message(0, None, bytes(9 << 20), 1, T)])))
    yielded: list[object] = []
    with pytest.raises(ApiError) as caught:
        yielded.extend(newer(bomb * 8, 1 << 20, CHECKS))
    assert caught.value.code == Errors.CORRUPT_MESSAGE
    assert 4 <= len(yielded) < 3000, "it is done in steps, and ends long before all is decompressed"
    assert set(yielded) == {None}, "nothing is packed"


def test_lz4_frames_of_version_0_have_the_checksum_of_their_time() -> None:
    frame = compression.compress(LZ4, b"some bytes")
    old = lz4_frames.with_old_checksum(frame)
    assert old != frame
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(old)
    assert lz4_frames.with_right_checksum(old) == frame
    assert lz4_frames.with_right_checksum(b"\x04\x22\x4d\x18") == b"\x04\x22\x4d\x18"
    made, _ = converted(batch(LZ4), 0, 0, 1 << 20)
    (entry,) = legacy.entries(made)
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(made[entry.position + 26 : entry.position + entry.size])
