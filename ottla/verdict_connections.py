"""The examination `connections` of `ottla verdict`: the broker closes idle connections, and then the only broker that
metadata tells of cannot be reached for a while, while that of the bootstrap servers can.

It is one broker with two listeners, and both say that it is at the second one. There, each request closes its
connection for that while: a client that begins again with the servers that it was given comes to the first (KIP-899).
Only these rules count.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Final

from .verdict_guide import Guide

if TYPE_CHECKING:
    from .broker.lab.client_routes import ClientView

NAME: Final = "connections"
RULES: Final = ("KIP-899.bootstraps-again", "protocol.closed-while-idle")
GIVEN, KNOWN = "GIVEN", "KNOWN"
"""The listener of the bootstrap servers, and that which metadata tells of."""
LISTENERS: Final = 2
IDLE_MS: Final = 1000
IDLE_S_MAX: Final = 20.0
"""So long a connection may take to become idle and to be followed by another."""
LOST_S: Final = 20.0
"""Twice what the rule gives a client to notice that its brokers are gone: it may have nothing to do at first."""
WORK: Final = ("Produce v", "Fetch v")
"""How requests begin, as clients are shown, that are the work of a producer or a consumer."""
STEPS: Final = ("a connection is closed because it is idle", f"the broker of the metadata is lost for {LOST_S:g} s")


def settings(host: str, port: int) -> dict[str, object]:
    """The settings of the broker. `port`: of the bootstrap servers; the next one is that which metadata tells of."""
    known = f"{host}:{port + 1}"
    return {
        "listeners": f"{GIVEN}://{host}:{port},{KNOWN}://{known}",
        "advertised.listeners": f"{GIVEN}://{known},{KNOWN}://{known}",
        "listener.security.protocol.map": f"{GIVEN}:PLAINTEXT,{KNOWN}:PLAINTEXT",
        "inter.broker.listener.name": KNOWN,
        "connections.max.idle.ms": IDLE_MS,
    }


class Connections(Guide):
    """Takes the clients of a broker through it."""

    steps = STEPS

    def _run(self) -> None:
        self._until(lambda: any(map(_works, self._lab.get("clients")["clients"])))
        latest = monotonic() + IDLE_S_MAX
        self._until(lambda: self._is_exercised(RULES[1]) or monotonic() > latest)
        if self._is_exercised(RULES[1]):
            self.done.append(STEPS[0])
        if self._ended.is_set():
            return
        with self._lab.fault("close", listener=KNOWN, at="request"):
            if not self._ended.wait(LOST_S):
                self.done.append(STEPS[1])

    def _is_exercised(self, id: str) -> bool:
        rules = [rule for client in self._lab.get("verdict")["clients"] for rule in client["rules"]]
        return any(one["id"] == id and one["outcome"] != "not exercised" for one in rules)


def _works(client: ClientView) -> bool:
    """Whether a client produces or fetches where metadata has sent it."""
    return client["listener"] == KNOWN and any(request.startswith(WORK) for request in client["requests"])
