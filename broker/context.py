"""What a handler is told besides its request: who asks, over what, and in which version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .broker import Broker
    from .registry import Api


class Context:
    """One request. `peer` is the connection as far as handlers may know it: an identity that ends with it."""

    __slots__ = ("api", "broker", "client_address", "client_id", "correlation_id", "listener", "node_id", "peer", "principal", "version")

    def __init__(self, broker: Broker, api: Api, version: int, correlation_id: int, client_id: str | None, peer: Peer) -> None:
        self.broker = broker
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.peer = peer
        self.principal = "User:ANONYMOUS"
        self.listener = peer.listener
        self.client_address = peer.address
        self.node_id = broker.config.node_id


class Peer:
    """A client's connection: its listener and address, what it told of itself, and what must end with it."""

    __slots__ = ("address", "host", "listener", "on_lost", "software")

    def __init__(self, listener: str, address: str) -> None:
        self.listener = listener
        self.address = address
        self.host = "/" + address.rpartition(":")[0].strip("[]")  # as Java writes it
        self.software: tuple[str, str] = ("unknown", "unknown")
        self.on_lost: list[Any] = []

    def lost(self) -> None:
        calls, self.on_lost = self.on_lost, []
        for call in calls:
            call()
