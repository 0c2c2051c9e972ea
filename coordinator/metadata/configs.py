"""Configurations of topics, brokers, groups and client metrics: the controller's handlers (ConfigurationControlManager)
and their checks, which begin with the names of topics.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from ...protocol import messages
from ...protocol.config_def import ConfigInvalid, ConfigKey, keys, keys_in_force
from ...protocol.errors import ApiError, Errors
from ...protocol.features import CORDONED_SINCE, ELR_VERSION
from ...protocol.java import java_duration_ns, java_length, java_split
from ...protocol.structs import Struct
from ..hashing import concurrent_order, java_order, name_hash, table_order
from ..shard import Decision, Result
from .client_metrics import STEPS, check_client_metrics
from .controller import Controller, bounded
from .state import BROKER, CLIENT_METRICS, GROUP, TOPIC, MetadataState

INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
BY_DURATION = "by_duration:"
SET, DELETE, APPEND, SUBTRACT = OPERATIONS = range(4)
CORDONED = "cordoned.log.dirs"
MIN_ISR = "min.insync.replicas"
RESET = "share.auto.offset.reset"
TAGS = "streams.rack.aware.assignment.tags"
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
NAME_LENGTH_MAX = 249  # of topics
VALUE_LENGTH_MAX = 32767  # of a configuration that is altered, as Java counts
Values = dict[str, Any]  # parsed, by key: the key decides the type


def check_name(name: str) -> None:
    """Raises ApiError for an invalid topic name."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > NAME_LENGTH_MAX:
        reason = f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    elif not LEGAL_NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if reason:
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def error_of_absent(name: str) -> int:
    """Returns the error code for a topic that does not exist: INVALID_TOPIC_EXCEPTION if no topic may have the name."""
    try:
        check_name(name)
    except ApiError as error:
        return error.code
    return int(Errors.UNKNOWN_TOPIC_OR_PARTITION)


def known_to(release: str | None, topic: str) -> dict[str, ConfigKey]:
    """Returns the keys that a topic may have. `release`: the earlier one that is emulated, whose coordinators' topics
    have those of today too.
    """
    return keys_in_force("topic", release) if release and topic in INTERNAL_TOPICS else keys("topic", release)


def check_topic_config(given: dict[str, str], known: Mapping[str, ConfigKey] | None = None) -> None:
    """Validates the configuration of a topic. `known`: the keys that it may have; those of today unless
    they are named. Raises ConfigInvalid, or ApiError with Kafka's message.
    """
    known = keys("topic") if known is None else known
    for name in concurrent_order([name for name in given if name not in known], name_hash):
        raise ApiError(Errors.INVALID_CONFIG, f"Unknown topic config name: {name}")
    _check_together({name: key.parse(given[name]) for name, key in known.items() if name in given})


def _check_together(values: Values) -> None:
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
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage.",
        )


def reset_duration_ms(reset: str) -> int:
    """Returns the milliseconds of `by_duration:PnDTnHnMn.nS`, rounded up. Raises ValueError if it is negative, or no
    duration.
    """
    ns = java_duration_ns(reset[len(BY_DURATION) :])
    if ns < 0:
        raise ValueError(reset)
    return -(-ns // 1_000_000)


def group_bounds(name: str) -> tuple[str, str] | None:
    """Returns the broker keys for the minimum and the maximum of a group key (KIP-1240);
    None for a key without bounds.
    """
    kind, _, rest = name.partition(".")
    low, high = (f"group.{kind}.{word}.{rest}" for word in ("min", "max"))
    return (low, high) if low in keys("broker") and high in keys("broker") else None


_RANGES = tuple(
    f"{kind}.{rest}"
    for kind, names in (
        ("consumer", ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")),
        (
            "share",
            (
                "heartbeat.interval.ms",
                "session.timeout.ms",
                "record.lock.duration.ms",
                "delivery.count.limit",
                "partition.max.record.locks",
                "assignment.interval.ms",
            ),
        ),
        (
            "streams",
            (
                "heartbeat.interval.ms",
                "session.timeout.ms",
                "num.standby.replicas",
                "assignment.interval.ms",
                "task.offset.interval.ms",
                "num.warmup.replicas",
            ),
        ),
    )
    for rest in names
)
_MOST = {
    "streams.num.standby.replicas": "group.streams.max.standby.replicas",
    "streams.num.warmup.replicas": "group.streams.max.warmup.replicas",
}
_LEAST = {"streams.task.offset.interval.ms": "group.streams.min.task.offset.interval.ms"}


def check_group_config(controller: Controller, values: dict[str, str]) -> None:
    """Validates the configuration of a group. Raises ConfigInvalid or ApiError: of several violations that which Kafka
    finds first.
    """
    known = keys("group")
    for name in java_order(values):
        if name not in known:
            raise ApiError(Errors.INVALID_CONFIG, f"Unknown group config name: {name}")
    _check_tags(values.get(TAGS))
    parsed: Values = {}
    for name, key in known.items():
        if name in values:
            parsed[name] = _reset(key, values[name]) if name == RESET else key.parse(values[name])
    for name in _RANGES:
        if name in parsed:
            _check_range(controller, name, parsed[name])
    _check_assignor(controller, parsed.get("streams.assignor.name"))
    for kind in ("consumer", "share", "streams"):
        session, interval = (
            parsed.get(name, controller.defaults.broker_value(f"group.{name}"))
            for name in (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
        )
        if session <= interval:
            raise ApiError(
                Errors.INVALID_CONFIG, f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms"
            )
    if parsed.get("errors.deadletterqueue.topic.name", "").startswith("__"):
        raise ApiError(
            Errors.INVALID_CONFIG, "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'"
        )


def _check_tags(text: str | None) -> None:
    """Checks the list before its values, which may be empty or have duplicates that the parser drops."""
    tags = [tag.strip() for tag in text.split(",")] if text is not None else []
    if len(set(tags)) < len(tags):
        raise ApiError(Errors.INVALID_CONFIG, f"{TAGS} must not contain duplicate tag keys.")


def _reset(key: ConfigKey, text: str) -> str:
    reset = key.canonical(text)
    if not _is_reset(reset):
        reason = (
            f"Invalid value `{reset}` for configuration {key.name}. The value must be either 'earliest', 'latest' "
            "or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise ConfigInvalid(key.name, reset, reason)
    return reset


def _is_reset(reset: str) -> bool:
    if not reset.startswith(BY_DURATION):
        return reset in ("earliest", "latest")
    try:
        reset_duration_ms(reset)
    except ValueError:
        return False
    return True


def _check_range(controller: Controller, name: str, value: int) -> None:
    """Checks a value against those that the broker allows."""
    bound = controller.defaults.broker_value
    if name in _MOST and value > bound(_MOST[name]):
        raise ApiError(Errors.INVALID_CONFIG, f"{name} must be less than or equal to {bound(_MOST[name])}")
    if name in _LEAST and value < bound(_LEAST[name]):
        raise ApiError(Errors.INVALID_CONFIG, f"{name} must be greater than or equal to {bound(_LEAST[name])}")
    bounds = group_bounds(name)
    if bounds is not None:
        low, high = map(bound, bounds)
        if not low <= value <= high:
            raise ApiError(Errors.INVALID_CONFIG, f"{name} must be in the range {low} to {high} inclusive.")


def _check_assignor(controller: Controller, name: str | None) -> None:
    known = controller.defaults.broker_value("group.streams.assignors")
    if name is not None and name not in known:
        text = (
            f"streams.assignor.name '{name}' is not a registered task assignor. Registered assignors are: "
            f"[{', '.join(known)}]."
        )
        raise ApiError(Errors.INVALID_CONFIG, text)


def alter_configs(
    controller: Controller, resources: Sequence[tuple[int, str, dict[str, str | None]]]
) -> Decision[list[ApiError | None]]:
    """Replaces each resource's whole configuration. The reply is a list of errors or None, in order."""
    records: list[Struct] = []
    reply: list[ApiError | None] = []
    for kind, name, values in resources:
        yield from repeat(None, STEPS if kind == CLIENT_METRICS else 1)
        before = controller.state.config_of(kind, name)
        changes: dict[str, str | None] = {key: None for key in before if key not in values}
        changes |= values
        reply.append(_alter(controller, kind, name, changes, records))
    return bounded(Result([*records, *_clearing(controller, records)], reply))


def incremental_alter_configs(
    controller: Controller, resources: Sequence[tuple[int, str, list[tuple[str, int, str | None]]]]
) -> Decision[list[ApiError | None]]:
    """Applies (key, operation, value) to each resource. The reply is a list of errors or None, in order. An operation
    that is unknown fails all of them, as in Kafka.
    """
    records: list[Struct] = []
    reply: list[ApiError | None] = []
    for kind, name, operations in resources:
        yield from repeat(None, STEPS if kind == CLIENT_METRICS else 1)
        try:
            changes = _changes(controller, kind, name, operations)
        except ApiError as error:
            if error.code == Errors.UNKNOWN_SERVER_ERROR:
                return Result([], [error] * len(resources))
            reply.append(error)
            continue
        reply.append(_alter(controller, kind, name, changes, records))
    return bounded(Result([*records, *_clearing(controller, records)], reply))


def _changes(
    controller: Controller,
    kind: int,
    name: str,
    operations: list[tuple[str, int, str | None]],
) -> dict[str, str | None]:
    """Returns the values of the keys that change. Raises ApiError: INVALID_CONFIG for what is no list, of the first
    such key in the order of Kafka's hash table; UNKNOWN_SERVER_ERROR for an unknown operation.
    """
    before = controller.state.config_of(kind, name)
    changes: dict[str, str | None] = {}
    for key, operation, value in table_order(operations, lambda one: name_hash(one[0])):
        if operation not in OPERATIONS:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        if operation == DELETE:
            changes[key] = None
        elif operation == SET:
            changes[key] = value
        else:
            changes[key] = changed_list(check_list_operation(kind, key, operation), operation, value or "", before)
    return changes


def check_list_operation(kind: int, key: str, operation: int) -> ConfigKey:
    """Returns the key of a list to which values are appended, or from which they are taken. Raises
    ApiError(INVALID_CONFIG).
    """
    known = None
    if kind in (TOPIC, BROKER):  # Kafka does not know the lists of others as such here
        known = keys("topic" if kind == TOPIC else "broker").get(key)
    word = "APPEND" if operation == APPEND else "SUBTRACT"
    if kind == BROKER and known is None:
        raise ApiError(Errors.INVALID_CONFIG, f"Unknown config name: {key}")
    if known is None or known.type != "LIST":
        text = f"Can't {word} to key {key} because its type is not LIST."
        if kind == BROKER:
            text = f"Config value {word.lower()} is not allowed for config key: {key}"
        raise ApiError(Errors.INVALID_CONFIG, text)
    return known


def changed_list(key: ConfigKey, operation: int, value: str, before: dict[str, str], *, repeats: bool = False) -> str:
    """Returns the list to which values were appended, or from which they were taken. `repeats`: a value that is
    appended more than once is there more than once, as Kafka's brokers check it.
    """
    present = [p for p in (before.get(key.name, key.default) or "").split(",") if p]
    known = tuple(present) if repeats else present
    for part in java_split(value):  # with its spaces, as in Kafka
        if operation == APPEND and part not in known:
            present.append(part)
        elif operation == SUBTRACT and part in present:
            present.remove(part)
    return ",".join(present)


def _check_min_isr(state: MetadataState, kind: int, name: str, changes: dict[str, str | None]) -> None:
    """With eligible leader replicas (KIP-966), `min.insync.replicas` of all brokers is there, and no other broker's.
    Raises ApiError(INVALID_CONFIG).
    """
    if kind != BROKER or MIN_ISR not in changes or not state.features.get(ELR_VERSION):
        return
    if name:
        text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
        raise ApiError(Errors.INVALID_CONFIG, text)
    if changes[MIN_ISR] is None:
        text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
        raise ApiError(Errors.INVALID_CONFIG, text)


def _check_cordoned(state: MetadataState, kind: int, changes: Container[str]) -> None:
    """Raises ApiError(INVALID_CONFIG) where the metadata version has no cordoned log directories (KIP-1066)."""
    if kind == BROKER and CORDONED in changes and state.metadata_version < CORDONED_SINCE:
        text = f"The {CORDONED} configuration value cannot be set because it requires metadata.version >= 4.3-IV0"
        raise ApiError(Errors.INVALID_CONFIG, text)


def _check_sizes(changes: Mapping[str, str | None]) -> None:
    """Raises ApiError(INVALID_CONFIG) for a value that strings of old requests cannot have."""
    for value in changes.values():
        if value is not None and java_length(value) > VALUE_LENGTH_MAX:
            text = (
                "The configuration value cannot be added because it exceeds the maximum value size of "
                f"{VALUE_LENGTH_MAX} bytes."
            )
            raise ApiError(Errors.INVALID_CONFIG, text)


def _clearing(controller: Controller, records: Iterable[Struct]) -> Iterator[Struct]:
    """Yields the records that take the eligible replicas from the topics whose `min.insync.replicas` changes (KIP-966).
    With a lower one records are committed that these replicas may not have.
    """
    if controller.state.features.get(ELR_VERSION):
        for record in records:
            if isinstance(record, messages.ConfigRecord) and record.name == MIN_ISR:
                topic = record.resource_name if record.resource_type == TOPIC else ""
                yield messages.ClearElrRecord(topic_name=topic)


def _own_min_isr(controller: Controller) -> str | None:
    """Returns the `min.insync.replicas` of the broker's own configuration."""
    return (controller.defaults.topic_configs or {}).get(MIN_ISR, keys("topic")[MIN_ISR].default)


def records_for_elr(controller: Controller) -> list[Struct]:
    """Returns the records with which eligible leader replicas begin: `min.insync.replicas` of all brokers, which
    replaces those of single brokers (ConfigurationControlManager).
    """
    record, found = messages.ConfigRecord, list[Struct]()
    if MIN_ISR not in controller.state.config_of(BROKER, ""):
        found.append(record(resource_type=BROKER, resource_name="", name=MIN_ISR, value=_own_min_isr(controller)))
    for (kind, name), values in controller.state.configs.items():
        if kind == BROKER and name and MIN_ISR in values:
            found.append(record(resource_type=BROKER, resource_name=name, name=MIN_ISR, value=None))
    return found


def _alter(
    controller: Controller,
    kind: int,
    name: str,
    changes: dict[str, str | None],
    records: list[Struct],
) -> ApiError | None:
    """Appends the records of one resource's change, or returns the error."""
    before = controller.state.config_of(kind, name)
    is_removed = (kind, name) == (BROKER, "") and changes.get(MIN_ISR, "") is None
    if is_removed and controller.defaults.release is not None and controller.state.features.get(ELR_VERSION):
        changes = {**changes, MIN_ISR: _own_min_isr(controller)}  # clients of earlier releases know of no such rule
    after = {key: value for key, value in {**before, **changes}.items() if value is not None}
    try:
        _check_min_isr(controller.state, kind, name, changes)
        _check_cordoned(controller.state, kind, changes)
        _check_sizes(changes)
        if kind in (TOPIC, GROUP) and not name:
            word = "topic" if kind == TOPIC else "group"
            return ApiError(Errors.INVALID_REQUEST, f"Default {word} resources are not allowed.")
        if kind == TOPIC:
            check_name(name)
            check_topic_config(after, known_to(controller.defaults.release, name))
            if name not in controller.state.topics:
                return ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, "The topic '" + name + "' does not exist.")
        elif kind == GROUP:
            check_group_config(controller, after)
        elif kind == CLIENT_METRICS:
            check_client_metrics(name, after, controller.defaults.release)
    except ConfigInvalid as error:
        return ApiError(Errors.INVALID_CONFIG, str(error))
    except ApiError as error:
        return error
    for key, value in changes.items():
        if value != before.get(key) or (value is not None and key not in before):
            records.append(messages.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value))
    return None
