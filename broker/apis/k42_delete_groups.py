"""DeleteGroups, versions 0 to 3: empty groups and their offsets go.

2 flexible; 3 a message for each group (KIP-1331).
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context
from ..later import Later


async def handle(context: Context, request: Any) -> Any:
    groups = context.broker.groups
    r = messages.DeleteGroupsResponse
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        by_partition.setdefault(groups.partition_for(group_id), []).append(group_id)
    writes: list[tuple[list[str], Later[Any] | ApiError]] = []
    for ids in by_partition.values():
        try:
            writes.append((ids, _delete(context, ids)))
        except ApiError as error:
            writes.append((ids, error))
    response = r()
    for ids, later in writes:
        try:
            if isinstance(later, ApiError):
                raise later
            response.results += await later
        except ApiError as error:
            response.results += [r.DeletableGroupResult(group_id=i, error_code=error.code) for i in ids]
    return response


def _delete(context: Context, ids: list[str]) -> Later[Any]:
    return context.broker.groups.write(ids[0], lambda shard: shard.delete_groups(ids))
