"""ListGroups: a group of the list."""

from __future__ import annotations

from ...protocol import messages
from .group import Group
from .streams.group import NOT_READY

_WORDS = {NOT_READY: "not_ready"}  # states in a filter that are not their names in lower case


def listed(
    group_id: str, group: Group, wanted_states: frozenset[str], wanted_types: frozenset[str], as_of: int
) -> messages.ListGroupsResponse.ListedGroup | None:
    """Returns the group as of a committed offset, if it is in one of the wanted states and of one of the wanted types,
    both in lower case. An empty set selects all.
    """
    state = group.state_name(as_of)
    if wanted_states and _WORDS.get(state, state.lower()) not in wanted_states:
        return None
    if wanted_types and group.kind not in wanted_types:
        return None
    return messages.ListGroupsResponse.ListedGroup(
        group_id=group_id, protocol_type=group.protocol_type or "", group_state=state, group_type=group.kind
    )
