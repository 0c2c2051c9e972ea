"""Records that are found and copied as bytes: as if they were read, and written again."""

from __future__ import annotations

import random

import pytest
from ottla.protocol import records, spans
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import BatchAt, BatchHeader, Record, Template

PADDED = [b"\x86\x00", b"\x86\x80\x00"]  # 3, in more bytes than needed
NULLS = [b"\x01", b"\x03", b"\x81\x00"]  # -1, -2, and -1 in two bytes


def batch_of(body: bytes, count: int) -> tuple[bytes, BatchAt]:
    data = bytes(records.batch_of(bytearray(body), Template(base_offset=10), count, count - 1, 5000, 5000))
    return data, BatchAt(0, records.header_at(data))


def record(key: bytes, value: bytes, headers: bytes = b"\0", start: bytes = b"\0\x08\x02") -> bytes:
    """A record of bytes that are already encoded: attributes and deltas, key, value and headers with their lengths."""
    body = start + key + value + headers
    return records.varint(len(body)) + body


def written(record: Record, header: BatchHeader, base_timestamp: int) -> bytearray:
    body = bytearray()
    records.put_record(body, record, record.timestamp - base_timestamp, record.offset - header.base_offset)
    return body


@pytest.mark.parametrize(
    "one",
    [
        record(b"\x06key", b"\x0avalue"),
        record(b"\x06key", b"\x80\x01" + b"v" * 64),
        record(b"\x80\x01" + b"k" * 64, b"\0"),
        record(b"\x06key", records.varint(9000) + b"v" * 9000),
        record(b"\x06key", b"\x0avalue", b"\x02\x02h\x01"),
        record(b"\x06key", b"\x0avalue", b"\x02\x04\xff\xfe\x04xy"),
        record(b"\x06key", b"\x0avalue", b"\x80\0"),
        record(b"\x06key", b"\x0avalue", start=b"\x07\x81\x00\x80\x80\x00"),
        *(record(length + b"key", b"\x0avalue") for length in PADDED),
        *(record(b"\x06key", length + b"val") for length in PADDED),
        *(record(null, b"\x0avalue") for null in NULLS),
        *(record(b"\x06key", null) for null in NULLS),
    ],
)
@pytest.mark.parametrize("base_timestamp", [5000, 0, 2**62])
def test_a_copy_is_what_would_be_written(one: bytes, base_timestamp: int) -> None:
    """Whatever other ways there are to write the same record."""
    data, at = batch_of(one + record(b"\x02a", b"\x02b"), 2)
    read = records.decode(data, at)
    ((buf, found),) = spans.pieces(data, at)
    for span, expected in zip(found, read, strict=True):
        body = bytearray(b"before")
        spans.copy_record(body, buf, span, at.header, base_timestamp)
        assert body == b"before" + written(expected, at.header, base_timestamp)


@pytest.mark.parametrize(
    "one",
    [
        b"\x01",
        b"\x0a" + bytes(5),
        record(b"\x20key", b"\x0avalue"),
        record(b"\x06key", b"\x20value"),
        record(b"\x06key", b"\x0cvalue"),
        record(b"\x06key", b"\x0avalue", b""),
        record(b"\x06key", b"\x0avalue", b"\0\0"),
        record(b"\x06key", b"\x0avalue", b"\x01"),
        record(b"\x06key", b"\x0avalue", b"\x02\x01\x02"),
        record(b"\x06key", b"\x0avalue", b"\x02\x02h\x06x"),
        b"\x86" + b"\x80" * 10 + record(b"\x06key", b"\x0avalue"),
        record(b"\x06key", b"\x0avalue")[:-3],
    ],
)
def test_what_is_no_record_is_refused(one: bytes) -> None:
    """Also where the bytes of the next batch follow."""
    data, at = batch_of(one, 1)
    for way in (records.decode, lambda *of: list(spans.pieces(*of))):
        with pytest.raises(MalformedMessage):
            way(data, at)
    with pytest.raises(MalformedMessage):
        list(spans.pieces(data * 2, at))


@pytest.mark.parametrize(
    "template",
    [
        Template(append_time=7),
        Template(delete_horizon_ms=2**63 - 1),
        Template(delete_horizon_ms=-(2**63)),
    ],
)
def test_timestamps_are_those_of_64_bits_or_of_the_append(template: Template) -> None:
    """The base timestamp is in the place of the delete horizon, so it may be any number."""
    body = bytearray(b"".join(record(b"\x02k", b"\x02v", start=b"\0" + delta + b"\0") for delta in (b"\x80\1", b"\3")))
    data = bytes(records.batch_of(body, template, 2, 1, template.delete_horizon_ms or 0, 7))
    at = BatchAt(0, records.header_at(data))
    ((_, found),) = spans.pieces(data, at)
    assert [span[2] for span in found] == [one.timestamp for one in records.decode(data, at)]


@pytest.mark.parametrize("codec", [0, 3])
def test_a_piece_has_a_bounded_number_of_records(codec: int) -> None:
    count = 2 * spans.PIECE_RECORDS + random.Random(1).randrange(2, 100)
    data = bytes(records.encode([Record(b"k", None)] * count, Template(codec=codec)))
    sizes = [len(found) for _, found in spans.pieces(data, BatchAt(0, records.header_at(data)))]
    assert sum(sizes) == count
    assert max(sizes) == spans.PIECE_RECORDS
