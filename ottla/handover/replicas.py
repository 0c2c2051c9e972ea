"""Chooses which replica of a partition counts, where directories have several of them.

A replica in sync has all committed records. Without one, the replica with the highest leader epoch is taken, of those
the longest, as in an unclean election; the report says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from ..broker.replica.directories import id_of_node
from ..broker.replica.followers import Reach
from ..broker.replica.log_opener import RESERVED_DIRECTORY_IDS
from ..coordinator.metadata.state import Partition
from ..protocol.records import HEADER_SIZE
from ..storage import checkpoints, layout
from ..storage.batch_info import info_at
from ..storage.files import OsFiles
from .source import Key, Source, SourceDirectory

PartitionKey = tuple[bytes, int]  # topic id and partition


@dataclass(slots=True)
class Choice:
    """Where the log of each partition is taken from; None for an empty one. `ends`: of the replicas, by node, that have
    less of it or are out of sync; `missing`: the partitions whose log is not in the directories; `doubtful`: those of
    which no replica in sync is there.
    """

    homes: dict[PartitionKey, SourceDirectory | None] = field(default_factory=dict)
    ends: dict[PartitionKey, dict[int, Reach]] = field(default_factory=dict)
    missing: list[Partition] = field(default_factory=list)
    doubtful: list[Partition] = field(default_factory=list)


def choose(source: Source) -> Choice:
    """Raises OSError; CorruptCheckpoint if a directory does not say to which topic it belongs."""
    found, image = Choice(), source.image
    for partition in image.partitions.values():
        key: Key = image.topic_names[partition.topic_id], partition.index
        held = [one for one in source.directories if key in one.partitions and _is_of(one, key, partition.topic_id)]
        if not held:
            if _is_elsewhere(source, partition) or any(one.committed(key) for one in source.directories):
                found.missing.append(partition)
            else:
                found.homes[partition.topic_id, partition.index] = None
            continue
        safe = {partition.leader, *partition.isr, *partition.elr}
        in_sync = [one for one in held if one.nodes & safe]
        if not in_sync:
            found.doubtful.append(partition)
        best = max(in_sync or held, key=lambda one: (partition.leader in one.nodes, *_reach(one, key)))
        found.homes[partition.topic_id, partition.index] = best
        found.ends[partition.topic_id, partition.index] = _ends(best, partition)
    return found


def _ends(home: SourceDirectory, partition: Partition) -> dict[int, Reach]:
    """Returns where replicas are whose log is in the directory of another; none if no replica in sync or eligible would
    stay.
    """
    ends = home.replica_ends.of((partition.topic_id, partition.index), (partition.leader, *partition.isr))
    left = {one for one in partition.replicas if one not in partition.removing}
    return ends if left.intersection((*partition.isr, *partition.elr)) else {}


def _is_elsewhere(source: Source, partition: Partition) -> bool:
    """Whether the replicas are on other nodes, or in log directories that are not named."""
    if not any(one.nodes.intersection(partition.replicas) for one in source.directories):
        return True
    known = {id_of_node(one.id, node) for one in source.directories for node in source.image.brokers}
    known.update(one.id for one in source.directories)
    own = [one for one in partition.directories if int.from_bytes(one, "big") >= RESERVED_DIRECTORY_IDS]
    return bool(own) and known.isdisjoint(own)


def _is_of(directory: SourceDirectory, key: Key, topic_id: bytes) -> bool:
    """Whether the partition's directory is of this topic, not of an older one with the same name."""
    try:
        data = OsFiles().read(f"{directory.partition_path(key)}/{layout.PARTITION_METADATA}")
        return checkpoints.decode_partition_metadata(data) == topic_id
    except FileNotFoundError:  # a crash may have kept it from the disk
        return True
    except checkpoints.CorruptCheckpoint:
        return not directory.is_clean


def _reach(directory: SourceDirectory, key: Key) -> tuple[int, int]:
    """Returns the latest leader epoch and the end offset of a log."""
    path = directory.partition_path(key)
    try:
        epochs = checkpoints.decode_epochs(OsFiles().read(f"{path}/{layout.LEADER_EPOCHS}"))
    except (FileNotFoundError, checkpoints.CorruptCheckpoint):
        epochs = []
    end = directory.recovery_points.get(key, 0) if directory.is_clean else _end(path)
    return max((epoch for epoch, start in epochs if start < end), default=-1), end


def _end(path: str) -> int:
    """Returns the offset after the last batch that is whole at sight."""
    bases = [name for name in os.listdir(path) if name.endswith(layout.LOG)]
    if not bases:
        return 0
    last = max(bases)
    end, position = layout.offset_of(last), 0
    handle = os.open(f"{path}/{last}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(handle).st_size
        while (batch := info_at(os.pread(handle, HEADER_SIZE, position), 0, position)) is not None:
            if position + batch.size > size or batch.last_offset < end:
                break
            end, position = batch.last_offset + 1, position + batch.size
    finally:
        os.close(handle)
    return end
