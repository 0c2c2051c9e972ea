"""IncrementalAlterConfigs, versions 0 and 1: sets, deletes, appends to and subtracts from single keys (KIP-339).

**Behaviour**
- The levels of loggers belong to the process: the controller does not hear of them (KIP-412).
- An unknown operation fails all resources that the controller was to decide, as in Kafka.

**Versions**
- 1 flexible
"""

from __future__ import annotations

from functools import partial

from ...coordinator.metadata import configs
from ...coordinator.metadata.state import BROKER
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
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
from ._logger_changes import BROKER_LOGGER, alter_levels

AUTHORIZATION = (TOPICS, GROUPS, BROKERS)
ERRORS = OF_EACH_RESOURCE


async def handle(
    context: Context,
    request: messages.IncrementalAlterConfigsRequest,
) -> messages.IncrementalAlterConfigsResponse:
    def check(
        resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource,
    ) -> list[tuple[str, int, str | None]]:
        check_names(resource.configs)
        check_values(c for c in resource.configs if c.config_operation != configs.DELETE)
        if resource.resource_type == BROKER_LOGGER:
            alter_levels(context, resource, request.validate_only)
            return []
        check_resource(context, resource)
        if resource.resource_type == BROKER:
            set_values = _values(context, resource)
            lost = [c.name for c in resource.configs if c.config_operation == configs.DELETE]
            names = [c.name for c in resource.configs if c.config_operation != configs.DELETE]
            check_broker(context, resource.resource_name, names, set_values, lost)
        return [(c.name, c.config_operation, c.value) for c in resource.configs]

    passed, refused = checked(request.resources, check)
    wanted = [one for one in passed if one[0] != BROKER_LOGGER]
    metadata = context.broker.metadata
    errors: list[ApiError | None] = []
    if any(one.resource_type != BROKER_LOGGER for one in request.resources):  # else the controller hears of nothing
        errors = await metadata.forward(
            partial(configs.incremental_alter_configs, metadata.controller, wanted), validate_only=request.validate_only
        )
    return answer(messages.IncrementalAlterConfigsResponse, request.resources, outcomes(wanted, errors, refused))


def _values(
    context: Context, resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource
) -> list[tuple[str, str | None]]:
    """Returns the values that keys of a broker would have. Raises ApiError(INVALID_REQUEST) for an unknown operation;
    INVALID_CONFIG: values are appended to what is no list, or taken from it; UNKNOWN_SERVER_ERROR, as Kafka, for a list
    that has no default.
    """
    unknown = next((c.config_operation for c in resource.configs if c.config_operation not in configs.OPERATIONS), None)
    if unknown is not None:
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown operations type {unknown}")
    before = context.broker.image.config_of(BROKER, resource.resource_name)
    found: list[tuple[str, str | None]] = []
    for c in resource.configs:
        value = c.value
        if c.config_operation in (configs.APPEND, configs.SUBTRACT):
            key = configs.check_list_operation(BROKER, c.name, c.config_operation)
            if not key.has_default:
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
            value = configs.changed_list(key, c.config_operation, value or "", before, repeats=True)
        if c.config_operation != configs.DELETE:
            found.append((c.name, value))
    return found
