"""What Java's classes do, where Kafka's results depend on it."""

from __future__ import annotations

import struct

INT_MIN = -(1 << 31)


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


def java_abs(value: int) -> int:
    """`Utils.abs` of Kafka for an int: 0 for the least one, which has no opposite."""
    return 0 if value == INT_MIN else abs(value)


def java_split(text: str) -> list[str]:
    """`text.split(",")`: nothing is left of the commas at the end, and of a text of commas alone."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts[0] or len(parts) > 1 or not text else []
