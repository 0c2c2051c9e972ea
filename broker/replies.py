"""What an exchange ends with: a reply to send, or a mark that says that there is none."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final

from ..protocol.buffers import LateRecords


class Silence(Enum):
    """What a handler returns instead of a message."""

    NO_REPLY = "no reply"
    CLOSE = "the connection ends"


NO_REPLY: Final = Silence.NO_REPLY
CLOSE: Final = Silence.CLOSE


class Reply:
    """Bytes to send: the encoded message, and records to be read from files, with their positions in it."""

    __slots__ = ("head", "parts", "size")

    def __init__(self, head: bytearray, parts: list[tuple[int, LateRecords]]) -> None:
        self.head = head
        self.parts = parts
        self.size = len(head)
        if parts:
            self.size += sum([len(part) for _, part in parts])

    def release(self) -> None:
        """Releases the records: the reply is not sent."""
        for _, part in self.parts:
            part.release()


Send = Callable[[Reply | None, bool], None]
"""Called with the reply (None for none) and whether the connection is closed."""
