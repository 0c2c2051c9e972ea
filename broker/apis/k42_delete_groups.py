"""DeleteGroups, versions 0 to 3: deletes empty groups and their offsets (KIP-229).

**Versions**
- 2 flexible
- 3 a message for each group (KIP-1331)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...coordinator.group import deletion
from ...coordinator.group.share import share_partitions
from ...coordinator.hashing import NAMES_PER_STEP, set_order_steps
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..error_places import COORDINATOR, ITSELF, Place, array, codes
from ..later import Later, drive
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..share_groups import delete_states
from ..steps import STEP_ELEMENTS, paced, slices
from ._groups import by_partition

STEP_ORDERED = STEP_ELEMENTS // NAMES_PER_STEP  # pauses of `set_order_steps`
GROUPS = Check(Operation.DELETE, ResourceType.GROUP, "groups_names", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS,)
ERRORS = (
    Place(
        "each group",
        COORDINATOR
        + codes("INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED NON_EMPTY_GROUP GROUP_ID_NOT_FOUND GROUP_DELETION_FAILED"),
        (array("results", "groups_names", group=("group_id", ITSELF)),),
    ),
)


async def narrowed(
    context: Context, request: messages.DeleteGroupsRequest
) -> Callable[[messages.DeleteGroupsResponse], messages.DeleteGroupsResponse] | None:
    asked = list(dict.fromkeys(request.groups_names))
    request.groups_names, refused = await GROUPS.parted(context, asked, str)

    def complete(response: messages.DeleteGroupsResponse) -> messages.DeleteGroupsResponse:
        result = messages.DeleteGroupsResponse.DeletableGroupResult
        response.results += [result(group_id=one, error_code=GROUPS.code) for one in refused]
        return response

    return complete if refused else None


async def handle(context: Context, request: messages.DeleteGroupsRequest) -> messages.DeleteGroupsResponse:
    groups = context.broker.groups
    waiting = []
    shards = await by_partition(context, dict.fromkeys(request.groups_names))
    await groups.open_all()
    for index, ids in shards:
        waiting.append(drive(_delete(context, index, ids)))
        await context.broker.turn.next()
    response = messages.DeleteGroupsResponse()
    for results in await Later.all(waiting):
        assert isinstance(results, list)  # `_delete` answers its errors
        response.results += results
    return response


async def _delete(
    context: Context,
    index: int,
    ids: list[str],
) -> list[messages.DeleteGroupsResponse.DeletableGroupResult]:
    """Deletes groups of one shard, some at a time."""
    results: list[messages.DeleteGroupsResponse.DeletableGroupResult] = []
    in_order = await paced(context.turn, set_order_steps(ids), STEP_ORDERED)
    for some in slices(in_order, deletion.STEP_GROUPS):
        if results:
            await context.turn.next()
        results += await _delete_some(context, index, some)
    return results


async def _delete_some(
    context: Context,
    index: int,
    ids: Sequence[str],
) -> list[messages.DeleteGroupsResponse.DeletableGroupResult]:
    """Deletes groups of one shard; deletes first the state of share groups at the share coordinator, and descriptions
    of streams groups' topologies.
    """
    groups, left = context.broker.groups, dict.fromkeys(ids)
    r = messages.DeleteGroupsResponse
    results: list[messages.DeleteGroupsResponse.DeletableGroupResult] = []
    try:
        found = await groups.write_at(
            index, "initiate-delete-share-groups", lambda shard: share_partitions.begin_delete_groups(shard, ids)
        )
        for group_id, wanted in found.items():
            errors = (
                [wanted]
                if isinstance(wanted, ApiError)
                else list((await delete_states(context.broker, group_id, wanted)).values())
            )
            if errors:
                results.append(r.DeletableGroupResult(group_id=group_id, error_code=errors[0].code))
                del left[group_id]
        if left and groups.descriptions is not None:
            await groups.descriptions.delete(groups, index, list(left))
        if left:
            deleted = await groups.write_at(
                index, "delete-groups", lambda shard: deletion.delete_groups(shard, list(left))
            )
            results += deleted
            for one in deleted:
                if not one.error_code:
                    context.broker.share_partitions.forget(one.group_id)
    except ApiError as error:
        results += [r.DeletableGroupResult(group_id=i, error_code=error.code) for i in left]
    return results
