"""Listeners: their addresses, their security protocols, and the values of keys that hold for one of them.

A key may be given for one listener as `listener.name.<listener>.<key>`, and for one SASL mechanism of it as
`listener.name.<listener>.<mechanism>.<key>`, both names
in lower case (Kafka's ListenerName.configPrefix and AbstractConfig.valuesWithPrefixOverride).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ...protocol.config_def import ConfigInvalid, ConfigKey, keys, keys_in_force, numbers_of
from ...protocol.text import host_and_port
from ..peer import SecurityProtocol

PREFIX = "listener.name."
PRINCIPAL_BUILDER = "principal.builder.class"
LISTENERS, MAP, ADVERTISED = "listeners", "listener.security.protocol.map", "advertised.listeners"
CONNECTIONS = ("max.connections", "max.connection.creation.rate")
"""The keys that a listener may have of all brokers."""
THREADS = "num.network.threads"
Value = Any
"""The value of a key, of the class that its type says."""
# names, addresses in brackets if they are IPv6's
_LISTENER = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)://(?P<host>\[[^\]]*\]|[^:/]*):(?P<port>\d{1,9})", re.ASCII)


class Listener(NamedTuple):
    name: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{self.address}"

    @property
    def address(self) -> str:
        """Host and port as clients write them."""
        return host_and_port(self.host, self.port)


@lru_cache(64)  # every Metadata reply names the listeners
def parse_listener(text: str) -> Listener | None:
    """Parses a listener; None if `text` is none."""
    parts = _LISTENER.fullmatch(text)
    return None if parts is None else Listener(parts["name"].upper(), parts["host"].strip("[]"), int(parts["port"]))


@lru_cache(8)
def security_protocols(text: str) -> Mapping[str, SecurityProtocol]:
    """Parses a `listener.security.protocol.map`. Raises ValueError with Kafka's words if it is malformed."""
    entries = {}
    for entry in filter(None, (one.strip() for one in text.split(","))):
        name, colon, protocol = (part.strip() for part in entry.rpartition(":"))
        if not colon:
            raise ValueError(
                "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, "
                f"length {len(entry)}"
            )
        entries[name] = protocol  # of a name that is repeated, the last counts
    found: dict[str, SecurityProtocol] = {}
    for count, (name, protocol) in enumerate(entries.items(), 1):
        if not name:
            raise ValueError("The provided listener name is null or empty string")
        if protocol.upper() not in SecurityProtocol.__members__:
            raise ValueError(f"Invalid security protocol `{protocol}` defined in listener.security.protocol.map")
        before = found.setdefault(name.upper(), SecurityProtocol[protocol.upper()])
        if len(found) < count:
            values = f"{before.name} and {protocol.upper()}"
            raise ValueError(f"Duplicate key ListenerName({name.upper()}) (attempted merging values {values})")
    return found


class ListenerValues:
    """The values of broker keys in force for one listener. `given`: the values of all keys as text; `general`: returns
    the parsed value of a key for all listeners, also of one that a listener cannot have; `known`: the keys in force.
    """

    def __init__(
        self,
        listener: str,
        given: Mapping[str, str],
        general: Callable[[str], object],
        known: Mapping[str, ConfigKey],
    ) -> None:
        self.listener = listener
        self._known = known
        self.prefix = f"{PREFIX}{listener.lower()}."
        self._given = given
        self.general = general

    def __getitem__(self, name: str) -> Value:
        """Returns the listener's own value of a key, else the value for all listeners."""
        own = self.own(name)
        return self.general(name) if own is None else own

    def own(self, name: str, mechanism: str = "") -> Value:
        """Returns the value that is given for this listener alone, or for one SASL mechanism of it; None if there is
        none. Kafka takes a few keys, such as `sasl.jaas.config` of brokers, only from here.

        Raises ConfigInvalid if the value is invalid.
        """
        middle = f"{mechanism.lower()}." if mechanism else ""
        text = self._given.get(self.prefix + middle + name)
        return None if text is None else self._known[name].parse(text)

    def of_mechanism(self, mechanism: str, name: str) -> Value:
        """Returns the value for a SASL mechanism of this listener, else the listener's value."""
        own = self.own(name, mechanism)
        return self[name] if own is None else own


def key_of_listener(name: str, release: str | None = None) -> tuple[str, ConfigKey] | None:
    """Returns the listener and the key without prefix of a key of one listener, or of a SASL mechanism of it; None for
    other keys. `release`: the one that is emulated.
    """
    if not name.startswith(PREFIX):
        return None
    listener, _, rest = name.removeprefix(PREFIX).partition(".")
    known = keys_in_force("broker", release)
    key = known.get(rest) or known.get(rest.partition(".")[2])
    return None if key is None else (listener.upper(), key)


def without_listener(name: str) -> str:
    """Returns a key without the prefix of a listener, of whatever name."""
    return name.removeprefix(PREFIX).partition(".")[2] if name.startswith(PREFIX) else name


def is_of_listeners(name: str) -> bool:
    """Whether a key without the prefix of a listener is about all listeners of a broker."""
    is_theirs = name.startswith(("sasl.", "ssl.")) or name in (LISTENERS, MAP, ADVERTISED, PRINCIPAL_BUILDER)
    return is_theirs and name in keys("broker")


def listeners_have_threads(release: str | None) -> bool:
    """Whether each listener has a number of threads, in the release that is emulated."""
    return release is None or numbers_of(release) >= (3, 2)


def is_of_one_broker(name: str, release: str | None) -> bool:
    """Whether a key cannot have a value for all brokers, because it belongs to their listeners."""
    if not name.startswith(PREFIX):
        return is_of_listeners(name)
    key = without_listener(name)
    return key not in CONNECTIONS and not (key == THREADS and listeners_have_threads(release))


def invalid_values(
    given: Mapping[str, str], listeners: Mapping[str, object], release: str | None
) -> list[tuple[str, ConfigInvalid]]:
    """Returns the keys of listeners whose values are invalid, with the errors."""
    found = []
    for name, text in given.items():
        of = key_of_listener(name, release)
        if of is not None and of[0] in listeners:
            try:
                of[1].parse(text)
            except ConfigInvalid as error:
                found.append((name, error))
    return found
