"""Batches that follow the end of a log, and are written to its file at once.

Until `write` the log is as it was, but for the states of their producers, with which each batch is checked against the
one before it: `write` takes them back if it fails. So nothing else may look at the log meanwhile.
"""

from __future__ import annotations

from ..protocol.buffers import Data, WritableData
from ..protocol.records import (
    CONTROL_MASK,
    LOG_OVERHEAD,
    TRANSACTIONAL_MASK,
    BatchAt,
    BatchHeader,
    set_offset_and_epoch,
)
from .batch_info import Appended, BatchInfo, appended, batch_info
from .log import Log
from .producers import Producer
from .rolling import Room, room_of

NOT_PLAIN = CONTROL_MASK | TRANSACTIONAL_MASK  # a marker, or records of a transaction


class Gathered:
    """Batches for one log. `end_offset`: where the log will end."""

    __slots__ = ("_before", "_epoch", "_infos", "_log", "_pieces", "_position", "_room", "_size", "end_offset")

    def __init__(self, log: Log, leader_epoch: int, now_ms: int) -> None:
        self._log = log
        self._epoch = leader_epoch
        active = log.active
        self._position = active.size
        self._room: Room | None = None
        if leader_epoch <= log.epochs.latest and not log.settings.is_append_time:
            self._room = room_of(active, log.settings, (log.topic_id, log.partition), now_ms)
        self._pieces: list[Data] = []
        self._infos: list[BatchInfo] = []
        self._size = 0
        self._before: dict[int, Producer | None] = {}  # the producers of the batches
        self.end_offset = log.end_offset

    def __len__(self) -> int:
        return len(self._infos)

    def has_room(self, header: BatchHeader) -> bool:
        """Whether a batch needs no more than a write: no new segment, leader epoch, marker, or time of the broker."""
        room = self._room
        return (
            room is not None
            and not header.attributes & NOT_PLAIN
            and self._size + header.length + LOG_OVERHEAD <= room.size
            and header.max_timestamp <= room.timestamp
            and self.end_offset + header.last_offset_delta <= room.last_offset
            and len(self._infos) < room.batches
        )

    def add(self, data: WritableData, at: BatchAt) -> Appended:
        """Adds a batch for which there is room, after writing its offset and leader epoch into `data`, which must stay
        valid until `write`.
        """
        first, header = self.end_offset, at.header
        set_offset_and_epoch(data, at.position, first, self._epoch)
        info = batch_info(self._position + self._size, first, header)
        self._infos.append(info)
        self._pieces.append(data)
        self._size += info.size
        self.end_offset = info.last_offset + 1
        if header.producer_id >= 0:
            producers = self._log.producers
            if header.producer_id not in self._before:
                self._before[header.producer_id] = producers.saved(header.producer_id)
            producers.update(header, first)
        return appended(first, self.end_offset, -1)

    def write(self, now_ms: int) -> None:
        """Writes the batches. After an exception the log is as it was."""
        try:
            self._log.write(self._log.active, self._pieces, self._infos, now_ms)
        except BaseException:
            for producer_id, saved in self._before.items():
                self._log.producers.restore(producer_id, saved)
            raise
