"""The session of a member of a classic group: a timer that each of its requests moves."""

from __future__ import annotations

from collections.abc import Iterable

from ..state import ShardState
from .group import ClassicGroup
from .member import ClassicMember


def renew_session(shard: ShardState, group: ClassicGroup, member: ClassicMember) -> None:
    shard.renew(("heartbeat", group.id, member.id), member.session_timeout_ms)


def renew_sessions(shard: ShardState, group: ClassicGroup, members: Iterable[ClassicMember]) -> None:
    """Like `renew_session` for each of many members."""
    shard.renew_each((("heartbeat", group.id, member.id), member.session_timeout_ms) for member in members)


def await_heartbeat(shard: ShardState, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
    """Like `renew_session`, for another time-out, or for an id that is not a member yet."""
    shard.renew(("heartbeat", group.id, member_id), timeout_ms)


def end_session(shard: ShardState, group: ClassicGroup, member_id: str) -> None:
    shard.cancel(("heartbeat", group.id, member_id))
