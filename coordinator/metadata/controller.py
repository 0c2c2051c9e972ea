"""The controller's shard: metadata on a timeline, and what its handlers share.

A handler is given a request and returns a `Result` with metadata records and a reply. Ids, time and configuration are arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...protocol import messages
from ..shard import Result
from ..timeline import Timeline, TimelineDict
from ..timers import Timer
from .state import NO_LEADER, Broker, MetadataState, Partition, broker_features

PRODUCER_ID_BLOCK = 1000


@dataclass(slots=True)
class Defaults:
    """What the broker's configuration says of new topics, and the topic defaults that follow from broker keys."""

    num_partitions: int = 1
    replication_factor: int = 1
    topic_configs: dict[str, str] | None = None  # topic keys to the broker's value, where it is set
    broker_value: Callable[[str], Any] = lambda name: None  # what bounds the values of groups, by broker key


class Controller:
    """Implements `Shard` for `__cluster_metadata`."""

    def __init__(self, timeline: Timeline, defaults: Defaults, new_id: Callable[[], bytes]) -> None:
        self.state = MetadataState(lambda: TimelineDict(timeline))
        self.defaults = defaults
        self.new_id = new_id
        self.assigned = 0  # where the round-robin placement of the next topic begins

    # the shard

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        self.state.apply(value)

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool) -> None:
        """The metadata log has no producers; Kafka writes none either."""

    def on_loaded(self, now_ms: int) -> list[Timer]:
        return []

    def on_unloaded(self) -> None:
        """Nothing outlives the log."""

    # brokers

    def usable_brokers(self) -> list[Broker]:
        return sorted((b for b in self.state.brokers.values() if not b.fenced), key=lambda b: b.id)

    def register_broker(self, request: Broker, controller: Any) -> Result:
        """Registers a node anew, unfenced, and makes it the leader of what it holds and nobody leads."""
        records: list[Any] = [controller]
        records.append(
            messages.RegisterBrokerRecord(
                broker_id=request.id,
                incarnation_id=request.incarnation_id,
                broker_epoch=request.epoch,
                end_points=[messages.RegisterBrokerRecord.BrokerEndpoint(name=e.name, host=e.host, port=e.port) for e in request.endpoints],
                features=broker_features(messages.RegisterBrokerRecord.BrokerFeature),
                rack=request.rack,
                fenced=False,
                in_controlled_shutdown=False,
                log_dirs=list(request.log_dirs),
            )
        )
        return Result(records + self._elections(request.id))

    def fence_broker(self, node: int) -> Result:
        """The last thing that a node writes: who opens the directory next need not wait for the node's session to time out."""
        epoch = self.state.brokers[node].epoch
        return Result([messages.BrokerRegistrationChangeRecord(broker_id=node, broker_epoch=epoch, fenced=1)])

    def _elections(self, node: int) -> list[Any]:
        changed = []
        for partition in self.state.partitions.values():
            if partition.leader == NO_LEADER and node in partition.replicas:
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
        """Replicas for new partitions: leaders and followers in turn over the usable brokers."""
        ids = [b.id for b in self.usable_brokers()]
        start = self.assigned
        self.assigned += count
        return [[ids[(start + first_index + n + r) % len(ids)] for r in range(replication_factor)] for n in range(count)]

    def new_partition(self, topic_id: bytes, index: int, replicas: list[int]) -> Partition:
        brokers = self.state.brokers
        directories = tuple(brokers[r].log_dirs[index % len(brokers[r].log_dirs)] if brokers[r].log_dirs else bytes(16) for r in replicas)
        return Partition(topic_id, index, tuple(replicas), tuple(replicas), replicas[0], 0, 0, directories)

    # producer ids

    def allocate_producer_ids(self, node: int, broker_epoch: int) -> Result:
        """A block of producer ids for a node; the reply is the first id and how many."""
        first = self.state.next_producer_id
        record = messages.ProducerIdsRecord(broker_id=node, broker_epoch=broker_epoch, next_producer_id=first + PRODUCER_ID_BLOCK)
        return Result([record], (first, PRODUCER_ID_BLOCK))
