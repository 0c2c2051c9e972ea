"""Nodes of a simulated cluster that are cut off and healed, drained, added and removed: what holds then."""

from __future__ import annotations

from ottla.coordinator.metadata.state import NO_LEADER
from ottla.coordinator.metadata.state import Partition as State

from .cluster_invariants import Cluster, Invariant
from .cluster_truth import Told

GRACE_MS = 500  # for the controller to write what it knows


class ElectedLeadersAreThere(Invariant):
    """Neither fenced nor drained."""

    def followed(self, told: Told, before: State, after: State) -> None:
        truth = self.cluster.truth
        if after.leader not in (before.leader, NO_LEADER):
            assert after.leader in truth.active() | truth.active_before, (
                f"{after.leader} is elected for {told.name}, and may not lead: {after}"
            )


class NodesThatAreDrainedLeadNothing(Invariant):
    def holds(self) -> None:
        brokers = self.cluster.world.broker.image.brokers
        drained = {one.id for one in brokers.values() if one.in_controlled_shutdown}
        for told in self.cluster.truth.partitions.values():
            assert told.state.leader not in drained, f"node {told.state.leader} is drained, and leads {told.name}"


class NodesThatAreCutOffAreFenced(Invariant):
    """When their session with the controller has expired. Without a controller that reaches the majority no session
    expires, and a new controller begins all of them again.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._since: dict[tuple[int, int, int], int] = {}  # when a node was seen cut off in a session with a controller

    def holds(self) -> None:
        broker, now_ms = self.cluster.world.broker, self.cluster.world.schedule.monotonic_ms()
        session_ms, quorum = broker.config["broker.session.timeout.ms"], broker.metadata.quorum
        seen: dict[tuple[int, int, int], int] = {}
        for node in broker.nodes if quorum.missing is None else ():
            if node.is_cut and not broker.node_lives.is_fenced(node):
                key = node.id, node.session, quorum.terms
                since = seen[key] = self._since.get(key, now_ms)
                assert now_ms <= since + session_ms + GRACE_MS, f"{node} is cut off since {since}, and not fenced"
        self._since = seen

    def began_again(self) -> None:
        self._since = {}


class ReplicasFollowLeadersThatTheyReach(Invariant):
    """One that is away or held, and all those on other sides of the network than their leader, stay where they are."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._stay: dict[tuple[str, int], tuple[int, int, int]] = {}

    def holds(self) -> None:
        stay = {}
        for told, partition in self.cluster.truth.open():
            replicas, leader = partition.replica_set, partition.leader
            if replicas is None or leader is None:
                continue
            for node in partition.replicas:
                if node == leader or self._reaches(node, leader):
                    continue
                end = replicas.end_of(node, partition.end_offset, partition.follower.replicated)
                key, now = (told.name, node), (told.state.partition_epoch, leader, end)
                before = self._stay.get(key)
                assert before is None or before[:2] != now[:2] or before[2] >= end, (
                    f"the replica of {told.name} on {node} goes on from {before} to {now}, and reaches no leader"
                )
                stay[key] = now
        self._stay = stay

    def _reaches(self, node: int, leader: int) -> bool:
        """Whether a node follows a leader; not asked of the broker, which may be wrong."""
        nodes = self.cluster.world.broker.nodes.by_id
        one, other = nodes.get(node), nodes.get(leader)
        is_fit = one is not None and one.is_serving and not one.is_held
        return is_fit and one is not None and one.side == (0 if other is None else other.side)

    def began_again(self) -> None:
        self._stay = {}


class TheHighWatermarkNeverGoesBackOnANode(Invariant):
    """As the node knows it, which may follow, or lead without knowing that another one was elected. It may know less
    after it was killed, and when an unclean election has cut the log.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._known: dict[tuple[bytes, int, int], tuple[int, int]] = {}  # by topic id, partition and node

    def holds(self) -> None:
        world, known = self.cluster.world, {}
        crashed = world.broker.log_directories.crashed
        for told, partition in self.cluster.truth.open():
            for node in partition.replicas:
                if node in crashed or node not in world.dispatchers:
                    continue
                end = world.dispatchers[node].broker.partitions.known_high_watermark(partition)
                key, now = (partition.topic_id, partition.index, node), (told.losses, end)
                losses, before = self._known.get(key, now)
                assert losses != told.losses or before <= end, (
                    f"the high watermark of {told.name} goes back from {before} to {end} on node {node}"
                )
                known[key] = now
        self._known = known

    def began_again(self) -> None:
        self._known = {}


NODES: tuple[type[Invariant], ...] = (
    ElectedLeadersAreThere,
    NodesThatAreDrainedLeadNothing,
    NodesThatAreCutOffAreFenced,
    ReplicasFollowLeadersThatTheyReach,
    TheHighWatermarkNeverGoesBackOnANode,
)
