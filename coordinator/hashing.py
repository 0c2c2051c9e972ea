"""Java's hashes of strings, by which Kafka chooses partitions and orders names."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache


@lru_cache(1024)
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
