"""Checks of listeners, their security protocols, and the keys that name listeners, which Kafka makes at start."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .config import Config
from .listener_values import Listener, invalid_values, security_protocols

PORT_MAX = 65535
MAP = "listener.security.protocol.map"

Fault = tuple[str, str]
"""The invalid key, and the message."""


def listener_faults(config: Config) -> Iterator[Fault]:
    """Yields the errors of listeners, advertised listeners, and keys that name listeners."""
    checks: tuple[Callable[[Config], Iterator[Fault]], ...] = (_protocols, _advertised, _served, _named)
    for check in checks:
        yield from check(config)


def _protocols(config: Config) -> Iterator[Fault]:
    try:
        known = security_protocols(config[MAP])
    except ValueError as error:
        yield MAP, str(error)
        return
    every = config.listeners if config.is_without_kraft else config.every_listener
    if MAP in config.given or any(protocol for name, protocol in known.items() if name in [one.name for one in every]):
        for one in every:
            if one.name not in known:
                text = f"Error creating broker listeners from '[{', '.join(map(str, every))}]'"
                yield (
                    "listeners",
                    f"{text}: No security protocol defined for listener {one.name}",
                )
    for name, fault in invalid_values(config.given, {one.name: None for one in every}, config.emulates):
        yield name, str(fault)


def _served(config: Config) -> Iterator[Fault]:
    key, listeners = "listeners", config.listeners
    if not listeners:
        yield key, "listeners: at least one listener for clients is required"
    names = [one.name for one in listeners]
    if len(set(names)) < len(names):
        yield key, f"Each listener must have a different name, listeners: {', '.join(map(str, listeners))}"
    for index, one in enumerate(listeners):
        if one.port > PORT_MAX:
            yield key, f"listeners: the port of {one} is greater than {PORT_MAX}"
        if one.name not in security_protocols(config[MAP]):
            yield key, f"No security protocol defined for listener {one.name}; add {one.name}:PLAINTEXT to {MAP}"
        for other in listeners[:index]:
            if one.port == other.port != 0 and not _may_share(one, other):
                yield (
                    key,
                    "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, port: "
                    f"{one.port}",
                )


def _may_share(one: Listener, other: Listener) -> bool:
    """Whether two listeners may share a port: their addresses differ."""
    return one.host != other.host and bool(one.host and other.host)


def _advertised(config: Config) -> Iterator[Fault]:
    key = "advertised.listeners"
    if key not in config.given:
        return
    served = [one.name for one in config.listeners]
    controllers = config.controllers
    advertised = config.advertised_given
    if any(one.name not in served and one.name not in controllers for one in advertised):
        yield (
            key,
            f"{key} listener names must be equal to or a subset of the ones defined in listeners. "
            f"Found {','.join(one.name for one in advertised)}. The valid options based on the current configuration "
            f"are {','.join(one.name for one in config.every_listener)}",
        )
    for one in advertised:
        if one.host == "0.0.0.0":
            yield key, f"{key} cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
        if one.host == "::":
            yield key, f"{key}: the listener {one.name} must not use the wildcard address ::; use a routable IP address"
        if one.port > PORT_MAX:
            yield key, f"{key}: the port of {one} is greater than {PORT_MAX}"


def _named(config: Config) -> Iterator[Fault]:
    """Checks the keys that name listeners."""
    served = [one.name for one in config.listeners]
    controllers = config.controllers
    for one in config["early.start.listeners"] or []:
        if one.upper() not in served + controllers:
            key = "early.start.listeners"
            yield (
                key,
                f"{key} contains listener {one}, but this is not contained in listeners or controller.listener.names",
            )
    yield from _between_brokers(config)


def _between_brokers(config: Config) -> Iterator[Fault]:
    """Checks the listener for other brokers, if one is named. There are no other brokers, and unlike Kafka's its
    default may be a listener that does not exist.
    """
    key, of_protocol = "inter.broker.listener.name", "security.inter.broker.protocol"
    if key in config.given and of_protocol in config.given:
        yield key, f"Only one of {key} and {of_protocol} should be set."
    if key in config.given:
        blamed, name = key, config[key].upper()
        if not name:
            yield key, "The provided listener name is null or empty string"
        elif name not in [*security_protocols(config[MAP]), config.controller_listener.name]:
            yield key, f"Listener with name {name} defined in {key} not found in {MAP}."
    elif of_protocol in config.given:
        blamed, name = of_protocol, config[of_protocol]
    else:
        return
    advertised = config.advertised_given or config.listeners
    if name not in [one.name for one in advertised]:
        names = ",".join(one.name for one in advertised)
        yield (
            blamed,
            f"{key} must be a listener name defined in advertised.listeners. The valid options based on currently "
            f"configured listeners are {names}",
        )
    elif config.security_protocol(name).has_sasl:
        mechanism = "sasl.mechanism.inter.broker.protocol"
        if config[mechanism] not in config.of_listener(name)["sasl.enabled.mechanisms"]:
            yield (
                mechanism,
                f"{mechanism} must be included in sasl.enabled.mechanisms when SASL is used for inter-broker "
                "communication",
            )
