"""DescribeConfigs, versions 1 to 4: returns the keys of topics, of this broker, of groups and of client metrics, with
value, source, type and synonyms (KIP-133), and the levels of loggers (KIP-412).

**Behaviour**
- The keys of a resource are in the order of Kafka's hash table, whichever were asked for.
- A type that is no resource fails the whole request.
- Groups have the keys of KIP-848, KIP-932 and KIP-1240.
- A logger has no type, synonyms or documentation. Of a broker's keys, those that are defaults of topics and ottla's own
  have a documentation (Kafka: all).

**Versions**
- 1 sources and synonyms (KIP-226)
- 3 types and documentation (KIP-569)
- 4 flexible
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile
from typing import NamedTuple

from ...coordinator.hashing import TABLE_SIZE, put_order
from ...coordinator.metadata.client_metrics import client_metrics_keys
from ...coordinator.metadata.configs import MIN_ISR, check_name
from ...coordinator.metadata.state import BROKER, CLIENT_METRICS, GROUP, TOPIC
from ...coordinator.security.acls import CLUSTER_NAME, Operation, ResourceType
from ...protocol import messages
from ...protocol.config_def import ConfigKey, dynamic_broker_keys, keys, topic_synonyms
from ...protocol.errors import ApiError, Errors
from ..broker import Broker
from ..config.config import OWN_KEYS, SYSTEM_PROPERTIES
from ..config.docs import TOPIC_DOCS, broker_key_docs
from ..config.listener_values import key_of_listener
from ..config.rates import RATES
from ..error_places import Place, Text, array, codes
from ..loggers import Loggers
from ..net.answers import answer_each
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ._config_changes import node_number
from ._logger_changes import BROKER_LOGGER

TOPICS = Check(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "resources.resource_name", Refusal.ELEMENT)
GROUPS = Check(Operation.DESCRIBE_CONFIGS, ResourceType.GROUP, "resources.resource_name", Refusal.ELEMENT)
BROKERS = Check(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, refusal=Refusal.ELEMENT)
AUTHORIZATION = (TOPICS, GROUPS, BROKERS)
CHECKS = {TOPIC: TOPICS, GROUP: GROUPS, BROKER: BROKERS, BROKER_LOGGER: BROKERS, CLIENT_METRICS: BROKERS}
STEP_RESOURCES = 8  # a resource has up to some hundred keys
LOGGER_SOURCE, CLIENT_METRICS_SOURCE, GROUP_SOURCE = 6, 7, 8
UNTYPED = "LEVEL"  # of loggers
UNKNOWN = "UNKNOWN"  # of keys that Kafka's broker does not know
SENSITIVE = ("PASSWORD", UNKNOWN)
TOPIC_SOURCE, DYNAMIC_BROKER_SOURCE, DYNAMIC_DEFAULT_SOURCE, STATIC_SOURCE, DEFAULT_SOURCE = range(1, 6)
DOCS: Mapping[int, Callable[[str], str | None]] = {TOPIC: TOPIC_DOCS.get, BROKER: broker_key_docs}
TYPES = {"BOOLEAN": 1, "STRING": 2, "INT": 3, "SHORT": 4, "LONG": 5, "DOUBLE": 6, "LIST": 7, "CLASS": 8, "PASSWORD": 9}
ERRORS = (
    Place(
        "each resource",
        codes(
            "UNKNOWN_TOPIC_OR_PARTITION INVALID_TOPIC_EXCEPTION TOPIC_AUTHORIZATION_FAILED "
            "GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST INVALID_CONFIG"
        ),
        (array("results", "resources", type="resource_type", resource="resource_name"),),
        text=Text.OF_CODE,
    ),
)


class Described(NamedTuple):
    key: ConfigKey
    value: str | None
    source: int
    synonyms: list[tuple[str, str | None, int]]


async def handle(context: Context, request: messages.DescribeConfigsRequest) -> messages.DescribeConfigsResponse:
    if any(resource.resource_type not in CHECKS for resource in request.resources):
        raise ApiError(Errors.INVALID_REQUEST)
    found = await answer_each(
        context, "results", request.resources, lambda resource: _result(context, request, resource), STEP_RESOURCES
    )
    return messages.DescribeConfigsResponse(results=found)


def _result(
    context: Context,
    request: messages.DescribeConfigsRequest,
    resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
) -> messages.DescribeConfigsResponse.DescribeConfigsResult:
    out = messages.DescribeConfigsResponse.DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    try:
        found = _describe(context, resource)
        wanted = frozenset(resource.configuration_keys or ())
        out.configs = [_entry(context, request, d, resource) for d in found if not wanted or d.key.name in wanted]
    except ApiError as error:
        error.put_into(out)
    return out


def _describe(context: Context, resource: messages.DescribeConfigsRequest.DescribeConfigsResource) -> list[Described]:
    broker, name, release = context.broker, resource.resource_name, context.broker.config.emulates
    check = CHECKS[resource.resource_type]
    check.require(context, CLUSTER_NAME if check is BROKERS else name)
    if resource.resource_type == TOPIC:
        check_name(name)
        if name not in broker.image.topics:
            raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION, "")
        own = _canonical(keys("topic", release), broker.image.config_of(TOPIC, name))
        described = describe_topic(broker, own)
        return _in_order_of_kafka([one._replace(value=_in_force(broker, one.key, one.value)) for one in described])
    if resource.resource_type == BROKER:
        if name == "":
            return [
                Described(d.key, of_all[1], of_all[2], [of_all])
                for d in describe_broker(broker)
                for of_all in d.synonyms
                if of_all[2] == DYNAMIC_DEFAULT_SOURCE and of_all[0] == d.key.name
            ]
        _check_node(context, name, " or empty string,")
        return _in_order_of_broker(broker, describe_broker(broker))
    if resource.resource_type == BROKER_LOGGER:
        if not name:
            raise ApiError(Errors.INVALID_REQUEST, "Broker id must not be empty")
        _check_node(context, name)
        return describe_loggers(broker.loggers)
    if resource.resource_type == GROUP:
        if not name:
            raise ApiError(Errors.INVALID_REQUEST, "Group name must not be empty")
        found = describe_group(broker, _canonical(keys("group", release), broker.image.config_of(GROUP, name)))
        internal = _in_order_of_kafka([one for one in found if one.key.internal], 2 * TABLE_SIZE)
        return internal + _in_order_of_kafka([one for one in found if not one.key.internal])
    if not name:
        raise ApiError(Errors.INVALID_REQUEST, "Client metrics subscription name must not be empty")
    return _in_order_of_kafka(describe_client_metrics(broker.image.config_of(CLIENT_METRICS, name), release))


def _in_order_of_kafka(found: list[Described], size: int = TABLE_SIZE) -> list[Described]:
    """Returns the keys in the order of Kafka's hash table, and those of ottla's own after them. `size`: of the table
    when it is made.
    """
    by_name = {one.key.name: one for one in found if one.key.name not in OWN_KEYS}
    return [by_name[name] for name in put_order(by_name, size)] + [one for one in found if one.key.name in OWN_KEYS]


def _in_order_of_broker(broker: Broker, found: list[Described]) -> list[Described]:
    """Returns the keys of the broker in Kafka's order: first those that are shown only because they were given, in the
    order of the table of what was given.
    """
    own, general = (broker.image.config_of(BROKER, name) for name in (str(broker.config.node_id), ""))
    given = {name for name in (*broker.config.given, *own, *general) if not name.startswith("ottla.")}
    shown = {name for name, key in keys("broker", broker.config.emulates).items() if not key.internal} | OWN_KEYS.keys()
    apart = [one for one in found if one.key.name not in shown]
    rest = [one for one in found if one.key.name in shown]
    return _in_order_of_kafka(apart, len(given) * 4 // 3 + 1) + _in_order_of_kafka(rest)


def _check_node(context: Context, name: str, otherwise: str = "") -> None:
    """Raises ApiError(INVALID_REQUEST) unless `name` is the number of this node."""
    try:
        node = node_number(name)
    except ApiError:
        raise ApiError(Errors.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}") from None
    if node != context.node_id:
        text = f"Unexpected broker id, expected {context.node_id}{otherwise} but received {name}"
        raise ApiError(Errors.INVALID_REQUEST, text)


def describe_loggers(loggers: Loggers) -> list[Described]:
    """Returns the level in force of every logger."""
    return [
        Described(ConfigKey(name, UNTYPED, None, None, False, False), loggers.level(name), LOGGER_SOURCE, [])
        for name in loggers.names()
    ]


def describe_client_metrics(own: dict[str, str], release: str | None) -> list[Described]:
    """Returns every key of a subscription of client metrics, whose own configuration is `own`. `release`: the earlier
    one that is emulated.
    """
    found = []
    for key in client_metrics_keys(release).values():
        if key.name not in own:
            found.append(Described(key, key.default, DEFAULT_SOURCE, []))
            continue
        value = own[key.name]
        if key.type == "LIST":
            value = key.canonical(value)
        found.append(Described(key, value, CLIENT_METRICS_SOURCE, [(key.name, value, CLIENT_METRICS_SOURCE)]))
    return found


def _canonical(known: Mapping[str, ConfigKey], own: Mapping[str, str]) -> dict[str, str]:
    """Returns the own values of a topic or a group as Kafka shows them: those of internal keys as they were given."""
    return {
        name: text if known[name].internal else known[name].canonical(text)
        for name, text in own.items()
        if name in known
    }


def describe_group(broker: Broker, own: dict[str, str]) -> list[Described]:
    """Returns every group key, for a group whose own configuration is `own` (KIP-1240)."""
    found, of_broker = [], keys("broker", broker.config.emulates)
    for key in keys("group", broker.config.emulates).values():
        if key.internal and key.name not in own:
            continue
        general = "group.streams.assignors" if key.name == "streams.assignor.name" else f"group.{key.name}"
        synonyms: list[tuple[str, str | None, int]] = (
            [(key.name, own[key.name], GROUP_SOURCE)] if key.name in own else []
        )
        synonyms += (
            _broker_values(broker, general) if general in of_broker else [(key.name, key.default, DEFAULT_SOURCE)]
        )
        found.append(Described(key, synonyms[0][1], synonyms[0][2], synonyms))
    return found


def describe_topic(broker: Broker, own: Mapping[str, str | None]) -> list[Described]:
    """Returns every topic key with its value in force, for a topic whose own configuration is `own`."""
    found = []
    for key in keys("topic", broker.config.emulates).values():
        if key.internal and key.name not in own:
            continue
        synonyms: list[tuple[str, str | None, int]] = []
        if key.name in own:
            synonyms.append((key.name, own[key.name], TOPIC_SOURCE))
        names = topic_synonyms().get(key.name, ())
        if names:
            synonyms += _synonym_values(broker, names[0], names)
        if synonyms:
            value, source = synonyms[0][1], synonyms[0][2]
            if source not in (TOPIC_SOURCE, DEFAULT_SOURCE):
                value = _in_topic_units(synonyms[0][0], value)
            elif source == DEFAULT_SOURCE:
                value = key.default
        else:  # hours, say, are given, which are no synonym to show
            value, source = broker.config.topic_defaults().get(key.name, key.default), DEFAULT_SOURCE
        found.append(Described(key, value, source, synonyms))
    return found


def _synonym_values(broker: Broker, name: str, synonyms: Sequence[str]) -> list[tuple[str, str | None, int]]:
    """Returns the values of a broker key and of its synonyms in other units. What is over the key's own value is not
    shown.
    """
    found = [one for synonym in synonyms for one in _broker_values(broker, synonym)]
    found.sort(key=lambda one: one[2])
    return list(dropwhile(lambda one: one[0] != name, found))


def _in_topic_units(broker_key: str, value: str | None) -> str | None:
    from ..config.config import converted

    return None if value is None else converted(broker_key, value)


def _broker_values(broker: Broker, name: str) -> list[tuple[str, str | None, int]]:
    """Returns the values of a broker key with their sources, the value in force first."""
    key = keys("broker", broker.config.emulates).get(name)
    found: list[tuple[str, str | None, int]] = []
    own = broker.image.config_of(BROKER, str(broker.config.node_id))
    general = broker.image.config_of(BROKER, "")
    if name in own:
        found.append((name, own[name], DYNAMIC_BROKER_SOURCE))
    if name in general and not _is_hidden(broker, name, general[name]):
        found.append((name, general[name], DYNAMIC_DEFAULT_SOURCE))
    stated = broker.config.stated(name)
    if stated is not None:
        found.append((name, stated, STATIC_SOURCE))
    if key is not None and key.default is not None:
        found.append((name, key.default, DEFAULT_SOURCE))
    return found


def _is_hidden(broker: Broker, name: str, value: str) -> bool:
    """Whether a value of all brokers is the one that eligible leader replicas need (KIP-966), which an emulated release
    before 4.0 does not have.
    """
    release = broker.config.emulates
    return name == MIN_ISR and release is not None and release < "4" and value == str(broker.config[MIN_ISR])


def _of_listeners(broker: Broker) -> list[Described]:
    """Returns the keys that are given for single listeners; the values of all listeners are their synonyms."""
    own = broker.image.config_of(BROKER, str(broker.config.node_id))
    found = []
    for name in dict.fromkeys((*broker.config.given, *own)):
        of = key_of_listener(name)
        if of is not None:
            key = of[1]._replace(name=name)
            synonyms = [*_broker_values(broker, name), *_broker_values(broker, of[1].name)]
            found.append(Described(key, synonyms[0][1], synonyms[0][2], synonyms))
    return found


def _of_rates(broker: Broker) -> list[Described]:
    """Returns the rates of replication and of moves between log directories, which are there once they are set."""
    found = []
    for name in RATES:
        synonyms = _broker_values(broker, name)
        if synonyms:
            key = ConfigKey(name, "LONG", None, None, False, False)
            found.append(Described(key, synonyms[0][1], synonyms[0][2], synonyms))
    return found


def _of_plug_ins(broker: Broker) -> list[Described]:
    """Returns the keys, given at the start or later, that Kafka's broker does not know: those of the authorizer and of
    other plug-ins, and misspelt ones. Their values may be secrets.
    """
    known = (keys("broker", broker.config.emulates), OWN_KEYS, SYSTEM_PROPERTIES, RATES)
    own, general = (broker.image.config_of(BROKER, name) for name in (str(broker.config.node_id), ""))
    there = {DYNAMIC_BROKER_SOURCE: own, DYNAMIC_DEFAULT_SOURCE: general, STATIC_SOURCE: broker.config.given}
    found = []
    for name in dict.fromkeys(name for some in there.values() for name in some):
        if name.startswith("ottla.") or any(name in some for some in known) or key_of_listener(name) is not None:
            continue
        synonyms = [(name, None, source) for source, some in there.items() if name in some]
        found.append(Described(ConfigKey(name, UNKNOWN, None, None, False, False), None, synonyms[0][2], [*synonyms]))
    return found


def describe_broker(broker: Broker) -> list[Described]:
    found = _of_listeners(broker) + _of_rates(broker) + _of_plug_ins(broker)
    same = {name: names for names in topic_synonyms().values() if len(names) > 1 for name in names}
    for key in (keys("broker", broker.config.emulates) | OWN_KEYS).values():
        if key.internal and key.name not in broker.config.given:
            continue
        synonyms = _synonym_values(broker, key.name, same.get(key.name, (key.name,)))
        found.append(
            Described(
                key,
                _in_force(broker, key, synonyms[0][1]) if synonyms else key.default,
                synonyms[0][2] if synonyms else DEFAULT_SOURCE,
                synonyms,
            )
        )
    return found


def _in_force(broker: Broker, key: ConfigKey, value: str | None) -> str | None:
    """Returns what a value of the broker has become: a list loses what is repeated, which its synonyms show."""
    if key.type != "LIST" or value is None or not broker.config.drops_repeated(key.name):
        return value
    return key.canonical(value)


def _entry(
    context: Context,
    request: messages.DescribeConfigsRequest,
    found: Described,
    resource: messages.DescribeConfigsRequest.DescribeConfigsResource,
) -> messages.DescribeConfigsResponse.DescribeConfigsResourceResult:
    r = messages.DescribeConfigsResponse
    key = found.key
    sensitive = key.type in SENSITIVE
    dynamic = dynamic_broker_keys(context.broker.config.emulates)
    entry = r.DescribeConfigsResourceResult(
        name=key.name,
        value=None if sensitive else found.value,
        read_only=resource.resource_type == BROKER and key.name not in dynamic,
        config_source=found.source,
        is_sensitive=sensitive,
        config_type=TYPES.get(key.type, 0) if context.version >= 3 else 0,
    )
    if request.include_synonyms:
        entry.synonyms = [
            r.DescribeConfigsSynonym(name=name, value=None if sensitive else value, source=source)
            for name, value, source in found.synonyms
        ]
    if resource.resource_type != BROKER_LOGGER:
        docs = DOCS.get(resource.resource_type) if request.include_documentation else None
        entry.documentation = None if docs is None else docs(key.name)
    return entry
