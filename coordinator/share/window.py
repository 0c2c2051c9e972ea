"""The records in flight of a share-partition: those from its start offset to its end offset, with their locks.

A window is the state of a share-partition. `acquiring` and `partition` say which record changes to which state; the
window knows where they are, what the next fetch may acquire, and when the start offset may advance.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Protocol

from .batches import AVAILABLE, UNSET_OFFSET, RecordState, is_terminal
from .inflight import SPLIT_OFFSETS_MAX, Span, Spans


class Limits(Protocol):
    """The group's configuration, read each time: it may change while records are in flight."""

    @property
    def max_in_flight(self) -> int: ...

    @property
    def max_delivery_count(self) -> int: ...

    @property
    def lock_duration_ms(self) -> int: ...

    @property
    def may_renew(self) -> bool: ...

    @property
    def has_dlq(self) -> bool: ...


class GapWindow:
    """Offsets without a loaded state, from `start` to `end`: they are acquired before the start offset passes them."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class Window:
    """The offsets of a share-partition and the states of its records."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.start_offset = 0
        self.end_offset = 0
        self.spans = Spans()
        self.find_next = False  # records became available after the end offset
        self.gap: GapWindow | None = None
        self.complete_count = 0  # final records from the start offset on (KIP-1226)
        self._locks: list[tuple[int, int, int]] = []

    def load(self, start_offset: int, spans: Sequence[Span], gap_start: int) -> None:
        """Takes over the stored state: spans in order, and where the first gap between them begins, or UNSET_OFFSET."""
        self.start_offset = self.end_offset = start_offset
        for span in spans:
            self.spans.put(span)
            if is_terminal(span.at(span.first).state):
                self.complete_count += span.count
        if spans:
            self.find_next = True
            self.end_offset = self.spans.tail.last
            if gap_start != UNSET_OFFSET:
                self.gap = GapWindow(gap_start, self.end_offset)
            self.advance_start()

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.spans else 0

    # the next fetch

    @property
    def has_gap(self) -> bool:
        return self.gap is not None and self.gap.end == self.end_offset

    def next_fetch_offset(self) -> int:
        """The first offset that may be acquired, as far as is known without the log."""
        spans = self.spans
        if not spans or self.start_offset > spans.tail.last:
            self.find_next = False
            return self.end_offset
        if self.find_next:
            found = self._first_free()
            if found is not None:
                return found
            self.find_next = False
        return self.end_offset + 1

    def _first_free(self) -> int | None:
        gap_start = self.gap.start if self.gap is not None and self.has_gap else None
        for span in self.spans:
            if gap_start is not None:
                if span.first > gap_start:
                    return gap_start
                gap_start = max(span.last + 1, gap_start)
            if span.whole is not None:
                if span.whole.is_free:
                    return span.first
                continue
            free = span.first_free()
            if free is not None:
                return free
        return None

    def can_acquire(self) -> bool:
        """Whether a fetch can return records: records to deliver again, or room for new ones."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.in_flight_count < self.limits.max_in_flight

    def holders(self, among: Container[str]) -> set[str] | None:
        """Returns the members that hold the records in flight that are not settled, so that only their acknowledgements
        can make room; None if others than these hold some, or some are not held.
        """
        found: set[str] = set()
        for span in self.spans:
            whole = span.whole
            if whole is None:
                if not span.add_holders(found, among):
                    return None
            elif not whole.is_settled:
                if whole.member_id not in among or not whole.is_held_by(whole.member_id):
                    return None
                found.add(whole.member_id)
        return found

    def gap_filled_to(self, offset: int) -> None:
        """Records before `offset` have been acquired: shrinks the gap."""
        if self.gap is not None:
            if self.has_gap and offset <= self.gap.end:
                self.gap.start = offset
            else:
                self.gap = None

    # locks

    def lock(self, first: int, last: int, now_ms: int) -> int:
        """Begins an acquisition lock; returns its deadline."""
        deadline = now_ms + self.limits.lock_duration_ms
        heappush(self._locks, (deadline, first, last))
        return deadline

    def next_deadline_ms(self) -> int | None:
        """When `expire` may have something to do next."""
        return self._locks[0][0] if self._locks else None

    def timed_out(self, now_ms: int) -> Iterator[tuple[int, int]]:
        """Removes the locks that have timed out; yields their first and last offsets."""
        while self._locks and self._locks[0][0] <= now_ms:
            _, first, last = heappop(self._locks)
            yield first, last

    # the start offset

    def log_start_moved(self, log_start_offset: int) -> None:
        """Archives available records below the new `log_start_offset`. Acquired records stay acquired.

        A gap ends there too. In Kafka 4.4 the gap stays, and the share-partition fetches removed offsets for ever.
        """
        if log_start_offset <= self.start_offset:
            return
        if not self.spans:
            self.start_offset = self.end_offset = log_start_offset
            self.complete_count = 0
            return
        gone = self._terminal_before(log_start_offset)
        if self.archive(self.start_offset, log_start_offset, list(self.spans), AVAILABLE, count=False):
            self.find_next = True
        self.start_offset = log_start_offset
        self.complete_count -= gone
        self.end_offset = max(self.end_offset, self.start_offset)
        if self.gap is not None:
            self.gap.start = max(self.gap.start, log_start_offset)

    def _terminal_before(self, offset: int) -> int:
        count = 0
        for span in self.spans.between(0, offset - 1):
            first, last = max(self.start_offset, span.first), min(offset - 1, span.last)
            if span.whole is None:
                count += sum(is_terminal(record.state) for _, record in span.records(first, last))
            elif is_terminal(span.whole.state):
                count += max(0, last - first + 1)
        return count

    def archive(self, first: int, end: int, spans: Iterable[Span], state: RecordState, count: bool) -> bool:
        """Archives records in `state` from `first` up to `end`; returns whether there were any. `count`: adds those
        from the start offset on to the complete count.
        """
        any_archived = False
        for one in spans:
            if one.first >= end:
                break
            span = one
            if one.whole is not None:
                if one.whole.state is not state:
                    continue
                if one.count > SPLIT_OFFSETS_MAX:
                    span = self.spans.part(one, max(first, one.first), end - 1)
                if span.whole is not None and span.first >= first and span.last < end:
                    span.whole.archive()
                    self.complete_count += span.count if count else 0
                    any_archived = True
                    continue
                span.split()
            for _, record in span.records(first, end - 1):
                if record.state is state:
                    record.archive()
                    self.complete_count += count
                    any_archived = True
        return any_archived

    def counted(self, first: int, last: int) -> int:
        """Returns how many of some records are at or after the start offset."""
        return max(0, last - max(self.start_offset, first) + 1)

    def advance_start(self) -> bool:
        """Moves the start offset over settled records, and forgets them; returns whether it moved."""
        spans = self.spans
        if not spans or not self._start_is_settled():
            return False
        last, terminal = self._last_settled()
        if last == UNSET_OFFSET:
            return False
        if last == spans.tail.last:
            self.start_offset = self.end_offset = last + 1
            spans.clear()
            self.complete_count = 0
            return True
        span = spans.floor(last)
        assert span is not None
        if last == span.last:
            following = spans.after(last)
            assert following is not None
            self.start_offset = max(self.start_offset, following.first)
            if self.has_gap and self.gap is not None:
                self.start_offset = min(self.gap.start, self.start_offset)
            spans.drop_before(span.first + 1)
        else:
            self.start_offset = max(self.start_offset, last + 1)
            spans.drop_before(span.first)
        self.complete_count -= terminal
        return True

    def _start_is_settled(self) -> bool:
        span = self.spans.floor(self.start_offset)
        if span is None or (span.whole is None and self.start_offset > span.last):
            return False  # Kafka fails here where the log's start has passed records with states of their own
        return span.at(min(self.start_offset, span.last)).is_settled

    def _last_settled(self) -> tuple[int, int]:
        """Returns the last offset of the settled records at the front,
        and how many of them are at or after the start offset.
        """
        last, terminal = UNSET_OFFSET, 0
        for span in self.spans:
            if self.has_gap and self.gap is not None and span.last >= self.gap.start:
                break
            if span.whole is not None:
                if not span.whole.is_settled:
                    break
                last = span.last
                terminal += self.counted(span.first, span.last)
                continue
            span.settle()
            if span.settled:
                last = span.first + span.settled - 1
                terminal += self.counted(span.first, last)
            if span.settled < span.count:
                break
        return last, terminal
