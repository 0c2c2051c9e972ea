"""The state of a transactional id at the coordinator, and its transitions.

A transition returns a new `Transaction`, which becomes the state when its record is replayed. With transactions version
2 (KIP-890) each end raises the producer's epoch; a new producer id replaces one whose epochs are used up.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from ...protocol.errors import ApiError, Errors
from ...protocol.records import NO_EPOCH, NO_PRODUCER_ID, PRODUCER_EPOCH_MAX

EXHAUSTED_FROM = PRODUCER_EPOCH_MAX - 1
NO_TIMEOUT = 2**31 - 1  # of a transaction with an external coordinator (KIP-939)
BUMPS_SINCE = 2  # the transaction version in which each end raises the epoch

TopicPartition = tuple[str, int]


class State(IntEnum):
    """The values in records."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


NAMES = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}
PREPARED = frozenset((State.PREPARE_COMMIT, State.PREPARE_ABORT))
AT_REST = frozenset((State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT))


class Transaction(NamedTuple):
    """A transactional id's producer and its transaction.
    `last_epoch` is not in records: it is unknown after loading.
    """

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    epoch: int
    last_epoch: int
    timeout_ms: int
    state: State
    partitions: frozenset[TopicPartition]
    start_ms: int
    updated_ms: int
    client_version: int

    @property
    def is_exhausted(self) -> bool:
        """Whether the producer id has no further epoch for its client."""
        return self.epoch >= EXHAUSTED_FROM

    @property
    def has_timeout(self) -> bool:
        return self.timeout_ms != NO_TIMEOUT

    @property
    def commits(self) -> bool:
        """Whether the transaction commits or committed; otherwise it aborts."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    # transitions

    def raised(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """Starts a producer with the next epoch, or again with the epoch
        whose reply it did not get. Raises ApiError(PRODUCER_FENCED).
        """
        if self.is_exhausted:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        if expected_epoch is None:
            epoch, last = self.epoch + 1, NO_EPOCH
        elif self.epoch in (NO_EPOCH, expected_epoch):
            epoch, last = self.epoch + 1, self.epoch
        elif expected_epoch == self.last_epoch:
            epoch, last = self.epoch, self.last_epoch
        else:
            raise ApiError(Errors.PRODUCER_FENCED)
        return self._begun(timeout_ms, now_ms)._replace(epoch=epoch, last_epoch=last)

    def rotated(self, producer_id: int, timeout_ms: int, now_ms: int, keep_last: bool) -> Transaction:
        """Starts a producer with a new id, because the epochs of the old one are used up."""
        last = self.epoch if keep_last else NO_EPOCH
        return self._begun(timeout_ms, now_ms)._replace(producer_id=producer_id, epoch=0, last_epoch=last)

    def _begun(self, timeout_ms: int, now_ms: int) -> Transaction:
        return self._replace(
            previous_producer_id=self.producer_id,
            timeout_ms=timeout_ms,
            state=State.EMPTY,
            partitions=frozenset(),
            start_ms=-1,
            updated_ms=now_ms,
        )

    def with_partitions(self, partitions: Iterable[TopicPartition], now_ms: int, client_version: int) -> Transaction:
        """Adds partitions to the transaction; begins one if none is open."""
        return self._replace(
            previous_producer_id=self.producer_id,
            state=State.ONGOING,
            partitions=self.partitions.union(partitions),
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def ended(self, commits: bool, client_version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """Decides the end: markers must be written. A transaction that never began can only be aborted."""
        epoch, last = self.epoch, self.last_epoch
        if client_version >= BUMPS_SINCE:
            epoch, last = min(self.epoch + 1, PRODUCER_EPOCH_MAX), self.epoch
        return self._replace(
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            epoch=epoch,
            last_epoch=last,
            state=State.PREPARE_COMMIT if commits else State.PREPARE_ABORT,
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """Completes the transaction: all markers are written."""
        rotates = self.client_version >= BUMPS_SINCE and self.next_producer_id != NO_PRODUCER_ID
        return self._replace(
            producer_id=self.next_producer_id if rotates else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            epoch=0 if rotates else self.epoch,
            state=State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    @property
    def can_be_overdue(self) -> bool:
        """Whether the transaction is open and has a timeout."""
        return self.state is State.ONGOING and self.has_timeout

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the transaction has been open for longer than its timeout."""
        return self.can_be_overdue and self.start_ms + self.timeout_ms < now_ms


def unborn(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """Returns the state of a transactional id without a producer."""
    return Transaction(
        producer_id,
        NO_PRODUCER_ID,
        NO_PRODUCER_ID,
        NO_EPOCH,
        NO_EPOCH,
        timeout_ms,
        State.EMPTY,
        frozenset(),
        -1,
        now_ms,
        client_version=0,
    )
