"""ConsumerGroupDescribe, versions 0 and 1: describes consumer groups: epochs, members and assignments (KIP-848).

**Versions**
- 1 the type of each member (KIP-1099)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...coordinator.group.consumer import description
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._groups import (
    HIDDEN,
    OF_EACH_GROUP,
    Asked,
    asked_groups,
    describe_each,
    may_describe_all,
    supports_consumer_groups,
)

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "groups.members.assignment", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS, TOPICS)
ERRORS = OF_EACH_GROUP


async def handle(
    context: Context,
    request: messages.ConsumerGroupDescribeRequest,
) -> messages.ConsumerGroupDescribeResponse:
    asked = Asked(request.group_ids)
    if supports_consumer_groups(context):
        asked = await asked_groups(context, GROUPS, request.group_ids)

    def describe(group_id: str) -> description.Described:
        return _describe(context, group_id, group_id in asked.refused)

    found = await describe_each(context, asked.group_ids, request.include_authorized_operations, describe)
    return messages.ConsumerGroupDescribeResponse(groups=found)


def _describe(context: Context, group_id: str, is_refused: bool) -> description.Described:
    g = messages.ConsumerGroupDescribeResponse.DescribedGroup
    try:
        if not supports_consumer_groups(context):
            raise ApiError(Errors.UNSUPPORTED_VERSION)
        if is_refused:
            raise ApiError(GROUPS.code)
        if not group_id:
            raise ApiError(Errors.INVALID_GROUP_ID)
        found, members = context.broker.groups.read(
            group_id, lambda shard, as_of: description.describe(shard, group_id, as_of)
        )
        if context.authorizer is None:
            return found, members
        described = list(members)
        if not may_describe_all(context, TOPICS, _topics(described)):
            raise ApiError(TOPICS.code, HIDDEN)
        return found, iter(described)
    except ApiError as error:
        return error.put_into(g(group_id=group_id), with_default=False), iter(())


def _topics(members: Iterable[messages.ConsumerGroupDescribeResponse.Member]) -> Iterator[str]:
    """Yields the topics of the members of a group."""
    for member in members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                yield topic.topic_name
