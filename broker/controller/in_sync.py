"""The replicas in sync: leaders ask the controller to shrink and to extend them (AlterPartition).

A replica that was not caught up for `replica.lag.time.max.ms` leaves; one that has reached the high watermark joins, if
its node is not fenced (KIP-841).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ...coordinator.metadata import brokers
from ...coordinator.metadata.brokers import Key
from ...coordinator.metadata.state import Partition as PartitionState
from ..config.nodes import Nodes
from ..later import Later, finished
from ..replica.followers import Replicas
from ..replica.partition import Partition
from ..replica.partitions import Partitions
from ..settings import Settings
from ..steps import in_steps
from ..turn import Turn
from .controller import MetadataController

ROUND_STEP = 1024  # partitions that are looked at in a turn of the loop
Wanted = dict[Key, tuple[PartitionState, tuple[int, ...]]]


class Asked(NamedTuple):
    """Replicas that shall be in sync. `partition_epoch`: that of which the leader knew."""

    partition: Partition
    replicas: Replicas
    nodes: list[int]
    partition_epoch: int


class InSync:
    """Keeps the replicas in sync of all partitions with several replicas."""

    def __init__(
        self, turn: Turn, settings: Settings, metadata: MetadataController, partitions: Partitions, nodes: Nodes
    ) -> None:
        self.turn = turn
        self.settings = settings
        self.metadata = metadata
        self.partitions = partitions
        self.nodes = nodes
        self._joining: dict[Partition, None] = {}
        self._shrinking: Later[None] = finished(None)  # what the last round has asked for
        self._refused: dict[Partition, tuple[int, list[int]]] = {}  # an epoch, and what was not taken into the ISR then

    def start(self) -> None:
        if len(self.nodes) > 1:
            self.turn.every(lambda: self._lag_ms / 2, self._round, due_ms=self._due_ms)

    @property
    def _lag_ms(self) -> int:
        lag_ms: int = self.settings.config["replica.lag.time.max.ms"]
        return lag_ms

    def _due_ms(self) -> Iterator[float]:
        """Yields the monotonic times at which replicas of each partition may be late."""
        if self._refused:
            yield -math.inf
            return
        for one in list(self.partitions.by_name.values()):
            yield min((since for _, since in self._behind(one)), default=math.inf) + self._lag_ms + 1

    def _round(self) -> None:
        self._refused.clear()
        if not self._shrinking.done:  # there is no controller, as yet
            return
        self.turn.background(in_steps(self.turn, self._shrink(), ROUND_STEP))

    def _shrink(self) -> Iterator[None]:
        wanted: Wanted = {}
        before_ms = self.turn.schedule.monotonic_ms() - self._lag_ms
        for partition in list(self.partitions.by_name.values()):
            yield
            late = [node for node, since_ms in self._behind(partition) if since_ms < before_ms]
            if late:
                key = partition.topic_id, partition.index
                state = self.metadata.image.partitions[key]
                wanted[key] = state, tuple(one for one in state.isr if one not in late)
        self._shrinking = self._submit(wanted)

    def _behind(self, partition: Partition) -> Iterable[tuple[int, int]]:
        """Returns the replicas in sync that have less than their leader, if it is there to say so, and since when."""
        state = self.metadata.image.partitions.get((partition.topic_id, partition.index))
        if partition.replica_set is None or partition.log is None or state is None or not self._serves(state):
            return ()
        follower = partition.follower
        return partition.replica_set.behind(partition.end_offset, follower.replicated, follower.behind_since_ms)

    def _serves(self, state: PartitionState) -> bool:
        """Whether the leader of a partition is there and can ask the controller."""
        leader = self.nodes.by_id.get(state.leader)
        return leader is not None and leader.is_serving and not leader.is_cut

    def caught_up(self, partition: Partition) -> None:
        """A partition has replicas that follow, have reached the high watermark and are not in sync."""
        if not self._joining:
            self.turn.soon(self._join)
        self._joining[partition] = None

    def _join(self) -> None:
        joining, self._joining = self._joining, {}
        self.extend(joining, again=False)

    def extend(self, partitions: Iterable[Partition], *, again: bool = True) -> Later[None]:
        """Asks for the replicas that may be in sync; completes when that is committed. `again`: also for what the
        controller has refused in this round, since which nothing has changed.
        """
        brokers_of, wanted = self.metadata.image.brokers, Wanted()
        asked: list[Asked] = []
        for one in partitions:
            key = one.topic_id, one.index
            state = self.metadata.image.partitions.get(key)
            if one.replica_set is None or state is None or not self._serves(state):
                continue
            joining = one.replica_set.joining(one.end_offset, one.follower.replicated, one.high_watermark)
            more = [
                node
                for node in joining
                if node not in one.offline_nodes and (known := brokers_of.get(node)) is not None and known.is_active
            ]
            if more and (again or self._refused.get(one) != (state.partition_epoch, more)):
                wanted[key] = state, (*state.isr, *more)
                one.replica_set.asked += more
                asked.append(Asked(one, one.replica_set, more, state.partition_epoch))
        submitted = self._submit(wanted)
        if asked:
            submitted.when_cancelled(lambda: self._decided(asked))
            submitted.when_done(lambda _: self._decided(asked))
        return submitted

    def _decided(self, asked: list[Asked]) -> None:
        """The controller has taken replicas into those in sync, or will not: the high watermark needs not wait for them
        as `asked`, unless the leader was cut off meanwhile, and does not hear that they are.
        """
        for partition, replicas, nodes, partition_epoch in asked:
            for node in nodes:
                replicas.asked.remove(node)
            if partition.unheard is not None:
                replicas.unanswered += nodes
            state = self.metadata.image.partitions.get((partition.topic_id, partition.index))
            if state is not None and not set(nodes) <= set(state.isr):
                self._refused[partition] = partition_epoch, nodes
            self.turn.moved(partition)

    def _submit(self, wanted: Wanted) -> Later[None]:
        if not wanted:
            return finished(None)
        controller = self.metadata.controller
        return self.metadata.submit(lambda: brokers.alter_isr(controller, wanted))
