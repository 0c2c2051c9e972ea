"""The partitions of this broker: by name, by topic id, and by log directory."""

from __future__ import annotations

from collections.abc import Iterator

from ...coordinator.metadata.state import NO_LEADER, MetadataState
from ...protocol.errors import ApiError, Errors
from ...storage.layout import RECOVERY_POINTS
from ...storage.log import Log
from ..topic_pieces import TopicPieces
from . import directories
from .directories import LogDirectories, LogDirectory
from .followers import Reach
from .partition import Partition, compare_epochs

NO_REPLICA = -1


class Partitions:
    """The table of partitions; `ReplicaManager` adds and removes them. `image`: the committed metadata."""

    is_cut = False  # `image` is what a node knew when it was cut off
    node_id = NO_REPLICA  # which sees them so; all nodes

    def __init__(self, image: MetadataState, log_directories: LogDirectories) -> None:
        self.image = image
        self.log_directories = log_directories
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[tuple[bytes, int], Partition] = {}
        self.directory_of: dict[Partition, LogDirectory] = {}
        self.pieces = TopicPieces()

    def get(self, topic: str, index: int) -> Partition:
        """Returns a partition. Raises ApiError(UNKNOWN_TOPIC_OR_PARTITION) if it does not exist, or if its topic was
        deleted and the partition could not be removed yet.
        """
        found = self.by_name.get((topic, index))
        if found is None or found.topic_id not in self.image.topic_names:
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
        return found

    def led(self, topic: str, index: int, current_leader_epoch: int = -1) -> Partition:
        """Returns a partition that a client may use here. Raises ApiError, also if its leader epoch is wrong."""
        found = self.get(topic, index)
        self.check_led(found, current_leader_epoch)
        return found

    def leads(self, partition: Partition) -> bool:
        """Whether requests for a partition are served here."""
        return True

    def replica_end(self, partition: Partition) -> int | None:
        """Returns how far the replica here has the log; None if there is none."""
        return partition.end_offset

    def check_led(self, partition: Partition, current_leader_epoch: int = -1) -> None:
        """Raises ApiError if the client's leader epoch is wrong, or if this node does not lead the partition."""
        if current_leader_epoch >= 0:
            partition.check_epoch(current_leader_epoch)

    def check_read(self, partition: Partition, current_leader_epoch: int, may_follow: bool) -> Reach | None:
        """Returns how far the follower here is; None for the leader. `may_follow`: whether a client may read from
        followers. Raises ApiError.
        """
        partition.check_epoch(current_leader_epoch)
        return None

    def known_high_watermark(self, partition: Partition) -> int:
        """Returns the high watermark as the replica here knows it."""
        return partition.high_watermark

    def known_leader(self, partition: Partition) -> tuple[int, int]:
        """Returns the leader, NO_LEADER if there is none, and its epoch."""
        known = partition.unheard or partition
        return NO_LEADER if known.leader is None else known.leader, known.leader_epoch

    def closest_replica(self, partition: Partition, rack_id: str, offset: int) -> int:
        """Returns the follower from which a client in a rack reads (KIP-392); NO_REPLICA if it is the leader."""
        return NO_REPLICA

    def of_node(self, node_id: int) -> PartitionsOfNode:
        """Returns the partitions as the connections of one node see them."""
        return PartitionsOfNode(self, node_id)

    def add(self, partition: Partition, directory: LogDirectory) -> None:
        self.by_name[partition.topic, partition.index] = partition
        self.by_id[partition.topic_id, partition.index] = partition
        self.directory_of[partition] = directory
        directory.partitions += 1

    def remove(self, partition: Partition) -> None:
        del self.by_name[partition.topic, partition.index]
        del self.by_id[partition.topic_id, partition.index]
        self.directory_of.pop(partition).partitions -= 1
        self.pieces.forget(partition.topic)

    def take_offline(self, partition: Partition) -> None:
        """The log of a partition cannot be used until the next start."""
        partition.opening = None
        partition.offline = True
        self.pieces.forget(partition.topic)

    def lose_replica(self, partition: Partition, node_id: int) -> None:
        """The replica of one node is in a log directory that failed for this node alone."""
        partition.offline_nodes.add(node_id)
        self.pieces.forget(partition.topic)

    def heal_replicas(self, node_id: int) -> None:
        """The log directories that failed for a node are well again."""
        for partition in self.by_name.values():
            if node_id in partition.offline_nodes:
                partition.offline_nodes.discard(node_id)
                self.pieces.forget(partition.topic)

    def move(self, partition: Partition, directory: LogDirectory) -> None:
        """The log of a partition is in another directory now."""
        self.directory_of[partition].partitions -= 1
        self.directory_of[partition] = directory
        directory.partitions += 1

    def home(self, topic: str, index: int) -> LogDirectory | None:
        """Returns the log directory of a partition; None if the partition does not exist."""
        partition = self.by_name.get((topic, index))
        return None if partition is None else self.directory_of[partition]

    def of_topic(self, name: str) -> Iterator[Partition]:
        """Yields the partitions of a topic on this broker, in order."""
        topic = self.image.topics.get(name)
        for index in range(self.image.partition_counts[topic.id]) if topic is not None else ():
            partition = self.by_name.get((name, index))
            if partition is not None:
                yield partition

    def open_logs(self) -> Iterator[tuple[Partition, Log]]:
        """Yields the partitions with open logs, and these logs."""
        for partition in list(self.by_name.values()):
            if partition.log is not None:
                yield partition, partition.log

    # log directories

    def io_failed(self, partition: Partition, error: OSError) -> bool:
        """Handles an I/O error of a partition; returns whether its log directory is offline."""
        return self.log_directories.io_failed(self.directory_of[partition], error)

    def storage_error(self, partition: Partition, error: OSError) -> ApiError:
        """Handles an I/O error of a partition; returns KAFKA_STORAGE_ERROR for the reply."""
        return self.log_directories.storage_error(error, self.directory_of.get(partition))

    def save_recovery_point(self, partition: Partition) -> None:
        """Writes the recovery point of a partition to its checkpoint. Raises OSError."""
        directory = self.directory_of[partition]
        directory.recovery_points[partition.topic, partition.index] = partition.open_log().recovery_point
        job = directories.checkpoint_job(directory, RECOVERY_POINTS)
        directories.store(self.log_directories.files, directory, job)


class PartitionsOfNode(Partitions):
    """The partitions of the cluster for the connections of one node, which serves those that it leads."""

    def __init__(self, everywhere: Partitions, node_id: int) -> None:
        super().__init__(everywhere.image, everywhere.log_directories)
        self.by_name, self.by_id = everywhere.by_name, everywhere.by_id
        self.directory_of, self.pieces = everywhere.directory_of, everywhere.pieces
        self.node_id = node_id

    def cut_off(self, image: MetadataState) -> None:
        """The node goes on with what it knows."""
        self.image, self.is_cut, self.pieces = image, True, TopicPieces()

    def healed(self, everywhere: Partitions) -> None:
        """Ends `cut_off`."""
        self.image, self.is_cut, self.pieces = everywhere.image, False, everywhere.pieces

    def leads(self, partition: Partition) -> bool:
        return partition.leader == self.node_id and (
            not self.is_cut or self.known_leader(partition) == (partition.leader, partition.leader_epoch)
        )

    def replica_end(self, partition: Partition) -> int | None:
        if self.node_id not in partition.replicas:
            return None
        replicas, end = partition.replica_set, partition.end_offset
        return end if replicas is None else replicas.end_of(self.node_id, end, min(end, partition.follower.replicated))

    def check_led(self, partition: Partition, current_leader_epoch: int = -1) -> None:
        self.check_read(partition, current_leader_epoch, may_follow=False)

    def check_read(self, partition: Partition, current_leader_epoch: int, may_follow: bool) -> Reach | None:
        if self.is_cut:
            return self._check_cut_off(partition, current_leader_epoch, may_follow)
        if self.node_id not in partition.replicas:  # it does not know the epoch either
            raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
        if self.node_id in partition.offline_nodes:
            raise ApiError(Errors.KAFKA_STORAGE_ERROR)
        partition.check_epoch(current_leader_epoch)
        if partition.leader == self.node_id:
            return None
        if not may_follow or partition.replica_set is None:
            raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
        return partition.replica_set.reach_of(self.node_id, partition.end_offset, partition.followers_reach)

    def _check_cut_off(self, partition: Partition, current_leader_epoch: int, may_follow: bool) -> Reach | None:
        """Like `check_read`, by what the node knew when it was cut off."""
        known, replicas = self.image.partitions.get((partition.topic_id, partition.index)), partition.replica_set
        if known is None or self.node_id not in known.replicas:
            raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
        if self.node_id in partition.offline_nodes:
            raise ApiError(Errors.KAFKA_STORAGE_ERROR)
        compare_epochs(current_leader_epoch, known.leader_epoch)
        stale = partition.stale.get(self.node_id)
        if stale is not None and known.leader == self.node_id:  # it may have been elected without hearing of it
            return Reach(stale.end_offset, stale.high_watermark)
        if self.leads(partition):
            return None
        if not may_follow or replicas is None or partition.leader == self.node_id or self.node_id not in replicas:
            raise ApiError(Errors.NOT_LEADER_OR_FOLLOWER)
        return replicas.reach_of(self.node_id, partition.end_offset, partition.followers_reach)

    def known_leader(self, partition: Partition) -> tuple[int, int]:
        known = self.image.partitions.get((partition.topic_id, partition.index)) if self.is_cut else None
        return super().known_leader(partition) if known is None else (known.leader, known.leader_epoch)

    def known_high_watermark(self, partition: Partition) -> int:
        replicas, stale = partition.replica_set, partition.stale.get(self.node_id)
        if stale is not None:
            return stale.high_watermark
        if replicas is None or partition.leader == self.node_id or self.node_id not in partition.replicas:
            return partition.high_watermark
        return replicas.reach_of(self.node_id, partition.end_offset, partition.followers_reach).high_watermark

    def closest_replica(self, partition: Partition, rack_id: str, offset: int) -> int:
        """Chooses as Kafka's RackAwareReplicaSelector: of the replicas in sync in the rack that have the offset, that
        with the most of the log; of several, one that follows, with the highest id.
        """
        replicas, brokers, leader = partition.replica_set, self.image.brokers, partition.leader
        own = brokers.get(self.node_id)
        if replicas is None or leader != self.node_id or (own is not None and own.rack == rack_id):
            return NO_REPLICA
        found = NO_REPLICA, False, NO_REPLICA
        for node, end, follows in replicas.views(partition.end_offset, partition.followers_reach.end):
            known = brokers.get(node)
            if node == leader or node not in replicas.isr or known is None or known.fenced or known.rack != rack_id:
                continue
            if end >= offset >= partition.start_offset:
                found = max(found, (end, follows, node))
        return found[2]
