"""DeleteGroups, versions 0 to 3: empty groups and their offsets go.

2 flexible; 3 a message for each group (KIP-1331).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import share_offsets
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context
from ..later import drive
from ..share_groups import delete_states


async def handle(context: Context, request: Any) -> Any:
    groups = context.broker.groups
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        by_partition.setdefault(groups.partition_for(group_id), []).append(group_id)
    waiting = [drive(_delete(context, index, ids)) for index, ids in by_partition.items()]
    response = messages.DeleteGroupsResponse()
    for later in waiting:
        response.results += await later
    return response


async def _delete(context: Context, index: int, ids: list[str]) -> list[Any]:
    """Deletes groups of one shard; what share groups keep with the share coordinator goes first."""
    groups, results = context.broker.groups, []
    r = messages.DeleteGroupsResponse
    try:
        found = await groups.write_at(index, lambda shard: share_offsets.begin_delete_groups(shard, ids))
        for group_id, wanted in found.items():
            errors = [wanted] if isinstance(wanted, ApiError) else list((await delete_states(context.broker, group_id, wanted)).values())
            if errors:
                results.append(r.DeletableGroupResult(group_id=group_id, error_code=errors[0].code))
                ids = [one for one in ids if one != group_id]
        if ids:
            deleted = await groups.write_at(index, lambda shard: shard.delete_groups(ids))
            results += deleted
            for one in deleted:
                if not one.error_code:
                    context.broker.sharing.forget(one.group_id)
    except ApiError as error:
        results += [r.DeletableGroupResult(group_id=i, error_code=error.code) for i in ids]
    return results
