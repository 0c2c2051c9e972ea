"""The replicas of a partition on several nodes: how far each has the leader's log.

There is one log. A replica that follows is as far as its policy says (`high_watermarks.py`): its own, or that of the
partition, which all others share. One whose node has stopped, or is held, stays where it was. A new one begins at the
start of the log, and catches up (`catching_up.py`). The high watermark waits for the replicas in sync.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple, Protocol

from ...coordinator.metadata.state import NO_LEADER
from ...coordinator.metadata.state import Partition as PartitionState
from ..clock import Cancellable
from ..watermark_policies import Policy


class Network(Protocol):
    """What the nodes of replicas reach (`Nodes`)."""

    def follows(self, node_id: int, leader: int) -> bool:
        """Whether the replicas of a node follow a leader."""

    def hears(self, node_id: int) -> bool:
        """Whether a node hears of its election."""


class Follower:
    """The state of a policy: appends on their way to simulated followers."""

    __slots__ = ("alarm", "behind_since_ms", "policy", "replicated", "waiting")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.replicated = 0  # the followers have everything below it, whatever the policy says
        self.behind_since_ms: int | None = None
        self.waiting: deque[tuple[int, int]] = deque()  # end offsets of appends, and when they will be replicated
        self.alarm: tuple[int, Cancellable] | None = None  # for when the first of them will be

    def begin(self, policy: Policy, replicated: int, end: int, now_ms: int) -> None:
        """Follows by a policy from now on. `replicated`: what the followers have; `end`: of the leader's log."""
        self.policy = policy
        self.replicated = replicated
        self.waiting.clear()
        if end > replicated and self.behind_since_ms is None:
            self.behind_since_ms = now_ms
        if policy.kind == "lag" and end > replicated:
            self.waiting.append((end, now_ms + policy.lag_ms))

    def cut(self, end: int) -> None:
        """The log ends at `end` now."""
        self.replicated = min(self.replicated, end)
        self.waiting.clear()


class Reach(NamedTuple):
    """How far a replica has the log, and up to where it knows that the records are committed."""

    end: int
    high_watermark: int

    def cut(self, end: int) -> Reach:
        """Returns the reach in a log that ends at `end`."""
        return Reach(min(self.end, end), min(self.high_watermark, end))


class Stopped(NamedTuple):
    """Where a replica stays that does not follow. `caught_up_ms`: the time until which it was caught up."""

    reach: Reach
    caught_up_ms: int


class Behind(NamedTuple):
    """Where a replica is that catches up. `from_ms`: when it begins to."""

    end: int
    from_ms: float


class Replica:
    """A replica: it is as far as others that follow, or has stopped, or catches up. `own`: its own policy, or None."""

    __slots__ = ("behind", "own", "stopped_at")

    def __init__(self) -> None:
        self.stopped_at: Stopped | None = None
        self.behind: Behind | None = None
        self.own: Follower | None = None

    def end(self, replicated: int) -> int:
        """Returns how far it is. `replicated`: of those that follow by the policy of the partition."""
        if self.stopped_at is not None:
            return self.stopped_at.reach.end
        found = replicated if self.own is None else self.own.replicated
        return found if self.behind is None else min(self.behind.end, found)


class Replicas:
    """The replicas of a partition with several. `leads`: whether the leader has heard of its election."""

    __slots__ = ("_by_node", "_network", "_starts", "asked", "isr", "leader", "leads", "unanswered")

    def __init__(self, network: Network) -> None:
        self._by_node: dict[int, Replica] = {}
        self._network = network
        self._starts: dict[int, int] = {}  # where the log began when replicas did not hear that records were deleted
        self.leads = True
        self.asked: list[int] = []  # those that the controller may take into the ISR at any moment (KIP-497)
        self.unanswered: list[int] = []  # those that it has taken, and the leader, which is cut off, does not know it
        self.isr: tuple[int, ...] = ()
        self.leader = NO_LEADER

    def __contains__(self, node: int) -> bool:
        return node in self._by_node

    def _follows(self, node: int, leader: int) -> bool:
        return (self.leads or node == leader) and self._network.follows(node, leader)

    def take_over(self, state: PartitionState, end: int, followers: Reach, now_ms: int, lag_ms: int) -> int:
        """Takes over a change of the metadata. Returns the end of the log: that of a new leader that is behind is lower
        than the present one. `followers`: how far those that follow are; `lag_ms`: after which new ones have the log.
        """
        there = Reach(end, followers.high_watermark)
        elected = state.leader if state.leader not in (self.leader, NO_LEADER) else None
        new_end = end
        if elected in self._by_node:
            new_end = min(end, self.end_of(elected, end, followers.end))
        has_moved = state.leader != self.leader
        if has_moved and self.leader in self._by_node and not self._follows(self.leader, state.leader):
            self._by_node[self.leader].stopped_at = Stopped(there, now_ms)
        kept = {
            node: self._by_node.get(node) or self._new(node, state, there, now_ms, lag_ms) for node in state.replicas
        }
        before = self.leader
        self._by_node, self.isr, self.leader = kept, state.isr, state.leader
        self.unanswered.clear()
        if has_moved:
            self.leads = self._network.hears(state.leader)
        for at, one in kept.items():
            if one.stopped_at is not None and one.stopped_at.reach.end > new_end:
                one.stopped_at = Stopped(one.stopped_at.reach.cut(new_end), one.stopped_at.caught_up_ms)
            if one.own is not None and at == before != self.leader:
                one.own.begin(one.own.policy, new_end, new_end, now_ms)
            elif one.own is not None and elected is not None:
                one.own.begin(one.own.policy, min(one.own.replicated, new_end), new_end, now_ms)
        for node in (elected, *state.isr):  # those in sync get what they have not at once, as in Kafka
            if node in kept:
                kept[node].behind = None
        if elected is not None:
            kept[elected].stopped_at = None
            for node in kept:
                if self._follows(node, elected):
                    self.go_on(node, new_end, now_ms)
                else:  # the controller elects one that is cut off, which leads nothing, until its session expires
                    self.stop(node, followers.cut(new_end), now_ms)
        elif has_moved:
            self._stay(before, there, followers, now_ms)
        return new_end

    def _stay(self, leader: int, there: Reach, followers: Reach, now_ms: int) -> None:
        """The partition has no leader any more, so none can follow. `leader`: who led, with the log up to `there`."""
        for node, one in self._by_node.items():
            if node == leader:
                one.stopped_at = Stopped(there, now_ms)
            else:
                self.stop(node, followers, now_ms)

    def _new(self, node: int, state: PartitionState, there: Reach, now_ms: int, lag_ms: int) -> Replica:
        found = Replica()
        if not self._follows(node, state.leader):
            found.stopped_at = Stopped(there.cut(0) if node in state.adding else there, now_ms)
        elif node in state.adding and node not in state.isr:
            found.behind = Behind(0, now_ms + lag_ms)
        return found

    def end_of(self, node: int, end: int, replicated: int) -> int:
        """Returns how far a replica is. `end`: of the leader's log; `replicated`: of those that follow."""
        if node == self.leader:
            return end
        return self._by_node[node].end(replicated)

    def reach_of(self, node: int, end: int, followers: Reach) -> Reach:
        """Returns how far a follower is. `end`: of the leader's log; `followers`: how far those that follow are."""
        stopped_at, own_end = self._by_node[node].stopped_at, self.end_of(node, end, followers.end)
        known = followers if stopped_at is None else stopped_at.reach
        return Reach(own_end, min(own_end, known.high_watermark))

    def stop(self, node: int, followers: Reach, caught_up_ms: int) -> None:
        """The replica of a node does not follow any more."""
        found = self._by_node.get(node)
        if found is not None and found.stopped_at is None and node != self.leader:
            own = found.own
            if own is not None and own.behind_since_ms is not None:
                caught_up_ms = min(caught_up_ms, own.behind_since_ms)
            end = found.end(followers.end)
            found.stopped_at = Stopped(Reach(end, min(end, followers.high_watermark)), caught_up_ms)
            found.behind = None

    def go_on(self, node: int, end: int, now_ms: int) -> None:
        """The replica of a node follows again, if there is a leader; one that is not in sync has to catch up. `end`: of
        the leader's log.
        """
        found = self._by_node.get(node)
        may_follow = self.leader != NO_LEADER and (self.leads or node == self.leader)
        if found is not None and found.stopped_at is not None and may_follow:
            if node not in self.isr and node != self.leader:
                found.behind = Behind(found.stopped_at.reach.end, now_ms)
            if found.own is not None:
                found.own.begin(found.own.policy, found.stopped_at.reach.end, end, now_ms)
            found.stopped_at = None

    def lasting(self, end: int, followers: Reach) -> dict[int, Reach]:
        """Returns where the replicas are that are not in sync, or have less than the leader's log, by node: what is
        known of them after a restart.
        """
        found = {node: self.reach_of(node, end, followers) for node in self._by_node if node != self.leader}
        return {node: reach for node, reach in found.items() if reach.end < end or node not in self.isr}

    def recall(self, known: Mapping[int, Reach], here: Reach, now_ms: int) -> int:
        """Puts the replicas where they were before a restart. `known`: where; the others have the whole log, or begin
        with an empty one. `here`: how far the log is. Returns the end of the leader's log, which may have had less.
        """
        end = min(here.end, known.get(self.leader, here).end)
        for node, one in self._by_node.items():
            follows = self.leader != NO_LEADER and self._follows(node, self.leader)
            if node == self.leader or (follows and node not in known):
                continue
            one.behind = None
            one.stopped_at = Stopped(known.get(node, here).cut(end), now_ms)
            if follows:
                self.go_on(node, end, now_ms)
        return end

    def set_policy(self, node: int, policy: Policy | None, end: int, replicated: int, now_ms: int) -> None:
        """Lets the replica of a node follow by a policy of its own; None: by that of the partition."""
        found = self._by_node.get(node)
        if found is None or (None if found.own is None else found.own.policy) == policy:
            return
        if policy is None:
            found.own = None
            return
        own = Follower(policy)
        own.begin(policy, self.end_of(node, end, replicated), end, now_ms)
        found.own = own

    def with_own_policy(self) -> Iterator[Follower]:
        """Yields the followers that follow by policies of their own."""
        for node, one in self._by_node.items():
            if one.own is not None and one.stopped_at is None and node != self.leader:
                yield one.own

    def policy_of(self, node: int) -> Policy | None:
        """Returns the own policy of a replica; None if it has that of the partition."""
        found = self._by_node.get(node)
        return None if found is None or found.own is None else found.own.policy

    def catching_up(self) -> list[tuple[int, Behind]]:
        """Returns the replicas that catch up."""
        return [(node, one.behind) for node, one in self._by_node.items() if one.behind is not None]

    def advance(self, node: int, behind: Behind | None) -> None:
        """Moves a replica that catches up; with None it is as far as the others."""
        self._by_node[node].behind = behind

    def in_sync_end(self, end: int, replicated: int) -> int:
        """Returns the offset up to which all replicas have the log that are in sync, or may be at any moment."""
        found = end
        for node in (*self.isr, *self.asked, *self.unanswered) if self.asked or self.unanswered else self.isr:
            if node in self._by_node:
                found = min(found, self.end_of(node, end, replicated))
        return found

    def note_start(self, start: int) -> None:
        """The log is going to begin later than at `start`; a replica that does not fetch does not hear of it."""
        for node in self._by_node:
            if not self._fetches(node):
                self._starts.setdefault(node, start)

    def low_watermark(self, start: int, alive: Container[int]) -> int:
        """Returns from where on all replicas on nodes that are alive have the log. `start`: of the leader's."""
        starts = self._starts
        for node in [one for one in starts if one not in self._by_node or self._fetches(one)]:
            del starts[node]
        return min([start, *(one for node, one in starts.items() if node in alive)])

    def _fetches(self, node: int) -> bool:
        one = self._by_node[node]
        return node == self.leader or (one.stopped_at is None and (one.own is None or one.own.policy.kind != "held"))

    def joining(self, end: int, replicated: int, high_watermark: int) -> Iterator[int]:
        """Yields the replicas that follow, are not in sync and have reached the high watermark. A replica that is held
        does not fetch.
        """
        for node in self._by_node:
            if node in self.isr or node == self.leader or not self._fetches(node):
                continue
            if self.end_of(node, end, replicated) >= high_watermark:
                yield node

    def behind(self, end: int, replicated: int, behind_since_ms: int | None) -> Iterator[tuple[int, int]]:
        """Yields the replicas in sync that have less than the leader's log, and since when. `behind_since_ms`: since
        when those that follow are behind.
        """
        for node in self.isr:
            if node == self.leader or node not in self._by_node:
                continue
            one = self._by_node[node]
            since = behind_since_ms if one.own is None else one.own.behind_since_ms
            if one.stopped_at is not None:
                since = one.stopped_at.caught_up_ms
            if self.end_of(node, end, replicated) < end and since is not None:
                yield node, since

    def views(self, end: int, replicated: int) -> Iterator[tuple[int, int, bool]]:
        """Yields each replica's node, its end, and whether it follows."""
        for node, one in self._by_node.items():
            yield node, self.end_of(node, end, replicated), one.stopped_at is None
