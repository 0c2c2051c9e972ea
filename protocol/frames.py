"""Length-prefixed frames, sans-I/O: where the next frame in a buffer begins and ends.

A length is believed only as far as its limit: a frame that announces more ends the connection, as in Kafka.
"""

from __future__ import annotations

import struct
from typing import Any

from .errors import MalformedMessage

_LENGTH = struct.Struct(">i")
PREFIX = 4


def frame_size(buf: Any, start: int, end: int, limit: int) -> int:
    """How many bytes the frame that begins at `start` has behind its prefix, or -1 where the prefix is not there yet.

    Raises MalformedMessage for a negative length or one beyond `limit`.
    """
    if end - start < PREFIX:
        return -1
    (size,) = _LENGTH.unpack_from(buf, start)
    if size < 0 or size > limit:
        raise MalformedMessage("frame", f"a length of {size}, the limit is {limit}")
    return int(size)


def framed(body: bytes | bytearray) -> bytes:
    return _LENGTH.pack(len(body)) + body
