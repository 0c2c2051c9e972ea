"""The runtime of a coordinator's shard: markers of transactions, and writes that are decided and replayed in steps.

A handler that returns a `Decision` instead of a `Result` begins a long write. It is alone: writes that were made before
are appended first, and its owner makes no other write, appends nothing and runs no timer until it has taken all steps
(`ShardRuntime.go_on`). So no other write sees a part of it, and it fails as a whole. What is read meanwhile is
committed, which is the state before; soft state that is read is changed in one step, and not in several. What a commit
of earlier writes causes waits, too, because the journal is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ..protocol.control import Marker
from ..protocol.errors import ApiError, Errors
from ..protocol.records import HEADER_SIZE
from .batch import Long, Parked, Reply, Written, parts_of, told
from .journal import START, Mark
from .packing import Packed
from .runtime import Runtime
from .shard import Decision

MARKER = "transaction-marker"
STEP_PACKED = 1024  # of packed records that are replayed in one step
STEP_WRITTEN = 256  # records, or packs of them, that are encoded and replayed in one step


class ShardRuntime(Runtime):
    """A runtime whose writes may take steps, in whose log transactions end."""

    _steps: Iterator[None] | None = None  # of the long write, from its first step on

    def go_on(self) -> None:
        """Takes a step of the long write."""
        assert self.long is not None
        decision, parked, mark = self.long
        if self._steps is None:
            assert decision is not None
            self._steps = self._taken(decision, parked, mark)
        steps = self._steps
        is_over = True
        try:
            is_over = next(steps, self) is self
        finally:
            if is_over:
                self.long = self._steps = None
                self.aftermath.carry_out()

    def close(self, error: ApiError | None = None) -> None:
        long, self.long, self._steps = self.long, None, None
        super().close(error)
        if long is not None:
            self._parked.finish(long.parked, error or ApiError(Errors.NOT_COORDINATOR))

    def _taken(self, decision: Decision[object], parked: Parked, mark: Mark) -> Iterator[None]:
        while self.encode_some():
            yield
        written: list[Written] = []
        try:
            failed = self._flush(mark)
            if failed is not None:
                raise failed
            self.journal.is_open = True
            result = yield from decision
            for at in range(0, len(result.records), STEP_WRITTEN):
                written += self._encoded(result.records[at : at + STEP_WRITTEN])
                yield
        except ApiError as error:
            self._take_back(START)
            return self._parked.finish(parked, error)
        except Exception as bug:
            self._take_back(START)
            self.bugs.note(parked.name, bug)
            return self._parked.finish(parked, ApiError(Errors.UNKNOWN_SERVER_ERROR))
        if not written:
            self._close_journal()
            parked.decided(result)
            return self._park_unwritten(parked)
        before: Mark | None = START
        try:
            for part in [written] if result.atomic else parts_of(written, self.writer.max_batch_bytes() - HEADER_SIZE):
                batch = self._room_for(part, parked.template, before)
                before = None
                for some in _in_steps(part):
                    self._take(batch, some, result)
                    yield
        except ApiError as error:
            self._refuse(parked, result, error, before)
        except Exception as bug:
            self._revert_batch(ApiError(Errors.UNKNOWN_SERVER_ERROR))
            self.bugs.note(parked.name, bug)
            self._refuse(parked, result, ApiError(Errors.UNKNOWN_SERVER_ERROR), None)
        else:
            self._put(parked, result, batch)

    def append_marker(
        self,
        append: Callable[[], tuple[int, int]],
        producer_id: int,
        producer_epoch: int,
        marker: Marker,
        on_done: Reply,
        now_ms: int,
    ) -> Parked | None:
        """Appends the end of a transaction and replays it; one that ends very much is a long write from then on.
        Returns the write that waits for the high watermark; None if the append was answered with an error.
        """
        assert self.long is None
        try:
            self._check_active()
            self.flush()
            self._check_active()
            first, end = append()
        except ApiError as error:
            self.bugs.answer(on_done, None, told(error))
            return None
        except Exception as bug:
            self._bug(MARKER, bug, on_done)
            return None
        parked = Parked(MARKER, on_done, now_ms, None)
        steps = self._replayed(
            partial(self.shard.replay_marker, first, producer_id, producer_epoch, marker), parked, first, end
        )
        if next(steps, self) is not self:
            self.long, self._steps, self.journal.is_open = Long(None, parked, START), steps, True
        return parked

    def _replayed(self, replay: Callable[[], Iterable[None]], parked: Parked, first: int, end: int) -> Iterator[None]:
        """Replays a marker that is in the log from `first` to `end`."""
        try:
            self._check_active()
            if first != self.last_written_offset:
                raise ValueError(f"{self.name}: a marker at {first} where {self.last_written_offset} was due")
            yield from replay()
        except ApiError as error:
            return self._parked.finish(parked, error)
        except Exception as bug:  # it is in the log and not in the state
            self.bugs.note(MARKER, bug)
            self._parked.park([parked], end)
            return self.fail()
        if self.journal.is_open:
            self.aftermath.effects += self.journal.close()
        self._appended(end, [] if parked.on_done is None else [parked])

    def forget(self, parked: Parked) -> None:
        if self.long is not None and self.long.parked is parked:
            parked.on_done = None  # it is not among those that wait for the high watermark yet
        else:
            super().forget(parked)


def _in_steps(written: list[Written]) -> Iterator[list[Written]]:
    """Yields the records that are replayed in each step."""
    some: list[Written] = []
    packed = 0
    for one in written:
        some.append(one)
        packed += len(one[0]) if isinstance(one[0], Packed) else 0
        if packed >= STEP_PACKED or len(some) >= STEP_WRITTEN:
            yield some
            some, packed = [], 0
    if some:
        yield some
