"""Rebalances of a classic group: all members join, then each gets its assignment from the leader.

The group object is changed here, where a change is decided. Its records do not go through replay (see `group`). Replies
to members go through the answers that the group holds; they are sent when the records of the batch are appended.
"""

from __future__ import annotations

from functools import partial
from itertools import repeat
from typing import NamedTuple

from ....protocol.errors import Errors
from ...journaled import JournaledDict
from ...shard import Result
from ..events import Event
from ..state import ShardState
from . import settling
from .group import ClassicGroup, State
from .replies import answer_each, in_order, joined_each, sync_error
from .session import end_session, renew_sessions


def rebalance_or_complete(shard: ShardState, group: ClassicGroup, why: str) -> Result:
    """Starts a rebalance, or completes the present one if all members have joined."""
    return prepare_rebalance(shard, group, why) if group.can_rebalance() else complete_if_all_joined(shard, group)


def prepare_rebalance(shard: ShardState, group: ClassicGroup, why: str) -> Result:
    """Starts a rebalance: all members must join again. `why`: for the timeline."""
    if group.state is State.COMPLETING_REBALANCE:
        fail_syncs(shard, group, int(Errors.REBALANCE_IN_PROGRESS))
    group.pending_sync.clear()
    shard.cancel(("sync", group.id))
    is_first = group.state is State.EMPTY
    if is_first:
        delay = shard.env.config("group.initial.rebalance.delay.ms")
        left = max(group.rebalance_timeout_ms() - delay, 0)
        shard.schedule(("join", group.id), delay, First(delay, left))
    group.become(State.PREPARING_REBALANCE, shard.env.now_ms())
    shard.counts["generations"] += 1
    if shard.on_event is not None:
        absent = () if is_first else tuple(one for one in group.members if one not in group.joins)
        event = Event("rebalance", group.kind, group.generation, None, why, (), (*absent, *group.pending))
        shard.journal.after(partial(shard.on_event, group.id, event))
    if is_first:
        return Result()
    if group.have_all_joined():
        return complete_join(shard, group)
    shard.schedule(("join", group.id), group.rebalance_timeout_ms())
    return Result()


def complete_if_all_joined(shard: ShardState, group: ClassicGroup) -> Result:
    """Completes the present rebalance if all members have joined, unless it is the first, which waits for more."""
    if group.state is not State.PREPARING_REBALANCE or group.previous is State.EMPTY or not group.have_all_joined():
        return Result()
    return complete_join(shard, group)


class First(NamedTuple):
    """The first rebalance of a group: how long its timer waited, how much longer it may wait, and the time since when
    members are gathered.
    """

    delay_ms: int
    left_ms: int
    gathering_since_ms: int | None = None


def join_ended(shard: ShardState, group: ClassicGroup, first: First | None = None) -> Result:
    """The timer `join` ended: members had time to join."""
    return complete_join(shard, group) if first is None else _complete_first(shard, group, first)


def _complete_first(shard: ShardState, group: ClassicGroup, first: First) -> Result:
    """The first rebalance of a group waits as long as new members keep coming, at most their rebalance time-out."""
    delay_ms, left_ms, since = first
    now = shard.env.monotonic_ms()
    if since is None:
        since = now
    gather_ms = settling.gather_ms(shard.env, group, now - since) if delay_ms == 0 else 0
    if gather_ms and left_ms > 0:
        shard.schedule(("join", group.id), gather_ms, First(0, left_ms, since))
        return Result()
    if not group.new_member_added or left_ms == 0:
        return complete_join(shard, group)
    group.new_member_added = False
    following = min(shard.env.config("group.initial.rebalance.delay.ms"), left_ms)
    shard.schedule(("join", group.id), following, First(following, max(left_ms - delay_ms, 0), since))
    return Result()


def complete_join(shard: ShardState, group: ClassicGroup) -> Result:
    """Starts the next generation with the members that have joined; static members may be late."""
    shard.cancel(("join", group.id))
    late = [m.id for m in group.members.values() if m.id not in group.joins and m.instance_id is None]
    group.remove(*late)
    for member_id in late:
        end_session(shard, group, member_id)
        shard.tell(group, "late", member_id, "it did not join", group.generation)
    if group.state is State.DEAD:
        return Result()
    if group.members and not group.elect_joined_leader():
        shard.schedule(("join", group.id), group.rebalance_timeout_ms())
        return Result()
    group.next_generation(shard.env.now_ms())
    if group.state is State.EMPTY:
        return Result([group.record({})], replay=False)
    answer_each(shard, joined_each(group, group.take_joins()))
    renew_sessions(shard, group, group.members.values())
    group.pending_sync = JournaledDict(group.journal, zip(group.members, repeat(None), strict=False))
    shard.schedule(("sync", group.id), group.rebalance_timeout_ms(), group.generation)
    shard.tell(group, "all-joined", group.leader, epoch=group.generation)
    return Result()


def sync_ended(shard: ShardState, group: ClassicGroup, generation: int) -> Result:
    """The timer `sync` ended: takes out the members of a generation that joined and did not sync."""
    if group.generation != generation or not group.pending_sync:
        return Result()
    if group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return Result()
    late = list(group.pending_sync)
    group.remove(*late)
    for member_id in late:
        end_session(shard, group, member_id)
        shard.tell(group, "late", member_id, "it did not sync", generation)
    return prepare_rebalance(shard, group, "members did not sync")


def attempt_ended(shard: ShardState, group: ClassicGroup, generation: int) -> Result:
    """The timer `attempt` ended: all members join again, because the leader knew of no partitions (see `settling`)."""
    if group.generation != generation or group.state is not State.COMPLETING_REBALANCE:
        return Result()
    group.empty_assignments += 1
    return prepare_rebalance(shard, group, "the leader knew of no partitions")


def fail_syncs(shard: ShardState, group: ClassicGroup, code: int) -> None:
    """Answers the SyncGroup requests that wait with an error."""
    if group.assignments:
        group.assignments = {}
    waiting = group.take_syncs()
    if waiting:
        answer_each(shard, ((answer, sync_error(code)) for _, answer in in_order(group, waiting)))
    renew_sessions(shard, group, (m for m in group.members.values() if m.id in waiting))
