"""Follows who leads partitions: ends what was in memory for the old leader, and begins with the new one.

A leader that was behind has less than the log; the log is cut at its end, as all other replicas do in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from ...coordinator.metadata.state import Partition as PartitionState
from ...protocol.errors import ApiError, Errors
from ...storage.log import Log
from ...storage.truncation import truncate
from .. import bugs
from ..config.nodes import Nodes
from ..turn import Turn
from .catching_up import CatchingUp
from .partition import Partition
from .partitions import Partitions

logger = logging.getLogger("ottla.kafka.server.ReplicaManager")


class Owner(Protocol):
    """What opens and closes partitions (`ReplicaManager`)."""

    opened: Callable[[Partition], None]
    closed: Callable[[Partition], None]

    def reopen(self, partition: Partition) -> None: ...


class Leaders:
    """The leaders and the followers of all partitions."""

    def __init__(self, turn: Turn, partitions: Partitions, nodes: Nodes, owner: Owner, catching_up: CatchingUp) -> None:
        self.turn = turn
        self.partitions = partitions
        self.nodes = nodes
        self.owner = owner
        self.catching_up = catching_up

    def follow(self, partition: Partition, state: PartitionState) -> None:
        """Takes over a change of a partition. With a new leader, what was in memory for the old one ends."""
        before = partition.leader
        has_moved, end = partition.follow(state, self.nodes.follows, self.turn.schedule.monotonic_ms())
        if partition.log is None:
            return
        if not has_moved:
            return self.turn.moved(partition)
        self.owner.closed(partition)
        if partition.leader != before:
            partition.fail_parked(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))
        partition.disturb()
        if partition.has_leader:
            if end < partition.end_offset:
                return self._truncate(partition, partition.log, end)
            partition.log.assign_epoch(partition.leader_epoch, partition.end_offset)
            bugs.guarded(f"the new leader of {partition.name}", self.owner.opened, partition)

    def _truncate(self, partition: Partition, log: Log, end: int) -> None:
        """Cuts the log where the replica that was elected ends, and opens it again."""
        lost = partition.high_watermark - end
        words = f"; {lost} records that were committed are lost" if lost > 0 else ""
        logger.warning("%s: node %s leads, whose log ends at %d%s", partition.name, partition.leader, end, words)
        try:
            truncate(log, end)
        except OSError as error:
            self.partitions.io_failed(partition, error)
            return
        partition.high_watermark = min(partition.high_watermark, end)
        partition.follower.replicated = min(partition.follower.replicated, end)
        partition.follower.waiting.clear()
        self.owner.reopen(partition)

    # nodes

    def stop_following(self, node_id: int, is_gone: bool) -> None:
        """The replicas of a node stay where they are. `is_gone`: what it leads is not served any more either."""
        for partition in list(self.partitions.by_name.values()):
            replicas, follower = partition.replica_set, partition.follower
            if replicas is not None and node_id in partition.replicas:
                since = follower.behind_since_ms
                caught_up_ms = self.turn.schedule.monotonic_ms() if since is None else since
                replicas.stop(node_id, min(follower.replicated, partition.end_offset), caught_up_ms)
                self.turn.moved(partition)
            if is_gone and partition.leader == node_id:
                self.owner.closed(partition)
                partition.fail_parked(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))

    def follow_again(self, node_id: int) -> list[Partition]:
        """The replicas of a node follow their leaders again; returns their partitions."""
        found = [one for one in self.partitions.by_name.values() if node_id in one.replicas]
        for partition in found:
            if partition.replica_set is not None:
                partition.replica_set.go_on(node_id, self.turn.schedule.monotonic_ms())
                self.catching_up.go_on(partition)
                self.turn.moved(partition)
        return found
