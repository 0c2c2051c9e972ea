"""Configurations of topics, brokers and groups: the controller's handlers (ConfigurationControlManager) and their checks."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.config_def import ConfigInvalid, keys
from ...protocol.errors import ApiError, Errors
from ..shard import Result
from .controller import Controller
from .state import TOPIC

SET, DELETE, APPEND, SUBTRACT = range(4)


def check_topic_config(values: dict[str, str | None]) -> dict[str, str]:
    """The values that a topic is to have; ConfigInvalid, or ApiError in Kafka's words, for those that it cannot have."""
    known = keys("topic")
    parsed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ApiError(Errors.INVALID_CONFIG, f"Unknown topic config name: {name}")
        if value is None:
            raise ApiError(Errors.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        parsed[name] = known[name].parse(value)
    _check_together(parsed)
    return {name: value for name, value in values.items() if value is not None}


def _check_together(values: dict[str, Any]) -> None:
    known = keys("topic")

    def of(name: str) -> Any:
        return values[name] if name in values else known[name].parse(known[name].default)

    if of("min.compaction.lag.ms") > of("max.compaction.lag.ms"):
        raise ApiError(
            Errors.INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({of('min.compaction.lag.ms')}) "
            f"> max.compaction.lag.ms ({of('max.compaction.lag.ms')})",
        )
    if of("remote.storage.enable"):
        raise ApiError(
            Errors.INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        )


def alter_configs(controller: Controller, resources: list[tuple[int, str, dict[str, str | None]]], validate_only: bool) -> Result:
    """Replaces each resource's configuration as a whole. The reply is a list of errors or None, in order."""
    records: list[Any] = []
    reply: list[ApiError | None] = []
    for kind, name, values in resources:
        before = controller.state.config_of(kind, name)
        changes: dict[str, str | None] = {key: None for key in before if key not in values}
        changes |= values
        reply.append(_alter(controller, kind, name, changes, records))
    return Result([] if validate_only else records, reply)


def incremental_alter_configs(
    controller: Controller, resources: list[tuple[int, str, list[tuple[str, int, str | None]]]], validate_only: bool
) -> Result:
    """Applies (key, operation, value) to each resource. The reply is a list of errors or None, in order."""
    records: list[Any] = []
    reply: list[ApiError | None] = []
    for kind, name, operations in resources:
        try:
            changes = _changes(controller, kind, name, operations)
        except ApiError as error:
            reply.append(error)
            continue
        reply.append(_alter(controller, kind, name, changes, records))
    return Result([] if validate_only else records, reply)


def _changes(controller: Controller, kind: int, name: str, operations: list[tuple[str, int, str | None]]) -> dict[str, str | None]:
    before = controller.state.config_of(kind, name)
    changes: dict[str, str | None] = {}
    for key, operation, value in operations:
        if operation == DELETE:
            changes[key] = None
        elif operation == SET:
            changes[key] = value
        else:
            changes[key] = _list_operation(kind, key, operation, value or "", before)
    return changes


def _list_operation(kind: int, key: str, operation: int, value: str, before: dict[str, str]) -> str:
    known = keys("topic" if kind == TOPIC else "broker").get(key)
    word = "APPEND" if operation == APPEND else "SUBTRACT"
    if known is None or known.type != "LIST":
        raise ApiError(Errors.INVALID_CONFIG, f"Can't {word} to key {key} because its type is not LIST.")
    present = [p for p in (before.get(key, known.default) or "").split(",") if p]
    for part in (p.strip() for p in value.split(",")):
        if operation == APPEND and part not in present:
            present.append(part)
        elif operation == SUBTRACT and part in present:
            present.remove(part)
    return ",".join(present)


def _alter(controller: Controller, kind: int, name: str, changes: dict[str, str | None], records: list[Any]) -> ApiError | None:
    """Adds the records of one resource's change, or returns why it may not be."""
    before = controller.state.config_of(kind, name)
    after = {key: value for key, value in {**before, **changes}.items() if value is not None}
    try:
        if kind == TOPIC:
            if name not in controller.state.topics:
                return ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, "The topic '" + name + "' does not exist.")
            check_topic_config(dict(after))
    except ConfigInvalid as error:
        return ApiError(Errors.INVALID_CONFIG, str(error))
    except ApiError as error:
        return error
    for key, value in changes.items():
        if value != before.get(key) or (value is not None and key not in before):
            records.append(messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    return None
