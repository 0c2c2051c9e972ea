"""The broker's configuration: Kafka's keys from a properties file, `KAFKA_*` variables and the command line.

Kafka's defaults hold, save where one local node needs others (`LOCAL_DEFAULTS`). A key that nobody knows warns; a value that its
key does not take is refused with file, key and line. Keys that begin with `ottla.` are this broker's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..protocol.config_def import ConfigInvalid, ConfigKey, keys, topic_synonyms
from . import group_bounds

LOCAL_DEFAULTS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
}

OWN_KEYS = {
    key.name: key
    for key in (
        ConfigKey("ottla.high.watermark", "LIST", "immediate", None, True, False),
        ConfigKey("ottla.record.validation", "STRING", "header", "[header, full]", True, False),
        ConfigKey("ottla.lab.port", "INT", "-1", "[-1,...,65535]", True, False),
        ConfigKey("ottla.lab.open", "BOOLEAN", "false", None, True, False),
        ConfigKey("ottla.request.log", "STRING", "", None, True, False),
        ConfigKey("ottla.seed.file", "STRING", "", None, True, False),
        ConfigKey("ottla.frame.max.bytes", "INT", "4194304", "[1024,...]", True, False),
        ConfigKey("ottla.group.settle", "BOOLEAN", "true", None, True, False),
        ConfigKey("ottla.cluster.id", "STRING", "", None, True, False),
    )
}
_LISTENER = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[^\]]*\]|[^:/]*):(?P<port>\d+)")


class ConfigError(Exception):
    """A configuration that the broker does not start with: where it stands, and what is wrong."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where


@dataclass(frozen=True, slots=True)
class Listener:
    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.host}:{self.port}"


@dataclass(slots=True)
class Config:
    """The values in force, parsed, and where each that was given stands."""

    values: dict[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)  # as text
    where: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def stated(self, name: str) -> str | None:
        """What the static configuration says of a key: what was given, or our own default where that is not Kafka's; None where Kafka's holds."""
        value = self.values.get(name)
        if name != "listeners" and name in self.given:  # listeners have the ports by now that were bound
            return self.given[name]
        if name == "advertised.listeners":
            return ",".join(map(str, self.advertised.values()))
        if name not in LOCAL_DEFAULTS or value is None:
            return None
        return ",".join(value) if isinstance(value, list) else str(value)

    @property
    def node_id(self) -> int:
        return int(self.values["node.id"])

    @property
    def log_dirs(self) -> list[str]:
        found: list[str] = self.values["log.dirs"] or self.values["log.dir"].split(",")
        return [d.strip() for d in found if d.strip()]

    @property
    def listeners(self) -> list[Listener]:
        """The listeners that clients reach; those of a controller are served by nobody here."""
        named = self.values["controller.listener.names"] or []
        return [one for one in self._listeners("listeners") if one.name not in named]

    @property
    def controller_listener(self) -> Listener:
        named = self.values["controller.listener.names"] or []
        found = [one for one in self._listeners("listeners") if one.name in named]
        return found[0] if found else Listener("CONTROLLER", "127.0.0.1", 9093)

    @property
    def advertised(self) -> dict[str, Listener]:
        """Where clients are told to go, by listener name."""
        found = {one.name: one for one in self.listeners}
        if self.given.get("advertised.listeners"):
            found |= {one.name: one for one in self._listeners("advertised.listeners")}
        return found

    def _listeners(self, key: str) -> list[Listener]:
        listeners = []
        for text in self.values[key] or []:
            if not text:
                continue  # a trailing comma
            parts = _LISTENER.fullmatch(text)
            if parts is None:
                raise ConfigError(self.where.get(key, key), f"{key}: not a listener: {text!r} (NAME://HOST:PORT)")
            listeners.append(Listener(parts["name"], parts["host"].strip("[]"), int(parts["port"])))
        return listeners

    def topic_defaults(self) -> dict[str, str]:
        """The topic keys whose default the broker's configuration gives, as text."""
        found = {}
        for topic_key, synonyms in topic_synonyms().items():
            for name in synonyms:
                if name in self.given:
                    found[topic_key] = converted(name, self.given[name])
                    break
        return found


def converted(broker_key: str, value: str) -> str:
    """Broker keys in hours and minutes give topic keys in milliseconds."""
    if broker_key.endswith(".hours"):
        return str(int(value) * 3_600_000 if int(value) >= 0 else -1)
    if broker_key.endswith(".minutes"):
        return str(int(value) * 60_000 if int(value) >= 0 else -1)
    return value


def from_environment(environment: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    """`KAFKA_LOG_DIRS=x` is `log.dirs=x`, as in the apache/kafka image: `___` is a dash, `__` an underscore, `_` a dot."""
    for variable, value in sorted(environment.items()):
        if variable.startswith("KAFKA_") and variable not in ("KAFKA_HEAP_OPTS", "KAFKA_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS"):
            name = variable.removeprefix("KAFKA_").lower()
            name = name.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
            yield name, value, f"${variable}"


def from_file(path: str) -> Iterable[tuple[str, str, str]]:
    """The pairs of a Java properties file. ConfigError where it cannot be read."""
    import javaproperties

    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(path, error.strerror or str(error)) from None
    line = 1
    for element in javaproperties.parse(text):
        if isinstance(element, javaproperties.KeyValue):
            yield element.key, element.value, f"{path}, line {line}"
        line += element.source.count("\n")


def from_arguments(arguments: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    """`key=value` from the command line."""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise ConfigError("command line", f"{argument!r} is not key=value")
        yield name.strip(), value.strip(), "command line"


def build(*sources: Iterable[tuple[str, str, str]]) -> Config:
    """The configuration that sources add up to; a later source wins over an earlier one."""
    config = Config()
    known = {**keys("broker"), **OWN_KEYS}
    for source in sources:
        for name, value, where in source:
            config.given[name], config.where[name] = value, where
    for name, key in known.items():
        text = config.given.get(name, LOCAL_DEFAULTS.get(name, key.default))
        try:
            config.values[name] = key.parse(text)
        except ConfigInvalid as error:
            raise ConfigError(config.where.get(name, name), str(error)) from None
    if "log.dirs" not in config.given and "log.dir" in config.given:
        config.values["log.dirs"] = None
    for kind in ("consumer", "share"):  # our own default must not be below a bound that was meant for Kafka's
        interval = f"group.{kind}.assignment.interval.ms"
        if interval not in config.given:
            config.values[interval] = max(config.values[interval], config.values[f"group.{kind}.min.assignment.interval.ms"])
    if "node.id" not in config.given and "broker.id" in config.given:
        config.values["node.id"] = int(config.given["broker.id"])
    for name in config.given:
        if name not in known and not name.startswith(("listener.name.", "group.coordinator.")):
            config.warnings.append(f"{config.where[name]}: nobody knows the key {name}; it has no effect")
    _check(config)
    return config


def _check(config: Config) -> None:
    if not config.listeners:
        raise ConfigError(config.where.get("listeners", "listeners"), "listeners: there must be one for clients")
    names = [one.name for one in config.listeners]
    if len(set(names)) < len(names):
        raise ConfigError(config.where.get("listeners", "listeners"), "listeners: every name may appear once")
    protocols = dict(p.split(":", 1) for p in config["listener.security.protocol.map"] or [] if ":" in p)
    for one in config.listeners:
        protocol = protocols.get(one.name, one.name)
        if protocol != "PLAINTEXT":
            reason = f"listeners: {one} speaks {protocol}, and only PLAINTEXT is served yet"
            raise ConfigError(config.where.get("listeners", "listeners"), reason)
    for name, listener in config.advertised.items():
        if listener.host in ("0.0.0.0", "::") and "advertised.listeners" in config.given:
            where = config.where.get("advertised.listeners", "advertised.listeners")
            raise ConfigError(where, f"advertised.listeners: {name} cannot be the wildcard {listener.host}")
    wrong = group_bounds.refused(config)
    if wrong is not None:
        raise ConfigError(config.where.get(wrong[0], wrong[0]), wrong[1])
    if not config.log_dirs:
        raise ConfigError(config.where.get("log.dirs", "log.dirs"), "log.dirs: at least one directory is needed")
