"""What the leader of a partition asks of the share coordinator (KIP-932's Persister).

The coordinator is in this process, so a call is a write of its shard and not a request; what one input event writes goes into one batch.
As Kafka's persister it tries again, at growing intervals, while the coordinator is not there or loads.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..coordinator.share.batches import UNSET_OFFSET
from ..coordinator.share.state import PartitionKey, PartitionState, Write
from ..protocol.errors import ApiError, Errors
from .later import Later, drive
from .retrying import retried

if TYPE_CHECKING:
    from .broker import Broker

T = TypeVar("T")
RETRIABLE = frozenset(
    (
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.NOT_COORDINATOR,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
NO_OP_CLASS = "NoOpStatePersister"


class Persister(Protocol):
    """Every call is finished when what it wrote is committed; it fails with the coordinator's ApiError."""

    def initialize(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]: ...

    def read(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]: ...

    def write(self, key: PartitionKey, write: Write, is_fenced: Callable[[], bool]) -> Later[None]:
        """Nothing is written once `is_fenced`: who reads the state after that must have read all of it."""
        ...

    def delete(self, key: PartitionKey) -> Later[None]: ...

    def summary(self, key: PartitionKey) -> Later[PartitionState | None]: ...


def persister(broker: Broker) -> Persister:
    """The one that `group.share.persister.class.name` names."""
    name = str(broker.config["group.share.persister.class.name"])
    return NoOpPersister() if name.rpartition(".")[2] == NO_OP_CLASS else StatePersister(broker)


class StatePersister:
    """Calls the share coordinator's shards."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def initialize(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        return self._call(lambda: self.broker.share_states.initialize_state(key, state_epoch, start_offset))

    def read(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]:
        return self._call(lambda: self.broker.share_states.read_state(key, leader_epoch))

    def write(self, key: PartitionKey, write: Write, is_fenced: Callable[[], bool]) -> Later[None]:
        def attempt() -> Awaitable[None]:
            if is_fenced():
                raise ApiError(Errors.FENCED_LEADER_EPOCH)
            return self.broker.share_states.write_state(key, write)

        return self._call(attempt)

    def delete(self, key: PartitionKey) -> Later[None]:
        return self._call(lambda: self.broker.share_states.delete_state(key))

    def summary(self, key: PartitionKey) -> Later[PartitionState | None]:
        return self._call(lambda: self.broker.share_states.read_summary(key))

    def _call(self, call: Callable[[], Awaitable[T]]) -> Later[T]:
        async def attempt() -> T:
            await self.broker.share_states.create_topic()
            return await call()

        return drive(retried(self.broker, RETRIABLE, attempt))


class NoOpPersister:
    """Keeps nothing: a share-partition begins anew with each broker."""

    def initialize(self, key: PartitionKey, state_epoch: int, start_offset: int) -> Later[None]:
        return _done(None)

    def read(self, key: PartitionKey, leader_epoch: int) -> Later[PartitionState]:
        return _done(PartitionState(0, 0, leader_epoch, UNSET_OFFSET, 0, (), 0, 0))

    def write(self, key: PartitionKey, write: Write, is_fenced: Callable[[], bool]) -> Later[None]:
        return _done(None)

    def delete(self, key: PartitionKey) -> Later[None]:
        return _done(None)

    def summary(self, key: PartitionKey) -> Later[PartitionState | None]:
        return _done(None)


def _done(result: T) -> Later[T]:
    later: Later[T] = Later()
    later.finish(result)
    return later


def as_partition_error(error: ApiError) -> ApiError:
    """A coordinator's error as the leader of the share-partition tells it."""
    if error.code in (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS):
        return ApiError(Errors.COORDINATOR_NOT_AVAILABLE, error.text)
    if error.code in (Errors.GROUP_ID_NOT_FOUND, Errors.UNKNOWN_TOPIC_OR_PARTITION):
        return error
    if error.code in (Errors.FENCED_LEADER_EPOCH, Errors.FENCED_STATE_EPOCH):
        return ApiError(Errors.NOT_LEADER_OR_FOLLOWER, error.text)
    return ApiError(Errors.UNKNOWN_SERVER_ERROR, error.text)
