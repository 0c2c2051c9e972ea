"""ListConfigResources, versions 0 and 1: what has a configuration (KIP-1142). 0 client metrics only; 1 by types, all where none is named."""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata.state import BROKER, GROUP, TOPIC
from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context

BROKER_LOGGER, CLIENT_METRICS = 8, 16
TYPES_SINCE = 1
SUPPORTED = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(context: Context, request: Any) -> Any:
    r = messages.ListConfigResourcesResponse
    wanted = (request.resource_types or SUPPORTED) if context.version >= TYPES_SINCE else (CLIENT_METRICS,)
    if any(kind not in SUPPORTED for kind in wanted):
        return r(error_code=int(Errors.UNSUPPORTED_VERSION))
    image, node = context.broker.image, str(context.node_id)
    names = {
        TOPIC: list(image.topics),
        BROKER: [node],
        BROKER_LOGGER: [node],
        CLIENT_METRICS: [],
        GROUP: [name for kind, name in image.configs if kind == GROUP],
    }
    return r(config_resources=[r.ConfigResource(resource_name=name, resource_type=kind) for kind in dict.fromkeys(wanted) for name in names[kind]])
