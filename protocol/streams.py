"""Reading and writing bytes of a stream in the checked form: every length is held against the bytes that are left, and
errors name the field.

Reading a message of more bytes than it may have elements counts those of its arrays down from what the caller allows,
once for each array: a request may be small and name a thing a million times. An element takes a byte at least, so that
in shorter messages there is nothing to count.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from .errors import MalformedMessage, TooManyElements

if TYPE_CHECKING:
    from construct import Container

UNBOUNDED = 1 << 62
"""The limit for messages whose reader need not bound the elements: replies, and our own records."""


def take(stream: io.BytesIO, length: int, path: str) -> bytes:
    data = stream.read(length)
    if len(data) < length:
        raise MalformedMessage(path, f"needs {length} bytes where {len(data)} are left")
    return data


def left(stream: io.BytesIO) -> int:
    """How many bytes a stream still has."""
    if isinstance(stream, io.BytesIO):
        return stream.getbuffer().nbytes - stream.tell()
    from construct import stream_size

    return int(stream_size(stream)) - int(stream.tell())


def read_uvarint(stream: io.BytesIO, path: str) -> int:
    """Returns an unsigned varint of at most 32 bits."""
    n = shift = 0
    while True:
        b = take(stream, 1, path)[0]
        n |= (b & 0x7F) << shift
        if b < 0x80:
            if n > 0xFFFFFFFF:
                raise MalformedMessage(path, "varint of more than 32 bits")
            return n
        shift += 7
        if shift > 28:
            raise MalformedMessage(path, "varint of more than five bytes")


def write_uvarint(stream: io.BytesIO, n: int) -> None:
    while n > 0x7F:
        stream.write(bytes((n & 0x7F | 0x80,)))
        n >>= 7
    stream.write(bytes((n,)))


class Room:
    """How many array elements and tagged fields a message may still have, at all levels together."""

    __slots__ = ("elements",)

    def __init__(self, elements: int) -> None:
        self.elements = elements

    def take(self, count: int, path: str) -> None:
        """Raises TooManyElements."""
        self.elements -= count
        if self.elements < 0:
            raise TooManyElements(path)


def count_elements(context: Container, count: int, path: str) -> None:
    """Takes elements from the parameter `room` of `parse_stream`,
    where its caller bounds them. Raises TooManyElements.
    """
    room = context._params.get("room")
    if room is not None:
        room.take(count, path)
