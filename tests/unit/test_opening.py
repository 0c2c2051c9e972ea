"""Batches opened while they are decompressed: the same records as at once, in bounded steps, whatever the bytes
claim.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any

import lz4.frame
import pytest
import zstandard
from ottla.protocol import compression, opening, records, spans
from ottla.protocol.compression import (
    CHUNK_BYTES,
    GZIP,
    LZ4,
    NONE,
    SNAPPY,
    ZSTD,
    DecompressedTooLarge,
    Undecodable,
    openable_bytes,
)
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import BatchAt, Record, Template

from ..support.ask import claimed
from ..support.seeds import slow

CODECS = range(5)
BOMB_BYTES = 40 << 20


def at(data: bytes) -> BatchAt:
    return BatchAt(0, records.header_at(data))


def some_records(chance: random.Random) -> list[Record]:
    def field(size: int) -> bytes | None:
        return None if chance.random() < 0.1 else chance.randbytes(size)

    def one() -> Record:
        size = chance.choice((0, 1, 200, 5_000, 3 * CHUNK_BYTES)) if chance.random() < 0.2 else chance.randrange(300)
        names = [
            ("name" * chance.randrange(3), field(chance.choice((0, 5, size))))
            for _ in range(chance.choice((0, 0, 0, 1, 5)))
        ]
        return Record(
            field(chance.choice((0, 3, size))), field(size), 1000 + chance.randrange(-50, 5_000), headers=names
        )

    return [one() for _ in range(chance.randrange(1, 30))]


@pytest.mark.long
@pytest.mark.parametrize("most", [1, 7, opening.RECORDS_AT_ONCE])
@pytest.mark.parametrize("codec", CODECS)
def test_steps_give_what_decoding_at_once_gives(codec: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "RECORDS_AT_ONCE", most)
    chance = random.Random(codec)
    for _ in range(30):
        data = bytes(records.encode(some_records(chance), Template(codec=codec)))
        whole = records.decode(data, at(data))
        assert [r for some in opening.contents(data, at(data)) for r in some] == whole
        found = list(opening.shapes(data, at(data)))
        assert [t for some in found for t in some.timestamps] == [r.timestamp for r in whole]
        assert [o for some in found for o in some.offset_deltas] == list(range(len(whole)))
        assert [n for some in found for n in some.keyless] == [n for n, r in enumerate(whole) if r.key is None]
        read = [span for _, some in spans.pieces(data, at(data)) for span in some]
        assert [span[:3] for span in read] == [(r.key, r.offset, r.timestamp) for r in whole]
        assert [span[3] for span in read] == [-1 if r.value is None else len(r.value) for r in whole]


@pytest.mark.parametrize("most", [1, 7, opening.RECORDS_AT_ONCE])
def test_damaged_records_are_refused_by_all_or_none(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "RECORDS_AT_ONCE", most)
    chance = random.Random(7)
    ways: list[Callable[[Any, BatchAt], object]] = [
        records.decode,
        lambda data, where: list(opening.contents(data, where)),
        lambda data, where: list(opening.shapes(data, where)),
        lambda data, where: list(spans.pieces(data, where)),
    ]
    refused = 0
    for _ in range(300):
        data = bytearray(records.encode(some_records(chance)))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(records.HEADER_SIZE, len(data))] = chance.randrange(256)
        outcomes = []
        for way in ways:
            try:
                way(bytes(data), at(bytes(data)))
            except MalformedMessage:
                outcomes.append(True)
            else:
                outcomes.append(False)
        assert len(set(outcomes)) == 1
        refused += outcomes[0]
    assert refused >= 5


@pytest.mark.parametrize("codec", [NONE, LZ4, *slow([GZIP, SNAPPY, ZSTD])])
def test_no_step_has_more_records_than_a_chunk_holds(codec: int) -> None:
    count = 2 * CHUNK_BYTES // records.RECORD_BYTES_MIN
    data = bytes(records.encode([Record(None, None)] * count, Template(codec=codec)))
    steps = [len(some.timestamps) for some in opening.shapes(data, at(data))]
    assert sum(steps) == count
    assert max(steps) <= CHUNK_BYTES // records.RECORD_BYTES_MIN + 1
    assert max(len(some) for some in opening.contents(data, at(data))) <= opening.RECORDS_AT_ONCE


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", [0, 1, 4, 2**31 - 1])
def test_a_false_count_is_found_and_nothing_is_reserved_for_it(codec: int, count: int) -> None:
    data = claimed(bytes(records.encode([Record(b"k", b"v")] * 3, Template(codec=codec))), count)
    for way in (records.decode, opening.contents, opening.shapes, spans.pieces):
        with pytest.raises(MalformedMessage):
            list(way(data, at(data)))


@pytest.mark.parametrize("codec", [*slow([GZIP]), ZSTD])
def test_a_bomb_is_refused_once_it_has_made_what_its_size_allows(codec: int) -> None:
    data = bytes(records.encode([Record(None, bytes(BOMB_BYTES))], Template(codec=codec)))
    allowed = openable_bytes(len(data))
    assert len(data) < BOMB_BYTES // 500
    steps: list[opening.Shapes] = []
    with pytest.raises(DecompressedTooLarge):
        steps.extend(opening.shapes(data, at(data)))
    assert len(steps) <= allowed // CHUNK_BYTES + 100
    with pytest.raises(DecompressedTooLarge):
        records.decode(data, at(data))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_chunks_are_small_and_together_the_whole(codec: int) -> None:
    for plain in (b"", b"a", bytes(3 << 20), random.Random(1).randbytes(1 << 20)):
        packed = compression.compress(codec, plain)
        pieces = list(compression.chunks(codec, packed))
        assert b"".join(pieces) == plain == compression.decompress(codec, packed)
        assert max(map(len, pieces), default=0) <= CHUNK_BYTES
        if plain:
            with pytest.raises(Undecodable):
                list(compression.chunks(codec, packed[:-1]))


def test_members_and_frames_in_a_row() -> None:
    plain = bytes(range(256)) * 500
    gzip = compression.compress(GZIP, plain)
    assert compression.decompress(GZIP, gzip * 3) == plain * 3
    assert compression.decompress(GZIP, gzip + b"something else") == plain  # as Java's stream
    snappy = compression.compress(SNAPPY, plain)
    assert compression.decompress(SNAPPY, snappy * 2) == plain * 2
    packer = zstandard.ZstdCompressor(write_checksum=True, write_content_size=False)
    skippable = (0x184D2A53).to_bytes(4, "little") + (5).to_bytes(4, "little") + b"12345"
    assert compression.decompress(ZSTD, packer.compress(plain) + skippable + packer.compress(plain)) == plain * 2
    lz4_frame = compression.compress(LZ4, plain)
    assert compression.decompress(LZ4, lz4_frame * 2) == plain  # Kafka reads the first one


def test_many_empty_members_take_linear_work() -> None:
    member = zlib.compressobj(wbits=31).flush()
    pieces = list(compression.chunks(GZIP, member * 20_000))
    assert not any(pieces)
    assert len(pieces) <= 3 * 20_000


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        (SNAPPY, b"\xff\xff\xff\xff\x07\x08abc"),  # claims to hold 2 GiB
        (SNAPPY, compression.XERIAL_HEADER + b"\x00\x00\x00\x09\xff\xff\xff\xff\x07\x08abc"),
        (SNAPPY, compression.XERIAL_HEADER + b"\x7f\xff\xff\xff\x08abc"),
        (ZSTD, zstandard.ZstdCompressor().compress(b"abc")[:4] + b"\xe0" + b"\xff" * 8 + b"\x01\x00\x00"),
        (ZSTD, b"\x28\xb5\x2f\xfd"),
        (ZSTD, b"\x50\x2a\x4d\x18\xff\xff\xff\xff"),
        (LZ4, bytes(lz4.frame.compress(b"abc", store_size=True))[:12]),
        (GZIP, b""),
        (NONE + 7, b"abc"),
    ],
)
def test_sizes_that_frames_claim_are_not_believed(codec: int, packed: bytes) -> None:
    with pytest.raises(Undecodable):
        list(compression.chunks(codec, packed))


def test_timestamps_are_numbers_of_64_bits() -> None:
    data = bytearray(records.encode([Record(None, None, 2**62)]))
    data[27:35] = (2**62 + 2**61).to_bytes(8, "big")  # its base; the record's delta is 0
    assert next(some.timestamps for some in opening.shapes(data, at(bytes(data)))) == [2**62 + 2**61]
    far = bytearray(records.encode([Record(None, None, 0), Record(None, None, 2**62)]))
    far[27:35] = (2**63 - 1).to_bytes(8, "big")
    (first, second) = (t for some in opening.shapes(far, at(bytes(far))) for t in some.timestamps)
    assert (first, second) == (2**63 - 1, 2**62 - 1 - 2**63)
    assert [r.timestamp for r in records.decode(far, at(bytes(far)))] == [first, second]
