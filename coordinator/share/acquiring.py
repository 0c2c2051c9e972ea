"""The part of a share-partition that leases records: what is fetched next, and which of the fetched records a member gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .batches import ACQUIRED, AVAILABLE, RecordState
from .inflight import InFlight, Span

if TYPE_CHECKING:
    from .inflight import Spans
    from .partition import GapWindow, Limits

BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1
THROTTLE_MIN_COUNT = 2


class LogBatch(NamedTuple):
    """A record batch of the log, as much of it as acquiring needs."""

    first: int
    last: int
    producer_id: int = -1
    is_transactional: bool = False
    is_abort_marker: bool = False


class AbortedRange(NamedTuple):
    """A transaction that ended in an abort, and its first offset."""

    producer_id: int
    first: int


class Acquired(NamedTuple):
    """Records from `first` to `last` that a member holds now, delivered to it for the `delivery_count`th time."""

    first: int
    last: int
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class Acquirer:
    """Mixed into `SharePartition`."""

    limits: Limits
    spans: Spans
    gap: GapWindow | None
    start_offset: int
    end_offset: int
    find_next: bool

    if TYPE_CHECKING:

        @property
        def in_flight_count(self) -> int: ...

        def lock(self, first: int, last: int, now_ms: int) -> int: ...

        def archive(self, first: int, end: int, spans: Sequence[Span], state: RecordState, count: bool) -> bool: ...

    # where to go on

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
            for index in range(span.settled, span.count):
                if span.each[index].is_free:
                    return span.first + index
        return None

    def can_acquire(self) -> bool:
        """Whether a fetch could bring anything: records to deliver again, or room for new ones."""
        return self.next_fetch_offset() != self.end_offset + 1 or self.in_flight_count < self.limits.max_in_flight

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
        """Leases records of what was fetched from `fetch_offset` on, at most `max_records` (whole batches unless the mode is RECORD_LIMIT).

        `batches` are below the offset that the group may read. `aborted`: for read_committed, the transactions whose records it may not have.
        """
        if max_records <= 0 or not batches or batches[-1].last < self.start_offset:
            return []
        last, limit = self._bounds(fetch_offset, max_records, batches[-1].last)
        if limit <= 0:
            return []
        lease = _Lease(self, member_id, mode == RECORD_LIMIT, batch_size, batches, last, limit, now_ms)
        lease.take(fetch_offset)
        return self._without_aborted(lease.taken, batches, aborted) if aborted else lease.taken

    def _bounds(self, fetch_offset: int, max_records: int, last: int) -> tuple[int, int]:
        """The last offset and how many records may be acquired. At the limit of records in flight, those in flight may be delivered again."""
        limit = min(max_records, self.limits.max_in_flight - self.in_flight_count)
        if limit <= 0 and fetch_offset <= self.end_offset:
            return min(last, self.end_offset), min(max_records, self.end_offset - fetch_offset + 1)
        return last, limit

    def gap_filled_to(self, offset: int) -> None:
        """Records before `offset` have been acquired."""
        if self.gap is not None:
            if self.has_gap and offset <= self.gap.end:
                self.gap.start = offset
            else:
                self.gap = None

    # aborted transactions

    def _without_aborted(self, taken: list[Acquired], batches: Sequence[LogBatch], aborted: Sequence[AbortedRange]) -> list[Acquired]:
        """Archives the records of aborted transactions, and takes them out of what was acquired."""
        for batch in aborted_batches(batches, aborted):
            spans = self.spans.overlapping(batch.first, batch.last)
            self.archive(batch.first, batch.last + 1, spans, ACQUIRED, count=True)
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
    """The batches that belong to aborted transactions."""
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
        self, partition: Acquirer, member_id: str, exact: bool, batch_size: int, batches: Sequence[LogBatch], last: int, limit: int, now_ms: int
    ) -> None:
        self.partition = partition
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
        max_count = partition.limits.max_delivery_count
        self.max_count = max_count
        self.throttle_count = max(THROTTLE_MIN_COUNT, -(-max_count // 2))  # deliveries after which records come in smaller groups

    def take(self, fetch_offset: int) -> None:
        partition = self.partition
        base = self.first
        self._archive_vanished(fetch_offset, base)
        floor = partition.spans.floor(base)
        if floor is not None and floor.last >= base:
            base = floor.first
        spans = partition.spans.between(min(self.first, base), self.last)
        if not spans:
            self._take_new(base, self.last)
            return
        if self._take_again(spans, base) and self.count < self.limit and spans[-1].last < self.last:
            self._take_new(spans[-1].last + 1, self.last)
        if self.taken:
            partition.gap_filled_to(self.taken[-1].last + 1)

    def _archive_vanished(self, fetch_offset: int, base: int) -> None:
        """What is in flight between the offset asked for and the first one found has gone from the log."""
        partition = self.partition
        if fetch_offset < base and partition.spans:
            spans = partition.spans.overlapping(fetch_offset, base - 1)
            if partition.archive(fetch_offset, base, spans, AVAILABLE, count=True):
                partition.find_next = True

    # what was in flight before

    def _take_again(self, spans: list[Span], base: int) -> bool:
        """Leases what is available of some spans, and what lies in the gaps between them; whether there may be more."""
        gap_start = base
        for span in spans:
            if self.count >= self.limit:
                return True
            if self.partition.has_gap:
                if gap_start < span.first:
                    self._take_new(gap_start, span.first - 1)
                gap_start = span.last + 1
                if self.count >= self.limit:
                    return True
            throttled = self._is_throttled(span)
            if throttled and self.count:
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
            if span.first >= self.first and span.last <= self.last and not throttled and not (self.exact and span.count > left):
                whole.acquire(self.member_id, self.partition.lock(span.first, span.last, self.now_ms))
                self.taken.append(Acquired(span.first, span.last, whole.delivery_count))
                self.count += span.count
                return
            span.split()
        self._take_each(span, left)

    def _take_each(self, span: Span, left: int) -> None:
        """Record by record. One on its last delivery comes alone; those that were delivered often come in ever smaller groups."""
        taken: list[tuple[int, InFlight]] = []
        group = 0
        for offset, record in span.records(self.first, self.last):
            if not record.is_free:
                continue
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
        """Tells neighbours with the same count as one, and gives each such run one lock."""
        start = 0
        for index, (offset, record) in enumerate(taken):
            following = taken[index + 1] if index + 1 < len(taken) else None
            if following is not None and following[0] == offset + 1 and following[1].delivery_count == record.delivery_count:
                continue
            first = taken[start][0]
            deadline = self.partition.lock(first, offset, self.now_ms)
            for _, one in taken[start : index + 1]:
                one.lock_deadline_ms = deadline
            self.taken.append(Acquired(first, offset, record.delivery_count))
            start = index + 1

    def _is_throttled(self, span: Span) -> bool:
        if span.whole is not None:
            return span.whole.is_free and span.whole.delivery_count >= self.throttle_count
        return any(record.is_free and record.delivery_count >= self.throttle_count for _, record in span.records(self.first, self.last))

    # what is new

    def _take_new(self, first: int, last: int) -> None:
        """Leases records that nobody had yet, and that are in the log: where its start cuts a batch, Kafka 4.4 leases what lies before."""
        partition = self.partition
        first = max(first, partition.start_offset)
        if first > last:
            return
        left = self.limit - self.count
        if not partition.spans and partition.end_offset > first:
            first = partition.end_offset
        if left < last - first + 1:
            end = self._end_of_batch(first + left - 1)
            last = min(end, last) if partition.has_gap else end
        taken = [Acquired(first, last, 1)] if self.exact else self._chunks(first, last)
        for one in taken:
            self._begin(one.first, one.last)
        if self.exact and taken[0].size > left:
            taken = [self._cut(taken[0], left)]
        if partition.spans.head.first == first:
            partition.start_offset = first
        partition.end_offset = max(partition.end_offset, last)
        self.taken += taken
        self.count += taken[-1].last - first + 1
        partition.gap_filled_to(taken[-1].last + 1)

    def _begin(self, first: int, last: int) -> None:
        deadline = self.partition.lock(first, last, self.now_ms)
        self.partition.spans.put(Span(first, last, InFlight(ACQUIRED, 1, self.member_id, deadline)))

    def _cut(self, one: Acquired, count: int) -> Acquired:
        """The span holds the whole batch, the member `count` records of it; the rest is available."""
        span = self.partition.spans.floor(one.first)
        assert span is not None
        span.split()
        span.each[count:] = [InFlight(AVAILABLE, 0) for _ in range(span.count - count)]
        self.partition.find_next = True
        return one._replace(last=one.first + count - 1)

    def _end_of_batch(self, offset: int) -> int:
        """The end of the batch that an offset lies in; the offset itself where it lies in none."""
        inside = None
        for batch in self.batches:
            if offset < batch.first:
                break
            inside = batch
        return inside.last if inside is not None and offset <= inside.last else offset

    def _chunks(self, first: int, last: int) -> list[Acquired]:
        """Cuts new records between batches into pieces of the batch size and more."""
        found: list[Acquired] = []
        if last - first + 1 > self.batch_size:
            for batch in self.batches:
                if batch.first > last:
                    break
                if batch.first - first >= self.batch_size:
                    found.append(Acquired(first, batch.first - 1, 1))
                    first = batch.first
        found.append(Acquired(first, last, 1))
        return found
