"""Changes of the levels of loggers, for IncrementalAlterConfigs (KIP-412)."""

from __future__ import annotations

from ...coordinator.metadata.configs import APPEND, DELETE, SET, SUBTRACT
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..loggers import LEVELS, ROOT
from ..net.context import Context
from ._config_changes import BROKERS, node_number

BROKER_LOGGER = 8
_REFUSED = {APPEND: "APPEND operation", SUBTRACT: "SUBTRACT operation"}


def alter_levels(
    context: Context, resource: messages.IncrementalAlterConfigsRequest.AlterConfigsResource, validate_only: bool
) -> None:
    """Sets the levels of loggers, unless the request only validates. Raises ApiError, and changes none."""
    BROKERS.require(context)
    node = node_number(resource.resource_name)
    if node != context.node_id:
        raise ApiError(Errors.INVALID_REQUEST, f"Unexpected node id. Expected {context.node_id}, but received {node}")
    loggers = context.broker.loggers
    known = frozenset(loggers.names())
    for change in resource.configs:
        _check(change, known)
    if not validate_only:
        for change in resource.configs:
            loggers.set_level(change.name, change.value if change.config_operation == SET else None)


def _check(change: messages.IncrementalAlterConfigsRequest.AlterableConfig, known: frozenset[str]) -> None:
    name, operation = change.name, change.config_operation
    if operation not in (SET, DELETE):
        what = _REFUSED.get(operation, f"Unknown operation type {operation}")
        raise ApiError(Errors.INVALID_REQUEST, f"{what} is not allowed for the BROKER_LOGGER resource")
    if name not in known:
        raise ApiError(Errors.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == DELETE:
        if name == ROOT:
            raise ApiError(Errors.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    elif change.value not in LEVELS:
        raise ApiError(
            Errors.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(LEVELS))}",
        )
