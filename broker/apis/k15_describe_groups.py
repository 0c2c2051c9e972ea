"""DescribeGroups, versions 0 to 6: classic groups and their members.

3 authorized operations; 4 static members; 5 flexible; 6 GROUP_ID_NOT_FOUND with a message (KIP-1043), where before a group that is not
there is called Dead.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import describing
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import describe_each

NOT_FOUND_SINCE = 6
DEAD = "Dead"


def handle(context: Context, request: Any) -> Any:
    found = describe_each(request.groups, request.include_authorized_operations, lambda group_id: _describe(context, group_id))
    return messages.DescribeGroupsResponse(groups=found)


def _describe(context: Context, group_id: str) -> Any:
    g = messages.DescribeGroupsResponse.DescribedGroup
    try:
        return context.broker.groups.read(group_id, lambda shard, as_of: describing.classic(shard, group_id, as_of))
    except ApiError as error:
        if error.code != Errors.GROUP_ID_NOT_FOUND:
            return g(group_id=group_id, error_code=error.code)
        if context.version < NOT_FOUND_SINCE:
            return g(group_id=group_id, group_state=DEAD)
        return g(group_id=group_id, group_state=DEAD, error_code=error.code, error_message=error.text)
