"""Where the configuration comes from: a properties file, `KAFKA_*` variables and the command line.

Every value is checked before anything is opened: one that its key does not take, or that does not go with another, is
refused with file, line and key. An unknown key warns, and so does a key that is set and has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...protocol.config_def import ConfigInvalid, ConfigKey, keys, keys_in_force
from . import checks as config_checks
from . import effects as config_effects
from . import listener_checks as config_listener_checks
from . import relations as config_relations
from .config import (
    AUTHORIZER_KEYS,
    LOCAL_DEFAULTS,
    OWN_KEYS,
    RELEASES,
    SETTLED,
    SYSTEM_PROPERTIES,
    Config,
    ConfigError,
    as_text,
    zookeeper_keys,
)
from .secrets import HIDDEN, is_secret
from .users import parse_users

NOT_KEYS = frozenset(
    f"KAFKA_{name}"
    for name in (
        *(
            "CLUSTER_ID",
            "DEBUG",
            "GC_LOG_OPTS",
            "HEAP_OPTS",
            "HOME",
            "JMX_HOSTNAME",
            "JMX_OPTS",
            "JMX_PORT",
            "JVM_PERFORMANCE_OPTS",
            "LOG4J_LOGGERS",
        ),
        *("LOG4J_OPTS", "LOG4J_ROOT_LOGLEVEL", "OPTS", "TOOLS_LOG4J_LOGLEVEL", "VERSION"),
    )
)


def from_environment(environment: Mapping[str, str]) -> Iterable[tuple[str, str, str]]:
    """Reads keys from environment variables, as in the apache/kafka image: `KAFKA_LOG_DIRS` is `log.dirs`; `___` is a
    dash, `__` an underscore, `_` a dot. Of the system properties in `KAFKA_OPTS`, those count that Kafka reads.
    """
    for option in environment.get("KAFKA_OPTS", "").split():
        name, _, value = option.removeprefix("-D").partition("=")
        if name in SYSTEM_PROPERTIES and option.startswith("-D"):
            yield name, value, "$KAFKA_OPTS"
    for variable, value in sorted(environment.items()):
        if variable.startswith("KAFKA_") and variable not in NOT_KEYS:
            name = variable.removeprefix("KAFKA_").lower()
            name = name.replace("___", "\0").replace("__", "\1").replace("_", ".").replace("\0", "-").replace("\1", "_")
            yield name, value, f"${variable}"


def from_file(path: str) -> Iterable[tuple[str, str, str]]:
    """Reads a Java properties file, each byte of which is a character of Latin-1, as for Java. Raises ConfigError if it
    cannot be read.
    """
    import javaproperties

    try:
        with open(path, encoding="latin-1") as file:
            text = file.read()
    except OSError as error:
        raise ConfigError(path, error.strerror or str(error)) from None
    line = 1
    try:
        for element in javaproperties.parse(text):
            if isinstance(element, javaproperties.KeyValue):
                yield element.key, element.value, f"{path}, line {line}"
            line += element.source.count("\n")
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigError(f"{path}, line {line}", f"{error}: \\u must be followed by four hexadecimal digits") from None


def from_arguments(arguments: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    """Reads `key=value` arguments of the command line."""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise ConfigError("command line", f"{argument!r} is not of the form key=value")
        yield name.strip(), value.strip(), "command line"


def build(*sources: Iterable[tuple[str, str, str]]) -> Config:
    """Combines sources into a configuration; a later source overrides an earlier one."""
    config = Config()
    for source in sources:
        for name, value, where in source:
            config.given[name], config.where[name] = value, where
    release = config.given.get("ottla.emulate")
    earlier = release if release in RELEASES[:-1] else None
    _read_oldest_listeners(config, earlier)
    of_kafka = keys_in_force("broker", earlier)
    known = {**of_kafka, **OWN_KEYS, **AUTHORIZER_KEYS, **SYSTEM_PROPERTIES, **zookeeper_keys(earlier)}
    parse(config, known)
    _settle_defaults(config, earlier)
    _settle_earlier(config)
    _check(config)
    _drop_repeated(config, of_kafka)
    _read_users(config)
    if config["zookeeper.connect"] and not config.uses_zookeeper:
        reason = "Kafka 4.0 and later have no ZooKeeper; ottla.emulate names an earlier release"
        where = config.where["zookeeper.connect"]
        config.warnings.append(f"{where}: configuration key 'zookeeper.connect' has no effect: {reason}")
    config.warnings += config_effects.warnings(config.given, config.where, known)
    return config


def parse(config: Config, known: Mapping[str, ConfigKey]) -> None:
    """Parses what is given of the known keys, and takes the defaults of the others. Raises ConfigError."""
    for name, key in known.items():
        text = config.given.get(name, LOCAL_DEFAULTS.get(name, key.default))
        try:
            config.values[name] = key.parse(text)
        except ConfigInvalid as error:
            raise ConfigError(config.where.get(name, name), str(error)) from None


def _drop_repeated(config: Config, known: Mapping[str, ConfigKey]) -> None:
    """Drops the values of lists that are there already, with Kafka's warning."""
    for name, key in known.items():
        if key.type == "LIST" and name in config.given and config.drops_repeated(name):
            given = config.values[name]
            left = list(dict.fromkeys(given))
            if left != given:
                config.values[name] = left
                config.warnings.append(
                    f'{config.where[name]}: Configuration key "{name}" contains duplicate values. Duplicates will be '
                    f"removed. The original value is: [{', '.join(given)}], the updated value is: [{', '.join(left)}]"
                )


def _settle_defaults(config: Config, release: str | None) -> None:
    """Our own defaults give way to related keys that were given."""
    if "log.dirs" not in config.given and "log.dir" in config.given:
        config.values["log.dirs"] = None
    if not config.values["ottla.group.settle"]:
        known = keys("broker", release)
        for name in sorted(SETTLED.intersection(known) - config.given.keys()):
            config.values[name] = known[name].parse(known[name].default)
    for kind in ("consumer", "share", "streams"):  # our default must not be below a given bound
        interval = f"group.{kind}.assignment.interval.ms"
        if interval not in config.given:
            config.values[interval] = max(
                config.values[interval], config.values[f"group.{kind}.min.assignment.interval.ms"]
            )
    nodes = config.values["ottla.nodes"]
    if nodes > 1:
        for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
            _default(config, f"{topic}.replication.factor", min(nodes, 3))
        for topic in ("transaction.state.log", "share.coordinator.state.topic"):
            _default(config, f"{topic}.min.isr", 2 if nodes > 2 else 1)
    if "node.id" not in config.given and "broker.id" in config.given:
        config.values["node.id"] = config.values["broker.id"]


def _read_oldest_listeners(config: Config, release: str | None) -> None:
    """Makes listeners of the keys that were there for them until 2.8, unless listeners are given."""
    if release is None or "host.name" not in keys("broker", release):
        return
    given, local = config.given, LOCAL_DEFAULTS["listeners"].rpartition("//")[2].partition(":")
    for listeners, names, host, port in (
        ("listeners", ("host.name", "port"), local[0], local[2]),
        (
            "advertised.listeners",
            ("advertised.host.name", "advertised.port"),
            given.get("host.name", local[0]),
            given.get("port", local[2]),
        ),
    ):
        named = [name for name in names if name in given]
        if named and listeners not in given:
            address = f"{given.get(names[0], host)}:{given.get(names[1], port)}"
            given[listeners], config.where[listeners] = f"PLAINTEXT://{address}", config.where[named[0]]


def _settle_earlier(config: Config) -> None:
    """Gives keys of today what earlier names of theirs say."""
    values = config.values
    if "delegation.token.secret.key" not in config.given:
        values["delegation.token.secret.key"] = values.get("delegation.token.master.key")


def _default(config: Config, name: str, value: int) -> None:
    if name not in config.given:
        config.values[name] = value


def _read_users(config: Config) -> None:
    try:
        config.users = {user.name: user for user in parse_users(config["ottla.users"] or "")}
    except ValueError as error:
        raise ConfigError(config.where["ottla.users"], f"ottla.users: {error}") from None


def _check(config: Config) -> None:
    """Raises ConfigError for the first value that Kafka would refuse at start, or that this broker does not support."""
    for checked in (config_listener_checks.listener_faults, config_checks.faults):
        for name, words in checked(config):
            raise ConfigError(config.where.get(name, name), words)
    wrong = config_relations.refused(config.values)
    if wrong is not None:
        relation, words = wrong
        blamed = next((name for name in relation.keys if name in config.given), relation.keys[0])
        found = ", ".join(
            f"{name}={HIDDEN if is_secret(name) else as_text(config.values[name])}"
            for name in relation.keys
            if config.values[name] is not None
        )
        raise ConfigError(config.where.get(blamed, blamed), f"{words} (found {found})")
