"""The fetching part of a ShareFetch: leases records of share-partitions for a member, now or when there are some (KIP-932)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..coordinator.share.acquiring import AbortedRange, Acquired, LogBatch
from ..coordinator.share.partition import State
from ..coordinator.share.state import PartitionKey
from ..protocol import messages, records
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt
from ..storage.segment import FileSlice
from .fetching import EMPTY
from .later import Later
from .partition import READ_COMMITTED, Partition
from .share_partition import Shared
from .sharing import Sharing

if TYPE_CHECKING:
    from .share_sessions import TopicPartition

ABORT_MARKER = b"\0\0"
Found = dict["TopicPartition", Any]
"""ShareFetchResponse.PartitionData by topic id and partition."""


class Terms(NamedTuple):
    """What a member asks for."""

    group_id: str
    member_id: str
    mode: int
    batch_size: int
    max_records: int
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    isolation_level: int


class _Piece(NamedTuple):
    """A stretch of a log and the batches in it."""

    slice: FileSlice
    batches: list[LogBatch]
    positions: list[int]  # where each batch begins, and where the last one ends
    is_whole: bool  # no complete batch of the stretch is missing


class ShareFetch:
    """One fetch, until it is answered. It listens to its partitions and its share-partitions."""

    def __init__(self, sharing: Sharing, terms: Terms, wanted: Sequence[TopicPartition]) -> None:
        self.sharing = sharing
        self.terms = terms
        self.later: Later[Found] = Later()
        self.later.on_cancel = self._end
        self.failed: Found = {}
        self.shared: dict[TopicPartition, Shared] = {}
        self._timer: Any = None
        self._began_ms = sharing.broker.schedule.monotonic_ms()
        self._busy = True
        for key in wanted:
            try:
                self.shared[key] = shared = sharing.shared(PartitionKey(terms.group_id, *key))
            except ApiError as error:
                self._fail(key, error.code, error.text)
                continue
            shared.waiting[self] = None
            shared.partition.waiters[self] = None

    def begin(self) -> Later[Found]:
        """Finished with what was acquired, at the latest after the time that the member waits."""
        for key, shared in list(self.shared.items()):
            shared.initialize().when_done(lambda done, key=key: self._initialized(key, done))  # type: ignore[misc]
        self._busy = False
        if not self.attempt() and not self.later.done:
            schedule, event = self.sharing.broker.schedule, self.sharing.broker.event
            self._timer = schedule.later(max(0, self.terms.max_wait_ms), lambda: event(lambda: self.attempt(last=True)))
        return self.later

    def _initialized(self, key: TopicPartition, done: Later[None]) -> None:
        error = done.error
        if error is None:
            return
        if not isinstance(error, ApiError):
            raise error
        if error.code != Errors.LEADER_NOT_AVAILABLE:
            self._fail(key, error.code, error.message)
            self._leave(key)
            self.attempt()

    def _fail(self, key: TopicPartition, code: int, message: str | None) -> None:
        p = messages.ShareFetchResponse.PartitionData
        self.failed[key] = p(partition_index=key[1], error_code=code, error_message=message, records=EMPTY)

    def _leave(self, key: TopicPartition) -> None:
        shared = self.shared.pop(key, None)
        if shared is not None:
            shared.waiting.pop(self, None)
            shared.partition.waiters.pop(self, None)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for key in list(self.shared):
            self._leave(key)

    # called by partitions

    def progressed(self, partition: Partition, readable_bytes: int, stable_bytes: int) -> None:
        self.attempt()

    def disturbed(self, partition: Partition) -> None:
        self.attempt()

    # acquiring

    def attempt(self, last: bool = False) -> bool:
        """Acquires what there is and answers; False where there is too little yet."""
        if self.later.done or self._busy:
            return False
        self._busy = True  # what is acquired wakes others, and must not wake this one
        try:
            return self._attempt(last)
        finally:
            self._busy = False

    def _attempt(self, last: bool) -> bool:
        offsets = {
            key: shared.engine.next_fetch_offset()
            for key, shared in self.shared.items()
            if shared.engine.state is State.ACTIVE and shared.engine.can_acquire()
        }
        if not offsets:
            if last or not self.shared:
                self._finish({})
                return True
            return False
        began_ns = time.perf_counter_ns()
        pieces, errors, size = self._read(offsets)
        if size < self.terms.min_bytes and not errors and not last:
            for piece in pieces.values():
                piece.slice.release()
            return False
        found: Found = {}
        left = self.terms.max_records
        for key, offset in offsets.items():
            shared = self.shared[key]
            data = found[key] = messages.ShareFetchResponse.PartitionData(partition_index=key[1], records=EMPTY)
            if key in errors:
                self._tell(shared, data, errors[key])
            elif key in pieces:
                taken = self._acquire(shared, pieces[key], offset, left, data)
                left -= sum(one.size for one in taken)
        ended_ns = time.perf_counter_ns()
        for key in offsets:
            self.shared[key].fetched(began_ns, ended_ns)
        waited_ms = self.sharing.broker.schedule.monotonic_ms() - self._began_ms
        with_records = sum(bool(data.acquired_records) for data in found.values())
        self.sharing.answered(self.terms.group_id, len(self.shared), with_records, waited_ms)
        self._finish(found)
        return True

    def _finish(self, found: Found) -> None:
        shared = list(self.shared.values())
        self._end()
        self.later.finish(found | self.failed)
        for one in shared:
            one.arm()

    def _read(self, offsets: dict[TopicPartition, int]) -> tuple[dict[TopicPartition, _Piece], dict[TopicPartition, ApiError], int]:
        """A stretch of each log, within an even share of the bytes; the errors; and how many bytes there are together."""
        pieces: dict[TopicPartition, _Piece] = {}
        errors: dict[TopicPartition, ApiError] = {}
        size = 0
        budget, rest = divmod(self.terms.max_bytes, len(offsets))
        for key, offset in offsets.items():
            shared = self.shared[key]
            try:
                slice_ = shared.partition.read(offset, budget + rest, self.terms.isolation_level, at_least_one=size == 0)
            except ApiError as error:
                errors[key] = error
                continue
            rest = 0
            if slice_ is not None:
                size += len(slice_)
                pieces[key] = self._batches(slice_, max(offset, shared.engine.end_offset) + self.terms.max_records)
        return pieces, errors, size

    def _batches(self, slice_: FileSlice, enough: int) -> _Piece:
        """The batches of a stretch, up to the first one that ends behind the offset `enough`."""
        committed = self.terms.isolation_level == READ_COMMITTED
        batches, positions = [], []
        position = slice_.position
        for info in slice_.segment.scan(slice_.position, slice_.position + slice_.length):
            positions.append(info.position)
            position = info.position + info.size
            header = info.header
            if header is None:
                batches.append(LogBatch(info.base_offset, info.last_offset))
            else:
                aborts = False
                if committed and header.is_control:
                    (marker,) = records.decode(slice_.segment.read_batch(info), BatchAt(0, header))
                    aborts = (marker.key or b"")[2:4] == ABORT_MARKER
                batches.append(LogBatch(info.base_offset, info.last_offset, header.producer_id, header.is_transactional, aborts))
            if info.last_offset >= enough:
                return _Piece(slice_, batches, [*positions, position], is_whole=False)
        return _Piece(slice_, batches, [*positions, position], is_whole=True)

    def _acquire(self, shared: Shared, piece: _Piece, offset: int, left: int, data: Any) -> list[Acquired]:
        terms, aborted = self.terms, []
        if terms.isolation_level == READ_COMMITTED and piece.batches:
            log = shared.partition.open_log()
            ranges = log.aborted_between(piece.batches[0].first, piece.batches[-1].last + 1)
            aborted = [AbortedRange(one.producer_id, one.first_offset) for one in ranges]
        taken = shared.engine.acquire(terms.member_id, terms.mode, terms.batch_size, left, offset, piece.batches, shared.now_ms, aborted)
        if taken:
            shared.acquired(terms.member_id, taken)
            data.records = _cut(piece, taken)
            a = messages.ShareFetchResponse.AcquiredRecords
            data.acquired_records = [a(first_offset=one.first, last_offset=one.last, delivery_count=one.delivery_count) for one in taken]
        piece.slice.release()
        return taken

    def _tell(self, shared: Shared, data: Any, error: ApiError) -> None:
        """An error of the log. What lies before the log's start is gone, and the member simply asks again."""
        if error.code == Errors.OFFSET_OUT_OF_RANGE:
            shared.engine.log_start_moved(shared.partition.start_offset)
            return
        data.error_code, data.error_message = error.code, error.text


def _cut(piece: _Piece, taken: Sequence[Acquired]) -> FileSlice:
    """The batches that hold what was acquired. A stretch with one complete batch is sent as it is, with the part of a batch behind, as Kafka does."""
    if len(piece.batches) == 1 and piece.is_whole:
        return FileSlice(piece.slice.segment, piece.slice.position, piece.slice.length)
    first, last = taken[0].first, taken[-1].last
    begin = end = 0
    for index, batch in enumerate(piece.batches):
        if batch.first <= first:
            begin = index
        if batch.first <= last:
            end = index + 1
    start = piece.positions[begin]
    return FileSlice(piece.slice.segment, start, piece.positions[end] - start)
