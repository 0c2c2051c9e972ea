"""The coordinator runtime: joins a shard to a partition that the shard cannot see.

A write runs a handler against the state as last written, replays the records that the handler returns, and parks the
reply until the high watermark passes them; a read sees only what is committed. Writes of one input event go into one
batch (`flush`). An append that fails, with whatever exception, takes everything back to the last append, timers and
soft state too (`journal`), and fails the writes that were in its batch, and no others. What a batch causes outside of
the shard happens after its append. Where the log has something that the state does not have (an append that failed
halfway, another writer), the shard fails: everything parked is answered, and the owner (`on_failed`) makes the shard
again and loads it.

Time, files and sockets are the caller's: it calls `flush` when its input event ends and `encode_some` is through,
`advance` when the high watermark moves, `tick` when `next_deadline_ms` has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from ..protocol.errors import ApiError, Errors
from ..protocol.records import HEADER_SIZE, Template
from .aftermath import Aftermath
from .batch import Batch, Long, Parked, Reply, Writer, Written, parts_of, size_of, told
from .journal import START, Mark
from .lifecycle import TRANSITIONS, State
from .loading import Entry, Replay
from .packing import Encoded, Packed, encode_batch
from .parked import Bugs, ParkedReplies
from .shard import Decided, Decision, RecordFormat, Result, Shard
from .timeline import Timeline
from .timers import Timer, Timers

R = TypeVar("R")
T = TypeVar("T")
RETRY_MS = 500  # until a timer runs again whose write failed


class Runtime:
    """One shard on one partition."""

    def __init__(
        self,
        name: str,
        shard: Shard,
        format: RecordFormat,
        writer: Writer,
        timeline: Timeline,
        timers: Timers | None = None,
    ) -> None:
        self.name = name
        self.shard = shard
        self.format = format
        self.writer = writer
        self.timeline = timeline
        self.journal = timeline.journal
        self.timers = Timers(timeline.journal) if timers is None else timers
        self.state = State.INITIAL
        self.last_written_offset = 0
        self.committed_offset = 0
        self.epoch = -1
        self.template = Template()  # of batches that are not transactional
        self.timeout_code = int(Errors.REQUEST_TIMED_OUT)  # what a reply that waited too long becomes
        self.long: Long | None = None  # the long write that is under way, which only `ShardRuntime` goes on with
        self._batch: Batch | None = None
        self._advances_to: int | None = None  # the high watermark, if it moved while a batch was open
        self.bugs = Bugs()
        self.aftermath = Aftermath(timeline.journal, self.bugs)
        self._parked = ParkedReplies(self.bugs)
        self.replay = Replay(shard, format)
        self.on_failed: Callable[[], None] | None = None
        # called after an append with the end of the log, the records and their time
        self.on_appended: Callable[[int, Sequence[Encoded], int], None] | None = None

    # the life of a shard

    def _become(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], f"{self.name}: {self.state} to {state}"
        self.state = state

    def load(
        self,
        entries: Iterable[Entry | None],
        epoch: int,
        now_ms: int,
        high_watermark: int,
        end_offset: int,
    ) -> Iterator[None]:
        """Replays the log, which ends at `end_offset`, in steps (`Replay.steps`). `close` ends it."""
        self._become(State.LOADING)
        self.epoch = epoch
        try:
            for _ in self.replay.steps(entries):
                yield
                if self.state is not State.LOADING:
                    return
            self.last_written_offset = end_offset
            self.timeline.snapshot(end_offset)
            for timer in self.shard.on_loaded(now_ms):
                if timer is not None:
                    self.timers.set(timer)
                    continue
                yield
                if self.state is not State.LOADING:
                    return
        except Exception:
            self._become(State.FAILED)
            raise
        self._become(State.ACTIVE)
        self.advance(high_watermark)

    def close(self, error: ApiError | None = None) -> None:
        """Ends the shard, whose partition moved or was deleted: answers everything parked with `error`, by default
        NOT_COORDINATOR.
        """
        if self.state is State.CLOSED:
            return
        self._become(State.CLOSED)
        self._fail_all(error or ApiError(Errors.NOT_COORDINATOR))
        self.aftermath.carry_out()  # of what was appended before a long write, which does not come to its end
        self.timers.clear()
        try:
            self.shard.on_unloaded()
        except Exception as bug:
            self.bugs.note("unload", bug)

    def fail(self) -> None:
        """Gives up the shard, whose state cannot be trusted; its owner makes it again and loads it."""
        self._become(State.FAILED)
        self._fail_all(ApiError(Errors.NOT_COORDINATOR))
        self.timers.clear()
        if self.on_failed is not None:
            self.on_failed()

    def _fail_all(self, error: ApiError) -> None:
        batch, self._batch = self._batch, None
        self.journal.revert()  # so that requests that waited before the batch wait again, and are answered
        for one in [*self._parked.take_all(), *(batch.parked if batch else ())]:
            self._parked.finish(one, error)

    def _check_active(self) -> None:
        if self.state is State.LOADING or self.state is State.INITIAL:
            raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
        if self.state is not State.ACTIVE:
            raise ApiError(Errors.NOT_COORDINATOR)

    # writing and reading

    def write(
        self,
        name: str,
        handler: Callable[[], Decided[R]],
        on_done: Callable[[R | None, ApiError | None], None],
        now_ms: int,
        *,
        deadline_ms: int | None = None,
        template: Template | None = None,
    ) -> None:
        """Runs `handler` and parks its reply, or begins a long write (`shard_runtime`). `name`: of the write, for logs
        and metrics. `template`: of a transactional write, which is appended at once, alone.
        """
        journal = self.journal
        mark = START if self._batch is None else journal.end()
        journal.is_open = True
        journal.step += 1
        try:
            if self.state is not State.ACTIVE:
                self._check_active()
            result = handler()
            if not isinstance(result, Result):
                parked = Parked(name, on_done, now_ms, deadline_ms, template)
                self.long = Long(cast(Decision[object], result), parked, mark)
                return None
            encoded = self._encoded(result.records) if result.records else []
        except ApiError as error:
            self._take_back(mark)
            return self.bugs.answer(on_done, None, error)
        except Exception as bug:
            self._take_back(mark)
            return self._bug(name, bug, on_done)
        batch = self._batch
        if batch is None and not encoded:
            self._close_journal()
            if result.on_committed is None and self.last_written_offset <= self.committed_offset:
                return self.bugs.answer(on_done, result.reply, None)
        parked = Parked(name, on_done, now_ms, deadline_ms, template)
        if encoded:
            return self._put_into_batch(result, encoded, parked, mark)
        parked.decided(result)
        return self._park_unwritten(parked) if batch is None else batch.parked.append(parked)

    def _encoded(self, records: Sequence[object]) -> list[Written]:
        encode = self.format.encode
        return [(one if isinstance(one, Packed) else encode(one), one) for one in records]

    def _close_journal(self) -> None:
        """A write is over that has no records, and no batch is open."""
        effects = self.journal.close()
        if effects:
            self.aftermath.effects += effects
            self.aftermath.carry_out()

    def _park_unwritten(self, parked: Parked) -> None:
        """Answers a write without records once the state that its handler saw is committed."""
        if self.last_written_offset > self.committed_offset:
            self._parked.park([parked], self.last_written_offset)
        else:
            self._parked.finish(parked, None)

    def _take_back(self, mark: Mark) -> None:
        self.journal.back_to(mark)
        if self._batch is None:
            self.journal.close()

    def _put_into_batch(
        self,
        result: Result[R],
        encoded: list[Written],
        parked: Parked,
        mark: Mark,
    ) -> None:
        before: Mark | None = mark
        try:
            for part in [encoded] if result.atomic else parts_of(encoded, self.writer.max_batch_bytes() - HEADER_SIZE):
                batch = self._room_for(part, parked.template, before)
                before = None
                self._take(batch, part, result)
        except ApiError as error:
            self._refuse(parked, result, error, before)
        except Exception as bug:
            self._revert_batch(ApiError(Errors.UNKNOWN_SERVER_ERROR))
            self.bugs.note(parked.name, bug)
            self._refuse(parked, result, ApiError(Errors.UNKNOWN_SERVER_ERROR), None)
        else:
            self._put(parked, result, batch)
        self.aftermath.carry_out()

    def _refuse(self, parked: Parked, result: Result[R], error: ApiError, before: Mark | None) -> None:
        """The records of a write could not be put into a batch. `before`: where its changes begin in the journal, if
        they are to be taken back.
        """
        if before is not None:
            self._take_back(before)
        if result.on_failed is not None:
            self.aftermath.changes.append(partial(result.on_failed, error))
        self._parked.finish(parked, error)

    def _put(self, parked: Parked, result: Result[R], batch: Batch) -> None:
        """The records of a write are in a batch: it waits for them. Those of a transactional one are appended."""
        parked.decided(result)
        batch.parked.append(parked)
        if parked.template is not None and not batch.is_large:
            self._flush(None)

    def _bug(self, name: str, bug: Exception, on_done: Reply) -> None:
        self.bugs.note(name, bug)
        self.bugs.answer(on_done, None, ApiError(Errors.UNKNOWN_SERVER_ERROR))

    def _room_for(self, encoded: list[Written], template: Template | None, mark: Mark | None) -> Batch:
        """Returns the batch for these records; flushes the open batch first if it has no room. The size is checked
        before replay.

        What the journal has since `mark` belongs to these records. Raises ApiError for records that are too large, and
        if the batch before, whose state the write saw, failed.
        """
        size = size_of(encoded[0][0]) if len(encoded) == 1 else sum(size_of(record) for record, _ in encoded)
        limit = self.writer.max_batch_bytes()
        if HEADER_SIZE + size > limit:
            raise ApiError(
                Errors.UNKNOWN_SERVER_ERROR,
                f"Message batch size is {HEADER_SIZE + size} bytes in append to partition {self.name} "
                f"which exceeds the maximum configured size of {limit}.",
            )
        batch = self._batch
        if batch is not None and (batch.size + size > limit or template is not None or batch.template is not None):
            failed = self._flush(mark)
            if failed is not None:
                raise failed
            batch = None
        if batch is None:
            batch = self._batch = Batch(template)
            self.journal.is_open = True
        batch.size += size
        return batch

    def _take(self, batch: Batch, written: list[Written], result: Result[R]) -> None:
        """Replays records into the state as last written, and adds them to the batch."""
        of = batch.template or self.template
        producer_id, producer_epoch = of.producer_id, of.producer_epoch
        for record, decided in written:
            if result.replay:
                key, value = self.format.replayed(decided)
                self.shard.replay(self.last_written_offset + batch.count, producer_id, producer_epoch, key, value)
            batch.records.append(record)
            batch.count += len(record) if isinstance(record, Packed) else 1

    def _revert_batch(self, error: ApiError) -> None:
        batch, self._batch = self._batch, None
        self.timeline.revert(self.last_written_offset)
        self.journal.revert()
        for parked in batch.parked if batch else ():
            parked.on_committed = None
            if parked.on_failed is not None:
                self.aftermath.changes.append(partial(parked.on_failed, error))
            self.aftermath.effects.append(partial(self._parked.finish, parked, error))

    def flush(self) -> None:
        """Appends the records of this input event's writes. The answer of each write says whether that succeeded."""
        self._flush(None)
        self.aftermath.carry_out()
        if self._advances_to is not None and not self.journal.is_open:
            self.advance(self._advances_to)
            self._advances_to = None

    def encode_some(self) -> bool:
        """Encodes some of very many records; returns whether `flush` has to wait. Other writes may join the batch."""
        return self._batch is not None and self._batch.encode_some()

    def _flush(self, mark: Mark | None) -> ApiError | None:
        """Appends the batch; returns the error if that failed. What the journal has since `mark` belongs to a write
        that is not in the batch.
        """
        batch = self._batch
        if batch is None:
            return None
        now_ms = self.writer.now_ms()
        try:
            data = encode_batch(batch.records, now_ms, batch.template or self.template, batch.body)
            first, end = self.writer.append(data, now_ms)
        except ApiError as error:
            failed = told(error)
            self._revert_batch(failed)
            return failed
        except Exception as bug:  # if the batch has reached the log all the same, the next append finds that
            self.bugs.note("batch", bug)
            failed = ApiError(Errors.UNKNOWN_SERVER_ERROR)
            self._revert_batch(failed)
            return failed
        if self._batch is not batch:
            return ApiError(Errors.NOT_COORDINATOR)  # the append failed in a way that closed the shard
        if first != self.last_written_offset:
            self.fail()  # something else wrote to the log: what was replayed has other offsets
            return ApiError(Errors.NOT_COORDINATOR)
        self._batch = None
        self.aftermath.effects += self.journal.close() if mark is None else self.journal.release(mark)
        if self.on_appended is not None:
            self.aftermath.effects.append(partial(self.on_appended, end, batch.records, now_ms))
        self._appended(end, batch.parked)
        return None

    def _appended(self, end: int, parked: list[Parked]) -> None:
        """Records are in the log, which now ends at `end`, and in the state: parks their replies."""
        self.last_written_offset = end
        self.timeline.snapshot(end)
        self._parked.park(parked, end)

    def forget(self, parked: Parked) -> None:
        """Nothing waits for the reply to a write any more."""
        self._parked.forget(parked)

    def read(self, handler: Callable[[int], T]) -> T:
        """Runs `handler` with the offset as of which it may read. Raises ApiError if the shard is not active."""
        self._check_active()
        return handler(self.committed_offset)

    # what the caller drives

    def advance(self, high_watermark: int) -> None:
        """The high watermark moved: commits the state up to it, and sends the replies up to it, in order."""
        if self.state is not State.ACTIVE or high_watermark <= self.committed_offset:
            return
        if self.journal.is_open:  # effects of a commit change soft state, so they wait for the flush of the batch
            self._advances_to = high_watermark
            return
        self.committed_offset = min(high_watermark, self.last_written_offset)
        self.timeline.commit(self.committed_offset)
        self._parked.release(high_watermark)

    def next_deadline_ms(self) -> int | None:
        """When `tick` has something to do next; None for never."""
        timer = self.timers.next_deadline_ms()
        if not self._parked:
            return timer
        parked = self._parked.next_deadline_ms()
        if parked is None or timer is None:
            return timer if parked is None else parked
        return min(parked, timer)

    def tick(self, now_ms: int) -> None:
        """Runs timers that are due, as writes, and answers replies that have waited too long; their records stay."""
        late = self._parked.late(now_ms)
        if late:
            self.aftermath.when_settled(lambda: self._parked.time_out(late, ApiError(self.timeout_code)))
        for timer in self.timers.due(now_ms):
            if self.state is State.ACTIVE and self.timers.is_due(timer, now_ms):
                self._fire(timer, now_ms)

    def _fire(self, timer: Timer, now_ms: int) -> None:
        def run() -> Result:
            assert timer.operation is not None
            self.timers.cancel(timer.key)
            result: Result = timer.operation(now_ms)
            return result

        def done(_: Any, error: ApiError | None) -> None:
            if error is not None and self.timers.get(timer.key) is timer:  # the timer was put back: it runs again soon
                self.timers.set(Timer(timer.key, now_ms + RETRY_MS, timer.operation))

        self.write(f"{timer.key[0] if isinstance(timer.key, tuple) else timer.key}-timer", run, done, now_ms)

    def describe(self, now_ms: int) -> dict[str, Any]:
        """Returns the state of the shard for operators."""
        since_ms = self._parked.since_ms()
        return {
            "state": self.state.value,
            "last_written_offset": self.last_written_offset,
            "committed_offset": self.committed_offset,
            "uncommitted_records": self.last_written_offset - self.committed_offset,
            "parked_replies": len(since_ms),
            "oldest_parked_ms": max((now_ms - since for since in since_ms), default=0),
            "timers": len(self.timers),
        }
