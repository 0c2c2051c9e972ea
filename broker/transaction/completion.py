"""The end of one transaction, from its decision on: its markers, and the record that it is complete."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from ...protocol.errors import ApiError, Errors
from .. import bugs
from ..controller.controller import MetadataController
from ..later import Later
from ..replica.partition import Partition
from ..replica.partitions import Partitions
from ..shards.host import ShardHost
from ..turn import Turn
from .markers import MarkerWriter, TransactionEnd

if TYPE_CHECKING:
    from ...coordinator.transaction.shard import TransactionShard
    from ...coordinator.transaction.state import TopicPartition, Transaction

logger = logging.getLogger("ottla.kafka.coordinator.transaction.TransactionCoordinator")
RETRY_MS = 100
STEP_MARKERS = 64  # of a transaction that are written before other events are handled
# Kafka retries these errors; any other error stops the attempt until the coordinator is loaded again
RETRIABLE = frozenset(
    (
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Errors.REQUEST_TIMED_OUT,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.UNKNOWN_SERVER_ERROR,  # not in Kafka, where a leader never returns it; here it stands for any exception
    )
)


class Owner(Protocol):
    """The part of the transaction coordinators that the end of a transaction uses."""

    turn: Turn
    partitions: Partitions
    metadata: MetadataController
    markers: MarkerWriter
    hosts: dict[int, ShardHost[TransactionShard]]
    completions: dict[str, Completion]
    completion_retries: int

    def serves(self, partition: Partition) -> bool: ...

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


class Completion:
    """The markers of one transaction that are not written yet."""

    def __init__(
        self,
        owner: Owner,
        host: ShardHost[TransactionShard],
        transactional_id: str,
        offset: int,
        decided: Transaction,
    ) -> None:
        self.owner = owner
        self.host = host
        self.transactional_id = transactional_id
        self.offset = offset
        self.remaining: set[TopicPartition] = set(decided.partitions)
        self.end = TransactionEnd(
            decided.producer_id,
            decided.epoch,
            host.runtime.epoch,
            committed=decided.commits,
            version=decided.client_version,
        )
        self.given_up: ApiError | None = None
        self._open: set[TopicPartition] = set()  # whose markers are being written
        self._left: list[TopicPartition] = []  # to which markers are still to be written, the last one first

    @property
    def is_current(self) -> bool:
        """Whether the shard that decided this is still active, and no marker is given up."""
        return self._is_hosted and self.given_up is None

    @property
    def _is_hosted(self) -> bool:
        return self.owner.hosts.get(self.host.partition.index) is self.host

    def write_markers(self) -> None:
        """Writes the missing markers, in the order of their partitions;
        retries later if that fails with any exception.
        """
        self._guarded(self._write_markers)

    def _guarded(self, write: Callable[[], None]) -> None:
        if not bugs.guarded(f"writing the markers of {self.transactional_id}", write):
            self.owner.turn.later(RETRY_MS, self.write_markers)

    def _write_markers(self) -> None:
        if self.is_current:
            self._left = sorted(self.remaining - self._open, reverse=True)
            self._write_some()

    def _write_some(self) -> None:
        """Writes some of the markers that are left, and the others when other events had their turn."""
        if not self._is_hosted:
            return
        owner, left = self.owner, self._left
        partitions, batch = owner.partitions.by_name, self.end.batch(owner.now_ms())
        waiting: list[tuple[TopicPartition, Later[None]]] = []
        reached: dict[int | None, bool] = {}  # by leader
        for _ in range(min(len(left), STEP_MARKERS)):
            key = left.pop()
            partition = partitions.get(key)
            if partition is None:  # the partition was deleted: there is nothing to end
                self.remaining.discard(key)
                continue
            leader = partition.leader if partition.has_leader else None
            if leader not in reached:
                reached[leader] = self._reaches(leader)
            if reached[leader]:
                self._open.add(key)
                waiting.append((key, owner.markers.write(partition, batch)))
        for key, later in waiting:
            later.when_done(partial(self._written, key))
        if left:
            owner.turn.soon(lambda: self._guarded(self._write_some))
        elif not waiting:
            self._ended()

    def _reaches(self, leader: int | None) -> bool:
        """Whether the node of the coordinator can ask the leader of a partition."""
        return self.owner.metadata.nodes.reaches(self.host.partition.leader, leader)

    def _written(self, key: TopicPartition, done: Later[None]) -> None:
        error = done.error
        self._open.discard(key)
        if error is None:
            self.remaining.discard(key)
        elif not isinstance(error, ApiError) or error.code not in RETRIABLE:
            self.given_up = error if isinstance(error, ApiError) else ApiError(Errors.UNKNOWN_SERVER_ERROR)
            logger.warning(
                "the transaction marker of %s cannot be written to %s-%d: %s", self.transactional_id, *key, error
            )
        if not self._left:
            self._ended()

    def _ended(self) -> None:
        """All markers were tried: those that are not written are tried again."""
        if self._open:
            return
        if self.remaining:
            self.owner.turn.later(RETRY_MS, self.write_markers)
        else:
            self._complete()

    def _complete(self) -> None:
        if not self.is_current:
            return
        if not self.owner.serves(self.host.partition):
            self.owner.turn.later(RETRY_MS, self._complete)
            return
        owner, host = self.owner, self.host
        decide = partial(host.shard.complete, self.transactional_id, self.offset)
        host.runtime.write("complete-transaction", decide, self._completed, owner.monotonic_ms())
        owner.turn.wrote(host)

    def _completed(self, _: object, error: ApiError | None) -> None:
        owner = self.owner
        if error is None or error.code == Errors.NOT_COORDINATOR:
            if owner.completions.get(self.transactional_id) is self:
                del owner.completions[self.transactional_id]
        elif self.is_current:  # the completion record could not be appended
            owner.completion_retries += 1
            owner.turn.later(RETRY_MS, self._complete)
