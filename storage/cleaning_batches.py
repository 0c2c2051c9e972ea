"""Compaction of batches of version 2: the last offset of each key, and what stays of a batch.

A batch of which nothing goes stays as it is. One of which something goes is put together from the bytes of the records
that stay, and compressed again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ..protocol import records, spans
from ..protocol.buffers import Data
from ..protocol.errors import MalformedMessage
from ..protocol.records import BatchAt, BatchHeader, Template
from ..protocol.spans import Piece
from .batch_reader import BatchBytes

EARLIEST = -1
HELD_PIECES = 8  # a batch with more is opened again for what stays


class LastOffsets:
    """The last offset of each key, read from segments in the order of the log.

    Most batches of a log with few keys have no record that stays. `supersedes` knows it from the offsets, and they are
    not opened again, unless something in the log is not as a broker writes it.
    """

    def __init__(self) -> None:
        self.by_key: dict[bytes, int] = {}
        self._read: set[int] = set()  # base offsets of the segments of which all records are known
        self._segment = -1
        self._is_regular = True  # offsets ascend from batch to batch
        self._next_offset = 0
        self._sorted: list[int] | None = None

    def __len__(self) -> int:
        return len(self.by_key)

    def begin(self, segment: int) -> None:
        """The next batches are those of a segment."""
        self._segment = segment
        self._read.add(segment)

    def note(self, header: BatchHeader, data: BatchBytes) -> None:
        """Notes the records of a batch. One that cannot be read, as it was damaged or written without validation,
        supersedes nothing.
        """
        found: dict[bytes, int] = {}
        base, last = header.base_offset, header.last_offset
        is_regular = base >= self._next_offset
        try:
            for _, some in _pieces(header, data):
                offsets = [span[1] for span in some]
                is_regular = is_regular and (not some or (base <= min(offsets) and max(offsets) <= last))
                found.update([(span[0], span[1]) for span in some if span[0] is not None])
        except MalformedMessage:
            self._is_regular = False
            return
        self._is_regular = self._is_regular and is_regular
        self._next_offset = max(self._next_offset, last + 1)
        self.by_key.update(found)

    def note_others(self, found: dict[bytes, int]) -> None:
        """Notes the offsets of a message set of an older version."""
        self._is_regular = False
        self.by_key.update(found)

    def pass_over(self) -> None:
        """The next batch has records without effect: its transaction was aborted."""
        self._read.discard(self._segment)

    def supersedes(self, header: BatchHeader, segment: int) -> bool:
        """Whether it is known without opening a batch that it can be opened, and that none of its records stays."""
        if not self._is_regular or segment not in self._read:
            return False
        if self._sorted is None:
            self._sorted = sorted(self.by_key.values())
        slot = bisect_left(self._sorted, header.base_offset)
        return slot == len(self._sorted) or self._sorted[slot] > header.last_offset


def filtered(
    header: BatchHeader, data: BatchBytes, latest: dict[bytes, int], now_ms: int, delete_retention_ms: int
) -> Data | None:
    """Returns what stays of a batch of records; None for nothing. One that cannot be read stays as it is."""
    horizon = header.delete_horizon_ms
    expired = horizon is not None and horizon <= now_ms
    held: list[Piece] = []
    count, tombstones, first_timestamp, largest = 0, False, records.NO_TIMESTAMP, records.NO_TIMESTAMP
    try:
        for buf, kept in _kept(header, data, latest, expired):
            if not kept:
                continue
            first_timestamp = first_timestamp if count else kept[0][2]
            largest = max(largest, *[span[2] for span in kept])
            tombstones = tombstones or min([span[3] for span in kept]) < 0
            count += len(kept)
            if len(held) <= HELD_PIECES:
                held.append((buf, kept))
    except MalformedMessage:  # it was damaged, or written without validation
        return data.whole(header.size)
    if not count:
        return None
    new_horizon = now_ms + delete_retention_ms if tombstones and horizon is None else horizon
    if count == header.record_count and new_horizon == horizon:
        return data.whole(header.size)
    body, base_timestamp = bytearray(), first_timestamp if new_horizon is None else new_horizon
    for buf, kept in held if len(held) <= HELD_PIECES else _kept(header, data, latest, expired):
        for span in kept:
            spans.copy_record(body, buf, span, header, base_timestamp)
    largest = header.max_timestamp if header.is_append_time else largest
    made = template(header, new_horizon)
    return records.batch_of(body, made, count, header.last_offset_delta, base_timestamp, largest)


def _kept(header: BatchHeader, data: BatchBytes, latest: dict[bytes, int], expired: bool) -> Iterator[Piece]:
    """Yields the records of a batch that stay, while the batch is decompressed."""
    last_of = latest.get
    for buf, found in _pieces(header, data):
        yield (
            buf,
            [
                span
                for span in found
                if span[0] is not None and last_of(span[0], EARLIEST) <= span[1] and (span[3] >= 0 or not expired)
            ],
        )


def _pieces(header: BatchHeader, data: BatchBytes) -> Iterator[Piece]:
    """Yields the records of a batch. Raises MalformedMessage, for a batch that was damaged in its file, too: written
    again, what is wrong in it would get a CRC that is right.
    """
    if records.computed_crc(data.buf, data.position, header.size) != header.crc:
        raise MalformedMessage("records", "the CRC of a batch is wrong")
    yield from spans.pieces(data.buf, BatchAt(data.position, header))


def is_readable(header: BatchHeader, data: BatchBytes) -> bool:
    """Whether the records of a batch can be read."""
    try:
        for _ in _pieces(header, data):
            pass
    except MalformedMessage:
        return False
    return True


def template(header: BatchHeader, horizon: int | None) -> Template:
    return Template(
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        codec=header.codec,
        append_time=header.max_timestamp if header.is_append_time else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        last_offset_delta=header.last_offset_delta,
        delete_horizon_ms=horizon,
    )


def emptied(header: BatchHeader) -> bytearray:
    """Returns a batch without records that keeps its producer's sequence."""
    made = template(header, None)
    made.codec = 0
    out = records.encode([], made)
    at = BatchAt(0, records.header_at(out))
    records.set_max_timestamp(out, 0, at.header, header.is_append_time, header.max_timestamp)
    return out
