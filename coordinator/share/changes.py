"""Changes of records in flight that are begun, and must be written to the share coordinator."""

from __future__ import annotations

from collections.abc import Iterator

from .batches import StateBatch
from .inflight import InFlight
from .window import Limits


class Change:
    """Consecutive records that change to the same state: one state for a whole span, or one for each offset.

    `cause`: why they go to the dead-letter queue.
    """

    __slots__ = ("cause", "delivery_count", "first", "last", "records", "state")

    def __init__(self, record: InFlight, first: int, last: int, cause: str | None) -> None:
        self.records = [record]
        self.first = first
        self.last = last
        self.state = record.state
        self.delivery_count = record.delivery_count
        self.cause = cause

    @property
    def batch(self) -> StateBatch:
        """Returns the state batch to write."""
        return StateBatch(self.first, self.last, int(self.state), self.delivery_count)

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

    def note(self, record: InFlight, first: int, last: int, cause: str | None) -> None:
        """Adds the change of a record, or of a whole span (`note_each`)."""
        if first == last:
            self.note_each([record], first, cause)
        else:
            self.changes.append(Change(record, first, last, cause))

    def note_each(self, records: list[InFlight], first: int, cause: str | None) -> None:
        """Adds the change of consecutive records that are alike; merges it with the change of the records before it
        if they are neighbours and alike.
        """
        record, last, changes = records[0], first + len(records) - 1, self.changes
        if changes:
            tail = changes[-1]
            alike = tail.state is record.state and tail.delivery_count == record.delivery_count and tail.cause is cause
            if alike and tail.last + 1 == first and len(tail.records) == tail.last - tail.first + 1:
                tail.records += records
                tail.last = last
                return
        change = Change(record, first, last, cause)
        change.records = records
        changes.append(change)
