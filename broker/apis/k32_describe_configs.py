"""DescribeConfigs, versions 1 to 4: every key of topics and of this broker, with source, type and synonyms.

1 sources and synonyms (KIP-226); 3 types and documentation (KIP-569); 4 flexible.
Groups have the keys of KIP-1240. Broker loggers and client metrics are not served.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...coordinator.metadata import topics as topic_rules
from ...coordinator.metadata.state import BROKER, GROUP, TOPIC
from ...protocol import messages
from ...protocol.config_def import ConfigKey, dynamic_broker_keys, keys, topic_synonyms
from ...protocol.errors import ApiError, Errors
from ..broker import Broker
from ..config import OWN_KEYS
from ..config_docs import TOPIC_DOCS
from ..context import Context

GROUP_SOURCE = 8
TOPIC_SOURCE, DYNAMIC_BROKER_SOURCE, DYNAMIC_DEFAULT_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = range(1, 6)
TYPES = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "CLASS": 8, "PASSWORD": 9}


class Described(NamedTuple):
    key: ConfigKey
    value: str | None
    source: int
    synonyms: list[tuple[str, str | None, int]]


def handle(context: Context, request: Any) -> Any:
    r = messages.DescribeConfigsResponse
    response = r()
    for resource in request.resources:
        out = r.DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
        try:
            found = _describe(context, resource)
            wanted = resource.configuration_keys
            out.configs = [_entry(context, request, d, resource) for d in found if not wanted or d.key.name in wanted]
        except ApiError as error:
            out.error_code, out.error_message = error.code, error.text
        response.results.append(out)
    return response


def _describe(context: Context, resource: Any) -> list[Described]:
    broker, name = context.broker, resource.resource_name
    if resource.resource_type == TOPIC:
        topic_rules.check_name(name)
        if name not in broker.image.topics:
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, "")
        return describe_topic(broker, broker.image.config_of(TOPIC, name))
    if resource.resource_type == BROKER:
        if name == "":
            return [d._replace(synonyms=d.synonyms[:1]) for d in describe_broker(broker) if d.source == DYNAMIC_DEFAULT_SOURCE]
        if not name.lstrip("-").isdigit():
            raise ApiError(Errors.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
        if name != str(context.node_id):
            raise ApiError(Errors.INVALID_REQUEST, f"Unexpected broker id, expected {context.node_id} or empty string, but received {name}")
        return describe_broker(broker)
    if resource.resource_type == GROUP:
        if not name:
            raise ApiError(Errors.INVALID_REQUEST, "Group name must not be empty")
        return describe_group(broker, broker.image.config_of(GROUP, name))
    raise ApiError(Errors.INVALID_REQUEST, f"Unsupported resource type: {resource.resource_type}")


def describe_group(broker: Broker, own: dict[str, str]) -> list[Described]:
    """Every key of groups, for a group whose own configuration is `own` (KIP-1240)."""
    found = []
    for key in keys("group").values():
        if key.internal and key.name not in own:
            continue
        general = "group.streams.assignors" if key.name == "streams.assignor.name" else f"group.{key.name}"
        synonyms: list[tuple[str, str | None, int]] = [(key.name, own[key.name], GROUP_SOURCE)] if key.name in own else []
        synonyms += _broker_values(broker, general) if general in keys("broker") else [(key.name, key.default, DEFAULT_SOURCE)]
        found.append(Described(key, synonyms[0][1], synonyms[0][2], synonyms))
    return found


def describe_topic(broker: Broker, own: dict[str, str]) -> list[Described]:
    """Every topic key with its value in force, for a topic whose own configuration is `own`."""
    found = []
    for key in keys("topic").values():
        if key.internal and key.name not in own:
            continue
        synonyms: list[tuple[str, str | None, int]] = []
        if key.name in own:
            synonyms.append((key.name, own[key.name], TOPIC_SOURCE))
        for name in topic_synonyms().get(key.name, ())[:1]:
            synonyms += _broker_values(broker, name)
        if synonyms:
            value, source = synonyms[0][1], synonyms[0][2]
            if source not in (TOPIC_SOURCE, DEFAULT_SOURCE):
                value = _in_topic_units(synonyms[0][0], value)
            elif source == DEFAULT_SOURCE:
                value = key.default
        else:
            value, source = key.default, DEFAULT_SOURCE
        found.append(Described(key, value, source, synonyms))
    return found


def _in_topic_units(broker_key: str, value: str | None) -> str | None:
    from ..config import converted

    return None if value is None else converted(broker_key, value)


def _broker_values(broker: Broker, name: str) -> list[tuple[str, str | None, int]]:
    """A broker key's values, the one in force first."""
    key = keys("broker").get(name)
    found: list[tuple[str, str | None, int]] = []
    own = broker.image.config_of(BROKER, str(broker.config.node_id))
    general = broker.image.config_of(BROKER, "")
    if name in own:
        found.append((name, own[name], DYNAMIC_BROKER_SOURCE))
    if name in general:
        found.append((name, general[name], DYNAMIC_DEFAULT_SOURCE))
    stated = broker.config.stated(name)
    if stated is not None:
        found.append((name, stated, STATIC_SOURCE))
    if key is not None and key.default is not None:
        found.append((name, key.default, DEFAULT_SOURCE))
    return found


def describe_broker(broker: Broker) -> list[Described]:
    found = []
    for key in sorted({**keys("broker"), **OWN_KEYS}.values(), key=lambda k: k.name):
        if key.internal:
            continue
        synonyms = _broker_values(broker, key.name)
        found.append(Described(key, synonyms[0][1] if synonyms else key.default, synonyms[0][2] if synonyms else DEFAULT_SOURCE, synonyms))
    return found


def _entry(context: Context, request: Any, found: Described, resource: Any) -> Any:
    r = messages.DescribeConfigsResponse
    key = found.key
    sensitive = key.type == "PASSWORD"
    entry = r.DescribeConfigsResourceResult(
        name=key.name,
        value=None if sensitive else found.value,
        read_only=resource.resource_type == BROKER and key.name not in dynamic_broker_keys(),
        config_source=found.source,
        is_sensitive=sensitive,
        config_type=TYPES.get(key.type, 0) if context.version >= 3 else 0,
    )
    if request.include_synonyms:
        entry.synonyms = [
            r.DescribeConfigsSynonym(name=name, value=None if sensitive else value, source=source) for name, value, source in found.synonyms
        ]
    if request.include_documentation:
        entry.documentation = TOPIC_DOCS.get(key.name) if resource.resource_type == TOPIC else None
    return entry
