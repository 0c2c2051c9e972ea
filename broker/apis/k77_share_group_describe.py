"""ShareGroupDescribe, version 1: share groups, their epochs, and their members' assignments (KIP-932)."""

from __future__ import annotations

from typing import Any

from ...coordinator.group import describing
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context
from ..grouping import describe_each
from ..share_requests import check_group


def handle(context: Context, request: Any) -> Any:
    found = describe_each(request.group_ids, request.include_authorized_operations, lambda group_id: _describe(context, group_id))
    return messages.ShareGroupDescribeResponse(groups=found)


def _describe(context: Context, group_id: str) -> Any:
    try:
        check_group(context, group_id)
        return context.broker.groups.read(group_id, lambda shard, as_of: describing.share(shard, group_id, as_of))
    except ApiError as error:
        return messages.ShareGroupDescribeResponse.DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message)
