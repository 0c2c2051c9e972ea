"""UnregisterController, version 0: forgets a controller that was registered once, in another life of the data directory
(KIP-1170).

**Behaviour**
- The active controller gets INVALID_REQUEST. That of another node registers again at once, as Kafka's do.
"""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata import registrations
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ..error_places import CONTROLLER, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST CONTROLLER_ID_NOT_REGISTERED"),
        text=Text.OWN_OF_ALL_OR_OF_CODE,
    ),
)


async def handle(
    context: Context, request: messages.UnregisterControllerRequest
) -> messages.UnregisterControllerResponse:
    metadata, asked = context.broker.metadata, request.controller_id
    active = (await metadata.answers()).leader
    if metadata.quorum.active is None or asked == active or asked not in context.broker.nodes.by_id:
        is_void = asked == active or asked not in metadata.controller.state.controllers
        unregister = partial(registrations.unregister_controller, metadata.controller, active, asked)
        await metadata.forward(unregister, is_void=is_void)
    else:
        await metadata.reached()
    return messages.UnregisterControllerResponse()
