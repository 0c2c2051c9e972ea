"""IncrementalAlterConfigs, versions 0 and 1: sets, deletes, appends to and subtracts from single keys (KIP-339). 1 is flexible."""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata import configs
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..altering import answer, check_resource, check_values, repeated
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    refused: dict[tuple[int, str], ApiError] = repeated(request.resources)
    wanted: list[tuple[int, str, list[tuple[str, int, str | None]]]] = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        if key in refused:
            continue
        try:
            _check_operations(resource)
            names = [c.name for c in resource.configs]
            set_values = [(c.name, c.value) for c in resource.configs if c.config_operation == configs.SET]
            check_resource(context, resource, names, set_values)
            wanted.append((*key, [(c.name, c.config_operation, c.value) for c in resource.configs]))
        except ApiError as error:
            refused[key] = error
    metadata = context.broker.metadata
    outcome = await metadata.submit(lambda: configs.incremental_alter_configs(metadata.controller, wanted, request.validate_only))
    errors = {(kind, name): error for (kind, name, _), error in zip(wanted, outcome, strict=True)}
    return answer(messages.IncrementalAlterConfigsResponse, request, {**errors, **refused})


def _check_operations(resource: Any) -> None:
    names = [c.name for c in resource.configs]
    if len(set(names)) < len(names):
        raise ApiError(Errors.INVALID_REQUEST, "Error due to duplicate config keys")
    check_values(resource, configs.DELETE)
    for c in resource.configs:
        if not configs.SET <= c.config_operation <= configs.SUBTRACT:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
