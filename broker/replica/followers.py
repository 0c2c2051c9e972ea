"""The replicas of a partition on several nodes: how far each has the leader's log.

There is one log. A replica that follows is as far as the policy of the partition says (`high_watermarks.py`); one whose
node has stopped, or is held, stays where it was. A new one begins at the start of the log, and catches up
(`catching_up.py`). The high watermark waits for the replicas in sync.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...coordinator.metadata.state import NO_LEADER
from ...coordinator.metadata.state import Partition as PartitionState


class Stopped(NamedTuple):
    """Where a replica stays that does not follow. `caught_up_ms`: the time until which it was caught up."""

    end: int
    caught_up_ms: int


class Behind(NamedTuple):
    """Where a replica is that catches up. `from_ms`: when it begins to."""

    end: int
    from_ms: float


class Replica:
    """A replica: it is as far as the others that follow, or has stopped, or catches up."""

    __slots__ = ("behind", "stopped_at")

    def __init__(self) -> None:
        self.stopped_at: Stopped | None = None
        self.behind: Behind | None = None


class Replicas:
    """The replicas of a partition with several. `follows`: whether the replicas of a node follow their leaders."""

    __slots__ = ("_by_node", "_follows", "isr", "leader")

    def __init__(self, follows: Callable[[int], bool]) -> None:
        self._by_node: dict[int, Replica] = {}
        self._follows = follows
        self.isr: tuple[int, ...] = ()
        self.leader = NO_LEADER

    def take_over(self, state: PartitionState, end: int, replicated: int, now_ms: int, lag_ms: int) -> int:
        """Takes over a change of the metadata. Returns the end of the log: that of a new leader that is behind is lower
        than the present one. `lag_ms`: after which new replicas have the log.
        """
        elected = state.leader if state.leader not in (self.leader, NO_LEADER) else None
        new_end = end
        if elected in self._by_node:
            new_end = min(end, self.end_of(elected, end, replicated))
        if self.leader in self._by_node and state.leader != self.leader and not self._follows(self.leader):
            self._by_node[self.leader].stopped_at = Stopped(end, now_ms)
        kept = {node: self._by_node.get(node) or self._new(node, state, end, now_ms, lag_ms) for node in state.replicas}
        self._by_node, self.isr, self.leader = kept, state.isr, state.leader
        for one in kept.values():
            if one.stopped_at is not None and one.stopped_at.end > new_end:
                one.stopped_at = Stopped(new_end, one.stopped_at.caught_up_ms)
        for node in (elected, *state.isr):  # those in sync get what they have not at once, as in Kafka
            if node in kept:
                kept[node].behind = None
        if elected is not None:
            kept[elected].stopped_at = None
        return new_end

    def _new(self, node: int, state: PartitionState, end: int, now_ms: int, lag_ms: int) -> Replica:
        found = Replica()
        if not self._follows(node):
            found.stopped_at = Stopped(0 if node in state.adding else end, now_ms)
        elif node in state.adding and node not in state.isr:
            found.behind = Behind(0, now_ms + lag_ms)
        return found

    def end_of(self, node: int, end: int, replicated: int) -> int:
        """Returns how far a replica is. `end`: of the leader's log; `replicated`: of those that follow."""
        if node == self.leader:
            return end
        one = self._by_node[node]
        if one.stopped_at is not None:
            return one.stopped_at.end
        return replicated if one.behind is None else min(one.behind.end, replicated)

    def stop(self, node: int, replicated: int, caught_up_ms: int) -> None:
        """The replica of a node does not follow any more."""
        found = self._by_node.get(node)
        if found is not None and found.stopped_at is None and node != self.leader:
            found.stopped_at = Stopped(replicated if found.behind is None else found.behind.end, caught_up_ms)
            found.behind = None

    def go_on(self, node: int, now_ms: int) -> None:
        """The replica of a node follows again; one that is not in sync has to catch up."""
        found = self._by_node.get(node)
        if found is not None and found.stopped_at is not None:
            if node not in self.isr and node != self.leader:
                found.behind = Behind(found.stopped_at.end, now_ms)
            found.stopped_at = None

    def catching_up(self) -> list[tuple[int, Behind]]:
        """Returns the replicas that catch up."""
        return [(node, one.behind) for node, one in self._by_node.items() if one.behind is not None]

    def advance(self, node: int, behind: Behind | None) -> None:
        """Moves a replica that catches up; with None it is as far as the others."""
        self._by_node[node].behind = behind

    def in_sync_end(self, end: int, replicated: int) -> int:
        """Returns the offset up to which all replicas in sync have the log."""
        found = end
        for node in self.isr:
            if node in self._by_node:
                found = min(found, self.end_of(node, end, replicated))
        return found

    def joining(self, end: int, replicated: int, high_watermark: int) -> Iterator[int]:
        """Yields the replicas that follow, are not in sync and have reached the high watermark."""
        for node, one in self._by_node.items():
            if node not in self.isr and node != self.leader and one.stopped_at is None:
                if self.end_of(node, end, replicated) >= high_watermark:
                    yield node

    def behind(self, end: int, replicated: int, behind_since_ms: int | None, before_ms: int) -> list[int]:
        """Returns the replicas in sync that were caught up before `before_ms` for the last time. `behind_since_ms`:
        since when those that follow are behind.
        """
        found = []
        for node in self.isr:
            if node == self.leader or node not in self._by_node:
                continue
            stopped_at = self._by_node[node].stopped_at
            since = behind_since_ms if stopped_at is None else stopped_at.caught_up_ms
            if self.end_of(node, end, replicated) < end and since is not None and since < before_ms:
                found.append(node)
        return found

    def views(self, end: int, replicated: int) -> Iterator[tuple[int, int, bool]]:
        """Yields each replica's node, its end, and whether it follows."""
        for node, one in self._by_node.items():
            yield node, self.end_of(node, end, replicated), one.stopped_at is None
