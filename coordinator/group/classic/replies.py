"""Replies of the classic protocol."""

from __future__ import annotations

from ....protocol import messages
from ....protocol.errors import ErrorCode
from .group import ClassicGroup
from .member import ClassicMember


def join_error(member_id: str, code: ErrorCode | int) -> messages.JoinGroupResponse:
    return messages.JoinGroupResponse(error_code=int(code), member_id=member_id, protocol_type=None, protocol_name=None)


def joined(group: ClassicGroup, member: ClassicMember, **changes: object) -> messages.JoinGroupResponse:
    """Returns a JoinGroup reply of the present generation; the leader's reply lists the members."""
    r = messages.JoinGroupResponse
    response = r(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        member_id=member.id,
    )
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


def sync_error(code: ErrorCode | int) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(error_code=int(code), protocol_type=None, protocol_name=None, assignment=b"")


def synced(group: ClassicGroup, member: ClassicMember) -> messages.SyncGroupResponse:
    return messages.SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )
