"""ListConfigResources, versions 0 and 1: lists the resources that have a configuration (KIP-1142).

**Versions**
- 0 client metrics only (KIP-1000)
- 1 any types; all of them if none is given (KIP-1142)
"""

from __future__ import annotations

from ...coordinator.metadata.state import BROKER, CLIENT_METRICS, GROUP, TOPIC
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import Errors
from ..error_places import Place, codes
from ..net.answers import answer_each
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),)


BROKER_LOGGER = 8
TYPES_SINCE = 1
SUPPORTED = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
ERRORS = (Place("the whole", codes("CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION")),)


async def handle(
    context: Context, request: messages.ListConfigResourcesRequest
) -> messages.ListConfigResourcesResponse:
    r = messages.ListConfigResourcesResponse
    wanted = (request.resource_types or SUPPORTED) if context.version >= TYPES_SINCE else (CLIENT_METRICS,)
    if any(kind not in SUPPORTED for kind in wanted):
        return r(error_code=int(Errors.UNSUPPORTED_VERSION))
    image = context.broker.image
    nodes = [str(one.id) for one in image.brokers.values() if any(at.name == context.listener for at in one.endpoints)]
    names = {
        TOPIC: list(image.topics),
        BROKER: nodes,
        BROKER_LOGGER: nodes,
        CLIENT_METRICS: [name for kind, name in image.configs if kind == CLIENT_METRICS],
        GROUP: [name for kind, name in image.configs if kind == GROUP],
    }
    listed = ((kind, name) for kind in dict.fromkeys(wanted) for name in names[kind])
    return r(
        config_resources=await answer_each(
            context,
            "config_resources",
            listed,
            lambda one: r.ConfigResource(resource_name=one[1], resource_type=one[0]),
        )
    )
