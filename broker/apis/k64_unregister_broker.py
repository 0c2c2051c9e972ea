"""UnregisterBroker, version 0: forgets a broker that will not come back (KIP-631).

**Behaviour**
- A node of this process that is unregistered leads nothing, until the process starts again and registers it.
"""

from __future__ import annotations

from ...coordinator.metadata import brokers
from ...coordinator.metadata.controller import limited
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import CONTROLLER, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED BROKER_ID_NOT_REGISTERED"),
        text=Text.OWN_OF_ALL_OR_OF_CODE,
    ),
)


async def handle(context: Context, request: messages.UnregisterBrokerRequest) -> messages.UnregisterBrokerResponse:
    metadata = context.broker.metadata
    try:
        is_unknown = request.broker_id not in metadata.controller.state.brokers
        await metadata.forward(
            lambda: limited(brokers.unregister(metadata.controller, request.broker_id)), is_void=is_unknown
        )
    except ApiError as error:
        if error.code != Errors.REQUEST_TIMED_OUT:
            raise
        return messages.UnregisterBrokerResponse(error_code=error.code, error_message=None)  # Kafka has none here
    return messages.UnregisterBrokerResponse()
