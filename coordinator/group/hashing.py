"""Hashes that Kafka and ottla must agree on: of a group's id, and of the metadata of the topics that a group is subscribed to."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

import xxhash

MAGIC = 0
_LONG = struct.Struct("<q")
_INT = struct.Struct("<i")


def java_hash(text: str) -> int:
    """`String.hashCode`: over the UTF-16 code units, in 32 bits with a sign."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = value * 31 + unit & 0xFFFFFFFF
    else:
        raw = text.encode("utf-16-be", "surrogatepass")
        for (unit,) in struct.iter_unpack(">H", raw):
            value = value * 31 + unit & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for(group_id: str, count: int) -> int:
    """The partition of `__consumer_offsets` that a group lives on. Java's abs leaves the least integer as it is; Kafka's makes it 0."""
    value = java_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % count


def java_order(names: Iterable[str]) -> list[str]:
    """The order in which a Java HashMap that was filled with `names` yields them: what Kafka's assignors go by."""
    listed = list(names)
    capacity = 16
    while len(listed) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        value = java_hash(name) & 0xFFFFFFFF
        return (value ^ value >> 16) & (capacity - 1)

    return sorted(listed, key=bucket)


def _string(text: str) -> bytes:
    """As hash4j streams it: the code units, then their number."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT.pack(len(units) // 2)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def topic_hash(topic_id: bytes, name: str, racks: list[list[str]]) -> int:
    """The hash of a topic: its id, its name, and for each partition the racks of its replicas (`Utils.computeTopicHash`)."""
    most, least = struct.unpack(">qq", topic_id)
    out = bytearray([MAGIC])
    out += _LONG.pack(most) + _LONG.pack(least) + _string(name) + _INT.pack(len(racks))
    for index, of_partition in enumerate(racks):
        out += _INT.pack(index)
        for rack in sorted(of_partition):
            out += _INT.pack(len(rack)) + _string(rack)
    return _signed(xxhash.xxh3_64_intdigest(bytes(out)))


def group_hash(topic_hashes: dict[str, int]) -> int:
    """The hash of a group: those of its topics in the order of their names; 0 for none (`Utils.computeGroupHash`)."""
    if not topic_hashes:
        return 0
    data = b"".join(_LONG.pack(value) for _, value in sorted(topic_hashes.items()))
    return _signed(xxhash.xxh3_64_intdigest(data))


def metadata_hash(names: Iterable[str], image: Any) -> int:
    """The metadata hash of a group that is subscribed to `names`; a topic that is not there counts for nothing."""
    found = {}
    for name in names:
        value = image.topic_hash(name)
        if value != 0:
            found[name] = value
    return group_hash(found)
