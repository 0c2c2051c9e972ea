"""StreamsGroupTopologyDescriptionUpdate, version 0: a member says what its topology looks like.

**Behaviour**
- Descriptions are stored by a plug-in (StreamsGroupTopologyDescriptionPlugin), a Java class, which ottla does not have.
  The answer is UNSUPPORTED_VERSION, as that of a Kafka without one. Not implemented: what Kafka's
  InMemoryTopologyDescriptionPlugin does.
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
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


def handle(
    context: Context, request: messages.StreamsGroupTopologyDescriptionUpdateRequest
) -> messages.StreamsGroupTopologyDescriptionUpdateResponse:
    check_enabled(context)
    GROUPS.require(context, request.group_id)
    raise ApiError(
        Errors.UNSUPPORTED_VERSION, "The broker has no streams group topology description plugin configured."
    )
