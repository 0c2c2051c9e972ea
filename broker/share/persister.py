"""The partition leader's client of the share coordinator (KIP-932's Persister).

The coordinator is in this process, so a call is a write of its shard and not a request; the writes of one input event
form one batch. Like Kafka's persister it retries, at growing intervals,
while the coordinator is not available or loads.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from ...coordinator.share.batches import UNSET_OFFSET
from ...coordinator.share.state import PartitionKey, PartitionState, Runs, Write
from ...protocol.errors import ApiError, Errors
from ..config.checks import keeps_nothing
from ..config.config import Config
from ..later import Later, drive, finished
from ..retrying import retried
from ..turn import Turn
from .coordinators import ShareCoordinators

T = TypeVar("T")
RETRIABLE = frozenset(
    (
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.NOT_COORDINATOR,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    )
)


class Persister(Protocol):
    """A call completes when its write is committed; it fails with the coordinator's ApiError.

    `once` calls without retries, for callers with many share-partitions, which retry all of them together.
    """

    once: Persister

    async def prepare(self) -> None:
        """Opens what many calls need, a little in each turn of the loop. Raises nothing: a call that needs what cannot
        be opened fails with the error itself.
        """
        ...

    def initialize(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]: ...

    def read(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]: ...

    def write(self, key: PartitionKey, write: Write, is_fenced: Callable[[], bool]) -> Later[None]:
        """Writes nothing once `is_fenced`, so that a later read of the state returns all that was written."""
        ...

    def delete(self, key: PartitionKey) -> Later[None]: ...

    def summary(self, key: PartitionKey) -> Later[PartitionState | None]: ...


def persister(turn: Turn, config: Config, states: ShareCoordinators) -> Persister:
    """Returns the persister named by `group.share.persister.class.name`; no name is the one that keeps nothing."""
    is_no_op = keeps_nothing(config, "group.share.persister.class.name")
    return NoOpPersister() if is_no_op else StatePersister(turn, states)


class StatePersister:
    """Calls the shards of the share coordinator."""

    def __init__(self, turn: Turn, states: ShareCoordinators, retriable: frozenset[int] = RETRIABLE) -> None:
        self.turn = turn
        self.states = states
        self.retriable = retriable
        self.once: Persister = StatePersister(turn, states, frozenset()) if retriable else self

    async def prepare(self) -> None:
        with contextlib.suppress(ApiError):  # the first write or read tries again, and tells its error
            await self.states.create_topic()
            await self.states.open_all()

    def initialize(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        return self._call(key, None, lambda: self.states.initialize_state(key, state_epoch, start_offset))

    def read(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]:
        return self._call(key, self._leader(key), lambda: self.states.read_state(key, leader_epoch))

    def write(self, key: PartitionKey, write: Write, is_fenced: Callable[[], bool]) -> Later[None]:
        async def attempt() -> None:
            if is_fenced():
                raise ApiError(Errors.FENCED_LEADER_EPOCH)
            try:
                await self.states.write_state(key, write)
            except ApiError:
                await self.turn.next()  # as in Kafka, the rest of the request has been carried out when this is known
                raise

        return self._call(key, self._leader(key), attempt)

    def delete(self, key: PartitionKey) -> Later[None]:
        return self._call(key, None, lambda: self.states.delete_state(key))

    def summary(self, key: PartitionKey) -> Later[PartitionState | None]:
        return self._call(key, None, lambda: self.states.read_summary(key))

    def _leader(self, key: PartitionKey) -> int | None:
        """Returns the node that leads a share-partition."""
        found = self.states.partitions.by_id.get((key.topic_id, key.partition))
        return None if found is None or not found.has_leader else found.leader

    def _call(self, key: PartitionKey, node: int | None, call: Callable[[], Awaitable[T]]) -> Later[T]:
        """`node`: the one that asks the coordinator; None if it does not matter which one does."""

        async def attempt() -> T:
            await self.states.create_topic()
            if not self.states.is_reachable(self.states.partition_for(key), node):
                raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
            return await call()

        return drive(retried(self.turn, self.retriable, attempt))


class NoOpPersister:
    """Stores nothing: a share-partition starts again with each broker."""

    def __init__(self) -> None:
        self.once: Persister = self

    async def prepare(self) -> None:
        pass

    def initialize(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        return finished(None)

    def read(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]:
        return finished(PartitionState(0, 0, leader_epoch, UNSET_OFFSET, 0, Runs(), 0, 0))

    def write(self, key: PartitionKey, write: Write, is_fenced: Callable[[], bool]) -> Later[None]:
        return finished(None)

    def delete(self, key: PartitionKey) -> Later[None]:
        return finished(None)

    def summary(self, key: PartitionKey) -> Later[PartitionState | None]:
        return finished(None)


def as_partition_error(error: ApiError, doing: str) -> ApiError:
    """Converts a coordinator's error to the error that the partition leader returns. `doing`: `read` or `write`."""
    if error.code in (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS):
        words = f"Error in {doing} state RPC. Exhausted max retries to complete {doing} state RPC without success."
        return ApiError(Errors.COORDINATOR_NOT_AVAILABLE, words)
    words = f"Error in {doing} state RPC. {error.message_or_default}"
    if error.code in (Errors.GROUP_ID_NOT_FOUND, Errors.UNKNOWN_TOPIC_OR_PARTITION):
        return ApiError(error.code, words)
    if error.code in (Errors.FENCED_LEADER_EPOCH, Errors.FENCED_STATE_EPOCH):
        return ApiError(Errors.NOT_LEADER_OR_FOLLOWER, words)
    return ApiError(Errors.UNKNOWN_SERVER_ERROR, words)
