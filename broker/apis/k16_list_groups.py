"""ListGroups, versions 0 to 5: the groups of this coordinator.

3 flexible; 4 states, and a filter by them (KIP-518); 5 types, and a filter by them (KIP-848).
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import describing
from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    states, types = request.states_filter or [], request.types_filter or []
    try:
        found = context.broker.groups.read_all(lambda shard, as_of: describing.listed(shard, states, types, as_of))
    except ApiError as error:
        return messages.ListGroupsResponse(error_code=error.code)
    return messages.ListGroupsResponse(groups=[group for of_shard in found for group in of_shard])
