"""The controller's shard: the metadata on a timeline, and helpers of its handlers.

A handler gets a request and returns a `Result` with metadata records and a reply.
Ids, time and configuration are arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ...protocol import messages
from ...protocol.control import Marker
from ...protocol.errors import ApiError, Errors
from ...protocol.structs import Struct
from ..shard import Packed, Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer
from .new_partitions import NewPartitions
from .state import (
    NO_LEADER,
    NO_LEADER_CHANGE,
    Broker,
    MetadataState,
    Partition,
    broker_record,
)

R = TypeVar("R")
PRODUCER_ID_BLOCK = 1000
RECORDS_PER_REQUEST = 10_000


def count_of(result: Result[R]) -> int:
    """Returns how many records a result has."""
    return sum(len(one) if isinstance(one, Packed) else 1 for one in result.records)


def check_count(records: int) -> None:
    """Checks the number of records of a user's request, also if it only validates. Raises ApiError(POLICY_VIOLATION)
    for too many.
    """
    if records > RECORDS_PER_REQUEST:
        raise ApiError(Errors.POLICY_VIOLATION, "Unable to perform excessively large batch operation.")


def bounded(result: Result[R]) -> Result[R]:
    """Returns the result. Raises ApiError(POLICY_VIOLATION) if it has too many records."""
    check_count(count_of(result))
    return result


@dataclass(slots=True)
class Defaults:
    """The broker's defaults for new topics."""

    num_partitions: int = 1
    replication_factor: int = 1
    topic_configs: dict[str, str] | None = None  # topic keys to the broker's value, if it is set
    broker_value: Callable[[str], Any] = lambda name: None  # returns the broker keys that bound the values of groups


class Controller:
    """Implements `Shard` for `__cluster_metadata`."""

    def __init__(self, timeline: Timeline, defaults: Defaults, new_id: Callable[[], bytes]) -> None:
        self.state = MetadataState(lambda: TimelineDict(timeline))
        self.defaults = defaults
        self.new_id = new_id
        self.assigned = 0  # where the round-robin placement of the next topic begins

    # the shard

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: None, value: object) -> None:
        self.state.apply(value)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> None:
        """Never called: the metadata log has no transactions, as in Kafka."""

    def on_loaded(self, now_ms: int) -> list[Timer]:
        return []

    def on_unloaded(self) -> None:
        """Does nothing: all state is in the log."""

    # brokers

    def usable_brokers(self) -> list[Broker]:
        return sorted((b for b in self.state.brokers.values() if not b.fenced), key=lambda b: b.id)

    def register_broker(
        self,
        request: Broker,
        controller: messages.RegisterControllerRecord,
        offline: Container[tuple[bytes, int]] = (),
    ) -> Result:
        """Registers a node again, unfenced, and makes it the leader of its partitions, except of those `offline`, by
        topic id and index: their log directory cannot be used.
        """
        registered = broker_record(replace(request, fenced=False, in_controlled_shutdown=False))
        return Result([controller, registered, *self._elections(request.id, offline)])

    def directory_failed(self, node: int, log_dirs: list[bytes], offline: Container[tuple[bytes, int]]) -> Result:
        """Takes the partitions of a failed log directory from their leader, as Kafka's controller does after a
        heartbeat that names the directory. `log_dirs`: the ids of those that are left.
        """
        epoch = self.state.brokers[node].epoch
        change = messages.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=epoch, log_dirs=log_dirs)
        lost = [
            _without_leader(partition, (node,))
            for key, partition in self.state.partitions.items()
            if key in offline and partition.leader == node
        ]
        return Result([change, *lost])

    def fence_broker(self, node: int) -> Result:
        """Fences a node. The last write of a stopping node,
        so that the next start need not wait for its session timeout.
        """
        epoch = self.state.brokers[node].epoch
        return Result([messages.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=epoch, fenced=1)])

    def _elections(self, node: int, offline: Container[tuple[bytes, int]]) -> list[Struct]:
        changed: list[Struct] = []
        for key, partition in self.state.partitions.items():
            if key in offline:
                if partition.leader == node or partition.elr:
                    changed.append(_without_leader(partition, ()))
            elif partition.leader == NO_LEADER and node in partition.replicas:
                changed.append(
                    messages.PartitionChangeRecord(
                        partition_id=partition.index,
                        topic_id=partition.topic_id,
                        isr=[node],
                        leader=node,
                        eligible_leader_replicas=[] if partition.elr else None,
                        last_known_elr=[] if partition.last_known_elr else None,
                    )
                )
        return changed

    # placement

    def place(self, count: int, replication_factor: int, first_index: int = 0) -> list[list[int]]:
        """Returns the replicas of new partitions: round-robin over the usable brokers."""
        ids = [b.id for b in self.usable_brokers()]
        start = self.assigned
        self.assigned += count
        return [
            [ids[(start + first_index + n + r) % len(ids)] for r in range(replication_factor)] for n in range(count)
        ]

    def new_partitions(self, topic_id: bytes, placed: list[list[int]], first: int = 0) -> NewPartitions:
        """Returns the partitions of a topic from number `first` on, which have these replicas."""
        brokers, new = self.state.brokers, []
        choices: dict[tuple[int, ...], list[tuple[bytes, ...]]] = {}
        for index, replicas in enumerate(map(tuple, placed), first):
            if replicas not in choices:
                choices[replicas] = [brokers[r].log_dirs or (bytes(16),) for r in replicas]
            directories = tuple([ids[index % len(ids)] for ids in choices[replicas]])
            new.append(Partition(topic_id, index, replicas, replicas, replicas[0], 0, 0, directories))
        return NewPartitions(new)

    # producer ids

    def allocate_producer_ids(self, node: int, broker_epoch: int) -> Result[tuple[int, int]]:
        """Allocates a block of producer ids for a node; the reply is the first id and the size."""
        first = self.state.next_producer_id
        record = messages.ProducerIdsRecord(
            broker_id=node, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK
        )
        return Result([record], (first, PRODUCER_ID_BLOCK))


def _without_leader(partition: Partition, eligible: tuple[int, ...]) -> messages.PartitionChangeRecord:
    """Returns the change of a partition whose only replica is offline. `eligible`: the replicas that have all committed
    records (KIP-966); none if the node has not stopped cleanly.
    """
    return messages.PartitionChangeRecord(
        partition_id=partition.index,
        topic_id=partition.topic_id,
        isr=[],
        leader=NO_LEADER if partition.leader != NO_LEADER else NO_LEADER_CHANGE,
        eligible_leader_replicas=list(eligible),
        last_known_elr=list(partition.replicas),
    )
