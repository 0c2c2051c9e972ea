"""Deliberate bugs, each one line: the function, what stands there, and what it is replaced by. A test breaks the code
with each of them, and the simulator of clusters must find it.
"""

from __future__ import annotations

from ottla.broker.apis._produce_appends import Appending
from ottla.broker.config.nodes import Nodes
from ottla.broker.controller.controller import MetadataController
from ottla.broker.controller.node_lives import NodeLives
from ottla.broker.controller.quorum import Quorum
from ottla.broker.replica import partition
from ottla.broker.replica.followers import Replicas
from ottla.broker.replica.high_watermarks import HighWatermarks
from ottla.broker.replica.leaders import Leaders
from ottla.broker.replica.partitions import PartitionsOfNode
from ottla.broker.replica.replica_ends import ReplicaEnds
from ottla.broker.replica.stale_leaders import StaleAppender
from ottla.broker.shards.hosts import ShardHosts
from ottla.coordinator.metadata import brokers, elections, reassignments
from ottla.coordinator.metadata.controller import Controller
from ottla.coordinator.metadata.state import MetadataState
from ottla.storage.producers import Producers

from ..support.bugs import Bug

BUGS: tuple[Bug, ...] = (
    (Replicas, "in_sync_end", "found = min(found, self.end_of(node, end, replicated))", "found = end"),
    (Replicas, "take_over", "self._stay(before, there, followers, now_ms)", "self.isr = state.isr"),
    (Replicas, "joining", "if self.end_of(node, end, replicated) >= high_watermark:", "if end >= high_watermark:"),
    (elections, "_elected", "if one in clean and may_lead(one)]", "if may_lead(one)]"),
    (elections, "_elected", "if terms.kind is Kind.UNCLEAN:", "if terms.kind is not Kind.PREFERRED:"),
    (brokers, "_left_by", "for one in partition.isr if one != node]", "for one in partition.isr]"),
    (PartitionsOfNode, "check_read", "partition.check_epoch(current_leader_epoch)", "partition.check_epoch(-1)"),
    (PartitionsOfNode, "check_read", "if partition.leader == self.node_id:", "if partition.has_leader:"),
    (partition, "compare_epochs", "older = current_leader_epoch < leader_epoch", "older = True"),
    (
        Leaders,
        "follow",
        "partition.fail_parked(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))",
        "partition.advance(partition.end_offset)",
    ),
    (HighWatermarks, "_in_sync_end", "if partition.is_under_min_isr:", "if False:"),
    (HighWatermarks, "move", "partition.advance(min(end, bound))", "partition.advance(bound)"),
    (Appending, "one", "if acks == -1:", "if acks == 2:"),
    (ShardHosts, "_leads", "return self.partitions.leads(partition)", "return True"),
    (MetadataState, "replay_partition_change", "before.leader_epoch + 1}", "before.leader_epoch}"),
    (elections.Assignment, "completed", "if not in_sync.issuperset(needed):", "if False:"),
    (elections.Assignment, "completed", "if one in left]", "]"),
    (elections, "changed", "if one in assigned.replicas)", ")"),
    (elections, "changed", "leader != partition.leader or has_gone", "leader != partition.leader"),
    (
        reassignments,
        "_cancelled",
        "isr = tuple(one for one in partition.isr if one not in partition.adding)",
        "isr = partition.isr",
    ),
    (reassignments, "_begun", "(*replicas, *removing),", "tuple(replicas),"),
    (Leaders, "lose_touch", "(node in changed or leader in changed)", "node in changed"),
    (Nodes, "follows", "return node.side == (MAIN_SIDE if at is None else at.side)", "return True"),
    (Nodes, "follows", "or (at is not None and not at.is_serving)", ""),
    (NodeLives, "_move", "self._expire_session(node)", "pass"),
    (NodeLives, "_unfence", "self.leaders.reach_again(node.id)", "self.leaders.follow_again(node.id)"),
    (MetadataController, "_register", "for node in self.nodes)", "for node in ())"),
    (NodeLives, "unfence", "if self.is_drained(node):", "if False:"),
    (Controller, "is_active", "found.is_active", "not found.fenced"),
    (StaleAppender, "append", "return NEVER", "return stale.end_offset"),
    (PartitionsOfNode, "_check_cut_off", "compare_epochs(current_leader_epoch, known.leader_epoch)", "pass"),
    (PartitionsOfNode, "known_high_watermark", "return stale.high_watermark", "return 0"),
    (ReplicaEnds, "of", "return found if self.is_exact else", "return found if found else"),
    (Replicas, "recall", "end = min(here.end, known.get(self.leader, here).end)", "end = 0"),
    (Producers, "find_duplicate", "return producer.duplicate(header) if producer else None", "return None"),
    # those from here on only sides of the network show, with several nodes each
    (Nodes, "follows", "return node.side == (", "return node.side == MAIN_SIDE == ("),
    (NodeLives, "_move", "self.leaders.reach_again(node.id)", "pass"),
    (Nodes, "hears", "return node is None or not node.is_cut", "return True"),
    (Leaders, "follow", "None if is_led_again or not goes_on else state", "None if not goes_on else state"),
    (Leaders, "forget_stale", "self.follow(partition, unheard)", "pass"),
    (Quorum, "main_side", "return counts.index(max(counts))", "return 0"),
)
