"""What Java's classes do, where Kafka's results depend on it."""

from __future__ import annotations

import re
import struct

INT_MIN = -(1 << 31)
LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1
_NUMBER = "([-+]?[0-9]+)"
_DURATION = re.compile(
    rf"([-+]?)P(?:{_NUMBER}D)?(T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}(?:[.,]([0-9]{{0,9}}))?S)?)?", re.IGNORECASE
)
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60


def java_hash(text: str) -> int:
    """`String.hashCode`: over the UTF-16 code units, in 32 bits with a sign."""
    value = 0
    if text.isascii():
        for unit in text.encode():
            value = value * 31 + unit & 0xFFFFFFFF
    else:
        for (unit,) in struct.iter_unpack(">H", java_units(text)):
            value = value * 31 + unit & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def java_abs(value: int) -> int:
    """`Utils.abs` of Kafka for an int: 0 for the least one, which has no opposite."""
    return 0 if value == INT_MIN else abs(value)


def java_length(text: str) -> int:
    """`String.length`: UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def java_units(text: str) -> bytes:
    """Returns the UTF-16 code units of a text, by which `String.compareTo` orders."""
    return text.encode("utf-16-be", "surrogatepass")


def java_split(text: str) -> list[str]:
    """`text.split(",")`: nothing is left of the commas at the end, and of a text of commas alone."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if parts[0] or len(parts) > 1 or not text else []


def java_duration_ns(text: str) -> int:
    """`Duration.parse`: the nanoseconds of `PnDTnHnMn.nS`. Raises ValueError for other texts, and where numbers or the
    seconds are beyond a long.
    """
    found = _DURATION.fullmatch(text)
    if found is None or found[3] in ("T", "t"):
        raise ValueError(text)
    given = [(found[2], _DAY_S), (found[4], _HOUR_S), (found[5], _MINUTE_S), (found[6], 1)]
    numbers = [_long(number) * unit for number, unit in given if number is not None]
    if not numbers:
        raise ValueError(text)
    seconds = _long(sum(_long(number) for number in numbers))
    fraction = int((found[7] or "").ljust(9, "0"))
    ns = seconds * 10**9 + (-fraction if (found[6] or "").startswith("-") else fraction)
    return -ns if found[1] == "-" else ns


def _long(number: str | int) -> int:
    """Returns a number. Raises ValueError if it is none that a long has."""
    value = int(number)
    if not LONG_MIN <= value <= LONG_MAX:
        raise ValueError(f"{value} is beyond a long")
    return value
