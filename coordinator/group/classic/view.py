"""What is shown of a classic group: who has joined, who must join or sync yet, and until when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ....protocol.errors import MalformedMessage
from ..consumer_protocol import assignment, subscription
from ..events import TopicPartitionsView
from ..state import ShardState
from ..view import (
    GroupMemberView,
    KindView,
    Steps,
    WaitView,
    remaining_ms,
    timers,
    wait,
)
from .group import ClassicGroup, State
from .member import ClassicMember


class Seen(NamedTuple):
    """A member as of the first step."""

    member: ClassicMember
    state: str
    metadata: bytes
    assignment: bytes


def summary(group: ClassicGroup) -> tuple[str, int]:
    """State and generation."""
    return group.state.value, group.generation


def view(shard: ShardState, group: ClassicGroup) -> Steps[KindView]:
    """Returns the group as it is now. Members are decoded when their turn comes."""
    seen = [_seen(group, member) for member in group.members.values()]
    found = waits(shard, group)
    is_first = group.previous is State.EMPTY
    generation, is_consumer = group.generation, group.uses_consumer_protocol
    known = (("initial delay" if is_first else "rebalance", "join"), ("sync", "sync"), ("empty assignment", "attempt"))
    shown = KindView(
        group=group.id,
        kind=group.kind,
        state=group.state.value,
        protocol_type=group.protocol_type,
        epoch=generation,
        assignment_epoch=None,
        assignor=group.protocol,
        leader=group.leader,
        pending=list(group.pending),
        regexes=[],
        timers=timers(shard, ((name, (key, group.id)) for name, key in known)),
        waits=iter(found),
        members=(_member(shard, group.id, one, generation, is_consumer) for one in seen),
    )
    yield
    return shown


def waits(shard: ShardState, group: ClassicGroup) -> list[WaitView]:
    """Returns what the group's rebalance waits for, as of now.

    While it is prepared: the members that have not joined again, and those that were given an id; the first rebalance
    of a group waits for time only. Then the members that have not synced. Only the leader's SyncGroup completes the
    rebalance, and it is named first; if its assignment is being written, that is what is waited for.
    """
    if group.state is State.PREPARING_REBALANCE:
        left = remaining_ms(shard, ("join", group.id))
        if group.previous is State.EMPTY:
            return [wait(None, "gather", left)]
        absent = [member_id for member_id in group.members if member_id not in group.joins]
        return [wait(member_id, "join", left) for member_id in (*absent, *group.pending)]
    if group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
        return []
    left = remaining_ms(shard, ("sync", group.id))
    late = [wait(one, "sync", left) for one in sorted(group.pending_sync, key=lambda one: one != group.leader)]
    if group.state is State.STABLE or group.leader is None or group.leader in group.pending_sync:
        return late
    retry = remaining_ms(shard, ("attempt", group.id))
    return [wait(None, "commit") if retry is None else wait(None, "retry", retry), *late]


def _seen(group: ClassicGroup, member: ClassicMember) -> Seen:
    metadata = member.metadata(group.protocol) or (member.protocols[0][1] if member.protocols else b"")
    return Seen(member, _state(group, member), metadata, group.assignments.get(member.id, b""))


def _state(group: ClassicGroup, member: ClassicMember) -> str:
    if member.id in group.joins:
        return "joined"
    if group.state is State.PREPARING_REBALANCE:
        return "must join"
    if member.id in group.pending_sync:
        return "must sync"
    return "synced" if group.state is State.COMPLETING_REBALANCE else "stable"


def _member(shard: ShardState, group_id: str, seen: Seen, generation: int, is_consumer: bool) -> GroupMemberView:
    member = seen.member
    topics, rack_id = _subscribed(seen.metadata) if is_consumer else ([], None)
    return GroupMemberView(
        member=member.id,
        protocol="classic",
        instance_id=member.instance_id,
        rack_id=rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        state=seen.state,
        epoch=generation,
        previous_epoch=None,
        topics=topics,
        regex=None,
        assignors=[name for name, _ in member.protocols if name is not None],
        assigned=assigned(seen.assignment) if is_consumer else [],
        target=None,
        revoking=[],
        awaited=[],
        timers=timers(shard, [("session", ("heartbeat", group_id, member.id))]),
    )


def _subscribed(metadata: bytes) -> tuple[list[str], str | None]:
    """The topics and the rack in a member's metadata; nothing if it is malformed, which only clients read."""
    try:
        found = subscription(metadata)
    except MalformedMessage:
        return [], None
    return sorted(found.topics), found.rack_id or None


def assigned(data: bytes) -> list[TopicPartitionsView]:
    """The partitions of an assignment of the protocol `consumer`; none if it is malformed."""
    return [TopicPartitionsView(topic=topic, partitions=sorted(of)) for topic, of in sorted(_partitions(data))]


def _partitions(data: bytes) -> Iterator[tuple[str, list[int]]]:
    try:
        found = assignment(data) if data else None
    except MalformedMessage:
        return
    for one in found.assigned_partitions if found is not None else ():
        yield one.topic, list(one.partitions)
