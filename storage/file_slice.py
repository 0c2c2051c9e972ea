"""The records of a reply: a range of a segment's file."""

from __future__ import annotations

from .segment import Segment


class FileSlice:
    """A range of a segment for a reply: its bounds are fixed before the reply starts, and its bytes are read when they
    are sent.
    """

    __slots__ = ("length", "position", "segment")

    def __init__(self, segment: Segment, position: int, length: int) -> None:
        self.segment = segment
        self.position = position
        self.length = length
        segment.holds += 1

    def __len__(self) -> int:
        return self.length

    def end_at(self, position: int) -> None:
        """Shortens the slice if it goes beyond a position of its file."""
        self.length = min(self.length, position - self.position)

    def read(self, start: int, length: int) -> bytes:
        """Reads `length` bytes from `start` of the slice."""
        return self.segment.read(self.position + start, min(length, self.length - start))

    def release(self) -> None:
        """Releases the file: the slice was sent, or will not be sent."""
        self.segment.holds -= 1

    def __bytes__(self) -> bytes:
        return self.read(0, self.length)
