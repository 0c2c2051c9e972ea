"""The transaction coordinator's shard: the transactional ids of one partition of `__transaction_state`.

A step of a transactional id is decided, written, and told when it is committed; until then, and from the decision to commit or abort until
all markers are written, whoever else comes gets CONCURRENT_TRANSACTIONS. Which steps are under way (`pending`) is not state: it ends with
the process, and a step whose reply came too late ends as well, while its record stays and counts.

Kafka's coordinator forgets a step whose record was not committed in time and keeps the record; here state is what the log says, so that a
client that tries again meets it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, Protocol

from ...protocol.errors import ApiError, Errors
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer, Timers
from .format import TransactionRecord
from .state import (
    AT_REST,
    BUMPS_SINCE,
    EPOCH_MAX,
    EXHAUSTED_FROM,
    NO_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    State,
    TopicPartition,
    Transaction,
    unborn,
)

ABORT_OVERDUE = ("abort overdue",)
EXPIRE = ("expire",)


class Environment(Protocol):
    """What the shard needs of the world."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...

    def config(self, name: str) -> Any: ...

    def new_producer_id(self) -> int:
        """ApiError where none can be had now."""

    def transaction_version(self) -> int:
        """The finalized level of `transaction.version`."""


class Producer(NamedTuple):
    """Who writes: a producer id and its epoch."""

    id: int
    epoch: int


class Initialized(NamedTuple):
    """The outcome of `initialize`: the producer, or an error that is told once the abort it caused has been decided."""

    producer: Producer
    error: int = 0


NOBODY = Producer(NO_PRODUCER_ID, NO_EPOCH)


class TransactionShard:
    """Implements `Shard` for `__transaction_state`. Handlers raise ApiError."""

    def __init__(self, timeline: Timeline, timers: Timers, env: Environment) -> None:
        self.timers = timers
        self.env = env
        self.transactions: TimelineDict[str, Transaction] = TimelineDict(timeline)
        self.prepared: TimelineDict[str, int] = TimelineDict(timeline)  # where the end of a transaction was decided
        self.newly_prepared: deque[tuple[int, str]] = deque()  # may hold what has been reverted or completed since
        self.pending: set[str] = set()
        self.aborted_overdue = 0
        self.write: Callable[[Callable[[], Result]], None] = lambda handler: None  # runs a handler as a write of this shard

    # what handlers share

    def _step(self, transactional_id: str, step: Transaction | None, reply: Any) -> Result:
        """Writes the next state of a transactional id."""
        self.pending.add(transactional_id)
        return Result([(transactional_id, step)], reply, on_appended=lambda error: self.pending.discard(transactional_id))

    def is_busy(self, transactional_id: str, found: Transaction) -> bool:
        """Whether a step is under way."""
        return transactional_id in self.pending or found.state in PREPARED

    def _existing(self, transactional_id: str, as_of: int | None = None) -> Transaction:
        found = self.transactions.get(transactional_id, None, as_of)
        if found is None:
            raise ApiError(Errors.INVALID_PRODUCER_ID_MAPPING)
        return found  # type: ignore[no-any-return]

    # InitProducerId

    def initialize(self, transactional_id: str, timeout_ms: int, expected: Producer | None) -> Result:
        """A producer begins, and fences the one before it; a transaction that is open is aborted first. The reply is `Initialized`.

        CONCURRENT_TRANSACTIONS, PRODUCER_FENCED, UNKNOWN_SERVER_ERROR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        now = self.env.now_ms()
        found = self.transactions.get(transactional_id)
        if transactional_id in self.pending:
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found is None:
            found = unborn(self.env.new_producer_id(), timeout_ms, now)
        if expected is not None and not _may_be(found, expected):
            raise ApiError(Errors.PRODUCER_FENCED)
        if found.state in PREPARED:
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found.state is State.ONGOING:
            return self._fence(transactional_id, found, Initialized(NOBODY, int(Errors.CONCURRENT_TRANSACTIONS)))
        if found.is_exhausted and (expected is None or expected.epoch == found.epoch):
            step = found.rotated(self.env.new_producer_id(), timeout_ms, now, expected is not None)
        else:
            step = found.raised(timeout_ms, None if expected is None else expected.epoch, now)
        return self._step(transactional_id, step, Initialized(Producer(step.producer_id, step.epoch)))

    def _fence(self, transactional_id: str, found: Transaction, reply: Any) -> Result:
        """Aborts an open transaction and raises its producer's epoch, in one step."""
        now = self.env.now_ms()
        if self.env.transaction_version() >= BUMPS_SINCE:
            step = found.ended(False, BUMPS_SINCE, self._next_producer_id(found), now)
        else:
            step = found._replace(epoch=min(found.epoch + 1, EPOCH_MAX), last_epoch=NO_EPOCH).ended(False, 0, NO_PRODUCER_ID, now)
        return self._step(transactional_id, step, reply)

    def _next_producer_id(self, found: Transaction) -> int:
        """The id that takes over where the epochs are used up."""
        return self.env.new_producer_id() if found.is_exhausted else NO_PRODUCER_ID

    # AddPartitionsToTxn, AddOffsetsToTxn

    def add_partitions(self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition], client_version: int) -> Result:
        """Partitions join the transaction. CONCURRENT_TRANSACTIONS, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, UNSUPPORTED_VERSION."""
        found = self._existing(transactional_id)
        if self.is_busy(transactional_id, found):
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        _check_producer(found, producer)
        if found.state is State.ONGOING and found.partitions.issuperset(partitions):
            return Result()
        self._check_version(client_version)
        return self._step(transactional_id, found.with_partitions(partitions, self.env.now_ms(), client_version), None)

    def verify(self, transactional_id: str, producer: Producer, partitions: Iterable[TopicPartition], as_of: int) -> dict[TopicPartition, int]:
        """Error codes by partition: TRANSACTION_ABORTABLE for those that are not in the transaction. Otherwise as `add_partitions`."""
        found = self._existing(transactional_id, as_of)
        _check_producer(found, producer)
        if found.state in PREPARED:
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        return {one: 0 if one in found.partitions else int(Errors.TRANSACTION_ABORTABLE) for one in partitions}

    # EndTxn

    def end(self, transactional_id: str, producer: Producer, commits: bool, client_version: int) -> Result:
        """The end of a transaction is decided. The reply is the producer as it goes on.

        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE, COORDINATOR_LOAD_IN_PROGRESS,
        UNSUPPORTED_VERSION.
        """
        found = self._existing(transactional_id)
        if client_version < BUMPS_SINCE:
            return self._end_plainly(transactional_id, found, producer, commits)
        return self._end_raising(transactional_id, found, producer, commits)

    def _end_plainly(self, transactional_id: str, found: Transaction, producer: Producer, commits: bool) -> Result:
        """As clients before KIP-890 end a transaction: the epoch stays, and an end that is repeated is the same end."""
        _check_producer(found, producer)
        if self.is_busy(transactional_id, found):
            raise ApiError(Errors.CONCURRENT_TRANSACTIONS)
        if found.state is State.ONGOING:
            return self._decide(transactional_id, found, commits, 0, NO_PRODUCER_ID)
        if found.state is State.EMPTY or found.commits != commits:
            raise ApiError(Errors.INVALID_TXN_STATE)
        return Result(reply=NOBODY)

    def _end_raising(self, transactional_id: str, found: Transaction, producer: Producer, commits: bool) -> Result:
        """As clients of KIP-890 end a transaction: the reply tells the epoch, or the producer id, to go on with."""
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
        """While the finalized `transaction.version` is 0 there is no place for a client's in the record."""
        if client_version and not self.env.transaction_version():
            raise ApiError(Errors.UNSUPPORTED_VERSION)

    def _decide(self, transactional_id: str, found: Transaction, commits: bool, client_version: int, next_producer_id: int) -> Result:
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

    def committed_ends(self, committed_offset: int) -> list[tuple[str, int, Transaction]]:
        """The transactions whose ends have been committed since the last call: their markers are to be written now."""
        found = []
        while self.newly_prepared and self.newly_prepared[0][0] < committed_offset:
            offset, transactional_id = self.newly_prepared.popleft()
            if self.prepared.get(transactional_id) == offset:
                found.append((transactional_id, offset, self.transactions[transactional_id]))
        return found

    # reading

    def describe(self, transactional_id: str, as_of: int) -> Transaction:
        """TRANSACTIONAL_ID_NOT_FOUND."""
        found: Transaction | None = self.transactions.get(transactional_id, None, as_of)
        if found is None:
            raise ApiError(Errors.TRANSACTIONAL_ID_NOT_FOUND)
        return found

    # what happens by itself

    def on_loaded(self, now_ms: int) -> list[Timer]:
        return [self._abort_later(), self._expire_later()]

    def on_unloaded(self) -> None:
        """Nobody waits for anything here but the replies that the runtime holds."""

    def _abort_later(self) -> Timer:
        return self._timer(ABORT_OVERDUE, "transaction.abort.timed.out.transaction.cleanup.interval.ms", self.abort_overdue)

    def _expire_later(self) -> Timer:
        return self._timer(EXPIRE, "transaction.remove.expired.transaction.cleanup.interval.ms", self.expire)

    def _timer(self, key: tuple[str], interval: str, operation: Callable[[], Result]) -> Timer:
        return Timer(key, self.env.monotonic_ms() + self.env.config(interval), lambda now: operation())

    def abort_overdue(self) -> Result:
        """Aborts the transactions that have been open for too long, each in a write of its own."""
        now = self.env.now_ms()
        for transactional_id, found in list(self.transactions.items()):
            if found.is_overdue(now) and transactional_id not in self.pending:
                self.write(lambda name=transactional_id, one=found: self._abort(name, one))  # type: ignore[misc]
        return Result(timers=[self._abort_later()])

    def _abort(self, transactional_id: str, found: Transaction) -> Result:
        if self.transactions.get(transactional_id) != found or transactional_id in self.pending:
            return Result()
        self.aborted_overdue += 1
        return self._fence(transactional_id, found, None)

    def expire(self) -> Result:
        """Takes out transactional ids that have not been used for long."""
        limit = self.env.now_ms() - self.env.config("transactional.id.expiration.ms")
        records: list[TransactionRecord] = [
            (transactional_id, None)
            for transactional_id, found in self.transactions.items()
            if found.state in AT_REST and found.updated_ms <= limit and transactional_id not in self.pending
        ]
        return Result(records, atomic=False, timers=[self._expire_later()])

    # replay

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        if value is None:
            self.transactions.pop(key)
            self.prepared.pop(key)
            return
        self.transactions[key] = value
        if value.state in PREPARED:
            self.prepared[key] = offset
            self.newly_prepared.append((offset, key))
        else:
            self.prepared.pop(key)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool) -> None:
        """No transaction writes to this topic."""


def _may_be(found: Transaction, expected: Producer) -> bool:
    """Whether a producer that names itself may be the last one of its transactional id (KIP-360)."""
    if found.epoch == NO_EPOCH or expected.id == found.producer_id:
        return True
    return expected.id == found.previous_producer_id and expected.epoch >= EXHAUSTED_FROM


def _check_producer(found: Transaction, producer: Producer) -> None:
    if found.producer_id != producer.id:
        raise ApiError(Errors.INVALID_PRODUCER_ID_MAPPING)
    if found.epoch != producer.epoch:
        raise ApiError(Errors.PRODUCER_FENCED)
