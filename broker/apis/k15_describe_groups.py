"""DescribeGroups, versions 0 to 6: describes classic groups and their members.

**Versions**
- 3 authorized operations (KIP-430)
- 4 static members (KIP-345)
- 5 flexible
- 6 GROUP_ID_NOT_FOUND with a message for groups that do not exist; before, their state is Dead (KIP-1043)
"""

from __future__ import annotations

from ...coordinator.group.classic import description
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, ITSELF, Place, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._groups import asked_groups, describe_each

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "groups", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS,)
NOT_FOUND_SINCE = 6
DEAD = "Dead"
ERRORS = (
    Place(
        "each group",
        COORDINATOR + codes("INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED GROUP_ID_NOT_FOUND"),
        (array("groups", "groups", group=("group_id", ITSELF)),),
    ),
)


async def handle(context: Context, request: messages.DescribeGroupsRequest) -> messages.DescribeGroupsResponse:
    asked = await asked_groups(context, GROUPS, request.groups, nameless_first=False)

    def describe(group_id: str) -> description.Described:
        return _refused(group_id) if group_id in asked.refused else _describe(context, group_id)

    found = await describe_each(context, asked.group_ids, request.include_authorized_operations, describe)
    return messages.DescribeGroupsResponse(groups=found)


def _refused(group_id: str) -> description.Described:
    return messages.DescribeGroupsResponse.DescribedGroup(group_id=group_id, error_code=GROUPS.code), iter(())


def _describe(context: Context, group_id: str) -> description.Described:
    g = messages.DescribeGroupsResponse.DescribedGroup
    try:
        return context.broker.groups.read(group_id, lambda shard, as_of: description.describe(shard, group_id, as_of))
    except ApiError as error:
        if error.code != Errors.GROUP_ID_NOT_FOUND:
            return g(group_id=group_id, error_code=error.code), iter(())
        if context.version < NOT_FOUND_SINCE:
            return g(group_id=group_id, group_state=DEAD), iter(())
        return error.put_into(g(group_id=group_id, group_state=DEAD)), iter(())
