"""Records in flight: the state of each record between the start and the end offset of a share-partition.

A `Span` is a run of offsets that were acquired together. Its records share one `InFlight` until a client treats some of
them differently; then each has its own. A state that is being written to the share coordinator remembers the state
before, because a transition takes effect only when it is persisted (KIP-932); nothing else may change it meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterable, Iterator

from .batches import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, RecordState, is_terminal

NO_MEMBER = ""


class InFlight:
    """The state of a record, or of all records of a span."""

    __slots__ = ("_before", "archived", "delivery_count", "expired", "lock_deadline_ms", "member_id", "state")

    def __init__(
        self, state: RecordState, delivery_count: int, member_id: str = NO_MEMBER, lock_deadline_ms: int | None = None
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock_deadline_ms = lock_deadline_ms
        self.expired = False  # the lock timed out during a transition
        self.archived = False  # by the log or the dead-letter queue, whatever the result of a transition
        self._before: tuple[RecordState, str, int] | None = None

    def copy(self) -> InFlight:
        return InFlight(self.state, self.delivery_count, self.member_id, self.lock_deadline_ms)

    @property
    def in_transition(self) -> bool:
        return self._before is not None

    @property
    def is_free(self) -> bool:
        """Whether the record can be acquired."""
        return self.state is AVAILABLE and self._before is None

    def is_held_by(self, member_id: str) -> bool:
        """Whether a member holds the record and may acknowledge it."""
        return self.state is ACQUIRED and self._before is None and self.member_id == member_id

    @property
    def is_settled(self) -> bool:
        """Whether the state is final and persisted."""
        return is_terminal(self.state) and self._before is None

    def acquire(self, member_id: str, lock_deadline_ms: int) -> None:
        """A member acquires an available record, which raises its delivery count."""
        assert self.is_free
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.lock_deadline_ms = lock_deadline_ms

    def leave(self, state: RecordState, max_delivery_count: int, dlq: bool) -> bool:
        """Changes an acquired record to `state`; archives it instead if it would be available and has reached the
        delivery limit.

        Returns False during a transition.
        """
        if self._before is not None:
            return False
        if state is AVAILABLE and self.delivery_count >= max_delivery_count:
            state = ARCHIVING if dlq else ARCHIVED
        self.state = state
        self.member_id = NO_MEMBER
        return True

    def begin(self, state: RecordState, max_delivery_count: int, dlq: bool) -> bool:
        """Like `leave`, but provisional until `commit_all` or `take_back`."""
        before = self.state, self.member_id, max_delivery_count
        if not self.leave(state, max_delivery_count, dlq):
            return False
        self._before = before
        return True

    def take_back(self) -> None:
        """Undoes a transition, unless the lock timed out: then the record gets the state of a timeout."""
        before, self._before = self._before, None
        if before is None:
            return
        if not self.archived:
            self.state, self.member_id, limit = before
            if not self.expired:
                return
            self.state = ARCHIVED if self.delivery_count >= limit else AVAILABLE
            self.member_id = NO_MEMBER
        self.unlock()

    def archive(self) -> None:
        self.archived = True
        self.state = ARCHIVED
        self.member_id = NO_MEMBER
        self.unlock()

    def unlock(self) -> None:
        self.lock_deadline_ms = None
        self.expired = False


def commit_all(records: Iterable[InFlight]) -> None:
    """Ends the transitions of records: their states are written."""
    for record in records:
        if record._before is not None:
            record._before = record.lock_deadline_ms = None
            record.expired = False


SPLIT_OFFSETS_MAX = 1 << 14
"""The largest span whose records get states of their own. Acquired spans are not larger; an available span of a stored
state may be.
"""


class Span:
    """Offsets that were acquired together, from `first` to `last`."""

    __slots__ = ("each", "first", "last", "settled", "whole")

    def __init__(self, first: int, last: int, whole: InFlight) -> None:
        self.first = first
        self.last = last
        self.whole: InFlight | None = whole
        self.each: list[InFlight] = []  # by offset, once they differ
        self.settled = 0  # how many of `each` are settled, from the first one on

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    def begin_held(
        self, first: int, last: int, member_id: str, state: RecordState, max_delivery_count: int, dlq: bool
    ) -> Iterator[list[InFlight]]:
        """Like `InFlight.begin` for each record of a split span, within bounds, that a member holds. Yields them as
        runs with the same state and delivery count. Ends before the first record that the member does not hold.
        """
        before = ACQUIRED, member_id, max_delivery_count
        run: list[InFlight] = []
        count, reached = -1, state
        for record in self.part(first, last):
            if record.state is not ACQUIRED or record._before is not None or record.member_id != member_id:
                break
            if record.delivery_count != count:
                if run:
                    yield run
                    run = []
                count, reached = record.delivery_count, state
                if state is AVAILABLE and count >= max_delivery_count:
                    reached = ARCHIVING if dlq else ARCHIVED
            record._before = before
            record.state = reached
            record.member_id = NO_MEMBER
            run.append(record)
        if run:
            yield run

    def settle(self) -> None:
        """Counts the settled records at the front."""
        for record in self.each[self.settled :] if self.settled else self.each:
            if not (record.state is ACKNOWLEDGED or record.state is ARCHIVED) or record._before is not None:
                return
            self.settled += 1

    def free(self, first: int, last: int) -> list[tuple[int, InFlight]]:
        """Returns offsets and states of the records that can be acquired, within bounds."""
        records = self.records(first, last)
        return [pair for pair in records if pair[1].state is AVAILABLE and pair[1]._before is None]

    def first_free(self) -> int | None:
        """Returns the offset of the first record that can be acquired; None if there is none."""
        for index in range(self.settled, len(self.each)):
            record = self.each[index]
            if record.state is AVAILABLE and record._before is None:
                return self.first + index
        return None

    def add_holders(self, found: set[str], among: Container[str]) -> bool:
        """Adds the members that hold records; returns False if one is not among these, or a record is not held."""
        for record in self.each[self.settled :]:
            state = record.state
            if record._before is not None:
                return False
            if state is ACQUIRED and record.member_id in among:
                found.add(record.member_id)
            elif not (state is ACKNOWLEDGED or state is ARCHIVED):
                return False
        return True

    def split(self) -> None:
        """Gives each record its own state."""
        if self.whole is not None:
            whole = self.whole
            state, count = whole.state, whole.delivery_count
            member_id, deadline_ms = whole.member_id, whole.lock_deadline_ms
            self.each = [InFlight(state, count, member_id, deadline_ms) for _ in range(self.count)]
            self.whole = None

    def part(self, first: int, last: int) -> list[InFlight]:
        """Returns the states of a split span, within bounds."""
        base = self.first
        return self.each[max(first - base, 0) : max(last - base + 1, 0)]

    def at(self, offset: int) -> InFlight:
        return self.whole if self.whole is not None else self.each[offset - self.first]

    def records(self, first: int, last: int) -> Iterator[tuple[int, InFlight]]:
        """Yields offsets and states of a split span, within bounds."""
        return enumerate(self.part(first, last), max(first, self.first))


class Spans:
    """Spans by their first offset, in order. They are added at the end and removed at the start,
    so a list is sufficient.
    """

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._by_first: dict[int, Span] = {}

    def __len__(self) -> int:
        return len(self._firsts)

    def __iter__(self) -> Iterator[Span]:
        by_first = self._by_first
        return iter([by_first[first] for first in self._firsts])

    @property
    def head(self) -> Span:
        return self._by_first[self._firsts[0]]

    @property
    def tail(self) -> Span:
        return self._by_first[self._firsts[-1]]

    def put(self, span: Span) -> None:
        if not self._firsts or span.first > self._firsts[-1]:
            self._firsts.append(span.first)
        elif span.first not in self._by_first:
            self._firsts.insert(bisect_left(self._firsts, span.first), span.first)
        self._by_first[span.first] = span

    def part(self, span: Span, first: int, last: int) -> Span:
        """Cuts a span whose records are alike, so that what lies within bounds is a span of its own;
        returns that one.
        """
        whole = span.whole
        assert whole is not None
        if first > span.first:
            before, span = span, Span(first, span.last, whole.copy())
            before.last = first - 1
            self.put(span)
        if last < span.last:
            self.put(Span(last + 1, span.last, whole.copy()))
            span.last = last
        return span

    def floor(self, offset: int) -> Span | None:
        """Returns the last span that begins at or before an offset."""
        index = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[index - 1]] if index else None

    def after(self, offset: int) -> Span | None:
        """Returns the first span that begins after an offset."""
        index = bisect_right(self._firsts, offset)
        return self._by_first[self._firsts[index]] if index < len(self._firsts) else None

    def between(self, first: int, last: int) -> list[Span]:
        """Returns the spans that begin within bounds, both included."""
        firsts = self._firsts
        return [self._by_first[f] for f in firsts[bisect_left(firsts, first) : bisect_right(firsts, last)]]

    def overlapping(self, first: int, last: int) -> list[Span]:
        """Like `between`, including the span before if it reaches beyond `first`."""
        before = self.floor(first)
        if before is not None and before.last >= first:
            first = before.first
        return self.between(first, last)

    def drop_before(self, offset: int) -> None:
        """Removes the spans that begin before an offset."""
        index = bisect_left(self._firsts, offset)
        for first in self._firsts[:index]:
            del self._by_first[first]
        del self._firsts[:index]

    def clear(self) -> None:
        self._firsts.clear()
        self._by_first.clear()
