"""The coordinator runtime: joins a shard to a partition it may not see.

A write runs a handler against the state as last written, replays the records it returns, and parks the reply until the high
watermark passes them; a read sees only what is committed. Writes of one input event go into one batch (`flush`). An
append that fails rolls the state back to the last append and fails the writes that were in its batch, and no others.

Time, files and sockets are the caller's: it calls `flush` when its input event ends, `advance` when the high watermark moves,
`tick` when `next_deadline_ms` has come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, Protocol

from ..protocol.compression import NONE
from ..protocol.errors import ApiError, Errors
from ..protocol.records import HEADER_SIZE, Record, Template
from .shard import Encoded, Packed, RecordFormat, Result, Shard, encode_batch
from .timeline import Timeline
from .timers import Timer, Timers

Reply = Callable[[Any, ApiError | None], None]
"""Called once with the reply, or with the error."""

RECORD_OVERHEAD = 21  # the most bytes that a record takes besides its key and value


class State(Enum):
    INITIAL = "initial"
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


TRANSITIONS: dict[State, frozenset[State]] = {
    State.INITIAL: frozenset((State.LOADING, State.CLOSED)),
    State.LOADING: frozenset((State.ACTIVE, State.FAILED, State.CLOSED)),
    State.ACTIVE: frozenset((State.FAILED, State.CLOSED)),
    State.FAILED: frozenset((State.LOADING, State.CLOSED)),
    State.CLOSED: frozenset(),
}

# what a writer's error means to a coordinator's client
APPEND_ERRORS: dict[int, int] = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_ENOUGH_REPLICAS: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_LEADER_OR_FOLLOWER: Errors.NOT_COORDINATOR,
    Errors.KAFKA_STORAGE_ERROR: Errors.NOT_COORDINATOR,
    Errors.MESSAGE_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.RECORD_LIST_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.INVALID_FETCH_SIZE: Errors.UNKNOWN_SERVER_ERROR,
}


class Writer(Protocol):
    """The partition under a shard, as little of it as the runtime needs."""

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        """Appends one batch; returns its first offset and the one behind it. ApiError when it could not."""

    def max_batch_bytes(self) -> int: ...


class Loaded(Protocol):
    """A record, or the end of a transaction, as the loader finds it in the log."""

    offset: int
    producer_id: int
    producer_epoch: int
    record: Record | None
    committed: bool | None
    coordinator_epoch: int


_Written = tuple[Encoded, Any]
"""A record as it is appended, and as the handler decided it."""


def _size(record: Encoded) -> int:
    if isinstance(record, Packed):
        return record.size
    return len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD


def _both(first: Callable[[ApiError | None], None], then: Reply) -> Reply:
    def done(reply: Any, error: ApiError | None) -> None:
        first(error)
        then(reply, error)

    return done


class _Parked:
    __slots__ = ("deadline_ms", "offset", "on_done", "reply", "since_ms")

    def __init__(self, on_done: Reply, reply: Any, since_ms: int, deadline_ms: int | None) -> None:
        self.on_done: Reply | None = on_done
        self.reply = reply
        self.since_ms = since_ms
        self.deadline_ms = deadline_ms
        self.offset = -1

    def finish(self, error: ApiError | None) -> None:
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done(None if error else self.reply, error)


class _Batch:
    """Writes that wait to be appended together."""

    __slots__ = ("count", "parked", "records", "size", "template", "timers")

    def __init__(self, template: Template | None) -> None:
        self.records: list[Encoded] = []
        self.count = 0
        self.size = HEADER_SIZE
        self.parked: list[_Parked] = []
        self.timers: list[Timer] = []
        self.template = template


class Runtime:
    """One shard on one partition."""

    def __init__(self, name: str, shard: Shard, format: RecordFormat, writer: Writer, timeline: Timeline, timers: Timers | None = None) -> None:
        self.name = name
        self.shard = shard
        self.format = format
        self.writer = writer
        self.timeline = timeline
        self.timers = Timers() if timers is None else timers
        self.state = State.INITIAL
        self.last_written_offset = 0
        self.committed_offset = 0
        self.epoch = -1
        self.codec = NONE  # of batches that are not transactional
        self.timeout_code = int(Errors.REQUEST_TIMED_OUT)  # what a reply that waited too long becomes
        self._batch: _Batch | None = None
        self._parked: deque[_Parked] = deque()
        self.bugs = 0  # handlers that ended in an exception that is no ApiError
        self.on_bug: Callable[[Exception], None] | None = None

    # the life of a shard

    def _become(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], f"{self.name}: {self.state} to {state}"
        self.state = state

    def load(self, entries: Iterator[Any], epoch: int, now_ms: int, high_watermark: int, end_offset: int) -> Iterator[None]:
        """Replays the log, which ends at `end_offset`. A generator: each step is a part of the work, as is None among the entries.

        It may be dropped by `close`.
        """
        self._become(State.LOADING)
        self.epoch = epoch
        try:
            for number, entry in enumerate(entries):
                if self.state is not State.LOADING:
                    return
                if entry is None:
                    yield
                    continue
                self._replay_loaded(entry)
                if number % 256 == 255:
                    yield
        except Exception:
            self._become(State.FAILED)
            raise
        self.last_written_offset = end_offset
        self.timeline.snapshot(end_offset)
        self._become(State.ACTIVE)
        self.advance(high_watermark)
        self._set_timers(self.shard.on_loaded(now_ms))

    def _replay_loaded(self, entry: Any) -> None:
        if entry.committed is not None:
            self.shard.replay_marker(entry.offset, entry.producer_id, entry.producer_epoch, entry.coordinator_epoch, entry.committed)
        elif entry.record is not None:
            decoded = self.format.decode(entry.record)
            if decoded is not None:
                self.shard.replay(entry.offset, entry.producer_id, entry.producer_epoch, *decoded)

    def close(self, error: ApiError | None = None) -> None:
        """The shard moved or the partition went: everything parked is answered with `error`, NOT_COORDINATOR by default."""
        if self.state is State.CLOSED:
            return
        self._become(State.CLOSED)
        self._fail_all(error or ApiError(Errors.NOT_COORDINATOR))
        self.timers.clear()
        self.shard.on_unloaded()

    def fail(self) -> None:
        """The shard's state cannot be trusted; it is to be made anew and loaded."""
        self._become(State.FAILED)
        self._fail_all(ApiError(Errors.NOT_COORDINATOR))
        self.timers.clear()

    def _fail_all(self, error: ApiError) -> None:
        batch, self._batch = self._batch, None
        parked = [*self._parked, *(batch.parked if batch else ())]
        self._parked.clear()
        for one in parked:
            one.finish(error)

    def _check_active(self) -> None:
        if self.state is State.LOADING or self.state is State.INITIAL:
            raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is not State.ACTIVE:
            raise ApiError(Errors.NOT_COORDINATOR)

    # writing and reading

    def write(
        self,
        handler: Callable[[], Result],
        on_done: Reply,
        now_ms: int,
        *,
        deadline_ms: int | None = None,
        template: Template | None = None,
    ) -> None:
        """Runs `handler` and parks its reply. `template`: a transactional write, which is appended at once, alone."""
        try:
            self._check_active()
            result = handler()
            encode = self.format.encode
            encoded: list[_Written] = [(one if isinstance(one, Packed) else encode(one), one) for one in result.records]
        except ApiError as error:
            return on_done(None, error)
        except Exception as bug:
            return self._bug(bug, on_done)
        if result.on_appended is not None:
            on_done = _both(result.on_appended, on_done)
        parked = _Parked(on_done, result.reply, now_ms, deadline_ms)
        if not encoded:
            self._set_timers(result.timers)
            return self._park_read(parked)
        try:
            for part in self._parts(result, encoded):
                batch = self._room_for(part, template, now_ms)
                self._take(batch, part, result)
        except ApiError as error:
            return on_done(None, error)
        except Exception as bug:
            self._revert_batch(ApiError(Errors.UNKNOWN_SERVER_ERROR))
            return self._bug(bug, on_done)
        batch.parked.append(parked)
        batch.timers += result.timers
        if template is not None:
            self.flush(now_ms)

    def _parts(self, result: Result, encoded: list[_Written]) -> Iterator[list[_Written]]:
        """The records as they may be appended: all at once, or as much as fits into a batch at a time."""
        if result.atomic:
            yield encoded
            return
        limit = self.writer.max_batch_bytes() - HEADER_SIZE
        part: list[_Written] = []
        size = 0
        for one in encoded:
            bytes_of_one = _size(one[0])
            if part and size + bytes_of_one > limit:
                yield part
                part, size = [], 0
            part.append(one)
            size += bytes_of_one
        yield part

    def _bug(self, bug: Exception, on_done: Reply) -> None:
        self.bugs += 1
        if self.on_bug is not None:
            self.on_bug(bug)
        on_done(None, ApiError(Errors.UNKNOWN_SERVER_ERROR))

    def _park_read(self, parked: _Parked) -> None:
        """A write without records still waits for what it saw."""
        if self._batch is not None:
            self._batch.parked.append(parked)
        elif self.last_written_offset > self.committed_offset:
            parked.offset = self.last_written_offset
            self._parked.append(parked)
        else:
            parked.finish(None)

    def _room_for(self, encoded: list[_Written], template: Template | None, now_ms: int) -> _Batch:
        """The batch that takes these records, the one before flushed where it is full. Sizes are checked before replay."""
        size = sum(_size(record) for record, _ in encoded)
        limit = self.writer.max_batch_bytes()
        if HEADER_SIZE + size > limit:
            raise ApiError(
                Errors.UNKNOWN_SERVER_ERROR,
                f"Message batch size is {HEADER_SIZE + size} bytes in append to partition {self.name} "
                f"which exceeds the maximum configured size of {limit}.",
            )
        batch = self._batch
        if batch is not None and (batch.size + size > limit or template is not None or batch.template is not None):
            self.flush(now_ms)
            self._check_active()
            batch = None
        if batch is None or self._batch is None:
            batch = self._batch = _Batch(template)
        batch.size += size
        return batch

    def _take(self, batch: _Batch, written: list[_Written], result: Result) -> None:
        """Replays records into the state as last written, and puts them into the batch."""
        producer_id = batch.template.producer_id if batch.template else -1
        producer_epoch = batch.template.producer_epoch if batch.template else -1
        replay, replayed = self.shard.replay, self.format.replayed
        for record, decided in written:
            if result.replay:
                key, value = replayed(decided)
                replay(self.last_written_offset + batch.count, producer_id, producer_epoch, key, value)
            batch.records.append(record)
            batch.count += len(record) if isinstance(record, Packed) else 1

    def _revert_batch(self, error: ApiError) -> None:
        batch, self._batch = self._batch, None
        self.timeline.revert(self.last_written_offset)
        for parked in batch.parked if batch else ():
            parked.finish(error)

    def flush(self, now_ms: int) -> None:
        """Appends what the writes of this input event decided."""
        batch = self._batch
        if batch is None:
            return
        if not batch.records:
            self._batch = None
            for parked in batch.parked:
                self._park_read(parked)
            return
        try:
            template = batch.template or Template(codec=self.codec)
            first, end = self.writer.append(encode_batch(batch.records, now_ms, template), now_ms)
        except ApiError as error:
            return self._revert_batch(ApiError(APPEND_ERRORS.get(error.code, error.code)))
        if first != self.last_written_offset and batch.records:
            if first < self.last_written_offset or self.last_written_offset > 0:
                self.fail()  # somebody else wrote to the log: what was replayed has other offsets
                return
        self._batch = None
        self.last_written_offset = end
        self.timeline.snapshot(end)
        self._set_timers(batch.timers)
        for parked in batch.parked:
            parked.offset = end
            self._parked.append(parked)

    def append_marker(
        self,
        append: Callable[[], tuple[int, int]],
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        committed: bool,
        on_done: Reply,
        now_ms: int,
    ) -> None:
        """Appends the end of a transaction and replays it, in one step."""
        try:
            self._check_active()
            self.flush(now_ms)
            self._check_active()
        except ApiError as error:
            return on_done(None, error)
        try:
            first, end = append()
        except ApiError as error:
            return on_done(None, ApiError(APPEND_ERRORS.get(error.code, error.code)))
        self.shard.replay_marker(first, producer_id, producer_epoch, coordinator_epoch, committed)
        self.last_written_offset = end
        self.timeline.snapshot(end)
        parked = _Parked(on_done, None, now_ms, None)
        parked.offset = end
        self._parked.append(parked)

    def read(self, handler: Callable[[int], Any]) -> Any:
        """Runs `handler` with the offset as of which it may read. ApiError from it, or where the shard is not active."""
        self._check_active()
        return handler(self.committed_offset)

    # what the caller drives

    def advance(self, high_watermark: int) -> None:
        """The high watermark moved: state up to it is committed, replies up to it leave, in order."""
        if self.state is not State.ACTIVE or high_watermark <= self.committed_offset:
            return
        self.committed_offset = min(high_watermark, self.last_written_offset)
        self.timeline.commit(self.committed_offset)
        while self._parked and self._parked[0].offset <= high_watermark:
            self._parked.popleft().finish(None)

    def _set_timers(self, timers: list[Timer]) -> None:
        for timer in timers:
            self.timers.set(timer)

    def next_deadline_ms(self) -> int | None:
        """When `tick` has something to do next; None for never."""
        times = [p.deadline_ms for p in self._parked if p.deadline_ms is not None and p.on_done is not None]
        timer = self.timers.next_deadline_ms()
        return min(times + ([timer] if timer is not None else []), default=None)

    def tick(self, now_ms: int) -> None:
        """Runs timers that are due, as writes, and answers replies that have waited too long; their records stay."""
        for parked in self._parked:
            if parked.deadline_ms is not None and parked.deadline_ms <= now_ms:
                parked.finish(ApiError(self.timeout_code))
        for timer in self.timers.due(now_ms):
            if timer.operation is not None and self.state is State.ACTIVE:
                self._fire(timer, now_ms)

    def _fire(self, timer: Timer, now_ms: int) -> None:
        operation = timer.operation
        assert operation is not None

        def done(_: Any, error: ApiError | None) -> None:
            if error is not None and timer.retry and self.state is State.ACTIVE and timer.key not in self.timers:  # the append failed: again, soon
                self.timers.set(Timer(timer.key, now_ms + 500, operation))

        self.write(lambda: operation(now_ms), done, now_ms)

    def describe(self, now_ms: int) -> dict[str, Any]:
        """What an operator wants to see."""
        waiting = [p for p in self._parked if p.on_done is not None]
        return {
            "state": self.state.value,
            "last_written_offset": self.last_written_offset,
            "committed_offset": self.committed_offset,
            "uncommitted_records": self.last_written_offset - self.committed_offset,
            "parked_replies": len(waiting),
            "oldest_parked_ms": max((now_ms - p.since_ms for p in waiting), default=0),
            "timers": len(self.timers),
        }
