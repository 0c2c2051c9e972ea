"""Frames that are recognized by the bits that their numbers do not have."""

from __future__ import annotations

import random
import struct

import pytest
from ottla.protocol import codec, headers
from ottla.protocol import messages as m
from ottla.protocol.layouts import Layout, RecordsLayout

FORMAT = struct.Struct(">hihqi3sq")
KINDS = ("i", "qi", "q")


def frame(numbers: tuple[int, int, int, int], name: bytes = b"abc", key: int = 8) -> bytes:
    first, second, third, last = numbers
    return FORMAT.pack(key, first, 5, second, third, name, last)


def layout() -> Layout:
    return Layout(frame((0, 0, 0, 0)), frame((-1, -1, -1, -1)), KINDS)


def test_the_numbers_of_a_frame_are_read() -> None:
    chance, known = random.Random(1), layout()
    for _ in range(100):
        numbers = (
            chance.randint(-(1 << 31), (1 << 31) - 1),
            chance.randint(-(1 << 63), (1 << 63) - 1),
            chance.randint(-(1 << 31), (1 << 31) - 1),
            chance.choice((0, -1, 1, (1 << 63) - 1)),
        )
        assert known.numbers_of(memoryview(frame(numbers))) == numbers


def test_a_frame_with_another_byte_has_another_layout() -> None:
    known, whole = layout(), frame((1, 2, 3, 4))
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        is_number = not (at < 2 or 6 <= at < 8 or 20 <= at < 23)
        assert (known.numbers_of(changed) is not None) == is_number, at
    for other in (whole[:-1], whole + b"\0", b"", frame((1, 2, 3, 4), name=b"abd")):
        assert known.numbers_of(other) is None


@pytest.mark.parametrize("kinds", [("i", "qi"), ("i", "q", "q"), (*KINDS, "i"), ("q", "qi", "i")])
def test_numbers_that_lie_elsewhere_are_a_mistake(kinds: tuple[str, ...]) -> None:
    with pytest.raises(AssertionError):
        Layout(frame((0, 0, 0, 0)), frame((-1, -1, -1, -1)), kinds)


def produce(version: int, records: bytes, index: int = 0) -> bytearray:
    """A request for one partition, without the length of its frame."""
    r = m.ProduceRequest
    topic = r.TopicProduceData(name="topic", partition_data=[r.PartitionProduceData(index=index, records=records)])
    request = r(transactional_id="id", acks=1, timeout_ms=1000, topic_data=[topic])
    return bytearray(headers.request_frame("Produce", version, request, 0, "client")[4:])


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("size", [1, 100, 127, 128, 20_000])
def test_records_that_are_found_are_those_that_the_codec_reads(version: int, size: int) -> None:
    """Each bit around the records changes; bytes are missing, and others follow."""
    chance, is_flexible = random.Random(size), version >= 9
    known = RecordsLayout(bytes(produce(version, b"")), is_flexible)
    sent = produce(version, chance.randbytes(size), 3)
    assert known.records_of(memoryview(sent)) == (3, memoryview(sent)[len(sent) - size - 3 * is_flexible :][:size])
    places = [at for at in range(len(sent)) if at < 60 or at > len(sent) - 8]
    changed = [(at, 1 << bit) for at in places for bit in range(8)]
    frames = [sent[:at] + bytes([sent[at] ^ mask]) + sent[at + 1 :] for at, mask in changed]
    frames += [sent[:at] for at in places] + [sent + b"\0", sent + b"\0\0\0"]
    recognized = 0
    for frame in frames:
        found = known.records_of(memoryview(frame))
        if found is None or frame[:3] != sent[:3]:  # the dispatcher knows the API, and its versions
            continue
        recognized += 1
        header, start = headers.parse_request_header(1 + is_flexible, frame)
        assert (header.client_id, header.request_api_version) == ("client", version)
        read = codec.parse("ProduceRequest", version, memoryview(frame), start)
        assert len(codec.build("ProduceRequest", version, read)) == len(frame) - start
        (wanted,) = read.topic_data[0].partition_data
        assert found == (wanted.index, wanted.records)
    assert recognized > 32, "the correlation id and the partition may differ"
