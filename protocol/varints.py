"""Unsigned varints, which flexible messages have for sizes, counts and tags; and how functions give up that only read
bytes.
"""

from __future__ import annotations

import struct
from typing import Final

from .buffers import Data


class FastPathFailed(Exception):
    """The fast path gives up, for example at a length that is larger than the remaining bytes; the checked path then
    says what is wrong.
    """


UNREADABLE: Final = (struct.error, IndexError, FastPathFailed)
"""What functions raise that only read bytes, and give up at what is unusual."""


def uvarint_at(buf: Data, pos: int) -> tuple[int, int]:
    """Returns the unsigned varint at `pos` and the position after it; refuses more than five bytes or 32 bits."""
    n = shift = 0
    while True:
        b = buf[pos]
        pos += 1
        n |= (b & 0x7F) << shift
        if b < 0x80:
            if n > 0xFFFFFFFF:
                raise FastPathFailed
            return n, pos
        shift += 7
        if shift > 28:
            raise FastPathFailed


def uvarint_to(out: bytearray, n: int) -> None:
    """Appends `n` as an unsigned varint."""
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
