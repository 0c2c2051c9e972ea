"""StreamsGroupTopologyDescriptionUpdate, version 0: a member says what its topology looks like (KIP-1331).

**Behaviour**
- Kafka stores descriptions with a plug-in, a Java class. ottla has Kafka's InMemoryTopologyDescriptionPlugin; without
  one the answer is UNSUPPORTED_VERSION.
- A heartbeat asks a member for the description; every member may send one at any time.

**State**
- The description is kept in memory, and its epoch in the group's record. What was stored is forgotten when the process
  ends, and not asked for again, as in Kafka.
"""

from __future__ import annotations

from functools import partial

from ...coordinator.group.streams.stored_descriptions import check_update
from ...coordinator.group.streams.topology_description import shown_of
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import paced
from ._streams_groups import check_enabled

GROUPS = Check(Operation.READ, ResourceType.GROUP, "group_id", Refusal.IN_HANDLER)
AUTHORIZATION = (GROUPS,)
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_GROUP_ID UNKNOWN_MEMBER_ID GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST "
            "GROUP_ID_NOT_FOUND STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"
        ),
        text=Text.OWN,
    ),
)


async def handle(
    context: Context, request: messages.StreamsGroupTopologyDescriptionUpdateRequest
) -> messages.StreamsGroupTopologyDescriptionUpdateResponse:
    check_enabled(context)
    GROUPS.require(context, request.group_id)
    groups = context.broker.groups
    if groups.descriptions is None:
        raise ApiError(
            Errors.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
        )
    for name, text in (("MemberId", request.member_id), ("GroupId", request.group_id)):
        if not text.strip():
            raise ApiError(Errors.INVALID_REQUEST, f"{name} can't be empty.")
    groups.read(request.group_id, partial(check_update, request=request))
    description = await paced(context.broker.turn, shown_of(request.topology_description))
    await groups.descriptions.update(groups, request.group_id, request.topology_epoch, description)
    return messages.StreamsGroupTopologyDescriptionUpdateResponse()
