"""Applies committed metadata records to the broker's image, and passes the change on, before replies leave.

A batch may have ten thousand records. Records are read and replayed in steps, and then shown at once, so that a request
sees all of a batch or nothing; then the watchers follow in steps. What is small is done within the event.
"""

from __future__ import annotations

from collections.abc import Callable

from ...coordinator.metadata.delta import MetadataDelta
from ...coordinator.metadata.new_partitions import NewPartitions, decoded
from ...coordinator.metadata.state import MetadataState
from ...protocol import messages
from .. import bugs
from ..replica.partition import Partition
from ..steps import STEP_ELEMENTS, Pace
from ..turn import Turn
from . import metadata_log
from .watchers import Watchers

RETRY_MS = 1000
STEP_RECORDS = 128  # that are read and replayed in a step
GONE = 64  # partitions of a deleted topic that count as a record


class Commits:
    """The commits of the metadata log. `done` is called with the offset that was applied last."""

    def __init__(self, turn: Turn, image: MetadataState, partition: Partition, done: Callable[[int], None]) -> None:
        self.turn = turn
        self.image = image
        self.partition = partition
        self.applied_offset = 0
        self._done = done
        self.shown: Callable[[MetadataDelta], None] = lambda delta: None  # within the event that shows a change
        self.rested: Callable[[], None] = lambda: None  # no commits are left to apply
        self.watchers = Watchers(turn)
        self._committed = 0
        self._followed = 0  # the offset that `done` was called with last
        self.is_busy = False

    def begin_at(self, offset: int) -> None:
        """The image has the records before `offset`, from a snapshot or from the log."""
        self.applied_offset = self._followed = offset

    def committed(self, high_watermark: int) -> None:
        """Applies the records up to the high watermark, after those of earlier commits."""
        self._committed = max(self._committed, high_watermark)
        if not self.is_busy:
            self.is_busy = True
            self.turn.background(self._apply())

    async def _apply(self) -> None:
        try:
            while self._followed < self._committed:
                if self.applied_offset < self._committed:
                    await self._apply_some()
                self._done(self.applied_offset)
                self._followed = self.applied_offset
        except Exception:
            self.turn.later(RETRY_MS, lambda: self.committed(0))
            raise
        finally:
            self.is_busy = False
            bugs.guarded("what waited for commits", self.rested)

    async def _apply_some(self) -> None:
        """Applies committed batches; no more after one with which the records are many."""
        pace, delta = Pace(self.turn, STEP_RECORDS), MetadataDelta(self.image)
        end, count = self.applied_offset, 0
        for end, batch in metadata_log.metadata_batches(self.partition.open_log(), self.applied_offset):
            for offset, record in decoded(batch):
                records = self._size(record)
                self._replay(delta, offset, record)
                count += records
                if pace.is_over(records):
                    await pace.rest()
            if count >= STEP_ELEMENTS or end >= self._committed:
                break
        is_large = count >= STEP_ELEMENTS
        if is_large:  # to show the change is a step of its own
            await pace.rest()
        delta.show()
        self.shown(delta)
        self.applied_offset = end
        if is_large:
            await pace.rest()
        await self.watchers.tell(delta)
        if is_large:  # as are the replies to those who wait for it
            await pace.rest()

    def _size(self, record: object) -> int:
        """Returns how many records take as long to replay and to show."""
        if isinstance(record, NewPartitions):
            return len(record)
        if isinstance(record, messages.RemoveTopicRecord):
            return 1 + self.image.partition_counts.get(record.topic_id, 0) // GONE
        return 1

    def _replay(self, delta: MetadataDelta, offset: int, record: object) -> None:
        try:
            delta.replay(record)
        # like Kafka, the broker does not continue with metadata that contradicts its log
        except Exception as error:
            bugs.report("applying a metadata record", error)
            self.turn.fatal(f"the metadata record at offset {offset} cannot be applied: {error}")
