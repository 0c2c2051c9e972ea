"""Configurations of topics, brokers and groups: the controller's handlers (ConfigurationControlManager) and their checks."""

from __future__ import annotations

import re
from typing import Any

from ...protocol import messages
from ...protocol.config_def import ConfigInvalid, keys
from ...protocol.errors import ApiError, Errors
from ..shard import Result
from .controller import Controller
from .state import GROUP, TOPIC

_RESET = re.compile(r"earliest|latest|by_duration:P(?!$)(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?", re.IGNORECASE)
SET, DELETE, APPEND, SUBTRACT = range(4)


def check_topic_config(values: dict[str, str | None]) -> dict[str, str]:
    """The values that a topic is to have; ConfigInvalid, or ApiError in Kafka's words, for those that it cannot have."""
    known = keys("topic")
    parsed: dict[str, Any] = {}
    for name, value in values.items():
        if value is None:
            raise ApiError(Errors.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
        if name not in known:
            raise ApiError(Errors.INVALID_CONFIG, f"Unknown topic config name: {name}")
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


def reset_duration_ms(reset: str) -> int:
    """The milliseconds of `by_duration:PnDTnHnMn.nS`, which has been checked before."""
    days, _, times = reset.upper().partition(":")[2].removeprefix("P").partition("T")
    total = float(days.removesuffix("D") or 0) * 86_400_000
    for number, unit in re.findall(r"([\d.]+)([HMS])", times):
        total += float(number) * {"H": 3_600_000, "M": 60_000, "S": 1000}[unit]
    return int(total)


def group_bounds(name: str) -> tuple[str, str] | None:
    """The broker's keys for the least and the greatest value of a group's key (KIP-1240); None for a key that has none."""
    kind, _, rest = name.partition(".")
    low, high = (f"group.{kind}.{word}.{rest}" for word in ("min", "max"))
    return (low, high) if low in keys("broker") and high in keys("broker") else None


def check_group_config(controller: Controller, values: dict[str, str]) -> None:
    """ConfigInvalid or ApiError for values that a group cannot have."""
    known = keys("group")
    parsed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in known:
            raise ApiError(Errors.INVALID_CONFIG, f"Unknown group config name: {name}")
        if name == "share.auto.offset.reset" and not _RESET.fullmatch(value):
            reason = (
                f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' "
                "or of the format 'by_duration:<PnDTnHnMn.nS>'."
            )
            raise ConfigInvalid(name, value, reason)
        parsed[name] = value if name == "share.auto.offset.reset" else known[name].parse(value)
    for name, value in parsed.items():
        bounds = group_bounds(name)
        if bounds is not None:
            low, high = (controller.defaults.broker_value(key) for key in bounds)
            if not low <= value <= high:
                raise ApiError(Errors.INVALID_CONFIG, f"{name} must be in the range {low} to {high} inclusive.")
    _check_streams(controller, parsed)
    for kind in ("consumer", "share", "streams"):
        session, interval = (
            parsed.get(name, controller.defaults.broker_value(f"group.{name}"))
            for name in (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
        )
        if session <= interval:
            raise ApiError(Errors.INVALID_CONFIG, f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms")
    if parsed.get("errors.deadletterqueue.topic.name", "").startswith("__"):
        raise ApiError(Errors.INVALID_CONFIG, "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'")


def _check_streams(controller: Controller, parsed: dict[str, Any]) -> None:
    """What holds for keys of streams groups besides their ranges."""
    for name, key in (
        ("streams.num.standby.replicas", "group.streams.max.standby.replicas"),
        ("streams.num.warmup.replicas", "group.streams.max.warmup.replicas"),
    ):
        most = controller.defaults.broker_value(key)
        if parsed.get(name, 0) > most:
            raise ApiError(Errors.INVALID_CONFIG, f"{name} must be less than or equal to {most}")
    least = controller.defaults.broker_value("group.streams.min.task.offset.interval.ms")
    if parsed.get("streams.task.offset.interval.ms", least) < least:
        raise ApiError(Errors.INVALID_CONFIG, f"streams.task.offset.interval.ms must be greater than or equal to {least}")
    if "streams.assignor.name" in parsed:
        name, known = parsed["streams.assignor.name"], controller.defaults.broker_value("group.streams.assignors")
        if name not in known:
            text = f"streams.assignor.name '{name}' is not a registered task assignor. Registered assignors are: [{', '.join(known)}]."
            raise ApiError(Errors.INVALID_CONFIG, text)


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
    known = keys({TOPIC: "topic", GROUP: "group"}.get(kind, "broker")).get(key)
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
        elif kind == GROUP:
            check_group_config(controller, after)
    except ConfigInvalid as error:
        return ApiError(Errors.INVALID_CONFIG, str(error))
    except ApiError as error:
        return error
    for key, value in changes.items():
        if value != before.get(key) or (value is not None and key not in before):
            records.append(messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    return None
