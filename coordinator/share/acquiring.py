"""Acquiring: which of the fetched records a member of a share group gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .batches import ACQUIRED, AVAILABLE
from .inflight import SPLIT_OFFSETS_MAX, InFlight, Span
from .window import Window

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
THROTTLE_MIN_COUNT = 2


class LogBatch(NamedTuple):
    """The fields of a record batch that acquiring needs."""

    first: int
    last: int
    producer_id: int = -1
    is_transactional: bool = False
    is_abort_marker: bool = False


class AbortedRange(NamedTuple):
    """An aborted transaction, and its first offset."""

    producer_id: int
    first: int


class Acquired(NamedTuple):
    """Records from `first` to `last` that a member has acquired, with their delivery count."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def acquired(first: int, last: int, delivery_count: int) -> Acquired:
    """Returns an `Acquired` in less time than its constructor, which is always interpreted."""
    return tuple.__new__(Acquired, (first, last, delivery_count))


def acquire(
    window: Window,
    member_id: str,
    mode: int,
    batch_size: int,
    max_records: int,
    fetch_offset: int,
    batches: Sequence[LogBatch],
    now_ms: int,
    aborted: Sequence[AbortedRange] = (),
) -> list[Acquired]:
    """Acquires at most `max_records` fetched records from `fetch_offset` on (whole batches
    unless the mode is RECORD_LIMIT).

    `batches` are below the offset that the group may read. `aborted`: for read_committed, the aborted transactions.
    """
    if max_records <= 0 or not batches or batches[-1].last < window.start_offset:
        return []
    last, limit = _bounds(window, fetch_offset, max_records, batches[-1].last)
    if limit <= 0:
        return []
    lease = _Lease(window, member_id, mode == RECORD_LIMIT, batch_size, batches, last, limit, now_ms)
    lease.take(fetch_offset)
    return _without_aborted(window, lease.taken, batches, aborted) if aborted else lease.taken


def _bounds(window: Window, fetch_offset: int, max_records: int, last: int) -> tuple[int, int]:
    """Returns the last offset and the number of records that may be acquired. At the limit of records in flight only
    those in flight may be delivered again.
    """
    limit = min(max_records, window.limits.max_in_flight - window.in_flight_count)
    if limit <= 0 and fetch_offset <= window.end_offset:
        return min(last, window.end_offset), min(max_records, window.end_offset - fetch_offset + 1)
    return last, limit


def _without_aborted(
    window: Window, taken: list[Acquired], batches: Sequence[LogBatch], aborted: Sequence[AbortedRange]
) -> list[Acquired]:
    """Archives the records of aborted transactions, and removes them from the acquired records. As in Kafka, records
    that were acquired together before such a transaction get states of their own.
    """
    for batch in aborted_batches(batches, aborted):
        before = window.spans.floor(batch.first)
        spans = window.spans.between(batch.first if before is None else before.first, batch.last)
        window.archive(batch.first, batch.last + 1, spans, ACQUIRED, count=True)
        left: list[Acquired] = []
        for one in taken:
            if one.last < batch.first or one.first > batch.last:
                left.append(one)
                continue
            if one.first < batch.first:
                left.append(one._replace(last=batch.first - 1))
            if one.last > batch.last:
                left.append(one._replace(first=batch.last + 1))
        taken = left
    return taken


def aborted_batches(batches: Sequence[LogBatch], aborted: Sequence[AbortedRange]) -> list[LogBatch]:
    """Returns the batches that belong to aborted transactions."""
    waiting = sorted(aborted, key=lambda one: one.first, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id < 0:
            continue
        while waiting and waiting[-1].first <= batch.last:
            producers.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


class _Lease:
    """One call of `acquire`."""

    def __init__(
        self,
        window: Window,
        member_id: str,
        exact: bool,
        batch_size: int,
        batches: Sequence[LogBatch],
        last: int,
        limit: int,
        now_ms: int,
    ) -> None:
        self.window = window
        self.member_id = member_id
        self.exact = exact
        self.batch_size = batch_size
        self.batches = batches
        self.first = batches[0].first
        self.last = last
        self.limit = limit
        self.now_ms = now_ms
        self.taken: list[Acquired] = []
        self.count = 0
        max_count = window.limits.max_delivery_count
        self.max_count = max_count
        # after this number of deliveries records are acquired in smaller groups
        self.throttle_count = max(THROTTLE_MIN_COUNT, -(-max_count // 2))

    def take(self, fetch_offset: int) -> None:
        window = self.window
        base = self.first
        self._archive_vanished(fetch_offset, base)
        floor = window.spans.floor(base)
        if floor is not None and floor.last >= base:
            base = floor.first
        spans = window.spans.between(min(self.first, base), self.last)
        if not spans:
            self._take_new(base, self.last)
            return
        if self._take_again(spans, base) and self.count < self.limit and spans[-1].last < self.last:
            self._take_new(spans[-1].last + 1, self.last)
        if self.taken:
            window.gap_filled_to(self.taken[-1].last + 1)

    def _archive_vanished(self, fetch_offset: int, base: int) -> None:
        """Archives records in flight between the requested offset and the first offset found:
        they are no longer in the log.
        """
        window = self.window
        if fetch_offset < base and window.spans:
            spans = window.spans.overlapping(fetch_offset, base - 1)
            if window.archive(fetch_offset, base, spans, AVAILABLE, count=True):
                window.find_next = True

    # records that were in flight before

    def _take_again(self, spans: list[Span], base: int) -> bool:
        """Acquires available records of some spans, and records in the gaps between them;
        returns whether there may be more.
        """
        gap_start = base
        for span in spans:
            if self.count >= self.limit:
                return True
            if self.window.has_gap:
                if gap_start < span.first:
                    self._take_new(gap_start, span.first - 1)
                gap_start = span.last + 1
                if self.count >= self.limit:
                    return True
            throttled = self._is_throttled(span)
            if throttled and self.count:
                return False
            if span.count > SPLIT_OFFSETS_MAX and span.whole is not None and span.whole.is_free:
                first = max(span.first, self.first)
                self._take_span(self.window.spans.part(span, first, first + SPLIT_OFFSETS_MAX - 1), throttled)
                return False
            before = self.count
            self._take_span(span, throttled)
            if throttled and self.count > before:
                return False
        return True

    def _take_span(self, span: Span, throttled: bool) -> None:
        left = self.limit - self.count
        whole = span.whole
        if whole is not None:
            if not whole.is_free:
                return
            if (
                span.first >= self.first
                and span.last <= self.last
                and not throttled
                and not (self.exact and span.count > left)
            ):
                whole.acquire(self.member_id, self.window.lock(span.first, span.last, self.now_ms))
                self.taken.append(acquired(span.first, span.last, whole.delivery_count))
                self.count += span.count
                return
            span.split()
        self._take_each(span, left)

    def _take_each(self, span: Span, left: int) -> None:
        """Acquires record by record. A record on its last delivery is returned alone; records with many deliveries in
        ever smaller groups.
        """
        taken: list[tuple[int, InFlight]] = []
        group = 0
        for offset, record in span.free(self.first, self.last):
            delivered = record.delivery_count
            if taken and self.max_count > THROTTLE_MIN_COUNT and delivered == self.max_count - 1:
                break
            if delivered >= self.throttle_count and not group:
                group = max(1, span.count >> (delivered - self.throttle_count + 1))
            record.acquire(self.member_id, 0)
            taken.append((offset, record))
            if record.delivery_count == self.max_count > THROTTLE_MIN_COUNT:
                break
            if (self.exact and len(taken) == left) or len(taken) == group:
                break
        self.count += len(taken)
        self._lock_runs(taken)

    def _lock_runs(self, taken: list[tuple[int, InFlight]]) -> None:
        """Returns neighbours with the same delivery count as one run, and gives each run one lock."""
        start = 0
        for index, (offset, record) in enumerate(taken):
            following = taken[index + 1] if index + 1 < len(taken) else None
            if (
                following is not None
                and following[0] == offset + 1
                and following[1].delivery_count == record.delivery_count
            ):
                continue
            first = taken[start][0]
            deadline = self.window.lock(first, offset, self.now_ms)
            for _, one in taken[start : index + 1]:
                one.lock_deadline_ms = deadline
            self.taken.append(acquired(first, offset, record.delivery_count))
            start = index + 1

    def _is_throttled(self, span: Span) -> bool:
        if span.whole is not None:
            return span.whole.is_free and span.whole.delivery_count >= self.throttle_count
        return any(record.delivery_count >= self.throttle_count for _, record in span.free(self.first, self.last))

    # new records

    def _take_new(self, first: int, last: int) -> None:
        """Acquires records that no member has had yet. If the log start cuts a batch, Kafka 4.4 also acquires the
        offsets before it.
        """
        window = self.window
        first = max(first, window.start_offset)
        if first > last:
            return
        left = self.limit - self.count
        if not window.spans and window.end_offset > first:
            first = window.end_offset
        if left < last - first + 1:
            end = self._end_of_batch(first + left - 1)
            last = min(end, last) if window.has_gap else end
        taken = [acquired(first, last, 1)] if self.exact else self._chunks(first, last)
        for one in taken:
            self._begin(one.first, one.last)
        if self.exact and taken[0].size > left:
            taken = [self._cut(taken[0], left)]
        if window.spans.head.first == first:
            window.start_offset = first
        window.end_offset = max(window.end_offset, last)
        self.taken += taken
        self.count += taken[-1].last - first + 1
        window.gap_filled_to(taken[-1].last + 1)

    def _begin(self, first: int, last: int) -> None:
        deadline = self.window.lock(first, last, self.now_ms)
        self.window.spans.put(Span(first, last, InFlight(ACQUIRED, 1, self.member_id, deadline)))

    def _cut(self, one: Acquired, count: int) -> Acquired:
        """Splits a batch: the span holds all of it, the member `count` records; the rest is available."""
        span = self.window.spans.floor(one.first)
        assert span is not None
        span.split()
        span.each[count:] = [InFlight(AVAILABLE, 0) for _ in range(span.count - count)]
        self.window.find_next = True
        return one._replace(last=one.first + count - 1)

    def _end_of_batch(self, offset: int) -> int:
        """Returns the last offset of the batch that contains an offset; the offset itself if no batch does."""
        inside = None
        for batch in self.batches:
            if offset < batch.first:
                break
            inside = batch
        return inside.last if inside is not None and offset <= inside.last else offset

    def _chunks(self, first: int, last: int) -> list[Acquired]:
        """Splits new records at batch boundaries into pieces of at least the batch size."""
        found: list[Acquired] = []
        if last - first + 1 > self.batch_size:
            for batch in self.batches:
                if batch.first > last:
                    break
                if batch.first - first >= self.batch_size:
                    found.append(acquired(first, batch.first - 1, 1))
                    first = batch.first
        found.append(acquired(first, last, 1))
        return found
