"""AlterConfigs, versions 1 and 2: replaces the configuration of topics as a whole.

Deprecated in Kafka in favour of IncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.metadata import configs
from ...protocol import messages
from ...protocol.errors import ApiError
from ..altering import answer, check_resource, check_values, repeated
from ..context import Context


async def handle(context: Context, request: Any) -> Any:
    refused: dict[tuple[int, str], ApiError] = repeated(request.resources)
    wanted: list[tuple[int, str, dict[str, str | None]]] = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        if key in refused:
            continue
        try:
            check_values(resource)
            check_resource(context, resource, [c.name for c in resource.configs], [(c.name, c.value) for c in resource.configs])
            wanted.append((*key, {c.name: c.value for c in resource.configs}))
        except ApiError as error:
            refused[key] = error
    metadata = context.broker.metadata
    outcome = await metadata.submit(lambda: configs.alter_configs(metadata.controller, wanted, request.validate_only))
    errors = {(kind, name): error for (kind, name, _), error in zip(wanted, outcome, strict=True)}
    return answer(messages.AlterConfigsResponse, request, {**errors, **refused})
