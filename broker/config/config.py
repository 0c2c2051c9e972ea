"""The static configuration: its keys of our own, its defaults, listeners, and the values that hold until the metadata
says otherwise.

Kafka's defaults hold, save where one local node needs others (`LOCAL_DEFAULTS`). Keys that begin with `ottla.` are this
broker's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...protocol.config_def import ConfigKey, keys, keys_in_force, lists_are_sets, numbers_of, topic_synonyms
from ..peer import SecurityProtocol
from .lab_clock import SEEDED_START_MS, ClockStart, parse_clock
from .listener_values import Listener, ListenerValues, parse_listener, security_protocols
from .users import User

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
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
SETTLED = frozenset(
    {
        "group.initial.rebalance.delay.ms",
        "group.consumer.assignment.interval.ms",
        "group.share.assignment.interval.ms",
        "group.streams.assignment.interval.ms",
        "group.streams.initial.rebalance.delay.ms",
    }
)
"""Keys whose default of ottla's is a part of `ottla.group.settle`, as the shorter heartbeat interval is: without it,
Kafka's default is in force. Clients are shown that in any case, because they look for what differs from it.
"""
RELEASES = (
    *("0.8.2", "0.9", "0.10.0", "0.10.1", "0.10.2", "0.11", "1.0", "1.1", "2.0", "2.1", "2.2", "2.3", "2.4", "2.5"),
    *("2.6", "2.7", "2.8", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2"),
    *("4.3", "4.4"),
)
"""The releases of Kafka that can be emulated; the last one is what this broker is without emulation."""
OWN_KEYS = {
    key.name: key
    for key in (
        ConfigKey("ottla.high.watermark", "LIST", "immediate", None, True, False),
        ConfigKey("ottla.record.validation", "STRING", "header", "[header, full]", True, False),
        ConfigKey("ottla.lab.clock", "STRING", "system", None, True, False),
        ConfigKey("ottla.lab.group.events", "INT", "500", "[0,...,100000]", True, False),
        ConfigKey("ottla.lab.seed", "LONG", None, None, True, False),
        ConfigKey("ottla.lab.port", "INT", "-1", "[-1,...,65535]", True, False),
        ConfigKey("ottla.lab.open", "BOOLEAN", "false", None, True, False),
        ConfigKey("ottla.lab.scenario", "STRING", "", None, True, False),
        ConfigKey("ottla.lab.tls", "BOOLEAN", "false", None, True, False),
        ConfigKey("ottla.lab.token", "PASSWORD", None, None, True, False),
        ConfigKey("ottla.client.metrics", "STRING", "lab", "[lab, always, never]", True, False),
        ConfigKey("ottla.client.metrics.series.max", "INT", "20000", "[0,...]", True, False),
        ConfigKey("ottla.audit.log", "STRING", "", None, True, False),
        ConfigKey("ottla.audit.log.backups", "INT", "3", "[0,...,1000]", True, False),
        ConfigKey("ottla.audit.log.grants", "BOOLEAN", "false", None, True, False),
        ConfigKey("ottla.audit.log.max.bytes", "LONG", "104857600", "[4096,...] or -1", True, False),
        ConfigKey("ottla.request.log", "STRING", "", None, True, False),
        ConfigKey("ottla.request.log.apis", "LIST", "", None, True, False),
        ConfigKey("ottla.request.log.backups", "INT", "3", "[0,...,1000]", True, False),
        ConfigKey("ottla.request.log.clients", "LIST", "", None, True, False),
        ConfigKey("ottla.request.log.max.bytes", "LONG", "104857600", "[4096,...] or -1", True, False),
        ConfigKey("ottla.trace", "STRING", "", None, True, False),
        ConfigKey("ottla.trace.apis", "LIST", "", None, True, False),
        ConfigKey("ottla.trace.backups", "INT", "3", "[0,...,1000]", True, False),
        ConfigKey("ottla.trace.client.id", "STRING", "", None, True, False),
        ConfigKey("ottla.trace.directory", "STRING", "", None, True, False),
        ConfigKey("ottla.trace.group", "STRING", "", None, True, False),
        ConfigKey("ottla.trace.max.bytes", "LONG", "104857600", "[4096,...] or -1", True, False),
        ConfigKey("ottla.trace.principal", "STRING", "", None, True, False),
        ConfigKey("ottla.trace.raw", "STRING", "none", "[none, frames, secrets]", True, False),
        ConfigKey("ottla.trace.topic", "STRING", "", None, True, False),
        ConfigKey("ottla.controller.node", "INT", "-1", "[-1,...]", True, False),
        ConfigKey("ottla.isr.size", "LIST", "", None, True, False),
        ConfigKey("ottla.nodes", "INT", "1", "[1,...,100]", True, False),
        ConfigKey("ottla.nodes.racks", "LIST", "", None, True, False),
        ConfigKey("ottla.seed.file", "STRING", "", None, True, False),
        ConfigKey("ottla.buffered.bytes.max", "LONG", "1073741824", "[1048576,...]", True, False),
        ConfigKey("ottla.connections.per.ip.max", "INT", "-1", "[-1,...]", True, False),
        ConfigKey("ottla.delegation.token.renewers.max", "INT", "20", "[0,...]", True, False),
        ConfigKey("ottla.delegation.tokens.max", "INT", "10000", "[1,...]", True, False),
        ConfigKey("ottla.delegation.tokens.per.owner.max", "INT", "1000", "[1,...]", True, False),
        ConfigKey("ottla.frame.max.bytes", "INT", "4194304", "[1024,...]", True, False),
        ConfigKey("ottla.reply.max.bytes", "INT", "33554432", "[1048576,...]", True, False),
        ConfigKey("ottla.group.members.max", "INT", "50000", "[1,...]", True, False),
        ConfigKey("ottla.idle.poll.us", "INT", "100", "[0,...,10000]", True, False),
        ConfigKey("ottla.group.settle", "BOOLEAN", "true", None, True, False),
        ConfigKey("ottla.oauth.failures.max", "INT", "30", "[1,...]", True, False),
        ConfigKey("ottla.users", "PASSWORD", None, None, True, False),
        ConfigKey("ottla.emulate", "STRING", "4.4", f"[{', '.join(RELEASES)}]", True, False),
        ConfigKey("ottla.emulate.oldest.fetch", "BOOLEAN", "false", None, True, False),
        ConfigKey("ottla.flush.ms.holds.acks", "BOOLEAN", "false", None, True, False),
        ConfigKey("ottla.groups.max", "INT", "100000", "[1,...]", True, False),
        ConfigKey("ottla.producers.per.partition.max", "INT", "10000", "[1,...]", True, False),
        ConfigKey("ottla.transactional.ids.max", "INT", "100000", "[1,...]", True, False),
        ConfigKey("ottla.cluster.id", "STRING", "", None, True, False),
        ConfigKey("ottla.recovery", "STRING", "strict", "[strict, salvage]", True, False),
    )
}
AUTHORIZER_KEYS = {
    key.name: key
    for key in (
        ConfigKey("super.users", "STRING", "", None, True, False),
        ConfigKey("allow.everyone.if.no.acl.found", "STRING", "false", None, True, False),
    )
}
"""Keys that Kafka's authorizer reads; for Kafka's broker they are not configuration keys."""
ZOOKEEPER_KEYS = {
    key.name: key
    for key in (
        ConfigKey("zookeeper.connect", "STRING", "", None, True, False),
        ConfigKey("zookeeper.connection.timeout.ms", "INT", None, "[1,...]", True, False),
        ConfigKey("zookeeper.session.timeout.ms", "INT", "6000", "[100,...]", True, False),
        ConfigKey("zookeeper.set.acl", "BOOLEAN", "false", None, True, False),
    )
}
"""Keys that Kafka had until 3.9: they have an effect while such a release is emulated."""


def zookeeper_keys(release: str | None) -> dict[str, ConfigKey]:
    """Returns the keys with the defaults of an earlier release, if there were any."""
    if release is None:
        return ZOOKEEPER_KEYS
    defaults = {name: found.default for name, found in keys("broker", release).items() if found.default is not None}
    return {name: key._replace(default=defaults.get(name, key.default)) for name, key in ZOOKEEPER_KEYS.items()}


ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
LOGIN_CONFIG = "java.security.auth.login.config"
SYSTEM_PROPERTIES = {name: ConfigKey(name, "STRING", "", None, True, False) for name in (ALLOWED_URLS, LOGIN_CONFIG)}
"""Java's system properties that Kafka reads: here they are also keys, because there is no Java to give them to."""


class ConfigError(Exception):
    """An invalid configuration: the place of the error, and the message."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(reason if reason.startswith(f"{where}:") else f"{where}: {reason}")
        self.where = where
        self.reason = reason


class ScenarioError(Exception):
    """A scenario file that cannot be read or is invalid; the message names file, line and key."""


class ZooKeeperError(Exception):
    """The broker cannot start with the ZooKeeper of its configuration; the message says why."""


class SeedError(ValueError):
    """A seed file that cannot be loaded or applied."""


@dataclass(slots=True)
class Config:
    """The parsed values in force, and the source of each value that was given."""

    values: dict[str, Any] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)  # as text
    where: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    users: dict[str, User] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def emulates(self) -> str | None:
        """The release of Kafka that is emulated; None for the one that this broker is."""
        release: str = self["ottla.emulate"]
        return None if release == RELEASES[-1] else release

    @property
    def broker_keys(self) -> dict[str, ConfigKey]:
        """The keys that are in force, with the bounds of the emulated release."""
        return keys_in_force("broker", self.emulates)

    def drops_repeated(self, name: str) -> bool:
        """Whether a list loses the values that are there already: those of Kafka's keys do since 4.2 (KIP-1161)."""
        return name not in OWN_KEYS and lists_are_sets(self.emulates)

    @property
    def uses_zookeeper(self) -> bool:
        """Whether the broker is registered in a ZooKeeper: one is named, and the emulated release knows of it."""
        is_named = bool(self["zookeeper.connect"])
        return is_named and self.emulates is not None and int(self.emulates.partition(".")[0]) < 4

    @property
    def is_without_kraft(self) -> bool:
        """Whether a broker of the emulated release has ZooKeeper, and no controller's listener: before 3.3 each has."""
        return self.uses_zookeeper or (self.emulates is not None and numbers_of(self.emulates) < (3, 3))

    @property
    def clock(self) -> ClockStart:
        """How the lab's clock stands at the start."""
        if "ottla.lab.clock" not in self.given and self["ottla.lab.seed"] is not None:
            return ClockStart(0, SEEDED_START_MS)
        return parse_clock(self["ottla.lab.clock"])

    @property
    def takes_client_metrics(self) -> bool:
        """Whether clients are offered to push their metrics."""
        choice = self["ottla.client.metrics"]
        return bool(choice == "always" or (choice == "lab" and self["ottla.lab.port"] >= 0))

    def stated(self, name: str) -> str | None:
        """Returns the static value of a key: the given one, or our default if it differs from Kafka's; None if Kafka's
        default applies, or is shown.
        """
        value = self.values.get(name)
        if name in SETTLED and name not in self.given:
            return None
        if name == "broker.id":  # the former name of node.id, with its value, whichever is given
            return str(self.node_id)
        if name != "listeners" and name in self.given:  # listeners contain the ports that were bound
            return self.given[name]
        if name == "advertised.listeners":
            return ",".join(map(str, self.advertised.values()))
        if name not in LOCAL_DEFAULTS or value is None:
            return None
        return as_text(value)

    @property
    def node_id(self) -> int:
        return int(self.values["node.id"])

    @property
    def log_dirs(self) -> list[str]:
        found: list[str] = self.values["log.dirs"] or self.values["log.dir"]
        return found

    @property
    def listeners(self) -> list[Listener]:
        """The listeners for clients, without those of controllers, which are not served."""
        named = self.controllers
        return [one for one in self.every_listener if one.name not in named]

    @property
    def every_listener(self) -> list[Listener]:
        return self._listeners("listeners")

    @property
    def controllers(self) -> list[str]:
        """The names of listeners that are not for clients. Kafka does not start without `controller.listener.names`;
        a configuration that leaves it out means the name that Kafka's own configuration files have.
        """
        return [name.upper() for name in self.values["controller.listener.names"] or ["CONTROLLER"]]

    @property
    def controller_listener(self) -> Listener:
        named = self.controllers
        found = [one for one in self.every_listener if one.name in named]
        return found[0] if found else Listener(named[0], "127.0.0.1", 9093)

    @property
    def advertised(self) -> dict[str, Listener]:
        """The advertised listeners by name."""
        found = {one.name: one for one in self.listeners}
        for one in self.advertised_given:
            if one.name in found:  # listeners of controllers are not for clients
                found[one.name] = one if one.port else one._replace(port=found[one.name].port)
        return found

    @property
    def advertised_given(self) -> list[Listener]:
        return self._listeners("advertised.listeners") if "advertised.listeners" in self.given else []

    def security_protocol(self, listener: str) -> SecurityProtocol:
        """Returns the security protocol of a listener; one that is not mapped belongs to the controller."""
        found = security_protocols(self.values["listener.security.protocol.map"])
        return found.get(listener, SecurityProtocol.PLAINTEXT)

    def authenticates(self, listener: str) -> bool:
        """Whether clients of a listener have to say who they are."""
        protocol = self.security_protocol(listener)
        return protocol.has_sasl or (protocol.has_tls and self.of_listener(listener)["ssl.client.auth"] == "required")

    def of_listener(self, listener: str) -> ListenerValues:
        """Returns the static values of keys for one listener."""
        return ListenerValues(listener, self.given, self.__getitem__, self.broker_keys)

    def _listeners(self, key: str) -> list[Listener]:
        listeners = []
        for text in self.values[key] or []:
            listener = parse_listener(text)
            if listener is None:
                raise ConfigError(
                    self.where.get(key, key), f"{key}: {text!r} is not a listener; write NAME://HOST:PORT"
                )
            listeners.append(listener)
        return listeners

    def topic_defaults(self) -> dict[str, str]:
        """Returns the topic defaults that the broker's configuration sets, as text."""
        found = {}
        for topic_key, synonyms in topic_synonyms().items():
            for name in synonyms:
                if name in self.given:
                    found[topic_key] = converted(name, self.given[name])
                    break
        return found


def converted(broker_key: str, value: str) -> str:
    """Converts broker keys in hours and minutes to topic keys in milliseconds. Any negative time for which records are
    kept means no limit (KafkaConfig.logRetentionTimeMillis), where a topic key takes only -1.
    """
    if broker_key.endswith(".hours"):
        return str(int(value) * 3_600_000 if int(value) >= 0 else -1)
    if broker_key.endswith(".minutes"):
        return str(int(value) * 60_000 if int(value) >= 0 else -1)
    if broker_key == "log.retention.ms" and value.strip().startswith("-"):
        return "-1"
    return value


def as_text(value: object) -> str:
    return ",".join(value) if isinstance(value, list) else str(value)
