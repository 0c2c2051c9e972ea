"""Checks of single broker keys that Kafka makes at start and that are more than a type or range:
voters, classes, assignors.

ottla cannot load Java classes. The broker refuses to start
if ignoring a class would change behaviour (an authorizer, a policy).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..watermark_policies import Policies
from . import node_values
from .config import Config
from .lab_clock import parse_clock
from .listener_checks import PORT_MAX, Fault

CONSUMER_ASSIGNORS = "group.consumer.assignors"
PATHS = (
    "log.dirs",
    "log.dir",
    "ottla.audit.log",
    "ottla.request.log",
    "ottla.seed.file",
    "ottla.lab.scenario",
    "ottla.trace",
    "ottla.trace.directory",
)
_SERVER = re.compile(r"(\[[^\]]+\]|[^:\s]+):(\d+)")
_VOTER = re.compile(r"(\d+)@(\[[^\]]+\]|[^:\s]+):(\d+)")
_PACKAGE = "org.apache.kafka.server.share"
_ASSIGNOR = "org.apache.kafka.coordinator.group"

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
IN_MEMORY_PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
_NO_OP = _NO_OP_PERSISTER, _NO_DEAD_LETTERS = "NoOpStatePersister", "NoOpShareGroupDLQManager"
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NO_CLASSES = "ottla cannot load Java classes; remove the key"
CLASSES: dict[str, tuple[frozenset[str | None], str]] = {
    "authorizer.class.name": (
        frozenset(("", STANDARD_AUTHORIZER)),
        f"ottla cannot load Java classes; it has Kafka's {STANDARD_AUTHORIZER}",
    ),
    "principal.builder.class": (
        frozenset(("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",)),
        NO_CLASSES,
    ),
    "replica.selector.class": (
        frozenset((None, RACK_AWARE)),
        f"ottla cannot load Java classes; it has Kafka's {RACK_AWARE}",
    ),
    "alter.config.policy.class.name": (frozenset((None,)), NO_CLASSES),
    "create.topic.policy.class.name": (frozenset((None,)), NO_CLASSES),
    "client.quota.callback.class": (frozenset((None,)), NO_CLASSES),
    "group.streams.topology.description.plugin.class": (
        frozenset((None, IN_MEMORY_PLUGIN)),
        f"ottla cannot load Java classes; it has Kafka's {IN_MEMORY_PLUGIN}",
    ),
    "group.share.persister.class.name": (
        frozenset(("", *(f"{_PACKAGE}.persister.{name}" for name in ("DefaultStatePersister", _NO_OP_PERSISTER)))),
        "Unknown persister specified; DefaultStatePersister and NoOpStatePersister of Kafka are known",
    ),
    "group.share.dlq.manager.class.name": (
        frozenset(("", f"{_PACKAGE}.dlq.DefaultShareGroupDLQManager", f"{_PACKAGE}.dlq.{_NO_DEAD_LETTERS}")),
        "Unknown share group DLQ manager specified; DefaultShareGroupDLQManager and NoOpShareGroupDLQManager of Kafka "
        "are known",
    ),
}
"""The classes that a key may name, and the message for others."""

_NO_PROVIDERS = "ottla has no config providers"
DEFAULT_ONLY = {name: words for name, (known, words) in CLASSES.items() if len(known) == 1} | {
    "config.providers": _NO_PROVIDERS
}
"""The keys that can only have Kafka's default, and why: another value is refused at start."""

ASSIGNORS = {
    "group.share.assignors": ("simple", f"{_ASSIGNOR}.assignor.SimpleAssignor"),
    "group.streams.assignors": ("sticky", f"{_ASSIGNOR}.streams.assignor.StickyTaskAssignor"),
}


def keeps_nothing(config: Config, key: str) -> bool:
    """Whether the key of a class of share groups names Kafka's one that keeps nothing, or none."""
    return str(config[key]).rpartition(".")[2] in ("", *_NO_OP)


def faults(config: Config) -> Iterator[Fault]:
    """Yields the errors of single keys, beyond their type and range."""
    for name in PATHS:
        if "\0" in config.given.get(name, ""):
            yield name, f"{name}: a path must not contain the character NUL"
    if config["ottla.lab.open"] and not config["ottla.lab.token"]:
        yield (
            "ottla.lab.open",
            "ottla.lab.open=true lets every host that reaches the port read and steer the broker; "
            "set ottla.lab.token too",
        )
    yield from _nodes(config)
    yield from node_values.faults(config)
    yield from _quorum(config)
    for name, (known, words) in CLASSES.items():
        if config[name] not in known:
            yield name, f"Invalid value {config[name]} for configuration {name}: {words}"
    for user in filter(None, (one.strip() for one in config["super.users"].split(";"))):
        if ":" not in user:
            yield "super.users", f"expected a string in format principalType:principalName but got {user}"
    if config["config.providers"]:
        yield (
            "config.providers",
            f"config.providers: {_NO_PROVIDERS} (found {config['config.providers'][0]!r}); write the "
            "values into the configuration",
        )
    yield from _assignors(config)
    level = config["metrics.recording.level"]
    if level.upper() not in ("INFO", "DEBUG", "TRACE"):
        yield (
            "metrics.recording.level",
            f"Invalid value {level} for configuration metrics.recording.level: it must be INFO, DEBUG or TRACE",
        )
    try:
        parse_clock(config["ottla.lab.clock"])
    except ValueError as error:
        yield "ottla.lab.clock", f"ottla.lab.clock: {error}"
    try:
        Policies().configure(config["ottla.high.watermark"], [])
    except ValueError as error:
        yield "ottla.high.watermark", f"ottla.high.watermark: {error}"
    try:
        Policies().configure_in_sync(config["ottla.isr.size"])
    except ValueError as error:
        yield "ottla.isr.size", f"ottla.isr.size: {error}"


def _nodes(config: Config) -> Iterator[Fault]:
    controller, first, count = config["ottla.controller.node"], config["node.id"], config["ottla.nodes"]
    if controller >= 0 and not first <= controller < first + count:
        last = first + count - 1
        yield "ottla.controller.node", f"ottla.controller.node: there is no node {controller}, only {first} to {last}"
    if config["node.id"] < 0:
        yield "broker.id", "Missing configuration `node.id` which is required; a number of at least 0"
    if "broker.id" in config.given and config["broker.id"] != config["node.id"]:
        yield (
            "broker.id",
            "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, please use "
            "`node.id` instead.",
        )
    if config["process.roles"] is not None and "broker" not in config["process.roles"]:
        yield "process.roles", "process.roles: must contain broker: ottla is broker and controller in one process"


def _assignors(config: Config) -> Iterator[Fault]:
    for name, known in ASSIGNORS.items():
        for one in config[name]:
            if one not in known:
                yield (
                    name,
                    f"Invalid value {one} for configuration {name}: Class cannot be found (ottla knows {known[0]})",
                )
    if CONSUMER_ASSIGNORS in config.where:  # the default ones are not loaded for a check
        from ...coordinator.group.assignors.registry import Assignors

        try:
            Assignors(config[CONSUMER_ASSIGNORS])
        except ValueError as error:
            yield CONSUMER_ASSIGNORS, str(error)


def _quorum(config: Config) -> Iterator[Fault]:
    form: Mapping[str, tuple[re.Pattern[str], str]] = {
        "controller.quorum.voters": (_VOTER, "`{id}@{host}:{port}`"),
        "controller.quorum.bootstrap.servers": (_SERVER, "`{host}:{port}`"),
    }
    for name, (pattern, words) in form.items():
        for entry in config[name]:
            found = pattern.fullmatch(entry)
            if found is None:
                yield name, f"Invalid configuration value {entry} for {name}. Each entry should be in the form {words}."
            elif int(found.groups()[-1]) > PORT_MAX:
                yield name, f"{name}: port out of range:{found.groups()[-1]}"
