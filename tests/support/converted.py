"""Message sets that batches become."""

from __future__ import annotations

from ottla.broker.steps import all_at_once
from ottla.protocol import legacy
from ottla.protocol.conversion import older_set
from ottla.protocol.legacy import Message


def converted(buf: bytes, magic: int, first_offset: int = 0, bytes_max: int = 1 << 30) -> tuple[bytes, int]:
    """Returns the message set, and the offset after it."""
    made, end = all_at_once(older_set(buf, magic, first_offset, bytes_max))
    return b"".join(made), end


def down(buf: bytes, magic: int, first_offset: int = 0, bytes_max: int = 1 << 30) -> tuple[list[Message], int]:
    """Returns the messages, and the offset after them."""
    made, end = converted(buf, magic, first_offset, bytes_max)
    return legacy.decode(made), end
