"""Checks of dynamic values that concern listeners (Kafka's DynamicListenerConfig and SocketServer).

Kafka takes the keys of SASL while it runs and uses them for new listeners, which a KRaft broker cannot open: they are
checked, stored and shown. So they are in ottla. Certificates, numbers and rates of connections take effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...coordinator.metadata.state import BROKER
from ...protocol.errors import ApiError, Errors
from ..broker import Broker
from ..config.config import Config, ConfigError
from ..config.endpoints import endpoints, plain_controllers
from ..config.listener_checks import listener_faults
from ..config.listener_values import (
    ADVERTISED,
    CONNECTIONS,
    LISTENERS,
    MAP,
    PREFIX,
    THREADS,
    invalid_values,
    is_of_listeners,
    listeners_have_threads,
    security_protocols,
)
from ..tls.listener import STORES
from ..tls.stores import StoreError

CHANGEABLE = (*CONNECTIONS, THREADS, *STORES)
"""The keys of a listener that may get another value while it is open."""

NO_CONTROLLER = (
    "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when running "
    "the KRaft controller role"
)

Changes = Mapping[str, str | None]


def not_taken(reason: str) -> ApiError:
    """Returns the error of a value that a part of the running broker refuses."""
    return ApiError(
        Errors.INVALID_REQUEST,
        f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} for configuration Invalid "
        "dynamic configuration",
    )


def check_threads(key: str, wanted: int, present: int) -> None:
    """A number of threads may change by a factor of two at most. Kafka checks this; ottla has no such threads."""
    text = f"Dynamic thread count update validation failed for {key}={wanted}, value should"
    if wanted < present // 2:
        raise not_taken(f"{text} be at least half the current value {present}")
    if wanted > present * 2:
        raise not_taken(f"{text} not be greater than double the current value {present}")


def check_listeners(broker: Broker, changes: Changes) -> None:
    """Raises ApiError for values of listeners that are invalid, that cannot change while the broker runs, or that their
    TLS cannot use. `changes`: None where a key loses its value.
    """
    given = {name: value for name, value in changes.items() if value is not None}
    names = [one.name for one in broker.config.listeners]
    release = broker.config.emulates
    for _, error in invalid_values(given, dict.fromkeys(names), release):
        raise not_taken(str(error))
    for name in names:
        for key in CONNECTIONS:
            limit = given.get(f"{PREFIX}{name.lower()}.{key}")
            if limit is not None and int(limit) <= 0:
                raise not_taken(f"Invalid {key} {limit.strip()}")
        threads = given.get(f"{PREFIX}{name.lower()}.{THREADS}")
        if threads is not None and listeners_have_threads(release):
            check_threads(THREADS, int(threads), broker.settings.of_listener(name)[THREADS])
    _check_named(broker, given)
    _check_fixed(broker, names, changes)
    _check_tls(broker, changes)


def _check_named(broker: Broker, given: Mapping[str, str]) -> None:
    """Checks other listeners, or other security protocols: a KRaft broker can neither open nor close listeners."""
    named = [name for name in (LISTENERS, MAP, ADVERTISED) if name in given]
    if not named:
        return
    before = broker.config
    values = {name: before.broker_keys[name].parse(given[name]) for name in named}
    if LISTENERS in values:
        values[LISTENERS] = _listeners_named(before, values[LISTENERS], given)
    after = replace(before, values={**before.values, **values}, given={**before.given, **given})
    wrong = _fault(after)
    if wrong is not None:
        raise ApiError(Errors.INVALID_REQUEST, wrong)
    for one in before.listeners:
        if before.security_protocol(one.name) is not after.security_protocol(one.name):
            raise not_taken(f"Security protocol cannot be updated for existing listener ListenerName({one.name})")
    if {one.name for one in before.listeners} != {one.name for one in after.listeners}:
        raise not_taken("Advertised listeners cannot be altered when using a Raft-based metadata quorum.")


def _listeners_named(before: Config, wanted: list[str], given: Mapping[str, str]) -> list[str]:
    """Returns listeners with the names of those that are wanted: nothing opens them, so that their addresses matter no
    more once they were read. Raises ApiError.
    """
    named = [name.upper() for name in before["controller.listener.names"] or []]
    try:
        plain = () if MAP in before.given else plain_controllers(wanted, named)
        known = {*security_protocols(given.get(MAP, before[MAP])), *plain}
        found = [one.name for one in endpoints(wanted, known)]
    except ValueError as error:
        raise ApiError(Errors.INVALID_REQUEST, str(error)) from None
    opened = [one.name for one in before.every_listener]
    if not any(name in found for name in named) and any(name in opened for name in named):
        raise ApiError(Errors.INVALID_REQUEST, f"requirement failed: {NO_CONTROLLER}")
    return [f"{name}://:{port}" for port, name in enumerate(found, 1)]


def _fault(config: Config) -> str | None:
    """Returns the first thing that is wrong with listeners: what comes after it may not be looked at."""
    try:
        found = next(listener_faults(config), None)
    except ConfigError as error:
        return error.reason
    if found is None:
        return None
    key, words = found
    return f"requirement failed: {words}" if key == ADVERTISED else words


def _check_fixed(broker: Broker, names: list[str], changes: Changes) -> None:
    """Kafka lets no key of all listeners change as long as an open listener has stored values of its own that cannot
    take effect.
    """
    stored = broker.image.config_of(BROKER, str(broker.config.node_id))
    if all(stored.get(name) == value or not is_of_listeners(name) for name, value in changes.items()):
        return
    for name in names:
        prefix = f"{PREFIX}{name.lower()}."
        if any(key.startswith(prefix) and key.removeprefix(prefix) not in CHANGEABLE for key in stored):
            raise not_taken(
                f"Configs cannot be updated dynamically for existing listener ListenerName({name}), restart broker or "
                "create a new listener for update"
            )


def _check_tls(broker: Broker, changes: Changes) -> None:
    for listener in broker.tls.values():
        values = broker.settings.of_listener(listener.name, changes)
        if any(name.startswith(values.prefix + "ssl.") for name in changes):
            try:
                listener.check(values)
            except StoreError as error:
                raise not_taken(
                    f"Validation of dynamic config update of SSLFactory failed: {error.java}: {error}"
                ) from None
