"""ListGroups: the groups of a shard as of a committed offset."""

from __future__ import annotations

from ...protocol import messages
from .state import ShardState
from .streams.group import NOT_READY

_WORDS = {NOT_READY: "not_ready"}  # states in a filter that are not their names in lower case


def listed(
    shard: ShardState, wanted_states: frozenset[str], wanted_types: frozenset[str], as_of: int
) -> list[messages.ListGroupsResponse.ListedGroup]:
    """Returns the groups in one of the wanted states and of one of the wanted types, both in lower case. An empty set
    selects all.
    """
    g = messages.ListGroupsResponse.ListedGroup
    found = []
    for group_id, group in shard.groups.items(as_of):
        state = group.state_name(as_of)
        if wanted_states and _WORDS.get(state, state.lower()) not in wanted_states:
            continue
        if wanted_types and group.kind not in wanted_types:
            continue
        found.append(
            g(
                group_id=group_id,
                protocol_type=group.protocol_type or "",
                group_state=state,
                group_type=group.kind,
            )
        )
    return found
