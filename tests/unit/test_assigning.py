"""Offsets and formats of what is appended to logs of message sets (`protocol.assigning`)."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from ottla.broker.steps import all_at_once
from ottla.protocol import compression, legacy, records
from ottla.protocol.assigning import Place, Rules, assigned, assigned_batch
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from ottla.protocol.errors import ApiError, Errors
from ottla.protocol.legacy import Checks, Message
from ottla.protocol.records import BatchAt, Record, Template

T = 1_700_000_000_000
NOW = T + 60_000
PLACE = Place(1000, NOW)


def rules(magic: int, **others: Any) -> Rules:
    made = Rules(magic, None, False, False, (T - 1000, T + 1000), 1 << 20, Checks(versions=True))
    return made._replace(**others)


def messages(*values: bytes, magic: int, key: bytes | None = b"k") -> list[Message]:
    return [Message(i, key, value, magic, T + i if magic else -1) for i, value in enumerate(values)]


def put(data: bytes, magic: int, **others: Any) -> bytes:
    return bytes(all_at_once(assigned(data, rules(magic, **others), PLACE)))


def refusal(data: bytes, magic: int, **others: Any) -> int:
    with pytest.raises(ApiError) as caught:
        put(data, magic, **others)
    return caught.value.code


def told(data: bytes) -> list[tuple[int, bytes | None, int]]:
    return [(one.offset, one.value, one.timestamp) for one in legacy.decode(data)]


@pytest.mark.parametrize("magic", [0, 1])
def test_messages_get_their_offsets_in_place(magic: int) -> None:
    sent = messages(b"a", b"", b"ccc", magic=magic)
    made = put(legacy.encode(sent), magic)
    for message in sent:
        message.offset += 1000
    assert made == legacy.encode(sent)


def test_the_time_of_an_append_is_written_into_each_message() -> None:
    made = put(legacy.encode(messages(b"a", b"b", magic=1)), 1, is_append_time=True)
    assert [(one.offset, one.timestamp, one.append_time) for one in legacy.decode(made)] == [
        (1000, NOW, True),
        (1001, NOW, True),
    ], "their checksums are right, too"


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_a_compressed_message_of_version_1_stays_but_for_its_offset(codec: int) -> None:
    sent = legacy.encode(messages(b"a", b"b", magic=1), codec)
    made = put(sent, 1)
    assert made[8:] == sent[8:]
    assert told(made) == [(1000, b"a", T), (1001, b"b", T + 1)]


def test_a_compressed_message_has_the_largest_time_of_those_in_it_or_that_of_the_append() -> None:
    inner = compression.compress(GZIP, legacy.encode(messages(b"a", b"b", magic=1)))
    lying = legacy.entry_of(Message(1, None, inner, 1, 7), 1, GZIP)
    (entry,) = legacy.entries(put(lying, 1))
    assert (entry.timestamp, entry.crc_valid) == (T + 1, True)
    (entry,) = legacy.entries(put(lying, 1, is_append_time=True))
    assert (entry.timestamp, entry.crc_valid) == (NOW, True)
    assert [one[2] for one in told(put(lying, 1, is_append_time=True))] == [NOW, NOW]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_messages_in_a_compressed_one_of_version_0_have_absolute_offsets(codec: int) -> None:
    made = put(legacy.encode(messages(b"a", b"b", magic=0), codec), 0)
    (entry,) = legacy.entries(made)
    assert (entry.offset, entry.codec, entry.magic) == (1001, codec, 0)
    assert told(made) == [(1000, b"a", -1), (1001, b"b", -1)]


def test_offsets_that_lie_make_the_message_again() -> None:
    lying = [Message(9, None, b"a", 1, T), Message(-(2**60), None, b"b", 1, T), Message(9, None, b"c", 1, T)]
    inner = compression.compress(GZIP, b"".join(legacy.entry_of(one, one.offset, NONE) for one in lying))
    made = put(legacy.entry_of(Message(0, None, inner, 1, T), 0, GZIP), 1)
    assert told(made) == [(1000, b"a", T), (1001, b"b", T), (1002, b"c", T)]


def test_several_compressed_messages_become_one_of_the_last_codec() -> None:
    given = legacy.encode(messages(b"a", magic=1)) + b"".join(
        legacy.encode(messages(value, value, magic=1), codec) for codec, value in ((GZIP, b"b"), (SNAPPY, b"c"))
    )
    made = put(given, 1)
    assert [one.codec for one in legacy.entries(made)] == [SNAPPY]
    assert [(offset, value) for offset, value, _ in told(made)] == list(enumerate([b"a", b"b", b"b", b"c", b"c"], 1000))


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_other_versions_are_converted(codec: int) -> None:
    old, new = legacy.encode(messages(b"a", b"b", magic=0), codec), legacy.encode(messages(b"a", b"b", magic=1), codec)
    assert told(put(old, 1)) == [(1000, b"a", -1), (1001, b"b", -1)]
    assert told(put(new, 0)) == [(1000, b"a", -1), (1001, b"b", -1)]
    assert [one[2] for one in told(put(old, 1, is_append_time=True))] == [NOW, NOW]
    assert {one.magic for one in legacy.entries(put(old, 1))} == {1}
    assert {one.magic for one in legacy.entries(put(new, 0))} == {0}


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_the_codec_of_the_topic_takes_the_place_of_the_producers(codec: int) -> None:
    made = put(legacy.encode(messages(b"a", b"b", magic=1), GZIP if codec == NONE else NONE), 1, codec=codec)
    assert {one.codec for one in legacy.entries(made)} == {codec}
    assert told(made) == [(1000, b"a", T), (1001, b"b", T + 1)]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_record_batches_become_messages(magic: int, codec: int) -> None:
    new = [Record(b"k", b"a", T, 0, (("header", b"left out"),)), Record(None, None, T + 1, 1)]
    batch = bytes(records.encode(new, Template(codec=codec)))
    work = assigned_batch(batch, BatchAt(0, records.header_at(batch)), rules(magic), PLACE)
    made = bytes(all_at_once(work))
    assert told(made) == [(1000, b"a", T if magic else -1), (1001, None, T + 1 if magic else -1)]
    assert {(one.magic, one.codec) for one in legacy.entries(made)} == {(magic, codec)}


def test_batches_of_idempotent_producers_and_zstd_have_no_such_form() -> None:
    for template, code in (
        (Template(producer_id=7, producer_epoch=0, base_sequence=0), Errors.UNSUPPORTED_FOR_MESSAGE_FORMAT),
        (Template(codec=ZSTD), Errors.UNSUPPORTED_COMPRESSION_TYPE),
    ):
        batch = bytes(records.encode([Record(b"k", b"v", T, 0)], template))
        with pytest.raises(ApiError) as caught:
            all_at_once(assigned_batch(batch, BatchAt(0, records.header_at(batch)), rules(1), PLACE))
        assert caught.value.code == code


def test_times_that_are_out_of_bounds_are_refused_if_the_producer_gives_them() -> None:
    early, unknown = (legacy.encode([Message(0, b"k", b"v", 1, time)]) for time in (T - 1001, -1))
    assert refusal(early, 1) == Errors.INVALID_TIMESTAMP
    assert put(early, 1, is_append_time=True)
    assert put(early, 0), "version 0 has none"
    assert put(unknown, 1)
    said = legacy.encode([Message(0, b"k", b"v", 1, T, append_time=True)])
    assert refusal(said, 1) == refusal(said, 1, is_append_time=True) == Errors.INVALID_TIMESTAMP
    assert refusal(legacy.encode(messages(b"a", magic=1), GZIP), 1, bounds=(0, 1)) == Errors.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_a_compacted_topic_needs_keys(codec: int) -> None:
    for magic in (0, 1):
        keyless = legacy.encode(messages(b"a", magic=magic, key=None), codec)
        assert refusal(keyless, magic, is_compacted=True) == Errors.INVALID_RECORD
        assert put(legacy.encode(messages(b"a", magic=magic), codec), magic, is_compacted=True)


def test_a_message_may_be_too_large_only_after_its_conversion() -> None:
    sent = legacy.encode(messages(b"x" * 100, magic=0))
    size = len(sent) - legacy.ENTRY.size
    assert put(sent, 0, message_bytes_max=size)
    assert refusal(sent, 0, message_bytes_max=size - 1) == Errors.MESSAGE_TOO_LARGE
    assert refusal(sent, 1, message_bytes_max=size) == Errors.MESSAGE_TOO_LARGE


def wrapped(value: bytes | None, codec: int = GZIP, magic: int = 1) -> bytes:
    return legacy.entry_of(Message(0, None, value, magic, T), 0, codec)


GOOD = legacy.encode(messages(b"a", b"b", magic=1))
SHORT = b"\1\0" + bytes(8) + struct.pack(">i", 100) + struct.pack(">i", 0)
BAD = {
    "a wrong checksum": GOOD[:-1] + b"x",
    "a wrong checksum inside": wrapped(compression.compress(GZIP, GOOD[:-1] + b"x")),
    "a compressed message in another": wrapped(
        compression.compress(GZIP, wrapped(compression.compress(GZIP, wrapped(compression.compress(GZIP, GOOD)))))
    ),
    "another version inside": wrapped(compression.compress(GZIP, legacy.encode(messages(b"a", magic=0)))),
    "no value": wrapped(None),
    "an empty compressed message": wrapped(compression.compress(GZIP, b"")),
    "zstd": wrapped(compression.compress(ZSTD, GOOD), ZSTD),
    "a message of version 1 that is too short for it": legacy.ENTRY.pack(0, 14)
    + struct.pack(">I", zlib.crc32(b"\1\0" + bytes(8)))
    + b"\1\0"
    + bytes(8),
}


UNREADABLE = {
    "a codec that does not exist": wrapped(GOOD, 7),
    "a key beyond the message": legacy.ENTRY.pack(0, 4 + len(SHORT)) + struct.pack(">I", zlib.crc32(SHORT)) + SHORT,
}


@pytest.mark.parametrize("name", UNREADABLE)
@pytest.mark.parametrize("magic", [0, 1])
def test_what_kafka_fails_to_read_is_an_unknown_error(name: str, magic: int) -> None:
    assert refusal(UNREADABLE[name], magic) == Errors.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("magic", [0, 1])
def test_bad_sets_are_corrupt(name: str, magic: int) -> None:
    assert refusal(BAD[name], magic) == Errors.CORRUPT_MESSAGE


def test_before_0_10_checksums_inside_are_not_looked_at_and_versions_stay() -> None:
    found = legacy.decode(put(BAD["a wrong checksum inside"], 0, checks=Checks(checksums_since=2)))
    assert [(one.value, one.magic) for one in found] == [(b"a", 1), (b"x", 1)]


def test_what_cannot_be_decompressed_is_an_unknown_error_as_in_kafka() -> None:
    for magic in (0, 1):
        assert refusal(wrapped(b"nonsense", magic=magic), magic) == Errors.UNKNOWN_SERVER_ERROR


@pytest.mark.long
def test_what_is_compressed_much_is_refused_in_steps() -> None:
    bomb = compression.compress(GZIP, legacy.encode(messages(bytes(9 << 20), magic=1)))
    for given in (
        wrapped(bomb) * 8,
        wrapped(compression.compress(GZIP, legacy.encode(messages(*[bytes(9 << 20)] * 8, magic=1)))),
    ):
        for magic in (0, 1):
            yielded: list[object] = []
            with pytest.raises(ApiError) as caught:
                yielded.extend(assigned(given, rules(magic), PLACE))
            assert caught.value.code in (Errors.CORRUPT_MESSAGE, Errors.UNKNOWN_SERVER_ERROR)
            assert 4 <= len(yielded) < 3000
            assert set(yielded) == {None}, "nothing is packed"


def test_what_follows_the_last_message_is_ignored() -> None:
    for magic in (0, 1):
        assert [one[1] for one in told(put(GOOD[:-1], magic))] == [b"a"]
        assert put(GOOD[:20], magic) == put(b"", magic) == b""


@pytest.mark.parametrize("codec", [GZIP, SNAPPY])
def test_a_compressed_message_with_nothing_in_it_is_dropped_or_refused(codec: int) -> None:
    nothing = legacy.entry_of(Message(0, None, compression.compress(codec, b""), 0), 0, codec)
    as_before_0_10 = Checks(takes_none=True)
    assert put(nothing, 0, checks=as_before_0_10) == b""
    assert [one[1] for one in told(put(nothing + GOOD, 0, checks=as_before_0_10))] == [b"a", b"b"]
    assert refusal(nothing, 0) == Errors.CORRUPT_MESSAGE
    without_value = legacy.entry_of(Message(0, None, None, 0), 0, codec)
    assert refusal(without_value, 0, checks=as_before_0_10) == Errors.CORRUPT_MESSAGE
