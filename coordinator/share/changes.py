"""Changes of records in flight that are begun, and must be written to the share coordinator."""

from __future__ import annotations

from collections.abc import Iterator

from .batches import StateBatch, state_batch
from .inflight import InFlight
from .window import Limits


class Change:
    """Consecutive records that change to the same state: one state for a whole span, or one for each offset.

    `cause`: why they go to the dead-letter queue.
    """

    __slots__ = ("cause", "delivery_count", "first", "last", "records", "state")

    def __init__(self, records: list[InFlight], first: int, last: int, cause: str | None) -> None:
        self.records = records
        self.first = first
        self.last = last
        self.state = records[0].state
        self.delivery_count = records[0].delivery_count
        self.cause = cause

    @property
    def batch(self) -> StateBatch:
        """Returns the state batch to write."""
        return state_batch(self.first, self.last, int(self.state), self.delivery_count)

    def ranges(self) -> Iterator[tuple[InFlight, int, int]]:
        """Yields each state with its offsets."""
        if len(self.records) == 1:
            yield self.records[0], self.first, self.last
            return
        for offset, record in enumerate(self.records, self.first):
            yield record, offset, offset


class Step:
    """The changes that one call begins, with the group's configuration of that moment."""

    __slots__ = ("changes", "has_dlq", "max_count")

    def __init__(self, limits: Limits) -> None:
        self.changes: list[Change] = []
        self.max_count = limits.max_delivery_count
        self.has_dlq = limits.has_dlq

    def note(self, records: list[InFlight], first: int, last: int, cause: str | None) -> None:
        """Adds the change of consecutive records that are alike, or of a whole span, which has one state. Records that
        have states of their own join the change of those before them if they are neighbours and alike.
        """
        record, changes = records[0], self.changes
        if changes and len(records) == last - first + 1:
            tail = changes[-1]
            alike = tail.state is record.state and tail.delivery_count == record.delivery_count and tail.cause is cause
            if alike and tail.last + 1 == first and len(tail.records) == tail.last - tail.first + 1:
                tail.records += records
                tail.last = last
                return
        changes.append(Change(records, first, last, cause))
