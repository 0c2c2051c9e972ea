"""The transaction coordinator's shard: the transactional ids of one partition of `__transaction_state`.

A step of a transactional id is decided and written; the client gets its reply when it is committed. Until then, and
from the decision to commit or abort until all markers are written, other requests get CONCURRENT_TRANSACTIONS. The
steps in progress (`pending`) are not replayed state: they end with the process. A step whose reply timed out ends as
well, while its record stays and counts.

Kafka's coordinator forgets a step whose record was not committed in time but keeps the record; here the state is always
that of the log, so a retry of the client finds it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from ...protocol.control import Marker
from ...protocol.errors import ApiError, Errors
from ...protocol.records import NO_EPOCH, NO_PRODUCER_ID, PRODUCER_EPOCH_MAX
from ..journaled import JournaledDict
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Round, Timer, Timers
from .format import TransactionRecord
from .state import (
    AT_REST,
    BUMPS_SINCE,
    EXHAUSTED_FROM,
    PREPARED,
    State,
    TopicPartition,
    Transaction,
    unborn,
)

R = TypeVar("R")
STEP_ABORTS, STEP_IDS = 16, 64  # transactions that are aborted, and ids that are removed, in one event
ABORT_OVERDUE = ("abort overdue",)
EXPIRE = ("expire",)


class Environment(Protocol):
    """The environment of the shard."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def config(self, name: str) -> Any: ...

    def new_producer_id(self) -> int:
        """Raises ApiError if no producer id is available now."""

    def transaction_version(self) -> int:
        """The finalized level of `transaction.version`."""

    def stepped(self, transactional_id: str) -> None:
        """A step of a transactional id has ended. Called within the commit of its record: it must not write."""


class Producer(NamedTuple):
    """A producer id and its epoch."""

    id: int
    epoch: int


class Initialized(NamedTuple):
    """The result of `initialize`: the producer, or an error that is returned once the abort
    that it caused has been decided.
    """

    producer: Producer
    error: int = 0


NO_PRODUCER = Producer(NO_PRODUCER_ID, NO_EPOCH)


class TransactionShard:
    """Implements `Shard` for `__transaction_state`. Handlers raise ApiError."""

    def __init__(self, timeline: Timeline, timers: Timers, env: Environment) -> None:
        self.timeline = timeline
        self.journal = timeline.journal
        self.timers = timers
        self.env = env
        self.transactions: TimelineDict[str, Transaction] = TimelineDict(timeline)
        # offset of the record that decided the end of a transaction
        self.prepared: TimelineDict[str, int] = TimelineDict(timeline)
        self.newly_prepared: deque[tuple[int, str]] = deque()  # may contain transactions that are complete by now
        self.pending: dict[str, None] = JournaledDict(self.journal)  # transactional ids with a step in progress
        # transactional ids whose first record was not committed in time: they have a producer id without an epoch
        self.unwritten: dict[str, Transaction] = {}
        self.aborted_overdue = 0
        timers.resting[ABORT_OVERDUE] = None
        # runs a handler as a write of this shard, by a name
        self.write: Callable[[str, Callable[[], Result]], None] = lambda name, handler: None

    # shared by the handlers

    def _step(
        self, transactional_id: str, step: Transaction | None, reply: R, before: Transaction | None = None
    ) -> Result[R]:
        """Writes the next state of a transactional id. `before`: the state of one that is new."""
        self.pending[transactional_id] = None

        def failed(error: ApiError) -> None:
            if before is not None:
                self.unwritten[transactional_id] = before

        def committed(error: ApiError | None) -> None:
            self.pending.pop(transactional_id, None)
            if error is not None:
                failed(error)
            else:
                self.unwritten.pop(transactional_id, None)
            self.env.stepped(transactional_id)

        return Result([(transactional_id, step)], reply, on_committed=committed, on_failed=failed)

    def is_busy(self, transactional_id: str, found: Transaction) -> bool:
        """Whether a step is in progress."""
        return transactional_id in self.pending or found.state in PREPARED

    def _existing(self, transactional_id: str, as_of: int | None = None) -> Transaction:
        found = self.transactions.get(transactional_id, None, as_of)
        if found is None:
            raise ApiError(Errors.INVALID_PRODUCER_ID_MAPPING)
        return found

    # InitProducerId

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Result[Initialized]:
        """Starts a producer and fences the previous one; aborts an open transaction first. The reply is `Initialized`.

        Raises CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, UNKNOWN_SERVER_ERROR or COORDINATOR_LOAD_IN_PROGRESS.
        """
        now = self.env.now_ms()
        found = self.transactions.get(transactional_id)
        if transactional_id in self.pending:
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found is None or self._is_unwritten(transactional_id):
            found = self.unwritten.get(transactional_id) or unborn(self.env.new_producer_id(), timeout_ms, now)
        if expected is not None and not _may_be(found, expected):
            raise ApiError(Errors.PRODUCER_FENCED)
        if found.state in PREPARED:
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found.state is State.ONGOING:
            return self._fence(transactional_id, found, Initialized(NO_PRODUCER, int(Errors.CONCURRENT_TRANSACTIONS)))
        if found.is_exhausted and (expected is None or expected.epoch == found.epoch):
            step = found.rotated(self.env.new_producer_id(), timeout_ms, now, expected is not None)
        else:
            step = found.raised(timeout_ms, None if expected is None else expected.epoch, now)
        before = found if found.epoch == NO_EPOCH else None
        return self._step(transactional_id, step, Initialized(Producer(step.producer_id, step.epoch)), before)

    def _is_unwritten(self, transactional_id: str) -> bool:
        """Whether the first record of a transactional id failed, or its time is over and it is not committed yet."""
        if transactional_id not in self.unwritten:
            return False
        return self.transactions.get(transactional_id, None, self.timeline.offsets[0]) is None

    def _fence(self, transactional_id: str, found: Transaction, reply: R) -> Result[R]:
        """Aborts an open transaction and raises its producer's epoch, in one step."""
        now = self.env.now_ms()
        if self.env.transaction_version() >= BUMPS_SINCE:
            step = found.ended(False, BUMPS_SINCE, self._next_producer_id(found), now)
        else:
            step = found._replace(epoch=min(found.epoch + 1, PRODUCER_EPOCH_MAX), last_epoch=NO_EPOCH).ended(
                False, 0, NO_PRODUCER_ID, now
            )
        return self._step(transactional_id, step, reply)

    def _next_producer_id(self, found: Transaction) -> int:
        """Returns the next producer id if the epochs of the present one are used up."""
        return self.env.new_producer_id() if found.is_exhausted else NO_PRODUCER_ID

    # AddPartitionsToTxn, AddOffsetsToTxn

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        client_version: int,
    ) -> Result:
        """Adds partitions to the transaction. Raises CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING,
        PRODUCER_FENCED or UNSUPPORTED_VERSION.
        """
        found = self._existing(transactional_id)
        if self.is_busy(transactional_id, found):
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        _check_producer(found, producer)
        if found.state is State.ONGOING and found.partitions.issuperset(partitions):
            return Result()
        self._check_version(client_version)
        return self._step(transactional_id, found.with_partitions(partitions, self.env.now_ms(), client_version), None)

    def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Iterable[TopicPartition],
        as_of: int,
    ) -> dict[TopicPartition, int]:
        """Returns error codes by partition: TRANSACTION_ABORTABLE for partitions that are not in the transaction.
        Raises as `add_partitions` does.
        """
        found = self._existing(transactional_id, as_of)
        _check_producer(found, producer)
        if found.state in PREPARED:
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        return {one: 0 if one in found.partitions else int(Errors.TRANSACTION_ABORTABLE) for one in partitions}

    # EndTxn

    def end(self, transactional_id: str, producer: Producer, commits: bool, client_version: int) -> Result[Producer]:
        """Decides the end of a transaction. The reply is the producer for the next transaction.

        Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE,
        COORDINATOR_LOAD_IN_PROGRESS or UNSUPPORTED_VERSION.
        """
        found = self._existing(transactional_id)
        if client_version < BUMPS_SINCE:
            return self._end_plainly(transactional_id, found, producer, commits)
        return self._end_raising(transactional_id, found, producer, commits)

    def _end_plainly(
        self,
        transactional_id: str,
        found: Transaction,
        producer: Producer,
        commits: bool,
    ) -> Result[Producer]:
        """Ends a transaction for clients before KIP-890: the epoch stays, and a repeated end is the same end."""
        _check_producer(found, producer)
        if self.is_busy(transactional_id, found):
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found.state is State.ONGOING:
            return self._decide(transactional_id, found, commits, 0, NO_PRODUCER_ID)
        if found.state is State.EMPTY or found.commits != commits:
            raise ApiError(Errors.INVALID_TXN_STATE)
        return Result(reply=NO_PRODUCER)

    def _end_raising(
        self,
        transactional_id: str,
        found: Transaction,
        producer: Producer,
        commits: bool,
    ) -> Result[Producer]:
        """Ends a transaction for clients of KIP-890: the reply has the producer id
        and epoch of the next transaction.
        """
        overflowed = found.previous_producer_id == producer.id and producer.epoch == EXHAUSTED_FROM and found.epoch == 0
        repeated = overflowed or found.epoch == producer.epoch + 1
        if self.is_busy(transactional_id, found):
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found.producer_id != producer.id and not overflowed:
            raise ApiError(Errors.INVALID_PRODUCER_ID_MAPPING)
        is_over = found.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
        if producer.epoch != found.epoch and not (is_over and repeated):
            raise ApiError(Errors.PRODUCER_FENCED)
        if found.state is State.ONGOING:
            return self._decide(transactional_id, found, commits, BUMPS_SINCE, self._next_producer_id(found))
        if repeated:
            if found.commits != commits:
                raise ApiError(Errors.INVALID_TXN_STATE)
            return Result(reply=Producer(found.producer_id, found.epoch))
        if commits:
            raise ApiError(Errors.INVALID_TXN_STATE)
        return self._decide(transactional_id, found, False, BUMPS_SINCE, self._next_producer_id(found))

    def _check_version(self, client_version: int) -> None:
        """While the finalized `transaction.version` is 0 the record has no field for the client's version."""
        if client_version and not self.env.transaction_version():
            raise ApiError(Errors.UNSUPPORTED_VERSION)

    def _decide(
        self,
        transactional_id: str,
        found: Transaction,
        commits: bool,
        client_version: int,
        next_producer_id: int,
    ) -> Result[Producer]:
        self._check_version(client_version)
        now = self.env.now_ms()
        step = found.ended(commits, client_version, next_producer_id, now)
        after = step.completed(now)
        return self._step(transactional_id, step, Producer(after.producer_id, after.epoch))

    def complete(self, transactional_id: str, offset: int) -> Result:
        """All markers of the transaction whose end was decided at `offset` are written."""
        if self.prepared.get(transactional_id) != offset:
            return Result()
        return self._step(transactional_id, self.transactions[transactional_id].completed(self.env.now_ms()), None)

    def has_committed_ends(self, committed_offset: int) -> bool:
        """Whether `committed_ends` may return some."""
        return bool(self.newly_prepared) and self.newly_prepared[0][0] < committed_offset

    def committed_ends(self, committed_offset: int, most: int) -> list[tuple[str, int, Transaction]]:
        """Returns the transactions whose ends were committed since the last call, at most so many: their markers must
        be written now.
        """
        found: list[tuple[str, int, Transaction]] = []
        while len(found) < most and self.has_committed_ends(committed_offset):
            offset, transactional_id = self.newly_prepared.popleft()
            if self.prepared.get(transactional_id) == offset:
                found.append((transactional_id, offset, self.transactions[transactional_id]))
        return found

    # reading

    def describe(self, transactional_id: str, as_of: int) -> Transaction:
        """Raises TRANSACTIONAL_ID_NOT_FOUND."""
        found = self.transactions.get(transactional_id, None, as_of) or self.unwritten.get(transactional_id)
        if found is None:
            raise ApiError(Errors.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    def known(self, as_of: int) -> Iterable[tuple[str, Transaction]]:
        """Returns all transactional ids with their transactions."""
        return {**self.unwritten, **self.transactions.at(as_of)}.items()

    # periodic work

    def on_loaded(self, now_ms: int) -> list[Timer]:
        abort_ms = self.env.config("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        expire_ms = self.env.config("transaction.remove.expired.transaction.cleanup.interval.ms")
        self.timers.begin_rounds(
            self.env.monotonic_ms,
            Round(ABORT_OVERDUE, abort_ms, now_ms, lambda now: self.abort_overdue()),
            Round(EXPIRE, expire_ms, now_ms, lambda now: self.expire(), self._has_ids),
        )
        return []

    def on_unloaded(self) -> None:
        """Does nothing: the runtime answers the waiting requests."""

    def _has_ids(self) -> bool:
        return bool(self.transactions or self.unwritten)

    def abort_overdue(self) -> Result:
        """Aborts the transactions that exceed their timeout, each in its own write."""
        now = self.env.now_ms()
        if not any(found.can_be_overdue for found in self.transactions.values()):
            self.timers.resting[ABORT_OVERDUE] = None
        overdue = [
            (transactional_id, found)
            for transactional_id, found in self.transactions.items()
            if found.is_overdue(now) and transactional_id not in self.pending
        ]
        return self._abort_some(overdue)

    def _abort_some(self, overdue: list[tuple[str, Transaction]], start: int = 0) -> Result:
        """Aborts some transactions from `start` on, and the others when other events had their turn."""
        end = start + STEP_ABORTS
        for transactional_id, found in overdue[start:end]:
            self.journal.after(partial(self._abort_overdue, transactional_id, found))
        if end < len(overdue):
            self.timers.set(self._soon(ABORT_OVERDUE, lambda: self._abort_some(overdue, end)))
        return Result()

    def _soon(self, key: tuple[str], operation: Callable[[], Result]) -> Timer:
        return Timer(key, self.env.monotonic_ms(), lambda now: operation())

    def _abort_overdue(self, transactional_id: str, found: Transaction) -> None:
        self.write("abort-overdue", lambda: self._abort(transactional_id, found))

    def _abort(self, transactional_id: str, found: Transaction) -> Result:
        if self.transactions.get(transactional_id) != found or transactional_id in self.pending:
            return Result()
        self.aborted_overdue += 1
        return self._fence(transactional_id, found, None)

    def expire(self) -> Result:
        """Removes transactional ids that are unused for long."""
        limit = self.env.now_ms() - self.env.config("transactional.id.expiration.ms")
        for transactional_id in [one for one, found in self.unwritten.items() if found.updated_ms <= limit]:
            del self.unwritten[transactional_id]
        return self._expire_some([one for one in self.transactions if self._is_unused(one, limit)], limit)

    def _is_unused(self, transactional_id: str, limit: int) -> bool:
        """Whether an id has not been used since `limit`."""
        found = self.transactions.get(transactional_id)
        return (
            found is not None
            and found.state in AT_REST
            and found.updated_ms <= limit
            and transactional_id not in self.pending
        )

    def _expire_some(self, unused: list[str], limit: int, start: int = 0) -> Result:
        """Removes some ids from `start` on, and the others when other events had their turn, unless they are used by
        then.
        """
        end = start + STEP_IDS
        records: list[TransactionRecord] = [(one, None) for one in unused[start:end] if self._is_unused(one, limit)]
        if end < len(unused):
            self.timers.set(self._soon(EXPIRE, lambda: self._expire_some(unused, limit, end)))
        return Result(records, atomic=False)

    # replay

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: str, value: Transaction | None) -> None:
        if value is None:
            self.transactions.pop(key)
            self.prepared.pop(key)
            self.unwritten.pop(key, None)
            return
        self.transactions[key] = value
        if self.timers.resting and value.can_be_overdue:
            self.timers.resting.clear()
        if value.state in PREPARED:
            self.prepared[key] = offset
            self.newly_prepared.append((offset, key))
            self.journal.note(self.newly_prepared.pop)
        else:
            self.prepared.pop(key)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> tuple[()]:
        """No transaction writes to this topic."""
        return ()


def _may_be(found: Transaction, expected: Producer) -> bool:
    """Whether a producer that sends its id may be the last one of its transactional id (KIP-360)."""
    if found.epoch == NO_EPOCH or expected.id == found.producer_id:
        return True
    return expected.id == found.previous_producer_id and expected.epoch >= EXHAUSTED_FROM


def _check_producer(found: Transaction, producer: Producer) -> None:
    if found.producer_id != producer.id:
        raise ApiError(Errors.INVALID_PRODUCER_ID_MAPPING)
    if found.epoch != producer.epoch:
        raise ApiError(Errors.PRODUCER_FENCED)
