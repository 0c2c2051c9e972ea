"""A share-partition: which records of a partition are acquired by which member of a share group (KIP-932).

Pure: its input are ranges of offsets, not files, and it returns what must be written. Acquisitions are not replayed
state: records that were acquired when a broker ended are available again when the next one has read the group's state.

A change has these steps: begin it (`acknowledge`, `release`, `expire`), write the returned changes to the share
coordinator, call `complete` with the outcome. Lock timeouts are the exception, as in Kafka: they take effect before
they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from ...protocol.errors import ApiError, Errors
from .acknowledge_types import ACCEPT, GAP, REJECT, RELEASE, RENEW
from .acquiring import AbortedRange, Acquired, LogBatch, acquire
from .batches import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    UNSET_OFFSET,
    RecordState,
    StateBatch,
    is_terminal,
)
from .changes import Change, Step
from .inflight import NO_MEMBER, InFlight, Span, commit_all
from .window import Limits, Window

STATE_OF_TYPE = {
    GAP: ARCHIVED,
    ACCEPT: ACKNOWLEDGED,
    RELEASE: AVAILABLE,
    REJECT: ARCHIVED,
}
TYPES = frozenset((*STATE_OF_TYPE, RENEW))
CLIENT_REJECT = "Offset rejected by client."
COUNT_EXCEEDED = "Offset delivery count exceeded the threshold."
UNDER_WAY = "The record state is invalid. The acknowledgement of delivery could not be completed."


class Acknowledgement(NamedTuple):
    """A member's acknowledgement of the records from `first` to `last`: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


def acknowledgement(first: int, last: int, types: Sequence[int]) -> Acknowledgement:
    """Returns an `Acknowledgement` in less time than its constructor, which is always interpreted."""
    return tuple.__new__(Acknowledgement, (first, last, types))


class State(Enum):
    EMPTY = "empty"
    INITIALIZING = "initializing"
    ACTIVE = "active"
    FAILED = "failed"
    FENCED = "fenced"


class SharePartition:
    """A share group's state of one partition, on the partition's leader. Errors are ApiError."""

    def __init__(self, leader_epoch: int, limits: Limits) -> None:
        self.leader_epoch = leader_epoch
        self.limits = limits
        self.state = State.EMPTY
        self.state_epoch = 0
        self.window = Window(limits)
        self.lock_timeouts = 0

    # initialisation

    def check_active(self) -> bool:
        """Returns whether the share-partition is active; False if it must be initialized.
        Raises LEADER_NOT_AVAILABLE while that is in progress.
        """
        if self.state is State.INITIALIZING:
            raise ApiError(Errors.LEADER_NOT_AVAILABLE, "Share partition is already initializing")
        if self.state is State.FENCED:
            raise ApiError(Errors.LEADER_NOT_AVAILABLE, "Share partition is fenced")
        if self.state is State.FAILED:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR, "Share partition failed to load")
        return self.state is State.ACTIVE

    def initialize(self, start_offset: int, state_epoch: int, batches: Sequence[StateBatch]) -> list[Change]:
        """Loads the state from the share coordinator. Returns the records
        that were on their way to the dead-letter queue.

        Raises ApiError(UNKNOWN_SERVER_ERROR) for an impossible state: the share-partition has then failed.
        """
        self.state_epoch = state_epoch
        spans: list[Span] = []
        dead: list[Change] = []
        gap_start, previous_last = UNSET_OFFSET, start_offset - 1
        for batch in batches:
            if (
                batch.first < start_offset
                or batch.last < batch.first
                or batch.state not in RecordState.__members__.values()
            ):
                self.state = State.FAILED
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR, "Failed to initialize the share partition")
            if gap_start == UNSET_OFFSET and batch.first > previous_last + 1:
                gap_start = previous_last + 1
            previous_last = batch.last
            record = InFlight(RecordState(batch.state), batch.delivery_count)
            spans.append(Span(batch.first, batch.last, record))
            if record.state is ARCHIVING:
                exceeded = batch.delivery_count >= self.limits.max_delivery_count
                dead.append(Change([record], batch.first, batch.last, COUNT_EXCEEDED if exceeded else CLIENT_REJECT))
        self.window.load(start_offset, spans, gap_start)
        self.state = State.ACTIVE
        return dead

    # acquiring

    def acquire(
        self,
        member_id: str,
        mode: int,
        batch_size: int,
        max_records: int,
        fetch_offset: int,
        batches: Sequence[LogBatch],
        now_ms: int,
        aborted: Sequence[AbortedRange] = (),
    ) -> list[Acquired]:
        """Acquires fetched records for a member (`acquiring.acquire`). Nothing has to be written."""
        return acquire(self.window, member_id, mode, batch_size, max_records, fetch_offset, batches, now_ms, aborted)

    def split_before(self, offset: int) -> None:
        """Gives acquired records before an aborted transaction, which begins at `offset`, states of their own."""
        span = self.window.spans.floor(offset)
        if span is not None and span.last < offset and span.whole is not None and span.whole.state is ACQUIRED:
            span.split()

    # acknowledging

    def acknowledge(self, member_id: str, acknowledgements: Iterable[Acknowledgement], now_ms: int) -> list[Change]:
        """Begins the acknowledgements of a member; returns the changes to write. If an acknowledgement is refused, none
        is begun.

        Raises INVALID_RECORD_STATE for records that the member does not hold or whose last change is not written yet,
        INVALID_REQUEST for offsets after the acquired ones.
        """
        step = Step(self.limits)
        try:
            for one in acknowledgements:
                if not TYPES.issuperset(one.types):
                    raise ApiError(Errors.INVALID_REQUEST, f"Invalid acknowledge type: {list(one.types)}")
                if one.last >= self.window.start_offset:
                    self._acknowledge(member_id, one, now_ms, step)
        except ApiError:
            self._undo(step.changes)
            raise
        return step.changes

    def _acknowledge(self, member_id: str, one: Acknowledgement, now_ms: int, step: Step) -> None:
        start_offset = self.window.start_offset
        first = max(one.first, start_offset)
        kind, several = one.types[0], len(one.types) > 1
        for span in self._acknowledged_spans(one):
            if span.last < start_offset:
                continue
            whole = span.whole
            if whole is not None:
                self._check_holder(whole, member_id)
                if span.first >= first and span.last <= one.last and not several:
                    if whole.state is not ACQUIRED:
                        raise ApiError(
                            Errors.INVALID_RECORD_STATE,
                            "The batch cannot be acknowledged. The batch is not in the acquired state.",
                        )
                    self._settle(whole, span.first, span.last, kind, now_ms, step)
                    continue
                if whole.state is not ACQUIRED:
                    text = "The batch cannot be acknowledged. The subset batch is not in the acquired state."
                    raise ApiError(Errors.INVALID_RECORD_STATE, text)
                span.split()
            self._acknowledge_each(span, first, one, member_id, now_ms, step)

    def _acknowledge_each(
        self, span: Span, first: int, one: Acknowledgement, member_id: str, now_ms: int, step: Step
    ) -> None:
        """Acknowledges records of a split span from `first` on, a run of the same type at a time."""
        at, last = max(first, span.first), min(one.last, span.last)
        if len(one.types) == 1:
            runs = [(one.types[0], last - at + 1)]
        else:
            types = one.types[at - one.first : last - one.first + 1]
            runs = [(kind, len(list(run))) for kind, run in groupby(types)]
        for kind, count in runs:
            if kind != RENEW:
                self._begin_each(span, at, at + count - 1, kind, member_id, step)
            else:
                for offset, record in span.records(at, at + count - 1):
                    if not record.is_held_by(member_id):
                        self._refuse(record)
                    self._settle(record, offset, offset, kind, now_ms, step)
            at += count

    def _begin_each(self, span: Span, first: int, last: int, kind: int, member_id: str, step: Step) -> None:
        """Begins the same change of the records of a split span from `first` to `last`, all of which a member holds."""
        state = self._state_of(kind, step)
        for run in span.begin_held(first, last, member_id, state, step.max_count, step.has_dlq):
            end, reached = first + len(run), run[0].state
            step.note(run, first, end - 1, self._counted_cause(reached, state, first, end - 1))
            first = end
        if first <= last:
            self._refuse(span.at(first))

    def _state_of(self, kind: int, step: Step) -> RecordState:
        """Returns the state of an acknowledgement that is not RENEW."""
        return ARCHIVING if kind == REJECT and step.has_dlq else STATE_OF_TYPE[kind]

    def _acknowledged_spans(self, one: Acknowledgement) -> list[Span]:
        spans, start_offset = self.window.spans, self.window.start_offset
        floor = spans.floor(one.first)
        if floor is None and one.first < start_offset <= one.last:
            floor = spans.floor(start_offset)
        if floor is None:
            raise ApiError(
                Errors.INVALID_RECORD_STATE,
                "Batch record not found. The request batch offsets are not found in the cache.",
            )
        found = spans.between(floor.first, one.last)
        for offset, word in ((one.first, "first"), (one.last, "last")):
            if found[-1].last < offset:
                raise ApiError(
                    Errors.INVALID_REQUEST,
                    f"Batch record not found. The {word} offset in request is past acquired records.",
                )
        return found

    def _check_holder(self, whole: InFlight, member_id: str) -> None:
        if whole.member_id == NO_MEMBER:
            raise ApiError(
                Errors.INVALID_RECORD_STATE, "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if whole.member_id != member_id:
            raise ApiError(Errors.INVALID_RECORD_STATE, "Member is not the owner of batch record")
        if whole.in_transition:
            raise ApiError(Errors.INVALID_RECORD_STATE, UNDER_WAY)

    def _refuse(self, record: InFlight) -> None:
        """Raises the error for a record that a member may not acknowledge."""
        if record.state is not ACQUIRED:
            raise ApiError(
                Errors.INVALID_RECORD_STATE, "The offset cannot be acknowledged. The offset is not acquired."
            )
        if record.in_transition:
            raise ApiError(Errors.INVALID_RECORD_STATE, UNDER_WAY)
        raise ApiError(Errors.INVALID_RECORD_STATE, "Member is not the owner of offset")

    def _settle(self, record: InFlight, first: int, last: int, kind: int, now_ms: int, step: Step) -> None:
        """Applies an acknowledgement to a record, or to a whole span."""
        if kind != RENEW:
            self._begin(record, first, last, self._state_of(kind, step), step)
        elif self.limits.may_renew:
            record.expired = False
            record.lock_deadline_ms = self.window.lock(first, last, now_ms)
        else:
            raise ApiError(Errors.INVALID_RECORD_STATE, "Renewing acquisition locks is not enabled for the group.")

    def _begin(self, record: InFlight, first: int, last: int, state: RecordState, step: Step) -> None:
        record.begin(state, step.max_count, step.has_dlq)
        step.note([record], first, last, self._counted_cause(record.state, state, first, last))

    def _counted_cause(self, reached: RecordState, wanted: RecordState, first: int, last: int) -> str | None:
        """Counts records that reached a final state. Returns why they go to the dead-letter queue, if they do."""
        if reached is ARCHIVING:
            return CLIENT_REJECT if wanted is ARCHIVING else COUNT_EXCEEDED
        if is_terminal(reached):
            self.window.complete_count += self.window.counted(first, last)
        return None

    # releasing

    def release(self, member_id: str) -> list[Change]:
        """Begins to release all records of a member whose session was closed."""
        step = Step(self.limits)
        for span in self.window.spans:
            whole = span.whole
            if whole is not None:
                if not whole.is_held_by(member_id):
                    continue
                if not span.first < self.window.start_offset <= span.last:
                    self._begin(whole, span.first, span.last, self._released_state(span.last), step)
                    continue
                span.split()
            for offset, record in span.records(span.first, span.last):
                if record.is_held_by(member_id):
                    self._begin(record, offset, offset, self._released_state(offset), step)
        return step.changes

    def _released_state(self, offset: int) -> RecordState:
        return ARCHIVED if offset < self.window.start_offset else AVAILABLE

    # the outcome

    def complete(self, changes: Sequence[Change], commit: bool) -> list[Change]:
        """Ends changes that were written, or could not be. Returns the records for the dead-letter queue."""
        if not commit:
            self._undo(changes)
            return []
        for change in changes:
            commit_all(change.records)
            if change.state is AVAILABLE:
                self.window.find_next = True
        self.window.advance_start()
        return [change for change in changes if change.state is ARCHIVING]

    def _undo(self, changes: Iterable[Change]) -> None:
        window = self.window
        for change in changes:
            for record, first, last in change.ranges():
                record.take_back()
                if record.state is AVAILABLE:
                    window.find_next = True
                    if first < window.start_offset:  # the log start passed it meanwhile
                        spans = window.spans.overlapping(first, last)
                        window.archive(first, window.start_offset, spans, AVAILABLE, count=False)
                if is_terminal(change.state) and not is_terminal(record.state):
                    window.complete_count -= window.counted(first, last)

    def dead_lettered(self, change: Change) -> StateBatch:
        """Archives records after the dead-letter queue, whether or not it got them.
        Returns the state batch to write.
        """
        for record in change.records:
            record.archive()
        self.window.complete_count += self.window.counted(change.first, change.last)
        return change.batch._replace(state=int(ARCHIVED))

    # locks

    def expire(self, now_ms: int) -> list[Change]:
        """Ends the locks that have timed out; returns the changes to write.
        Skips and marks records that are being written.

        Changes for the dead-letter queue have a cause.
        """
        step = Step(self.limits)
        for first, last in self.window.timed_out(now_ms):
            for span in self.window.spans.overlapping(first, last):
                whole = span.whole
                if whole is not None:
                    if not _has_expired(whole, now_ms):
                        continue
                    if not (whole.state is ACQUIRED and span.first < self.window.start_offset <= span.last):
                        self._expire(whole, span.first, span.last, step)
                        continue
                    span.split()
                for offset, record in span.records(first, last):
                    if _has_expired(record, now_ms):
                        self._expire(record, offset, offset, step)
        return step.changes

    def _expire(self, record: InFlight, first: int, last: int, step: Step) -> None:
        self.lock_timeouts += last - first + 1
        if record.in_transition or record.state is not ACQUIRED:
            record.expired = True
            return
        record.leave(self._released_state(last), step.max_count, step.has_dlq)
        record.unlock()
        self._left(record, first, last, step)

    def _left(self, record: InFlight, first: int, last: int, step: Step) -> None:
        dead = record.state is ARCHIVING
        step.note([record], first, last, COUNT_EXCEEDED if dead else None)
        if record.state is AVAILABLE:
            self.window.find_next = True
        elif not dead:
            self.window.complete_count += self.window.counted(first, last)


def _has_expired(record: InFlight, now_ms: int) -> bool:
    return record.lock_deadline_ms is not None and record.lock_deadline_ms <= now_ms
