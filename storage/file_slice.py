"""The records of a reply: a range of a segment's file. And reads that find out whether a file was damaged."""

from __future__ import annotations

from ..protocol.errors import MalformedMessage
from ..protocol.records import computed_crc
from .batch_info import BatchInfo
from .layout import LOG
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

    def source(self, start: int) -> tuple[int, int] | None:
        """Returns the descriptor and the position of `start` of the slice; None if it is in no file of the system."""
        descriptor = self.segment.handle.fileno()
        return None if descriptor < 0 else (descriptor, self.position + start)

    def release(self) -> None:
        """Releases the file: the slice was sent, or will not be sent."""
        self.segment.holds -= 1

    def __bytes__(self) -> bytes:
        return self.read(0, self.length)


def is_whole_from(segment: Segment, offset: int, end: int) -> bool:
    """Whether the batches of a segment from the one that holds `offset` on lead to the position `end` without other
    bytes between them.
    """
    position = segment.position_before(offset)
    for batch in segment.scan(position, end):
        position = batch.position + batch.size
    return position == end


def read_whole(segment: Segment, batch: BatchInfo) -> bytes:
    """Reads a batch of version 2. Raises MalformedMessage if its CRC is wrong because the file was damaged."""
    data = segment.read_batch(batch)
    if batch.header is not None and computed_crc(data, 0, len(data)) != batch.header.crc:
        path = segment.path(LOG)
        raise MalformedMessage("records", f"{path}: position {batch.position}: the CRC of the batch is wrong")
    return data
