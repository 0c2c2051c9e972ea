"""Replay of the record of a classic group. The group itself makes it, see `ClassicGroup.record`."""

from __future__ import annotations

from ....protocol import messages
from ...journal import Journal
from ..modern_replay import Replay
from ..state import ShardState
from .group import ClassicGroup, State
from .member import ClassicMember, Protocols
from .session import end_session


def replay_group(shard: ShardState, key: messages.GroupMetadataKey, value: messages.GroupMetadataValue | None) -> None:
    if value is not None:
        shard.groups[key.group] = from_record(key.group, value, shard.journal)
        return shard.note_group()
    group = shard.groups.pop(key.group)
    if isinstance(group, ClassicGroup):
        for member_id in (*group.members, *group.pending):
            end_session(shard, group, member_id)
        shard.cancel(("join", group.id))
        shard.cancel(("sync", group.id))
        shard.cancel(("attempt", group.id))


def from_record(group_id: str, value: messages.GroupMetadataValue, journal: Journal) -> ClassicGroup:
    """Returns the group of a record: empty or stable."""
    group = ClassicGroup(
        group_id,
        State.STABLE if value.members else State.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol=value.protocol,
        leader=value.leader,
        state_since_ms=None if value.current_state_timestamp == -1 else value.current_state_timestamp,
        journal=journal,
    )
    for m in value.members:
        timeout = m.session_timeout if m.rebalance_timeout == -1 else m.rebalance_timeout
        protocols: Protocols = ((value.protocol, bytes(m.subscription)),)  # type: ignore[assignment] # null where none was chosen
        group.add(
            ClassicMember(
                m.member_id,
                m.group_instance_id,
                m.client_id,
                m.client_host,
                timeout,
                m.session_timeout,
                value.protocol_type,
                protocols,
            )
        )
    group.assignments = {m.member_id: bytes(m.assignment) for m in value.members}
    group.subscribed = group.compute_subscribed()
    return group


REPLAYS: dict[str, Replay] = {"GroupMetadataKey": replay_group}
