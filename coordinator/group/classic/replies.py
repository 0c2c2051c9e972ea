"""Replies of the classic protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from ....protocol import messages
from ....protocol.errors import ErrorCode
from ...journal import Answer
from ..state import ShardState
from .group import ClassicGroup
from .member import ClassicMember, JoinAnswer, SyncAnswer

T = TypeVar("T")


def answer_each(shard: ShardState, replies: Iterable[tuple[Answer[T], T]]) -> None:
    """Answers requests of many members after the append of the open batch, some of them before other events are
    handled. The replies are made as they are sent, and must not depend on what the group is then.
    """
    shard.journal.after(partial(shard.env.in_steps, _answered(replies)))


def _answered(replies: Iterable[tuple[Answer[T], T]]) -> Iterator[None]:
    for answer, reply in replies:
        answer.now(reply)
        yield


def join_error(member_id: str, code: ErrorCode | int) -> messages.JoinGroupResponse:
    return messages.JoinGroupResponse(error_code=int(code), member_id=member_id, protocol_type=None, protocol_name=None)


def joined(group: ClassicGroup, member: ClassicMember, **changes: object) -> messages.JoinGroupResponse:
    """Returns a JoinGroup reply of the present generation; the leader's reply lists the members."""
    r = messages.JoinGroupResponse
    response = _of_generation(group)(member_id=member.id)
    if group.leader == member.id:
        response.members = [
            r.JoinGroupResponseMember(
                member_id=m.id, group_instance_id=m.instance_id, metadata=m.metadata(group.protocol)
            )
            for m in group.members.values()
        ]
    for name, value in changes.items():
        setattr(response, name, value)
    return response


def _of_generation(group: ClassicGroup) -> Callable[..., messages.JoinGroupResponse]:
    """Returns what makes JoinGroup replies of the present generation, also when the group has another one."""
    return partial(
        messages.JoinGroupResponse,
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
    )


def joined_each(
    group: ClassicGroup, waiting: list[tuple[ClassicMember, JoinAnswer]]
) -> Iterator[tuple[JoinAnswer, messages.JoinGroupResponse]]:
    """Returns the replies of the present generation to members that joined, whatever happens to the group while they
    are made.
    """
    make = _of_generation(group)
    of_leader = {member.id: joined(group, member) for member, _ in waiting if member.id == group.leader}
    return ((answer, of_leader.get(member.id) or make(member_id=member.id)) for member, answer in waiting)


def sync_error(code: ErrorCode | int) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(error_code=int(code), protocol_type=None, protocol_name=None, assignment=b"")


def synced(group: ClassicGroup, member: ClassicMember) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )


def synced_each(
    group: ClassicGroup, waiting: list[tuple[SyncAnswer, bytes]]
) -> Iterator[tuple[SyncAnswer, messages.SyncGroupResponse]]:
    """Returns the replies to members that get these assignments, whatever happens to the group while they are made."""
    kind, protocol = group.protocol_type, group.protocol
    return (
        (answer, messages.SyncGroupResponse(protocol_type=kind, protocol_name=protocol, assignment=assignment))
        for answer, assignment in waiting
    )
