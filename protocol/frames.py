"""Length-prefixed frames, sans-I/O: finds the next frame in a buffer.

A frame whose length is above the limit closes the connection, as in Kafka.
"""

from __future__ import annotations

import struct

from .buffers import Data
from .errors import MalformedMessage

_LENGTH = struct.Struct(">i")
_KEY = struct.Struct(">h")
_START = struct.Struct(">ih")  # of a frame with a request
PREFIX = 4


def frame_size(buf: Data, start: int, end: int, limit: int) -> int:
    """Returns the size of the frame that begins at `start`, without its prefix; -1 if the prefix is incomplete.

    Raises MalformedMessage for a negative length or one above `limit`.
    """
    if end - start < PREFIX:
        return -1
    (size,) = _LENGTH.unpack_from(buf, start)
    if size < 0 or size > limit:
        raise MalformedMessage("frame", f"a length of {size}, the limit is {limit}")
    return int(size)


def api_key(buf: Data, start: int, end: int) -> int | None:
    """Returns the API key of the request whose frame begins at `start`, or None if the key has not arrived yet."""
    return int(_KEY.unpack_from(buf, start + PREFIX)[0]) if end - start >= PREFIX + _KEY.size else None


def keys_of_frames(buf: Data, start: int, end: int, keys_max: int) -> list[int]:
    """Returns the API keys of the requests whose frames are whole, from `start` on: the first `keys_max` of them."""
    found: list[int] = []
    while end - start >= _START.size and len(found) < keys_max:
        size, key = _START.unpack_from(buf, start)
        start += PREFIX + size
        if size < _KEY.size or start > end:
            break
        found.append(key)
    return found


def framed(body: bytes | bytearray) -> bytes:
    return _LENGTH.pack(len(body)) + body
