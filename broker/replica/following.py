"""What the lab says of replicas: the policies by which they follow, and how many are in sync."""

from __future__ import annotations

from ..config.nodes import Nodes
from ..internal_topics import is_internal
from ..turn import Turn
from ..watermark_policies import IMMEDIATE, Policies, Policy
from .followers import Follower
from .partition import MANY, Partition
from .partitions import Partitions


class Following:
    """Applies policies to the replicas of partitions."""

    def __init__(self, turn: Turn, partitions: Partitions, policies: Policies, nodes: Nodes) -> None:
        self.turn = turn
        self.partitions = partitions
        self.policies = policies
        self.nodes = nodes

    def configure(self, partition: Partition) -> None:
        """Applies the policies in force to a partition and to each of its replicas."""
        place = partition.topic, partition.index, is_internal(partition.topic)
        policies, follower, now_ms = self.policies, partition.follower, self.turn.schedule.monotonic_ms()
        self._follow(partition, follower, policies.of(*place), now_ms)
        self._count(partition, policies.in_sync_of(*place), now_ms)
        if partition.replica_set is not None:
            end, replicated = partition.end_offset, min(partition.end_offset, follower.replicated)
            for node in partition.replicas:
                own = policies.of_follower(*place, node)
                partition.replica_set.set_policy(node, own, end, replicated, now_ms)

    def opened(self, partition: Partition) -> None:
        """Lets followers get what is above the high watermark of a log that was opened, without another append."""
        follower = partition.follower
        if follower.policy is not IMMEDIATE:
            now_ms = self.turn.schedule.monotonic_ms()
            follower.begin(follower.policy, partition.high_watermark, partition.end_offset, now_ms)

    def _follow(self, partition: Partition, follower: Follower, policy: Policy, now_ms: int) -> None:
        if policy != follower.policy:
            follower.policy = policy
            follower.replicated = max(follower.replicated, partition.high_watermark)
            follower.waiting.clear()
            if policy.kind == "lag" and partition.end_offset > partition.high_watermark:
                follower.waiting.append((partition.end_offset, now_ms + policy.lag_ms))

    def _count(self, partition: Partition, by_hand: int | None, now_ms: int) -> None:
        """Sets how many replicas are said to be in sync; None: as many as are."""
        if by_hand == partition.isr_by_hand:
            return
        partition.isr_by_hand = by_hand
        state = self.partitions.image.partitions.get((partition.topic_id, partition.index))
        if state is not None and state.leader_epoch == partition.leader_epoch:  # else that change comes soon
            partition.follow(state, self.nodes, now_ms)
        if by_hand is None and partition.replica_count == MANY:
            partition.isr_size = partition.replica_count = 1
            partition.replica_set = None
