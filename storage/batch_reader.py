"""Reads all batches of a segment with few large reads, for compaction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..protocol.records import LOG_OVERHEAD
from .batch_info import BatchInfo, info_at
from .segment import Segment

WINDOW_BYTES = 1 << 18
LARGE_BYTES = 1 << 16  # of a batch that is not read with others


class BatchBytes(NamedTuple):
    """Where the bytes of a batch are."""

    buf: bytes
    position: int

    def whole(self, size: int) -> memoryview:
        return memoryview(self.buf)[self.position : self.position + size]


class BatchReader:
    """The batches of a segment. `read` takes the batch that `infos` yielded last."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._buf = b""
        self._at = 0  # of `_buf` in the file

    def infos(self) -> Iterator[BatchInfo]:
        """Yields the batches; stops at bytes that are not a batch. Of large batches only the beginning is read."""
        position, end, large = 0, self._segment.size, 0
        while position + LOG_OVERHEAD + 6 <= end:
            start = position - self._at
            info = info_at(self._buf, start, position) if start < len(self._buf) else None
            if info is None:
                self._fill(position, LARGE_BYTES if large else WINDOW_BYTES)
                info = info_at(self._buf, 0, position)
            if info is None or position + info.size > end:
                return
            large = info.size > LARGE_BYTES
            yield info
            position += info.size

    def read(self, batch: BatchInfo) -> BatchBytes:
        """Returns the bytes of a batch, which may be among others."""
        start = batch.position - self._at
        if start + batch.size > len(self._buf):
            self._fill(batch.position, max(batch.size, WINDOW_BYTES))
            start = 0
        return BatchBytes(self._buf, start)

    def _fill(self, position: int, length: int) -> None:
        self._buf, self._at = self._segment.read(position, min(length, self._segment.size - position)), position
