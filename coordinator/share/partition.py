"""A share-partition: which records of a partition are leased to which member of a share group (seed 000, KIP-932).

Pure: it is told ranges of offsets and never sees files, and what it wants written it returns. Leases are not replayed state: what
was acquired when a broker ended is available again when the next one has read the group's state.

The order of a change is: begin (`acknowledge`, `release`, `expire`), write what it returns to the share coordinator, `complete` with the
outcome. Locks that run out are the exception, as in Kafka: they take effect before they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from heapq import heappop, heappush
from typing import NamedTuple, Protocol

from ...protocol.errors import ApiError, Errors
from .acquiring import Acquirer
from .batches import ACKNOWLEDGED, ACQUIRED, ARCHIVED, ARCHIVING, AVAILABLE, UNSET_OFFSET, RecordState, StateBatch, is_terminal
from .inflight import NOBODY, InFlight, Span, Spans

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
STATE_OF_TYPE = {
    GAP: ARCHIVED,
    ACCEPT: ACKNOWLEDGED,
    RELEASE: AVAILABLE,
    REJECT: ARCHIVED,
}
CLIENT_REJECT = "Offset rejected by client."
COUNT_EXCEEDED = "Offset delivery count exceeded the threshold."
UNDER_WAY = "The record state is invalid. The acknowledgement of delivery could not be completed."


class Limits(Protocol):
    """The group's configuration, asked each time: it may change while records are in flight."""

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


class Acknowledgement(NamedTuple):
    """What a member says of the records from `first` to `last`: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Change:
    """Records next to each other that go to the same state: one state for a whole span, or one for each offset.

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
        """What is to be written of it."""
        return StateBatch(self.first, self.last, int(self.state), self.delivery_count)

    def ranges(self) -> Iterator[tuple[InFlight, int, int]]:
        """Each state with the offsets that it is for."""
        if len(self.records) == 1:
            yield self.records[0], self.first, self.last
            return
        for offset, record in enumerate(self.records, self.first):
            yield record, offset, offset


def note(changes: list[Change], record: InFlight, first: int, last: int, cause: str | None) -> None:
    """Adds what became of a record, to the records before it where they are neighbours and fare the same."""
    if changes:
        tail = changes[-1]
        alike = tail.state is record.state and tail.delivery_count == record.delivery_count and tail.cause is cause
        if alike and tail.last + 1 == first == last and len(tail.records) == tail.last - tail.first + 1:
            tail.records.append(record)
            tail.last = last
            return
    changes.append(Change(record, first, last, cause))


class State(Enum):
    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class GapWindow:
    """Offsets that no state was read for, from `start` to `end`: they are acquired before the start offset passes them."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class SharePartition(Acquirer):
    """One share group's view of one partition, on the partition's leader. Errors are ApiError."""

    def __init__(self, leader_epoch: int, limits: Limits) -> None:
        self.leader_epoch = leader_epoch
        self.limits = limits
        self.state = State.EMPTY
        self.state_epoch = 0
        self.start_offset = 0
        self.end_offset = 0
        self.spans = Spans()
        self.find_next = False  # something became available behind the end offset
        self.gap: GapWindow | None = None
        self.complete_count = 0  # records that have come to their end from the start offset on (KIP-1226)
        self.lock_timeouts = 0
        self._locks: list[tuple[int, int, int]] = []

    # initialisation

    def check_active(self) -> bool:
        """Whether it is active; False where it has yet to be initialised. LEADER_NOT_AVAILABLE while that is under way."""
        if self.state is State.INITIALIZING:
            raise ApiError(Errors.LEADER_NOT_AVAILABLE, "Share partition is already initializing")
        if self.state is State.FENCED:
            raise ApiError(Errors.LEADER_NOT_AVAILABLE, "Share partition is fenced")
        if self.state is State.FAILED:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR, "Share partition failed to load")
        return self.state is State.ACTIVE

    def initialize(self, start_offset: int, state_epoch: int, batches: Sequence[StateBatch]) -> list[Change]:
        """Takes over what the share coordinator knows. Returns what was on its way to the dead-letter queue.

        ApiError(UNKNOWN_SERVER_ERROR) for a state that cannot be: the share-partition has failed then.
        """
        self.start_offset = start_offset
        self.state_epoch = state_epoch
        dead: list[Change] = []
        gap_start, previous_last = UNSET_OFFSET, start_offset - 1
        for batch in batches:
            if batch.first < start_offset or batch.last < batch.first or batch.state not in RecordState.__members__.values():
                self.state = State.FAILED
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR, "Failed to initialize the share partition")
            if gap_start == UNSET_OFFSET and batch.first > previous_last + 1:
                gap_start = previous_last + 1
            previous_last = batch.last
            record = InFlight(RecordState(batch.state), batch.delivery_count)
            span = Span(batch.first, batch.last, record)
            self.spans.put(span)
            if is_terminal(record.state):
                self.complete_count += span.count
            elif record.state is ARCHIVING:
                exceeded = batch.delivery_count >= self.limits.max_delivery_count
                dead.append(Change(record, batch.first, batch.last, COUNT_EXCEEDED if exceeded else CLIENT_REJECT))
        self.end_offset = start_offset
        if self.spans:
            self.find_next = True
            self.end_offset = self.spans.tail.last
            if gap_start != UNSET_OFFSET:
                self.gap = GapWindow(gap_start, self.end_offset)
            self.advance_start()
        self.state = State.ACTIVE
        return dead

    # acknowledging

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int) -> list[Change]:
        """Begins what a member says of the records it holds; returns what is to be written. Nothing is begun where it is refused.

        INVALID_RECORD_STATE for records that the member does not hold or whose last change is not written yet, INVALID_REQUEST
        for offsets behind what was acquired.
        """
        step = _Step(self)
        try:
            for one in acknowledgements:
                if any(not GAP <= kind <= RENEW for kind in one.types):
                    raise ApiError(Errors.INVALID_REQUEST, f"Invalid acknowledge type: {list(one.types)}")
                if one.last >= self.start_offset:
                    self._acknowledge(member_id, one, now_ms, step)
        except ApiError:
            self._undo(step.changes)
            raise
        return step.changes

    def _acknowledge(self, member_id: str, one: Acknowledgement, now_ms: int, step: _Step) -> None:
        first = max(one.first, self.start_offset)
        kind, several = one.types[0], len(one.types) > 1
        for span in self._acknowledged_spans(one):
            if span.last < self.start_offset:
                continue
            whole = span.whole
            if whole is not None:
                self._check_holder(whole, member_id)
                if span.first >= first and span.last <= one.last and not several:
                    if whole.state is not ACQUIRED:
                        raise ApiError(Errors.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The batch is not in the acquired state.")
                    self._settle(whole, span.first, span.last, kind, now_ms, step)
                    continue
                if whole.state is not ACQUIRED:
                    text = "The batch cannot be acknowledged. The subset batch is not in the acquired state."
                    raise ApiError(Errors.INVALID_RECORD_STATE, text)
                span.split()
            for offset, record in span.records(first, one.last):
                if not record.is_held_by(member_id):
                    self._refuse(record)
                self._settle(record, offset, offset, one.types[offset - one.first] if several else kind, now_ms, step)

    def _acknowledged_spans(self, one: Acknowledgement) -> list[Span]:
        floor = self.spans.floor(one.first)
        if floor is None and one.first < self.start_offset <= one.last:
            floor = self.spans.floor(self.start_offset)
        if floor is None:
            raise ApiError(Errors.INVALID_RECORD_STATE, "Batch record not found. The request batch offsets are not found in the cache.")
        found = self.spans.between(floor.first, one.last)
        for offset, word in ((one.first, "first"), (one.last, "last")):
            if found[-1].last < offset:
                raise ApiError(Errors.INVALID_REQUEST, f"Batch record not found. The {word} offset in request is past acquired records.")
        return found

    def _check_holder(self, whole: InFlight, member_id: str) -> None:
        if whole.member_id == NOBODY:
            raise ApiError(Errors.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The batch is not in the acquired state.")
        if whole.member_id != member_id:
            raise ApiError(Errors.INVALID_RECORD_STATE, "Member is not the owner of batch record")
        if whole.in_transition:
            raise ApiError(Errors.INVALID_RECORD_STATE, UNDER_WAY)

    def _refuse(self, record: InFlight) -> None:
        """Says why a member may not acknowledge a record."""
        if record.state is not ACQUIRED:
            raise ApiError(Errors.INVALID_RECORD_STATE, "The offset cannot be acknowledged. The offset is not acquired.")
        if record.in_transition:
            raise ApiError(Errors.INVALID_RECORD_STATE, UNDER_WAY)
        raise ApiError(Errors.INVALID_RECORD_STATE, "Member is not the owner of offset")

    def _settle(self, record: InFlight, first: int, last: int, kind: int, now_ms: int, step: _Step) -> None:
        """What an acknowledgement does to a record, or to a span as a whole."""
        if kind != RENEW:
            rejected = kind == REJECT and step.has_dlq
            self._begin(record, first, last, ARCHIVING if rejected else STATE_OF_TYPE[kind], step)
        elif self.limits.may_renew:
            record.expired = False
            record.lock_deadline_ms = self.lock(first, last, now_ms)
        else:
            raise ApiError(Errors.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")

    def _begin(self, record: InFlight, first: int, last: int, state: RecordState, step: _Step) -> None:
        record.begin(state, step.max_count, step.has_dlq)
        cause = None
        if record.state is ARCHIVING:
            cause = CLIENT_REJECT if state is ARCHIVING else COUNT_EXCEEDED
        elif is_terminal(record.state):
            self.complete_count += last - first + 1 if first >= self.start_offset else self.counted(first, last)
        note(step.changes, record, first, last, cause)

    # releasing

    def release(self, member_id: str) -> list[Change]:
        """Begins to give back everything that a member holds: its session has ended."""
        step = _Step(self)
        for span in self.spans:
            whole = span.whole
            if whole is not None:
                if not whole.is_held_by(member_id):
                    continue
                if not span.first < self.start_offset <= span.last:
                    self._begin(whole, span.first, span.last, self._released_state(span.last), step)
                    continue
                span.split()
            for offset, record in span.records(span.first, span.last):
                if record.is_held_by(member_id):
                    self._begin(record, offset, offset, self._released_state(offset), step)
        return step.changes

    def _released_state(self, offset: int) -> RecordState:
        return ARCHIVED if offset < self.start_offset else AVAILABLE

    # the outcome

    def complete(self, changes: Sequence[Change], commit: bool) -> list[Change]:
        """The changes were written, or were not. Returns what is to go to the dead-letter queue."""
        if not commit:
            self._undo(changes)
            return []
        for change in changes:
            for record in change.records:
                record.complete(commit=True)
            if change.state is AVAILABLE:
                self.find_next = True
        self.advance_start()
        return [change for change in changes if change.state is ARCHIVING]

    def _undo(self, changes: Iterable[Change]) -> None:
        for change in changes:
            for record, first, last in change.ranges():
                record.complete(commit=False)
                if record.state is AVAILABLE:
                    self.find_next = True
                    if first < self.start_offset:  # the log's start passed it meanwhile
                        self.archive(first, self.start_offset, self.spans.overlapping(first, last), AVAILABLE, count=False)
                if is_terminal(change.state) and not is_terminal(record.state):
                    self.complete_count -= self.counted(first, last)

    def dead_lettered(self, change: Change) -> StateBatch:
        """Records have been to the dead-letter queue, or could not be: they are archived. Returns what is to be written."""
        for record in change.records:
            record.archive()
        self.complete_count += self.counted(change.first, change.last)
        return change.batch._replace(state=int(ARCHIVED))

    # locks

    def lock(self, first: int, last: int, now_ms: int) -> int:
        """Begins a lease; returns its deadline."""
        deadline = now_ms + self.limits.lock_duration_ms
        heappush(self._locks, (deadline, first, last))
        return deadline

    def next_deadline_ms(self) -> int | None:
        """When `expire` may have something to do next."""
        return self._locks[0][0] if self._locks else None

    def expire(self, now_ms: int) -> list[Change]:
        """Ends the leases whose time has come; what that has to be written as. What is being written meanwhile is left, and marked.

        Those that go to the dead-letter queue have a cause.
        """
        step = _Step(self)
        while self._locks and self._locks[0][0] <= now_ms:
            _, first, last = heappop(self._locks)
            for span in self.spans.overlapping(first, last):
                whole = span.whole
                if whole is not None:
                    if not _has_expired(whole, now_ms):
                        continue
                    if not (whole.state is ACQUIRED and span.first < self.start_offset <= span.last):
                        self._expire(whole, span.first, span.last, step)
                        continue
                    span.split()
                for offset, record in span.records(first, last):
                    if _has_expired(record, now_ms):
                        self._expire(record, offset, offset, step)
        return step.changes

    def _expire(self, record: InFlight, first: int, last: int, step: _Step) -> None:
        self.lock_timeouts += last - first + 1
        if record.in_transition or record.state is not ACQUIRED:
            record.expired = True
            return
        record.leave(self._released_state(last), step.max_count, step.has_dlq)
        record.unlock()
        self._left(record, first, last, step)

    def _left(self, record: InFlight, first: int, last: int, step: _Step) -> None:
        dead = record.state is ARCHIVING
        note(step.changes, record, first, last, COUNT_EXCEEDED if dead else None)
        if record.state is AVAILABLE:
            self.find_next = True
        elif not dead:
            self.complete_count += self.counted(first, last)

    # the start offset

    def log_start_moved(self, log_start_offset: int) -> None:
        """What lay before `log_start_offset` has gone from the log: what is available of it is archived. Leases run on.

        A gap ends with it too. In Kafka 4.4 the gap stays, and the share-partition is for ever asked for offsets that are gone.
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
        """Archives what is in `state` from `first` up to `end`; whether there was any. `count`: it is complete from the start offset on."""
        any_archived = False
        for span in spans:
            if span.first >= end:
                break
            if span.whole is not None:
                if span.whole.state is not state:
                    continue
                if span.first >= first and span.last < end:
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
        """How many of some records lie at or behind the start offset."""
        return max(0, last - max(self.start_offset, first) + 1)

    def advance_start(self) -> bool:
        """Moves the start offset over records that have come to their end, and forgets them; whether it moved."""
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
        return span is not None and span.at(min(self.start_offset, span.last)).is_settled

    def _last_settled(self) -> tuple[int, int]:
        """The last offset of the settled records at the front, and how many of them lie at or behind the start offset."""
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
            while span.settled < span.count and span.each[span.settled].is_settled:
                span.settled += 1
            if span.settled:
                last = span.first + span.settled - 1
                terminal += self.counted(span.first, last)
            if span.settled < span.count:
                break
        return last, terminal

    @property
    def in_flight_count(self) -> int:
        return self.end_offset - self.start_offset + 1 if self.spans else 0


class _Step:
    """Changes that are being begun, and the configuration they are begun with."""

    __slots__ = ("changes", "has_dlq", "max_count")

    def __init__(self, partition: SharePartition) -> None:
        self.changes: list[Change] = []
        self.max_count = partition.limits.max_delivery_count
        self.has_dlq = partition.limits.has_dlq


def _has_expired(record: InFlight, now_ms: int) -> bool:
    return record.lock_deadline_ms is not None and record.lock_deadline_ms <= now_ms
