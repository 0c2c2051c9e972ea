"""StreamsGroupDescribe, versions 0 and 1: describes streams groups: epochs, topology, members and tasks (KIP-1071).

**Versions**
- 1 the assignor, and a description of the topology if one is stored
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...coordinator.group.streams import description, stored_descriptions
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._groups import OF_EACH_GROUP, Asked, asked_groups, describe_each, may_describe_all
from ._streams_groups import check_enabled, is_enabled

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "group_ids", Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "groups.topology", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS, TOPICS)
ERRORS = OF_EACH_GROUP
HIDDEN = "The described group uses topics that the client is not authorized to describe."
NOT_STORED, STORED = 1, 3  # a description of the topology


async def handle(
    context: Context, request: messages.StreamsGroupDescribeRequest
) -> messages.StreamsGroupDescribeResponse:
    asked = Asked(request.group_ids)
    if is_enabled(context):
        asked = await asked_groups(context, GROUPS, request.group_ids)

    def describe(group_id: str) -> description.Described:
        return _describe(context, group_id, group_id in asked.refused, request.include_topology_description)

    found = await describe_each(context, asked.group_ids, request.include_authorized_operations, describe)
    return messages.StreamsGroupDescribeResponse(groups=found)


def _describe(context: Context, group_id: str, is_refused: bool, is_wanted: bool) -> description.Described:
    """`is_refused`: whether the principal may not see the group; `is_wanted`: whether the client wants a description of
    the topology.
    """
    try:
        check_enabled(context)
        if is_refused:
            raise ApiError(GROUPS.code)
        if not group_id:
            raise ApiError(Errors.INVALID_GROUP_ID)
        found, members = context.broker.groups.read(
            group_id, lambda shard, as_of: description.describe(shard, group_id, as_of)
        )
        if not may_describe_all(context, TOPICS, _topics(found)):
            raise ApiError(TOPICS.code, HIDDEN)
        if is_wanted:
            _add_description(context, found)
        return found, members
    except ApiError as error:
        g = messages.StreamsGroupDescribeResponse.DescribedGroup
        return error.put_into(g(group_id=group_id), with_default=False), iter(())


def _add_description(context: Context, group: messages.StreamsGroupDescribeResponse.DescribedGroup) -> None:
    """Adds the description of the group's topology if one is stored, and says whether."""
    groups, description = context.broker.groups, None
    if groups.descriptions is not None and group.topology is not None:
        stored_epoch = groups.read(group.group_id, partial(stored_descriptions.stored_epoch, group_id=group.group_id))
        description = groups.descriptions.of_group(group.group_id, group.topology.epoch, stored_epoch)
    group.topology_description = description
    group.topology_description_status = NOT_STORED if description is None else STORED


def _topics(group: messages.StreamsGroupDescribeResponse.DescribedGroup) -> Iterator[str]:
    """Yields the topics of the topology of a group."""
    for one in (group.topology.subtopologies or ()) if group.topology is not None else ():
        yield from one.source_topics
        yield from one.repartition_sink_topics
        for topic in (*one.repartition_source_topics, *one.state_changelog_topics):
            yield topic.name
