"""Follows who leads partitions: ends what was in memory for the old leader, and begins with the new one.

A leader that was behind has less than the log; the log is cut at its end, as all other replicas do in Kafka.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple, Protocol

from ...coordinator.metadata.state import NO_LEADER
from ...coordinator.metadata.state import Partition as PartitionState
from ...protocol.errors import ApiError, Errors
from ...storage.log import Log
from ...storage.producers import Producers
from ...storage.segment import IndexDamaged
from ...storage.truncation import truncate
from .. import bugs
from ..config.nodes import Nodes
from ..turn import Turn
from .catching_up import CatchingUp
from .checkpointing import Checkpoints
from .followers import Reach
from .partition import Partition, StaleLeader
from .partitions import Partitions

logger = logging.getLogger("ottla.kafka.server.ReplicaManager")
LOSSES_KEPT = 1000
BATCHES_READ = 10_000  # of a log that is cut, to say what it loses


class Loss(NamedTuple):
    """What a log lost when a replica was elected that had less: the offsets from `first_offset` to before `end_offset`.
    `high_watermark`: up to which they were committed. `records`: by producer id, -1 for those without one; without
    those after the first batches of a long end (`is_whole`).
    """

    topic: str
    partition: int
    first_offset: int
    end_offset: int
    high_watermark: int
    leader: int
    leader_before: int | None
    leader_epoch: int
    records: dict[int, int]
    is_whole: bool
    at_ms: int

    @property
    def committed(self) -> int:
        """How many of the offsets were committed."""
        return max(0, min(self.high_watermark, self.end_offset) - self.first_offset)


class Owner(Protocol):
    """What opens and closes partitions (`ReplicaManager`)."""

    opened: Callable[[Partition], None]
    closed: Callable[[Partition], None]

    checkpoints: Checkpoints

    def reopen(self, partition: Partition) -> None: ...


class Leaders:
    """The leaders and the followers of all partitions. `left` is called with a partition that has another leader than a
    node that is cut off, and that node; `forgotten` with such a node when it hears of that, or ends.
    """

    def __init__(self, turn: Turn, partitions: Partitions, nodes: Nodes, owner: Owner, catching_up: CatchingUp) -> None:
        self.turn = turn
        self.partitions = partitions
        self.nodes = nodes
        self.owner = owner
        self.catching_up = catching_up
        self.left: Callable[[Partition, int], None] = lambda partition, node: owner.closed(partition)
        self.forgotten: Callable[[int], None] = lambda node: None
        self.losses: deque[Loss] = deque(maxlen=LOSSES_KEPT)
        self.records_cut = self.committed_records_cut = 0

    def follow(self, partition: Partition, state: PartitionState) -> None:
        """Takes over a change of a partition. With a new leader, what was in memory for the old one ends. A leader that
        is cut off hears of no change, and goes on while no node leads that does.
        """
        is_led_again = state.leader not in (NO_LEADER, partition.leader) and self.nodes.hears(state.leader)
        goes_on = self._goes_on(partition)
        partition.unheard = None if is_led_again or not goes_on else state
        if partition.unheard is not None:
            return
        before, isr_size = partition.leader, partition.isr_size
        left = StaleLeader(
            partition.leader_epoch,
            partition.end_offset,
            partition.high_watermark,
            partition.is_under_min_isr,
            Producers(partition.name),
        )
        has_moved, end = partition.follow(state, self.nodes, self.turn.schedule.monotonic_ms())
        if partition.log is None:
            if has_moved and end < partition.end_offset:
                partition.cut_at = partition.closed_end = end
            return
        if not has_moved:
            if partition.isr_size > isr_size:
                partition.disturb()  # clients in its rack are sent to the new one in sync
            return self.turn.moved(partition)
        if before is not None and goes_on and partition.leader != before:
            self.left(partition, before)
            partition.leave_behind(before, left)
        else:
            self.owner.closed(partition)
        partition.log.producers.forget_verifications()
        if before is not None and partition.leader != before:
            partition.fail_parked(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))
        partition.disturb()
        if partition.has_leader:
            if end < partition.end_offset:
                return self._truncate(partition, partition.log, end, before)
            partition.log.assign_epoch(partition.leader_epoch, partition.end_offset)
            self.turn.moved(partition)  # the leader may be the only one in sync
            bugs.guarded(f"the new leader of {partition.name}", self.owner.opened, partition)

    def _goes_on(self, partition: Partition) -> bool:
        """Whether the leader of a partition is cut off, and goes on as long as it hears of nothing."""
        node = None if partition.leader is None else self.nodes.by_id.get(partition.leader)
        has_led = partition.replica_set is None or partition.replica_set.leads
        return node is not None and node.is_cut and node.is_serving and has_led

    def recall(self, partition: Partition, log: Log, known: Mapping[int, Reach] | None) -> bool:
        """Puts the replicas of a partition, whose log was opened, where they were. `known`: those before a restart;
        None when the process goes on. Returns whether the log is opened again, because its leader has less.
        """
        end, partition.cut_at = partition.cut_at, None
        if known is not None and partition.replica_set is not None:
            here = Reach(log.end_offset, partition.high_watermark)
            end = partition.replica_set.recall(known, here, self.turn.schedule.monotonic_ms())
        if end is None or end >= log.end_offset or not partition.has_leader:
            return False
        self._truncate(partition, log, end, None)
        return True

    def _truncate(self, partition: Partition, log: Log, end: int, before: int | None) -> None:
        """Cuts the log where the replica that was elected ends, and opens it again. `before`: who led."""
        loss = self._note_loss(partition, log, end, before)
        words = f"; {loss.committed} records that were committed are lost" if loss.committed else ""
        logger.warning("%s: node %s leads, whose log ends at %d%s", partition.name, partition.leader, end, words)
        try:
            truncate(log, end)
        except OSError as error:
            self.partitions.io_failed(partition, error)
            return
        partition.high_watermark = min(partition.high_watermark, end)
        partition.follower.cut(end)
        for stale in partition.stale.values():
            stale.cut(end, log.producers)
        self.owner.reopen(partition)

    def _note_loss(self, partition: Partition, log: Log, end: int, before: int | None) -> Loss:
        records, is_whole = Counter[int](), True
        try:
            for number, (_, batch) in enumerate(log.batches_from(end)):
                if number == BATCHES_READ:
                    is_whole = False
                    break
                producer_id = -1 if batch.header is None else batch.header.producer_id
                records[producer_id] += batch.last_offset + 1 - max(end, batch.base_offset)
        except IndexDamaged:
            is_whole = False
        loss = Loss(
            partition.topic,
            partition.index,
            end,
            log.end_offset,
            partition.high_watermark,
            NO_LEADER if partition.leader is None else partition.leader,
            before,
            partition.leader_epoch,
            dict(records),
            is_whole,
            self.turn.now_ms(),
        )
        self.losses.append(loss)
        self.records_cut += loss.end_offset - loss.first_offset
        self.committed_records_cut += loss.committed
        return loss

    # nodes

    def lose_touch(self, changed: Collection[int], gone: int | None = None) -> None:
        """Replicas stop that do not follow their leaders any more. `changed`: the nodes that follow or reach others
        than before; `gone`: the one of them that serves nothing any more, also not what it leads.
        """
        for partition in list(self.partitions.by_name.values()):
            leader = NO_LEADER if partition.leader is None else partition.leader
            for node in partition.replicas if partition.replica_set is not None else ():
                if (node in changed or leader in changed) and not self.nodes.follows(node, leader):
                    self._stop(partition, node)
            if leader == gone:
                self.owner.closed(partition)
                partition.fail_parked(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))
        self.owner.checkpoints.begin_round()  # where they are is known after a crash, too

    def reach_again(self, node_id: int) -> list[Partition]:
        """Ends `lose_touch` for a node; returns the partitions with replicas that follow again."""
        found = dict.fromkeys(self.follow_again(node_id))
        led = [one for one in self.partitions.by_name.values() if one.leader == node_id]
        for node in self.nodes.by_id:
            if node != node_id and self.nodes.follows(node, node_id):
                found.update(dict.fromkeys(one for one in led if self._follow_again(one, node)))
        return list(found)

    def forget_stale(self, node_id: int) -> None:
        """A node that was cut off ends, or hears of the leaders that were elected, itself among them."""
        for partition in list(self.partitions.by_name.values()):
            partition.forget_stale(node_id)
            unheard = partition.unheard
            if unheard is not None and node_id in (partition.leader, unheard.leader):
                self.follow(partition, unheard)
            if partition.leader == node_id and partition.replica_set is not None:
                partition.replica_set.leads = True
        self.forgotten(node_id)

    def _stop(self, partition: Partition, node: int) -> None:
        """A replica stays where it is, if it is one of several."""
        if partition.replica_set is None or node not in partition.replicas:
            return
        since = partition.follower.behind_since_ms
        caught_up_ms = self.turn.schedule.monotonic_ms() if since is None else since
        partition.replica_set.stop(node, partition.followers_reach, caught_up_ms)
        self.turn.moved(partition)

    def _follow_again(self, partition: Partition, node: int) -> bool:
        if partition.replica_set is None or node not in partition.replicas or node in partition.offline_nodes:
            return False
        if not partition.replica_set.leads and node != partition.leader:
            return False
        partition.replica_set.go_on(node, partition.end_offset, self.turn.schedule.monotonic_ms())
        self.catching_up.go_on(partition)
        partition.followed()
        self.turn.moved(partition)
        return True

    def stop_replicas(self, node_id: int, partitions: Iterable[Partition]) -> None:
        """Some replicas of a node stay where they are."""
        for partition in partitions:
            self._stop(partition, node_id)

    def heal_directories(self, node_id: int) -> None:
        """The log directories that failed for a node are well again."""
        for directory in self.partitions.log_directories.all:
            directory.failed_nodes.discard(node_id)
        self.partitions.heal_replicas(node_id)

    def follow_again(self, node_id: int) -> list[Partition]:
        """The replicas of a node follow the leaders again that they reach; returns their partitions."""
        found = []
        for partition in self.partitions.by_name.values():
            leader = NO_LEADER if partition.leader is None else partition.leader
            if node_id in partition.replicas and self.nodes.follows(node_id, leader):
                self._follow_again(partition, node_id)
                found.append(partition)
        return found
