"""What the two APIs that alter configurations share: which resources they take, and the shape of their answer."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..coordinator.metadata.state import BROKER, GROUP, TOPIC
from ..protocol.config_def import ConfigInvalid, dynamic_broker_keys, keys
from ..protocol.errors import ApiError, Errors
from .context import Context


def repeated(resources: list[Any]) -> dict[tuple[int, str], ApiError]:
    """Resources that are named more than once, which no answer could tell apart."""
    counts = Counter((r.resource_type, r.resource_name) for r in resources)
    error = ApiError(Errors.INVALID_REQUEST, "Each resource must appear at most once.")
    return {key: error for key, count in counts.items() if count > 1}


def check_values(resource: Any, delete: int | None = None) -> None:
    """ApiError for keys without a value, unless they are to be deleted."""
    null = [c.name for c in resource.configs if c.value is None and (delete is None or c.config_operation != delete)]
    if null:
        raise ApiError(Errors.INVALID_REQUEST, f"Null value not supported for : {','.join(null)}")


def check_resource(context: Context, resource: Any, names: list[str], values: list[tuple[str, str | None]]) -> None:
    """ApiError for a resource that cannot be altered, or not like this."""
    if resource.resource_type == TOPIC:
        return
    if resource.resource_type == GROUP:
        if not resource.resource_name:
            raise ApiError(Errors.INVALID_REQUEST, "Default group resources are not allowed.")
        return
    if resource.resource_type != BROKER:
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    name = resource.resource_name
    if name and not name.lstrip("-").isdigit():
        raise ApiError(Errors.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if name and name != str(context.node_id):
        raise ApiError(Errors.INVALID_REQUEST, f"Unexpected broker id, expected {context.node_id}, but received {name}")
    fixed = [n for n in names if n not in dynamic_broker_keys()]
    if fixed:
        raise ApiError(Errors.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for key_name, value in values:
        key = keys("broker").get(key_name)
        try:
            if key is not None:
                key.parse(value)
        except ConfigInvalid as error:
            raise ApiError(Errors.INVALID_REQUEST, str(error)) from None


def answer(response_class: Any, request: Any, errors: dict[tuple[int, str], ApiError | None]) -> Any:
    response = response_class()
    for kind, name in ((r.resource_type, r.resource_name) for r in request.resources):
        error = errors.get((kind, name))
        response.responses.append(
            response_class.AlterConfigsResourceResponse(
                resource_type=kind,
                resource_name=name,
                error_code=0 if error is None else error.code,
                error_message=None if error is None else error.text if error.code > 0 else None,
            )
        )
    return response
