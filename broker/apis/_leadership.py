"""Who leads a partition, for Metadata and DescribeTopicPartitions."""

from __future__ import annotations

from typing import NamedTuple

from ...coordinator.metadata.state import Partition
from ..broker import Broker


class Leadership(NamedTuple):
    """`leader` is -1 if the partition has none; `offline` are the replicas that cannot be used."""

    leader: int
    isr: list[int]
    offline: list[int]


def leadership(broker: Broker, topic: str, state: Partition) -> Leadership:
    """Returns the leadership of a partition: none from the moment at which its log is offline."""
    local = broker.partitions.by_name.get((topic, state.index))
    is_offline = local is not None and local.offline
    offline = [node for node in state.replicas if is_offline or node not in broker.image.brokers]
    return Leadership(-1, [], offline) if offline else Leadership(state.leader, list(state.isr), offline)
