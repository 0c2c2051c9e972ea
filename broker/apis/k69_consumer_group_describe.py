"""ConsumerGroupDescribe, versions 0 and 1: consumer groups, their epochs, and their members' assignments (KIP-848). 1 the members' type."""

from __future__ import annotations

from typing import Any

from ...coordinator.group import describing
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import describe_each, supports_consumer_groups


def handle(context: Context, request: Any) -> Any:
    found = describe_each(request.group_ids, request.include_authorized_operations, lambda group_id: _describe(context, group_id))
    return messages.ConsumerGroupDescribeResponse(groups=found)


def _describe(context: Context, group_id: str) -> Any:
    g = messages.ConsumerGroupDescribeResponse.DescribedGroup
    try:
        if not supports_consumer_groups(context):
            raise ApiError(Errors.UNSUPPORTED_VERSION)
        if not group_id:
            raise ApiError(Errors.INVALID_GROUP_ID)
        return context.broker.groups.read(group_id, lambda shard, as_of: describing.consumer(shard, group_id, as_of))
    except ApiError as error:
        return g(group_id=group_id, error_code=error.code, error_message=error.message)
