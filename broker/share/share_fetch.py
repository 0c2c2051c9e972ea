"""The fetching part of a ShareFetch: acquires records of share-partitions for a member,
at once or when there are some (KIP-932).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...coordinator.share.acquiring import AbortedRange, Acquired, LogBatch
from ...coordinator.share.partition import State
from ...coordinator.share.state import PartitionKey
from ...protocol import messages, records
from ...protocol.control import ControlType, control_type
from ...protocol.errors import ApiError, Errors, MalformedMessage
from ...protocol.records import BatchAt, BatchHeader
from ...storage.aborted import aborted_between
from ...storage.batch_info import BatchInfo
from ...storage.file_slice import FileSlice
from ...storage.segment import IndexDamaged
from .. import bugs
from ..clock import Cancellable
from ..later import Later
from ..replica.fetch_reads import EMPTY
from ..replica.partition import READ_COMMITTED, Partition
from .share_partition_leader import SharePartitionLeader
from .share_partition_manager import SharePartitionManager

if TYPE_CHECKING:
    from .sessions import ShareSession, TopicPartition

    Found = dict[TopicPartition, messages.ShareFetchResponse.PartitionData]

CONTROL_BYTES_MAX = 1 << 16
PART_OFFSETS_MAX = 1 << 14


class Terms(NamedTuple):
    """The limits and the time that a member requests."""

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
    """A range of a log and its batches."""

    slice: FileSlice
    batches: list[LogBatch]
    positions: list[tuple[int, int]]  # where each batch begins and ends
    is_whole: bool  # no complete batch of the range is missing


class ShareFetch:
    """One share fetch until its reply. It listens to its partitions and its share-partitions."""

    def __init__(
        self,
        sharing: SharePartitionManager,
        terms: Terms,
        wanted: Sequence[TopicPartition],
        session: ShareSession | None = None,
    ) -> None:
        self.sharing = sharing
        self.terms = terms
        self.session = session
        self.later: Later[Found] = Later()
        self.later.on_cancel = self._end
        self.failed: Found = {}
        self.shared: dict[TopicPartition, SharePartitionLeader] = {}
        self._renamed: list[TopicPartition] = []  # of topics whose name another one has by now
        self._timer: Cancellable | None = None
        self._is_short = False  # the wait
        self._began_ms = sharing.turn.schedule.monotonic_ms()
        self._busy = True
        for key in wanted:
            try:
                self.shared[key] = shared = sharing.shared(PartitionKey(terms.group_id, *key))
            except ApiError as error:
                if error.code == Errors.UNKNOWN_TOPIC_OR_PARTITION:
                    self._renamed.append(key)
                else:
                    self._fail(key, error.code)
                continue
            shared.join(self)
            shared.partition.waiters[self] = None

    @property
    def member_id(self) -> str:
        return self.terms.member_id

    def begin(self) -> Later[Found]:
        """Completes with the acquired records, at the latest after the member's maximum wait. As in Kafka, records of
        other share-partitions do not wait for those whose state is read now, or is looked for in vain.
        """
        unread = [(key, one) for key, one in self.shared.items() if one.engine.state is State.EMPTY]
        for key, shared in list(self.shared.items()):
            if shared.engine.state not in (State.EMPTY, State.ACTIVE):
                self._initialize(key, shared)  # which fails at once
        self._busy = False
        if self.shared:
            self.attempt()
        self._busy = True
        for key, shared in unread:
            self._initialize(key, shared)
        for key in self._renamed:
            self._fail(key, Errors.UNKNOWN_SERVER_ERROR)
        self._busy = False
        if not self.later.done and not ((unread or not self.shared) and self.attempt()):
            self._wait(max(0, self.terms.max_wait_ms))
            self._shorten()
        return self.later

    def _initialize(self, key: TopicPartition, shared: SharePartitionLeader) -> None:
        shared.initialize().when_done(lambda done: self._initialized(key, done))

    def _wait(self, ms: int) -> None:
        self._timer = self.sharing.turn.later(ms, lambda: self.attempt(last=True))

    def _shorten(self) -> None:
        """Lets this fetch and others end soon, if this is the last of those that only they themselves could satisfy."""
        if self.end_soon():
            for shared in self.shared.values():
                for fetch in list(shared.waiting):
                    fetch.end_soon()

    def end_soon(self) -> bool:
        """Waits only a few milliseconds, if the member holds records of share-partitions that are full, and all who
        hold records of these wait like it: their acknowledgements come over the connections that these waits block.
        """
        if self._timer is None or self._is_short or self.session is None:
            return False
        if not self.sharing.settings.value("ottla.group.settle"):
            return False
        holds = False
        for shared in self.shared.values():
            window = shared.engine.window
            if shared.engine.state is not State.ACTIVE or window.can_acquire():
                return False
            holders = window.holders(shared.waiting_members)
            if holders is None:
                return False
            holds = holds or self.member_id in holders
        if not holds:
            return False
        self._is_short = True
        self._timer.cancel()
        left_ms = self._began_ms + self.terms.max_wait_ms - self.sharing.turn.schedule.monotonic_ms()
        self._wait(min(max(0, left_ms), self.session.next_own_wait_ms()))
        return True

    def _initialized(self, key: TopicPartition, done: Later[None]) -> None:
        error = done.error
        if error is None:
            return
        if isinstance(error, OSError):
            error = self._storage_error(key, error)
        elif not isinstance(error, ApiError):
            bugs.report(f"loading the state of {self.terms.group_id}", error)
            error = ApiError(Errors.UNKNOWN_SERVER_ERROR)
        if error.code != Errors.LEADER_NOT_AVAILABLE:
            self._fail(key, error.code)
            self._leave(key)
            self.attempt()

    def _storage_error(self, key: TopicPartition, error: OSError) -> ApiError:
        return self.sharing.logs.storage_error(self.shared[key].partition, error)

    def _fail(self, key: TopicPartition, code: int) -> None:
        """Reports an error of a partition: in Kafka none has a message."""
        p = messages.ShareFetchResponse.PartitionData
        self.failed[key] = p(partition_index=key[1], error_code=code, records=EMPTY)

    def _leave(self, key: TopicPartition) -> None:
        shared = self.shared.pop(key, None)
        if shared is not None:
            shared.leave(self)
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
        """Acquires available records and completes the fetch; returns False if there are too few yet."""
        if self.later.done or self._busy:
            return False
        self._busy = True  # acquiring wakes other fetches, and must not wake this one
        try:
            return self._attempt(last)
        except Exception as error:
            for shared in list(self.shared.values()):
                shared.distrust(error)
            self._end()
            self.later.fail(ApiError(Errors.UNKNOWN_SERVER_ERROR))
            return True
        finally:
            self._busy = False

    def _attempt(self, last: bool) -> bool:
        offsets = {
            key: shared.engine.window.next_fetch_offset()
            for key, shared in self.shared.items()
            if shared.engine.state is State.ACTIVE and shared.engine.window.can_acquire()
        }
        if not offsets:
            if last or not self.shared:
                self._finish({})
                return True
            self._shorten()
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
                self._report(shared, data, errors[key])
            elif key in pieces:
                left -= self._acquire(key, pieces[key], offset, left, data)
        ended_ns = time.perf_counter_ns()
        for key in offsets:
            self.shared[key].fetched(began_ns, ended_ns)
        waited_ms = self.sharing.turn.schedule.monotonic_ms() - self._began_ms
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

    def _read(
        self,
        offsets: dict[TopicPartition, int],
    ) -> tuple[dict[TopicPartition, _Piece], dict[TopicPartition, ApiError], int]:
        """Returns a range of each log, within an equal share of the bytes; the errors; and the total bytes."""
        if self.terms.max_bytes < 0:
            return {}, dict.fromkeys(offsets, ApiError(Errors.UNKNOWN_SERVER_ERROR)), 0
        pieces: dict[TopicPartition, _Piece] = {}
        errors: dict[TopicPartition, ApiError] = {}
        size = 0
        budget, rest = divmod(self.terms.max_bytes, len(offsets))
        for key, offset in offsets.items():
            shared = self.shared[key]
            try:
                slice_ = shared.partition.read(
                    offset, budget + rest, self.terms.isolation_level, at_least_one=size == 0
                )
                rest = 0
                if slice_ is not None:
                    pieces[key] = self._piece(shared, slice_, offset)
                    size += len(slice_)
            except ApiError as error:
                errors[key] = error
            except OSError as error:
                errors[key] = self._storage_error(key, error)
        return pieces, errors, size

    def _piece(self, shared: SharePartitionLeader, slice_: FileSlice, offset: int) -> _Piece:
        """Returns a range with its batches from `offset` on, as many as can be acquired. Raises OSError."""
        count = min(self.terms.max_records, shared.engine.limits.max_in_flight)
        try:
            return self._batches(slice_, offset, max(offset, shared.engine.window.end_offset) + count)
        except BaseException:
            slice_.release()
            raise

    def _batches(self, slice_: FileSlice, offset: int, enough: int) -> _Piece:
        """Returns the batches of a range from `offset` on, up to the first one that ends after the offset `enough`."""
        batches: list[LogBatch] = []
        positions: list[tuple[int, int]] = []
        for info in slice_.segment.scan(slice_.position, slice_.position + slice_.length):
            place = info.position, info.position + info.size
            header = info.header
            for first, last in _parts(info.base_offset, info.last_offset, offset, enough):
                if header is None:
                    batches.append(LogBatch(first, last))
                else:
                    aborts = header.is_control and self._is_abort_marker(slice_, info, header)
                    batches.append(LogBatch(first, last, header.producer_id, header.is_transactional, aborts))
                positions.append(place)
            if info.last_offset >= enough:
                return _Piece(slice_, batches, positions, is_whole=False)
        return _Piece(slice_, batches, positions, is_whole=True)

    def _is_abort_marker(self, slice_: FileSlice, info: BatchInfo, header: BatchHeader) -> bool:
        if self.terms.isolation_level != READ_COMMITTED:
            return False
        try:
            found = records.decode(slice_.segment.read_batch(info), BatchAt(0, header), CONTROL_BYTES_MAX)
        except MalformedMessage:
            return False
        return bool(found) and control_type(found[0].key) == ControlType.ABORT

    def _acquire(
        self,
        key: TopicPartition,
        piece: _Piece,
        offset: int,
        left: int,
        data: messages.ShareFetchResponse.PartitionData,
    ) -> int:
        """Acquires records of a piece, and releases it; returns how many. What cannot be read is found out before."""
        terms, shared = self.terms, self.shared[key]
        try:
            aborted, later = self._aborted(shared, piece), self._aborted_later(shared, piece)
            if shared.engine.state is not State.ACTIVE:
                return 0  # the log directory of another partition has failed, which is its own, too
            taken = shared.engine.acquire(
                terms.member_id, terms.mode, terms.batch_size, left, offset, piece.batches, shared.now_ms, aborted
            )
            if later is not None:
                shared.engine.split_before(later)
            if taken:
                shared.acquired(terms.member_id, taken)
                data.records = _cut(piece, taken)
                a = messages.ShareFetchResponse.AcquiredRecords
                data.acquired_records = [
                    a(first_offset=one.first, last_offset=one.last, delivery_count=one.delivery_count) for one in taken
                ]
            return sum(one.size for one in taken)
        except IndexDamaged as error:
            self._report(shared, data, error)
            return 0
        except OSError as error:
            self._report(shared, data, self._storage_error(key, error))
            return 0
        finally:
            piece.slice.release()

    def _aborted(self, shared: SharePartitionLeader, piece: _Piece) -> list[AbortedRange]:
        """Returns the aborted transactions that overlap a piece, by first offset. Raises IndexDamaged and OSError."""
        if self.terms.isolation_level != READ_COMMITTED or not piece.batches:
            return []
        ranges = aborted_between(shared.partition.open_log(), piece.batches[0].first, piece.batches[-1].last + 1)
        ranges.sort(key=lambda one: one.first_offset)
        return [AbortedRange(one.producer_id, one.first_offset) for one in ranges]

    def _aborted_later(self, shared: SharePartitionLeader, piece: _Piece) -> int | None:
        """Returns the offset of the next aborted transaction that Kafka reads too: it does not stop at a piece. Raises
        IndexDamaged and OSError.
        """
        if self.terms.isolation_level != READ_COMMITTED or piece.is_whole or not piece.batches:
            return None
        end, partition = piece.batches[-1].last + 1, shared.partition
        ranges = aborted_between(partition.open_log(), end, partition.last_stable_offset)
        return min((one.first_offset for one in ranges if one.first_offset >= end), default=None)

    def _report(
        self, shared: SharePartitionLeader, data: messages.ShareFetchResponse.PartitionData, error: ApiError
    ) -> None:
        """Reports an error of the log. If the offset is below the log start, the member simply fetches again."""
        if error.code == Errors.OFFSET_OUT_OF_RANGE:
            shared.engine.window.log_start_moved(shared.partition.start_offset)
            return
        data.error_code = error.code


def _cut(piece: _Piece, taken: Sequence[Acquired]) -> FileSlice:
    """Returns the batches that contain acquired records. A range with one complete batch is sent as it is, with the
    following partial batch, as in Kafka.
    """
    if len(piece.batches) == 1 and piece.is_whole:
        return FileSlice(piece.slice.segment, piece.slice.position, piece.slice.length)
    first, last = taken[0].first, taken[-1].last
    begin, end = 0, 1
    for index, batch in enumerate(piece.batches):
        if batch.first <= first:
            begin = index
        if batch.first <= last:
            end = index + 1
    start = piece.positions[begin][0]
    return FileSlice(piece.slice.segment, start, piece.positions[end - 1][1] - start)


def _parts(first: int, last: int, offset: int, enough: int) -> Iterator[tuple[int, int]]:
    """Yields the offsets of a batch as one part; if the batch has more offsets than a share-partition accepts at once,
    the parts that a fetch may need.

    The engine has an object for each record of a part that members treat differently.
    """
    if last - first < PART_OFFSETS_MAX:
        yield first, last
        return
    first = max(first, offset)
    while first <= last and first <= enough:
        yield first, min(last, first + PART_OFFSETS_MAX - 1)
        first += PART_OFFSETS_MAX
