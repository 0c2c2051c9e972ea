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
    """Returns the leadership of a partition: none from the moment at which its log or its leader is offline."""
    local = broker.partitions.by_name.get((topic, state.index))
    is_offline = local is not None and local.offline
    brokers = broker.image.brokers
    lost = () if local is None else local.offline_nodes
    offline = [n for n in state.replicas if is_offline or n not in brokers or brokers[n].fenced or n in lost]
    if not offline:
        return Leadership(state.leader, list(state.isr), offline)
    isr = [] if all(is_offline or n in lost for n in state.replicas) else list(state.isr)
    return Leadership(-1 if state.leader in offline else state.leader, isr, offline)
