"""ListGroups, versions 0 to 5: lists the groups of this coordinator.

**Behaviour**
- The groups of each partition are in the order of Kafka's timeline table.

**Versions**
- 3 flexible
- 4 states, and a filter by state (KIP-518)
- 5 types, and a filter by type (KIP-848)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...coordinator.group.listing import listed
from ...coordinator.hashing import name_hash, timeline_size, timeline_slot
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import COORDINATOR, Place, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace

if TYPE_CHECKING:
    from ...coordinator.group.group import Group
    from ...coordinator.group.shard import GroupShard

EVERY_GROUP = Check(Operation.DESCRIBE, ResourceType.CLUSTER, refusal=Refusal.LEFT_OUT)
GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "groups.group_id", Refusal.LEFT_OUT)
AUTHORIZATION = (EVERY_GROUP, GROUPS)
ERRORS = (Place("the whole", COORDINATOR + codes("CLUSTER_AUTHORIZATION_FAILED")),)


async def handle(context: Context, request: messages.ListGroupsRequest) -> messages.ListGroupsResponse:
    states, types = _words(request.states_filter), _words(request.types_filter)
    try:
        shards = await context.broker.groups.read_all(_groups_of)
    except ApiError as error:
        return messages.ListGroupsResponse(error_code=error.code)
    answers, pace, every = Answers(context), Pace(context.turn), EVERY_GROUP.allows(context)
    groups = answers.array("groups")
    for ids, of_shard, most, as_of in shards:
        for place in await _order(pace, ids, most):
            group_id, group = ids[place], of_shard[place]
            if pace.is_over():
                await pace.rest()
            found = listed(group_id, group, states, types, as_of)
            if found is not None and (every or GROUPS.allows(context, group_id)):
                await answers.add("groups", found)
    return messages.ListGroupsResponse(groups=groups)


def _groups_of(shard: GroupShard, as_of: int) -> tuple[list[str], list[Group], int, int]:
    """Returns the ids and the groups of a shard, and how many there were at most. Ten thousand pairs would cause a
    garbage collection.
    """
    groups = shard.groups.at(as_of)
    return list(groups), list(groups.values()), shard.groups_most, as_of


async def _order(pace: Pace, ids: list[str], most: int) -> Sequence[int]:
    """Returns the places of ids in Kafka's order."""
    if len(ids) < 2:
        return range(len(ids))
    size, slots = timeline_size(most), list[int]()
    for group_id in ids:
        slots.append(timeline_slot(name_hash(group_id), size))
        if pace.is_over():
            await pace.rest()
    return sorted(range(len(ids) - 1, -1, -1), key=slots.__getitem__)


def _words(of_filter: list[str] | None) -> frozenset[str]:
    return frozenset(word.strip().lower() for word in of_filter or ())
