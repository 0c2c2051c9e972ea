"""ShareGroupDescribe, version 1: describes share groups: epochs, members and assignments (KIP-932)."""

from __future__ import annotations

from ...coordinator.group.share import description
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._groups import HIDDEN, OF_COORDINATOR, OF_EACH_GROUP, Asked, asked_groups, describe_each, may_describe_all
from ._share_requests import check_group

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "groups.members.assignment", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS, TOPICS)
ERRORS = OF_EACH_GROUP


async def handle(context: Context, request: messages.ShareGroupDescribeRequest) -> messages.ShareGroupDescribeResponse:
    asked = Asked(request.group_ids)
    if context.broker.share_partitions.version >= 1:
        asked = await asked_groups(context, GROUPS, request.group_ids)

    def describe(group_id: str) -> description.Described:
        return _describe(context, group_id, group_id in asked.refused)

    found = await describe_each(context, asked.group_ids, request.include_authorized_operations, describe)
    return messages.ShareGroupDescribeResponse(groups=found)


def _describe(context: Context, group_id: str, is_refused: bool) -> description.Described:
    try:
        context.broker.share_partitions.check_enabled()
        if is_refused:
            raise ApiError(GROUPS.code)
        check_group(context, group_id)
        found, members = context.broker.groups.read(
            group_id, lambda shard, as_of: description.describe(shard, group_id, as_of)
        )
        if context.authorizer is None:
            return found, members
        described = list(members)
        topics = (topic.topic_name for member in described for topic in member.assignment.topic_partitions)
        if not may_describe_all(context, TOPICS, topics):
            raise ApiError(TOPICS.code, HIDDEN)
        return found, iter(described)
    except ApiError as error:
        g = messages.ShareGroupDescribeResponse.DescribedGroup
        return error.put_into(g(group_id=group_id), with_default=error.code in OF_COORDINATOR), iter(())
