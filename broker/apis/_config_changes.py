"""Helpers of AlterConfigs and IncrementalAlterConfigs: checks of the resources, and the shape of the reply."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ...coordinator.metadata.configs import CORDONED
from ...coordinator.metadata.state import BROKER, CLIENT_METRICS, GROUP, TOPIC
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.config_def import ConfigInvalid, ConfigKey, dynamic_broker_keys, numbers_of
from ...protocol.errors import ApiError, Errors
from ..config import relations as config_relations
from ..config.listener_values import CONNECTIONS, is_of_one_broker, key_of_listener, without_listener
from ..config.rates import RATES
from ..error_places import CONTROLLER, Place, Text, array, codes
from ..net.context import Context
from ..net.listener_changes import check_listeners, check_threads, not_taken
from ..security.authorization import Check, Refusal
from ..settings import parsed_values
from ..tls.listener import STORES

if TYPE_CHECKING:
    Resource = (
        messages.AlterConfigsRequest.AlterConfigsResource | messages.IncrementalAlterConfigsRequest.AlterConfigsResource
    )
    Change = messages.AlterConfigsRequest.AlterableConfig | messages.IncrementalAlterConfigsRequest.AlterableConfig
    R = TypeVar(
        "R",
        messages.AlterConfigsRequest.AlterConfigsResource,
        messages.IncrementalAlterConfigsRequest.AlterConfigsResource,
    )
    Response = TypeVar("Response", messages.AlterConfigsResponse, messages.IncrementalAlterConfigsResponse)

TOPICS = Check(Operation.ALTER_CONFIGS, ResourceType.TOPIC, "resources.resource_name", Refusal.ELEMENT)
GROUPS = Check(Operation.ALTER_CONFIGS, ResourceType.GROUP, "resources.resource_name", Refusal.ELEMENT)
BROKERS = Check(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
OF_EACH_RESOURCE = (
    Place(
        "each resource",
        CONTROLLER
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED "
            "GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_CONFIG INVALID_REQUEST "
            "POLICY_VIOLATION"
        ),
        (array("responses", "resources", type="resource_type", resource="resource_name"),),
        text=Text.OWN,
    ),
)
CLEANER_THREADS = "log.cleaner.threads"
PROVIDERS = "config.providers"  # Kafka takes it from what it checks
REPORTERS = "metric.reporters"
REPORTER_CLASSES = ("org.apache.kafka.common.metrics.JmxReporter",)
C = TypeVar("C")
Outcomes = dict[tuple[int, str], ApiError | None]
"""The outcome of each resource of a request, by its type and name: an error, None where it was altered."""
THREADS = (
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "background.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)


def checked(resources: Iterable[R], check: Callable[[R], C]) -> tuple[list[tuple[int, str, C]], Outcomes]:
    """Returns the result of `check` for each resource, by type and name, and the errors of those that it refuses.

    A resource that the request names more than once is refused without a check.
    """
    resources = list(resources)
    refused = repeated(resources)
    wanted: list[tuple[int, str, C]] = []
    for resource in resources:
        key: tuple[int, str] = (resource.resource_type, resource.resource_name)
        if key not in refused:
            try:
                wanted.append((*key, check(resource)))
            except ApiError as error:
                refused[key] = error
    return wanted, refused


def outcomes(
    wanted: Iterable[tuple[int, str, object]], errors: Iterable[ApiError | None], refused: Outcomes
) -> Outcomes:
    """Returns the outcome of every resource: from the controller, or from the checks before it."""
    return {(kind, name): error for (kind, name, _), error in zip(wanted, errors, strict=True)} | refused


def repeated(resources: Sequence[Resource]) -> Outcomes:
    """Returns an error for each resource that the request names more than once."""
    counts = Counter((r.resource_type, r.resource_name) for r in resources)
    error = ApiError(Errors.INVALID_REQUEST, "Each resource must appear at most once.")
    return {key: error for key, count in counts.items() if count > 1}


def check_names(changes: Sequence[Change]) -> None:
    """Raises ApiError(INVALID_REQUEST): a key is named more than once."""
    if len({c.name for c in changes}) < len(changes):
        raise ApiError(Errors.INVALID_REQUEST, "Error due to duplicate config keys")


def check_values(changes: Iterable[Change]) -> None:
    """Raises ApiError(INVALID_REQUEST): there are keys without a value."""
    null = [c.name for c in changes if c.value is None]
    if null:
        raise ApiError(Errors.INVALID_REQUEST, f"Null value not supported for : {', '.join(null)}")


def node_number(name: str) -> int:
    """Returns the number of a node, as Java reads it. Raises ApiError(INVALID_REQUEST): it is none."""
    if re.fullmatch(r"[+-]?\d+", name) is None or not -(1 << 31) <= int(name) < 1 << 31:
        raise ApiError(Errors.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    return int(name)


def check_resource(context: Context, resource: Resource) -> None:
    """Raises ApiError for a resource that cannot be altered, whatever exists."""
    if resource.resource_type == TOPIC:
        TOPICS.require(context, resource.resource_name)
        return
    if resource.resource_type == GROUP:
        GROUPS.require(context, resource.resource_name)
        return
    if resource.resource_type not in (BROKER, CLIENT_METRICS):
        raise ApiError(Errors.INVALID_REQUEST, f"Unknown resource type {resource.resource_type}")
    BROKERS.require(context)
    if resource.resource_type == CLIENT_METRICS:
        return
    name = resource.resource_name
    if name and node_number(name) != context.node_id:
        raise ApiError(Errors.INVALID_REQUEST, f"Unexpected broker id, expected {context.node_id}, but received {name}")


def check_broker(
    context: Context, name: str, names: list[str], values: list[tuple[str, str | None]], lost: Iterable[str] = ()
) -> None:
    """Raises ApiError for keys of a broker, or of all where `name` is empty, that cannot be altered, or not to these
    values. `lost`: the keys that lose their values, which Kafka lets any do.
    """
    release, known = context.broker.config.emulates, context.broker.config.broker_keys
    dynamic = dynamic_broker_keys(release)
    fixed = sorted(n for n in names if n in known and n not in dynamic)
    if fixed:
        raise ApiError(Errors.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    only_by_listener = sorted(n for n in names if n in STORES)
    if only_by_listener:
        text = "These security configs can be dynamically updated only per-listener using the listener prefix"
        raise ApiError(Errors.INVALID_REQUEST, f"{text}: [{', '.join(only_by_listener)}]")
    given = {without_listener(key_name): value for key_name, value in values}
    for key in (*RATES.values(), *known.values()):
        if key.name in given and (key.name in RATES or key.name in dynamic) and key.name != PROVIDERS:
            if key.type == "LIST" and release is None:
                _check_repeated(key, given[key.name] or "")
            _check_value(key, given[key.name])
    of_one = sorted(n for n in names if n == CORDONED or is_of_one_broker(n, release))
    if of_one and not name:
        text = "Cannot update these configs at default cluster level, broker id must be specified"
        raise ApiError(Errors.INVALID_REQUEST, f"{text}: [{', '.join(of_one)}]")
    changes: dict[str, str | None] = dict.fromkeys((*names, *lost))
    _check_together(context, name, changes | dict(values))
    check_listeners(context.broker, changes | dict(values))
    _check_encoder(context, name, values)


def _check_repeated(key: ConfigKey, value: str) -> None:
    """Raises ApiError(INVALID_REQUEST): a list has an entry more than once (KIP-1161)."""
    parts = [part.strip() for part in value.split(",")]
    if len(set(parts)) < len(parts):
        raise ApiError(Errors.INVALID_REQUEST, f"Configuration '{key.name}' values must not be duplicated.")


def _check_value(key: ConfigKey, value: str | None) -> None:
    """Raises ApiError(INVALID_REQUEST): a key cannot have a value, or it is a class, of which Kafka's own exist."""
    try:
        key.parse(value)
    except ConfigInvalid as error:
        raise ApiError(Errors.INVALID_REQUEST, str(error)) from None
    if key.type == "CLASS" and value != key.default:
        text = f"Invalid value {value} for configuration {key.name}: Class {value} could not be found."
        raise ApiError(Errors.INVALID_REQUEST, text)


def _check_encoder(context: Context, name: str, values: list[tuple[str, str | None]]) -> None:
    """Raises ApiError for a password that should be kept in ZooKeeper without a secret to encrypt it with."""
    config = context.broker.config
    if not config.uses_zookeeper or config.values.get("password.encoder.secret") is not None:
        return
    for key_name, _ in values:
        of_listener = key_of_listener(key_name, config.emulates)
        key = config.broker_keys.get(key_name) if of_listener is None else of_listener[1]
        if key is not None and key.type == "PASSWORD":
            resource = f"ConfigResource(type=BROKER, name='{name}')"
            text = f"Invalid config value for resource {resource}: Password encoder secret not configured"
            is_wrong = config.emulates is not None and numbers_of(config.emulates) >= (3, 3)
            raise ApiError(Errors.INVALID_CONFIG if is_wrong else Errors.INVALID_REQUEST, text)


def _check_together(context: Context, name: str, changes: dict[str, str | None]) -> None:
    """Raises ApiError for values that contradict other values in force.
    `name`: the broker, or empty for all brokers.
    """
    broker = context.broker
    found = dict(broker.config.values)
    for resource in ("", str(context.node_id)):
        dynamic: dict[str, str | None] = {
            **broker.image.config_of(BROKER, resource),
            **(changes if resource == name else {}),
        }
        found |= parsed_values(broker.config.broker_keys, dynamic)
    wrong = config_relations.refused(found)
    if wrong is not None:
        relation, words = wrong
        raise ApiError(Errors.INVALID_REQUEST, f"requirement failed: {words}" if relation.is_required else words)
    for key in THREADS:
        if found[key] != (present := broker.settings.value(key)):
            check_threads(key, found[key], present)
    for key in CONNECTIONS:
        if found[key] <= 0:
            raise not_taken(f"Invalid {key} {found[key]}")
    cleaners, present = found[CLEANER_THREADS], broker.settings.value(CLEANER_THREADS)
    if cleaners > present * 2:
        raise not_taken(f"Log cleaner threads cannot be increased to more than double the current value {present}")
    if cleaners < present // 2:
        raise not_taken(f"Log cleaner threads cannot be reduced to less than half the current value {present}")
    wrong_size = config_relations.refused_beside_remote_storage(found)
    if wrong_size is not None:
        raise not_taken(wrong_size)
    if found[REPORTERS] != broker.settings.value(REPORTERS) and set(found[REPORTERS]) - set(REPORTER_CLASSES):
        raise not_taken(
            f"Validation of dynamic config update of Set({REPORTERS}) failed with class class "
            "kafka.server.DynamicMetricsReporters"
        )


def answer(
    response_class: type[Response],
    resources: Sequence[Resource],
    errors: Outcomes,
) -> Response:
    """Returns the reply with the outcome of each resource, in their order."""
    response, part = response_class(), response_class.AlterConfigsResourceResponse
    for kind, name in ((r.resource_type, r.resource_name) for r in resources):
        error = errors.get((kind, name))
        response.responses.append(
            part(
                resource_type=kind,
                resource_name=name,
                error_code=0 if error is None else error.code,
                error_message=None if error is None else _message(error, kind),
            )
        )
    return response


def _message(error: ApiError, kind: int) -> str | None:
    """Returns the message of an error; Kafka gives none where its broker refuses the cluster (its controller refuses
    client metrics), or for unknown errors.
    """
    is_without = error.code == Errors.UNKNOWN_SERVER_ERROR or (error.code == BROKERS.code and kind != CLIENT_METRICS)
    return None if is_without else error.message_or_default
