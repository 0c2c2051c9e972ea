"""What the coordinator knows of a transactional id, and the steps that this may take.

A step gives a new `Transaction`, which becomes the state when its record is replayed. Where the client speaks version 2 of transactions
(KIP-890) each end raises the producer's epoch; an epoch that is used up makes way for a new producer id.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from ...protocol.errors import ApiError, Errors

NO_PRODUCER_ID = -1
NO_EPOCH = -1
EPOCH_MAX = 2**15 - 1
EXHAUSTED_FROM = EPOCH_MAX - 1
NO_TIMEOUT = 2**31 - 1  # of a transaction that somebody else coordinates (KIP-939)
BUMPS_SINCE = 2  # the version of transactions in which each end raises the epoch

TopicPartition = tuple[str, int]


class State(IntEnum):
    """As records have it."""

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
    """A transactional id's producer and its transaction. `last_epoch` is not in records: after loading it is not known."""

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
        """Which end the transaction takes, or took."""
        return self.state in (State.PREPARE_COMMIT, State.COMPLETE_COMMIT)

    # steps

    def raised(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
        """A producer begins: with the next epoch, or again with the one whose reply it did not get. ApiError(PRODUCER_FENCED)."""
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
        """A producer begins, with a new id as the old one's epochs are used up."""
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
        """Partitions join the transaction, which begins where there is none."""
        return self._replace(
            previous_producer_id=self.producer_id,
            state=State.ONGOING,
            partitions=self.partitions.union(partitions),
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def ended(self, commits: bool, client_version: int, next_producer_id: int, now_ms: int) -> Transaction:
        """The end is decided: markers are to be written. A transaction that never began can only be aborted."""
        epoch, last = self.epoch, self.last_epoch
        if client_version >= BUMPS_SINCE:
            epoch, last = min(self.epoch + 1, EPOCH_MAX), self.epoch
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
        """All markers are written."""
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

    def is_overdue(self, now_ms: int) -> bool:
        """Whether the transaction has been open for longer than it may."""
        return self.state is State.ONGOING and self.has_timeout and self.start_ms + self.timeout_ms < now_ms


def unborn(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """A transactional id that nobody has used before."""
    return Transaction(
        producer_id, NO_PRODUCER_ID, NO_PRODUCER_ID, NO_EPOCH, NO_EPOCH, timeout_ms, State.EMPTY, frozenset(), -1, now_ms, client_version=0
    )
