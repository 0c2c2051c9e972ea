"""Replies of the classic protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TypeVar

from ....protocol import messages
from ....protocol.errors import ErrorCode
from ...journal import Answer
from ..state import ShardState
from .group import ClassicGroup
from .member import ClassicMember, JoinAnswer, Protocols, SyncAnswer, metadata_of

T = TypeVar("T")
STEP_MEMBERS = 256  # of a reply that are made, or of a record that are encoded, in one step


def answer_each(shard: ShardState, replies: Iterable[tuple[Answer[T], T] | None]) -> None:
    """Answers requests of many members after the append of the open batch, some of them before other events are
    handled. The replies are made as they are sent, and must not depend on what the group is then. None is a pause while
    one is made.
    """
    shard.journal.after(partial(shard.env.in_steps, _answered(replies)))


def _answered(replies: Iterable[tuple[Answer[T], T] | None]) -> Iterator[None]:
    for one in replies:
        if one is not None:
            answer, reply = one
            answer.now(reply)
        yield


def join_error(member_id: str, code: ErrorCode | int) -> messages.JoinGroupResponse:
    return messages.JoinGroupResponse(error_code=int(code), member_id=member_id, protocol_type=None, protocol_name=None)


def joined(group: ClassicGroup, member: ClassicMember, **changes: object) -> messages.JoinGroupResponse:
    """Returns a JoinGroup reply of the present generation; the leader's reply lists the members."""
    response = _of_generation(group)(member_id=member.id)
    if group.leader == member.id:
        response.members = list(_listed(((m, m.protocols) for m in group.members.values()), group.protocol))
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


def _listed(
    members: Iterable[tuple[ClassicMember, Protocols]], protocol: str | None
) -> Iterator[messages.JoinGroupResponse.JoinGroupResponseMember]:
    """Yields what the leader learns of members with these protocols, which they may have changed since."""
    made = messages.JoinGroupResponse.JoinGroupResponseMember
    for m, protocols in members:
        yield made(member_id=m.id, group_instance_id=m.instance_id, metadata=metadata_of(protocols, protocol))


def in_order(group: ClassicGroup, answers: Mapping[str, Answer[T]]) -> Iterator[tuple[str, Answer[T]]]:
    """Returns the answers with their members, in the order in which the group has the members now."""
    member_ids = list(group.members)
    return ((one, answers[one]) for one in member_ids if one in answers)


def joined_each(
    group: ClassicGroup, joins: Mapping[str, JoinAnswer]
) -> Iterator[tuple[JoinAnswer, messages.JoinGroupResponse] | None]:
    """Returns the replies of the present generation to members that joined, whatever happens to the group while they
    are made. That of the leader is made in steps.
    """
    leader, protocol, make = group.leader, group.protocol, _of_generation(group)
    answers = in_order(group, joins)
    members = list(group.members.values())
    listed = _listed(zip(members, [m.protocols for m in members], strict=True), protocol)

    def replies() -> Iterator[tuple[JoinAnswer, messages.JoinGroupResponse] | None]:
        for member_id, answer in answers:
            reply = make(member_id=member_id)
            if member_id == leader:
                reply.members += islice(listed, STEP_MEMBERS)
                while some := list(islice(listed, STEP_MEMBERS)):
                    yield None
                    reply.members += some
            yield answer, reply

    return replies()


def sync_error(code: ErrorCode | int) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(error_code=int(code), protocol_type=None, protocol_name=None, assignment=b"")


def synced(group: ClassicGroup, member: ClassicMember) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=group.assignments.get(member.id, b""),
    )


def synced_each(
    group: ClassicGroup, syncs: Mapping[str, SyncAnswer]
) -> Iterator[tuple[SyncAnswer, messages.SyncGroupResponse]]:
    """Returns the replies to members that get their assignments, whatever happens to the group while they are made."""
    kind, protocol, assignments = group.protocol_type, group.protocol, group.assignments
    return (
        (
            answer,
            messages.SyncGroupResponse(
                protocol_type=kind, protocol_name=protocol, assignment=assignments.get(member_id, b"")
            ),
        )
        for member_id, answer in in_order(group, syncs)
    )
