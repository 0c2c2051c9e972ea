"""A whole broker in memory whose connection is one of a SASL listener, `AUTH`."""

from __future__ import annotations

from ottla.broker.net.dispatch import Dispatcher
from ottla.broker.net.sasl_gate import SaslGate
from ottla.broker.peer import Peer, SecurityProtocol
from ottla.protocol import messages as m

from .world import Answer, World

LISTENER = "listener.name.auth"
SETTINGS = {
    "listeners": "AUTH://127.0.0.1:9092",
    "listener.security.protocol.map": "AUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
}


def secured(settings: dict[str, str]) -> World:
    """A world whose connection is one of a SASL listener."""
    world = World(**settings)
    server, world.peer = world.dispatcher, Peer("AUTH", "127.0.0.1:1", SecurityProtocol.SASL_PLAINTEXT)

    def opened(dispatcher: Dispatcher) -> None:
        assert dispatcher is server
        world.dispatcher = dispatcher

    world.dispatcher = SaslGate(server, world.broker.sasl["AUTH"], world.peer, opened)
    return world


def handshake(world: World, mechanism: str = "PLAIN", version: int = 1) -> Answer:
    return world.send("SaslHandshake", version, m.SaslHandshakeRequest(mechanism=mechanism))
