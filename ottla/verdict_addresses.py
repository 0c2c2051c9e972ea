"""The examination `addresses` of `ottla verdict`: metadata names the broker by a name with two addresses, and only one
of them is served (KIP-302).

It is one broker with four listeners. The program is run twice: it begins at TO_SECOND, whose metadata leads to
AT_SECOND, and then at TO_FIRST, whose metadata leads to AT_FIRST. AT_FIRST is at the first address of the name and
AT_SECOND at the second one, each at a port of its own, so that a client that tries one address only does not come to
both. Only this rule counts.

All addresses are of 127.0.0.0/8. A client comes from 127.0.0.1 to each of these, so that it is one client for the
verdict; and Java's clients leave out the addresses of a name that are of another family than the first one.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import ExitStack
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from .verdict.rules.connections import LEADS_TO

if TYPE_CHECKING:
    from .testing import Broker

NAME: Final = "addresses"
RULES: Final = ("KIP-302.all-addresses-tried",)
TO_SECOND, AT_SECOND, TO_FIRST, AT_FIRST = LISTENERS = ("TO_SECOND", "AT_SECOND", "TO_FIRST", "AT_FIRST")
"""In the order of their ports, which follow each other."""
BEGINNINGS: Final = (LISTENERS.index(TO_SECOND), LISTENERS.index(TO_FIRST))
"""The ports of the bootstrap servers, counted from the first one."""
PLACES: Final = (AT_SECOND, AT_FIRST)
STEPS: Final = ("only the second address of the name is served", "only the first address of the name is served")


def addresses_of(name: str) -> tuple[str, str]:
    """Returns two loopback addresses of a name. Raises ValueError if it does not have two."""
    try:
        found = [str(one[-1][0]) for one in socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        found = []
    local = [one for one in dict.fromkeys(found) if ip_address(one).is_loopback]
    if len(local) < 2:
        raise ValueError(
            f"{name!r} has no two addresses of 127.0.0.0/8; with the lines `127.0.0.1 two.test` and "
            "`127.0.0.2 two.test` in /etc/hosts, --listen two.test:9092 has"
        )
    return local[0], local[1]


def settings(name: str, port: int, addresses: Sequence[str]) -> dict[str, object]:
    """The settings of the broker. `port`: the first of its four."""
    first, second = addresses
    at = {TO_SECOND: first, AT_SECOND: second, TO_FIRST: first, AT_FIRST: first}
    ports = {listener: port + number for number, listener in enumerate(LISTENERS)}
    told = {listener: ports[LEADS_TO.get(listener, listener)] for listener in LISTENERS}
    return {
        "listeners": ",".join(f"{listener}://{at[listener]}:{ports[listener]}" for listener in LISTENERS),
        "advertised.listeners": ",".join(f"{listener}://{name}:{told[listener]}" for listener in LISTENERS),
        "listener.security.protocol.map": ",".join(f"{listener}:PLAINTEXT" for listener in LISTENERS),
        "inter.broker.listener.name": AT_FIRST,
    }


def unserved(port: int, addresses: Sequence[str]) -> ExitStack:
    """Keeps the addresses that are not served: each refuses connections, and no other program can listen there. Raises
    ValueError if one does.
    """
    first, second = addresses
    with ExitStack() as kept:
        for host, listener in ((first, AT_SECOND), (second, AT_FIRST)):
            at = host, port + LISTENERS.index(listener)
            try:
                kept.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)).bind(at)
            except OSError as error:
                raise ValueError(f"{host}:{at[1]} has to be free: {error.strerror}") from None
        return kept.pop_all()


class Arrivals:
    """Notices the clients that come to the places. A fault that changes nothing counts the requests there."""

    def __init__(self, broker: Broker) -> None:
        self._lab = broker.lab
        self._faults = [
            broker.lab.post("faults", {"listener": one, "times": 1, "action": {"kind": "delay", "ms": 0}})["number"]
            for one in PLACES
        ]

    @property
    def done(self) -> list[str]:
        """Those of STEPS of which a client has come to the place."""
        return [step for step, number in zip(STEPS, self._faults, strict=True) if self._is_applied(number)]

    def _is_applied(self, number: int) -> bool:
        return bool(self._lab.get(f"faults/{number}")["applied"])
