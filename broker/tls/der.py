"""Reads values in DER, as far as certificates and key stores need it."""

from __future__ import annotations

from collections.abc import Iterator

SEQUENCE, SET, OID, OCTET_STRING, NULL = 0x30, 0x31, 0x06, 0x04, 0x05


class DerError(ValueError):
    """Bytes that are not the DER that was expected."""


def read(data: bytes, at: int = 0) -> tuple[int, int, int]:
    """Returns tag, start of the content and its end, of the value at `at`. Raises DerError."""
    if at + 2 > len(data):
        raise DerError("the value ends too early")
    tag, length, start = data[at], data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        if not 0 < count <= 4 or start + count > len(data):
            raise DerError("the length of the value is invalid")
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    if start + length > len(data):
        raise DerError("the value ends too early")
    return tag, start, start + length


def content(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Returns start and end of the content of a value that must have a tag. Raises DerError."""
    found, start, end = read(data, at)
    if found != tag:
        raise DerError(f"the value has the tag {found:#x}, expected {tag:#x}")
    return start, end


def values(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Yields place, tag, start and end of each value between two places. Raises DerError."""
    while start < end:
        tag, inner, after = read(data, start)
        yield start, tag, inner, after
        start = after


def oid(data: bytes) -> str:
    """Returns an object identifier as text with dots. Raises DerError."""
    numbers: list[int] = []
    value = 0
    for byte in data:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    if not numbers or data[-1] & 0x80:
        raise DerError("the object identifier ends too early")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def encoded(tag: int, *parts: bytes) -> bytes:
    """Returns a value in DER."""
    body = b"".join(parts)
    if len(body) < 0x80:
        return bytes((tag, len(body))) + body
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body
