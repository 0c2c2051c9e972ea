"""AlterConfigs, versions 0 to 2: replaces the whole configuration of topics (KIP-133).

**Behaviour**
- Deprecated in Kafka; clients use IncrementalAlterConfigs.

**Versions**
- 2 flexible
"""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata import configs
from ...coordinator.metadata.state import BROKER
from ...protocol import messages
from ..net.context import Context
from ._config_changes import (
    BROKERS,
    GROUPS,
    OF_EACH_RESOURCE,
    TOPICS,
    answer,
    check_broker,
    check_names,
    check_resource,
    check_values,
    checked,
    outcomes,
)

AUTHORIZATION = (TOPICS, GROUPS, BROKERS)
ERRORS = OF_EACH_RESOURCE


async def handle(context: Context, request: messages.AlterConfigsRequest) -> messages.AlterConfigsResponse:
    def check(resource: messages.AlterConfigsRequest.AlterConfigsResource) -> dict[str, str | None]:
        check_names(resource.configs)
        check_values(resource.configs)
        check_resource(context, resource)
        if resource.resource_type == BROKER:
            values = [(c.name, c.value) for c in resource.configs]
            check_broker(context, resource.resource_name, [name for name, _ in values], values)
        return {c.name: c.value for c in resource.configs}

    if not request.resources:
        return messages.AlterConfigsResponse()
    wanted, refused = checked(request.resources, check)
    metadata = context.broker.metadata
    errors = await metadata.forward(
        partial(configs.alter_configs, metadata.controller, wanted), validate_only=request.validate_only
    )
    return answer(messages.AlterConfigsResponse, request.resources, outcomes(wanted, errors, refused))
