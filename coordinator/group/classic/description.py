"""DescribeGroups: a classic group as of a committed offset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....protocol import messages
from ..state import ShardState
from .group import ClassicGroup, State

if TYPE_CHECKING:
    _Response = messages.DescribeGroupsResponse
    Described = tuple[_Response.DescribedGroup, Iterator[_Response.DescribedGroupMember]]


def describe(shard: ShardState, group_id: str, as_of: int) -> Described:
    """Returns a group without its members, and an iterator of the members, which may be used after the group has
    changed: there may be thousands. Raises ApiError(GROUP_ID_NOT_FOUND).
    """
    group = shard.existing_of(ClassicGroup, group_id, as_of)
    r = messages.DescribeGroupsResponse
    stable, protocol, assignments = group.state is State.STABLE, group.protocol, group.assignments
    members = (
        r.DescribedGroupMember(
            member_id=m.id,
            group_instance_id=m.instance_id,
            client_id=m.client_id,
            client_host=m.client_host,
            member_metadata=m.metadata(protocol) if stable else b"",
            member_assignment=assignments.get(m.id, b""),
        )
        for m in list(group.members.values())
    )
    described = r.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(protocol or "") if stable else "",
    )
    return described, members
