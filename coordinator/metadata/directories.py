"""Log directories of brokers and of their replicas: the controller's handlers (KIP-858, KIP-1066)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...protocol import messages
from ...protocol.features import CORDONED_SINCE, DIRECTORIES_SINCE
from ..shard import Decision, Result
from .registration import Broker
from .state import MetadataState

MIGRATING, UNASSIGNED = bytes(16), (1).to_bytes(16, "big")
"""Directories of replicas: not known from older versions; not chosen by the broker yet."""


def of_new_replica(broker: Broker) -> bytes:
    """Returns the directory that the controller gives a new replica: a broker with several chooses itself."""
    if not broker.log_dirs:
        return MIGRATING
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED


def is_online(broker: Broker, directory: bytes) -> bool:
    """Whether the log directory of a replica can be used."""
    return directory in (MIGRATING, UNASSIGNED) or directory in broker.log_dirs


def takes_replicas(broker: Broker) -> bool:
    """Whether a broker has a log directory that is not cordoned."""
    return not broker.cordoned or not set(broker.log_dirs) <= set(broker.cordoned)


def assign(state: MetadataState, assigned: Mapping[tuple[bytes, int], Mapping[int, bytes]]) -> Decision[None]:
    """Writes the directories that replicas are in, as Kafka's controller does after AssignReplicasToDirs. `assigned`:
    ids of directories by node, by topic id and partition. Without effect before the metadata version has them.
    """
    if state.metadata_version < DIRECTORIES_SINCE:
        return Result([])
    records = []
    for key, by_node in assigned.items():
        yield
        partition = state.partitions.get(key)
        if partition is None:  # deleted meanwhile
            continue
        before = [*partition.directories, *[UNASSIGNED] * (len(partition.replicas) - len(partition.directories))]
        after = [by_node.get(node, old) for node, old in zip(partition.replicas, before, strict=False)]
        if after != list(partition.directories):
            records.append(messages.PartitionChangeRecord(partition_id=key[1], topic_id=key[0], directories=after))
    return Result(records)


def cordon(state: MetadataState, node: int, directories: Sequence[bytes]) -> Result[None]:
    """Writes which directories of a broker take no new replicas, as Kafka's controller does after a heartbeat,
    if the metadata version has that.
    """
    broker = state.brokers.get(node)
    is_known = state.metadata_version >= CORDONED_SINCE
    if broker is None or not is_known or set(broker.cordoned) == set(directories):
        return Result([])
    record = messages.BrokerRegistrationChangeRecord(
        broker_id=node, broker_epoch=broker.epoch, cordoned_log_dirs=list(directories)
    )
    return Result([record])
