"""Messages that lie: what earlier releases answer to them, and what of it can be fetched. Kafka's answers were written
down once, as in `test_earlier_releases`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import lz4.frame
import pytest
import snappy
from ottla.protocol import compression, legacy, lz4_frames
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP, LZ4, SNAPPY, XERIAL_HEADER
from ottla.protocol.errors import Errors
from ottla.protocol.legacy import ENTRY

from ..support.differential import Pair
from ..support.stories.earlier import T, earlier_brokers, fetch, produce, topic

pytestmark = pytest.mark.slow
release, kafka, ours, settled = earlier_brokers(("0.8.2", "0.9", "0.10.2", "1.1"))
# Before 0.10 nothing looks into messages that are in others, and they are stored; nor does 0.10 where the version is
# the log's. Ottla refuses what no consumer can read.
UNREADABLE = ("nested", "a key of", "a value of 1000", "a value of 2147483647")
KEPT_BEFORE_0_10 = (*UNREADABLE, "a wrong checksum")
DIFFERENT = {"0.8.2": KEPT_BEFORE_0_10, "0.9": KEPT_BEFORE_0_10, "0.10.2": UNREADABLE[1:], "1.1": ()}
CORRUPT, UNKNOWN = "CORRUPT_MESSAGE", "UNKNOWN_SERVER_ERROR"
OURS = {"nested": CORRUPT, "nested beside a message": CORRUPT}  # else UNKNOWN; a checksum is put right


def entry(
    offset: int, value: bytes | None, magic: int, codec: int = 0, key: bytes | None = b"k", mark: int = 0
) -> bytes:
    """A message with its offset. `mark`: other bits of its attributes."""
    body = struct.pack(">bb", magic, codec | mark) + (struct.pack(">q", T) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return ENTRY.pack(offset, len(body) + 4) + struct.pack(">I", zlib.crc32(body)) + body


def wrapped(inner: bytes, magic: int, offset: int = 0, key: bytes | None = None, mark: int = 0) -> bytes:
    return entry(offset, compression.compress(GZIP, inner), magic, GZIP, key, mark)


def numbered(*offsets: int, magic: int) -> bytes:
    return b"".join(entry(offset, b"v%d" % place, magic) for place, offset in enumerate(offsets))


def inner_offsets(magic: int) -> Iterator[tuple[str, bytes]]:
    """Compressed sets whose messages have other offsets than those that they are given."""
    for offsets in ((0, 1, 2), (0, 0, 0), (2, 1, 0), (5, 6, 7), (0, 5, 9), (-3, -2, -1), (2**40, 0), (2**62, -(2**62))):
        yield f"offsets {offsets}", wrapped(numbered(*offsets, magic=magic), magic)
        yield f"offsets {offsets} of 7", wrapped(numbered(*offsets, magic=magic), magic, offset=7)


def lies(magic: int) -> Iterator[tuple[str, bytes]]:
    """Sets by what is wrong with them."""
    good = numbered(0, 1, magic=magic)
    cut = ENTRY.size + 4 + 2 + 8 * magic  # where the size of the key is
    yield "nested", wrapped(wrapped(good, magic, 1), magic, 1)
    yield "nested beside a message", wrapped(good + wrapped(good, magic, 3), magic, 3)
    yield "a wrong checksum in it", wrapped(good[:-1] + b"x", magic)
    yield "a wrong checksum of the first in it", wrapped(good[: cut + 4] + b"x" + good[cut + 5 :], magic)
    yield "the other version in it", wrapped(numbered(0, 1, magic=1 - magic), magic, 1)
    yield "both versions in it", wrapped(numbered(0, magic=0) + numbered(1, magic=1), magic, 1)
    yield "nothing in it", wrapped(b"", magic)
    yield "no value", entry(0, None, magic, GZIP, None)
    yield "an empty value", entry(0, b"", magic, GZIP, None)
    yield "it ends early", wrapped(good[:-3], magic)
    yield "bytes after it", wrapped(good + b"\0\0\0", magic)
    yield "a negative size in it", wrapped(good + ENTRY.pack(2, -5) + b"x" * 20, magic)
    yield "a large size in it", wrapped(good + ENTRY.pack(2, 1000) + b"x" * 20, magic)
    yield "a small size in it", wrapped(good + ENTRY.pack(2, 10) + b"x" * 20, magic)
    yield "a key", wrapped(good, magic, 1, key=b"k")
    yield "the time of an append", wrapped(good, magic, 1, mark=legacy.APPEND_TIME_MASK)
    yield "the time of an append in it", wrapped(entry(0, b"v", magic, mark=legacy.APPEND_TIME_MASK), magic)
    yield "two compressed ones", wrapped(good, magic, 1) + wrapped(good, magic, 1)
    yield "bytes after the compressed ones", entry(0, compression.compress(GZIP, good) + b"xyz", magic, GZIP, None)
    for codec in (2, 3, 4, 5, 7):
        yield f"nonsense of codec {codec}", entry(0, b"nonsense" * 3, magic, codec, None)
    for size in (-2, 1000, 2**31 - 1):
        for name, at in (("key", cut), ("value", cut + 5)):
            one = entry(0, b"v", magic)
            body = one[16:at] + struct.pack(">i", size) + one[at + 4 :]
            lying = one[:12] + struct.pack(">I", zlib.crc32(body)) + body
            yield f"a {name} of {size} bytes", lying
            yield f"a {name} of {size} bytes in it", wrapped(lying, magic)
    yield "reserved attributes", entry(0, b"v", magic, mark=0x60)


def frames_of_lz4(magic: int) -> Iterator[tuple[str, bytes]]:
    """Frames of LZ4. Clients of version 0 compute the checksum of the header otherwise (KIP-57)."""
    good = numbered(0, 1, magic=magic)
    for name, options in (
        ("plain", {}),
        ("linked", {"block_linked": True}),
        ("large blocks", {"block_size": lz4.frame.BLOCKSIZE_MAX4MB}),
        ("checksums of blocks", {"block_checksum": True}),
        ("its size", {"store_size": True}),
        ("a checksum", {"content_checksum": True}),
    ):
        found = lz4.frame.compress(good, **{"block_linked": False, "store_size": False, **options})
        yield f"{name}", found
        yield f"{name}, the checksum of version 0", lz4_frames.with_old_checksum(found)
    right = compression.compress(LZ4, good)
    usual = right if magic else lz4_frames.with_old_checksum(right)
    yield "another checksum of the header", right[:6] + bytes([right[6] ^ 0x55]) + right[7:]
    yield "without its end", usual[:-4]
    yield "it ends early", usual[:-10]
    yield "bytes after it", usual + b"xyz"
    yield "two frames", usual + usual
    yield "only the magic number", usual[:4]
    yield "nothing in it", compression.compress(LZ4, b"")
    lying = compression.compress(LZ4, numbered(5, 6, 7, magic=magic))
    yield "offsets", lying if magic else lz4_frames.with_old_checksum(lying)


def data_of_snappy(magic: int) -> Iterator[tuple[str, bytes]]:
    good = numbered(0, 1, magic=magic)
    whole = snappy.compress(good)
    framed = XERIAL_HEADER + len(whole).to_bytes(4, "big") + whole
    parts = [snappy.compress(part) for part in (good[:20], good[20:])]
    yield "framed", framed
    yield "without a frame", whole
    yield "two blocks", XERIAL_HEADER + b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    yield "no blocks", XERIAL_HEADER
    yield "an empty block", framed + bytes(4)
    yield "it ends early", framed[:-3]
    yield "a block that is too large", XERIAL_HEADER + b"\0\0\x03\xe8" + whole
    yield "a negative block", XERIAL_HEADER + b"\xff\xff\xff\xff" + whole
    yield "bytes after it", framed + b"xy"
    yield "a size that lies", XERIAL_HEADER + len(whole).to_bytes(4, "big") + b"\xff\xff\x03" + whole[1:-2]
    yield "another version", XERIAL_HEADER[:8] + b"\0\0\0\x09\0\0\0\x09" + framed[16:]
    yield "half a header", XERIAL_HEADER[:10]
    yield "offsets", compression.compress(SNAPPY, numbered(5, 6, 7, magic=magic))
    streams = [XERIAL_HEADER + len(part).to_bytes(4, "big") + part for part in parts]
    yield "two streams", b"".join(streams)
    yield "two streams, each with a message", framed + framed
    yield "half a stream after it", framed + streams[0][:-3]
    yield "half a header after it", framed + XERIAL_HEADER[:10]


def data_of_gzip(magic: int) -> Iterator[tuple[str, bytes]]:
    good = numbered(0, 1, magic=magic)
    whole = compression.compress(GZIP, good)
    yield "two members", compression.compress(GZIP, good[:20]) + compression.compress(GZIP, good[20:])
    yield "a wrong checksum", whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]
    yield "a wrong size", whole[:-1] + bytes([whole[-1] ^ 1])
    yield "nothing in it", compression.compress(GZIP, b"")
    for size in (3, 8, 9, 15, 40):
        yield f"without its last {size} bytes", whole[:-size]
    for size in (0, 1, 5, 10, 12):
        yield f"its first {size} bytes", whole[:size]
    yield "a second member ends early", whole + whole[:-20]
    yield "a second member without data", whole + whole[:10]


def versions_of(release: str) -> list[tuple[int, int]]:
    """Versions of messages and of Produce."""
    return [(0, 0)] if release in ("0.8.2", "0.9") else [(0, 0), (0, 2), (1, 2)]


def is_different(name: str, release: str, magic: int) -> bool:
    return name.startswith(DIFFERENT[release]) and (release != "0.10.2" or magic == 1)


def test_offsets_that_lie(pair: Pair, release: str) -> None:
    topic(pair, "offsets")
    pair.trims["Fetch"] = opened
    for magic, version in versions_of(release):
        offset = 0
        for _, data in inner_offsets(magic):
            reply = produce(pair, "offsets", data, version)
            offset = max(offset, reply.responses[0].partition_responses[0].base_offset)
            fetch(pair, "offsets", offset, version)


def opened(reply: Any) -> None:
    """Puts messages in place of compressed ones."""
    for found in reply.responses:
        for part in found.partitions:
            data = bytes(part.records)
            sets = [(one.offset, one.codec, one.timestamp) for one in legacy.entries(data)]
            part.records = repr((sets, legacy.decode(data))).encode()


@pytest.mark.parametrize(
    ("codec", "made"),
    [(LZ4, frames_of_lz4), (SNAPPY, data_of_snappy), (GZIP, data_of_gzip)],
    ids=("lz4", "snappy", "gzip"),
)
def test_codecs(pair: Pair, release: str, codec: int, made: Callable[[int], Iterator[tuple[str, bytes]]]) -> None:
    topic(pair, f"codec-{codec}")
    pair.trims["Fetch"] = opened
    for magic, version in versions_of(release):
        for _, data in made(magic):
            reply = produce(pair, f"codec-{codec}", entry(0, data, magic, codec, None), version)
            answer = reply.responses[0].partition_responses[0]
            if not answer.error_code:
                fetch(pair, f"codec-{codec}", answer.base_offset, version)
    assert pair.errors("Produce") >= {"NONE", UNKNOWN}


def test_what_lies(pair: Pair, release: str) -> None:
    topic(pair, "lies")
    for magic, version in versions_of(release):
        for name, data in lies(magic):
            if is_different(name, release, magic):
                continue
            produce(pair, "lies", data, version)
    assert {"NONE", "CORRUPT_MESSAGE"} <= pair.errors("Produce")


def test_what_kafka_stores_and_no_consumer_can_read(pair: Pair, release: str) -> None:
    """Keys and values that go beyond their message, and compressed messages in others. 0.8.2's own consumer stops at
    such a message, and at all that follow it.
    """
    topic(pair, "unreadable")
    r = m.ProduceRequest
    found = {}
    for magic, version in versions_of(release):
        for name, data in lies(magic):
            if not is_different(name, release, magic):
                continue
            part = r.PartitionProduceData(index=0, records=data)
            named = [r.TopicProduceData(name="unreadable", partition_data=[part])]
            asked = r(acks=1, timeout_ms=5000, topic_data=named)
            replies = [wire.ask("Produce", version, asked).responses[0].partition_responses[0] for wire in pair.wires]
            found[name] = tuple(Errors(one.error_code).name for one in replies)
    right = {name: "NONE" if name.startswith("a wrong checksum") else OURS.get(name, UNKNOWN) for name in found}
    assert found == {name: (ours, "NONE") for name, ours in right.items()}
    assert len(found) == {"0.8.2": 14, "0.9": 14, "0.10.2": 10, "1.1": 0}[release]
