"""What the connections of a loop share: their server, and the buffer into which they read."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..broker import Broker
from ..peer import Peer
from .dispatch import Dispatcher

C_contra = TypeVar("C_contra", contravariant=True)
SHARED_BYTES = 256 << 10
TLS_HANDSHAKE = b"\x16\x03"  # as the size of a frame, more than any limit


class SharedBuffer:
    """The buffer into which the idle connections of a loop read."""

    def __init__(self) -> None:
        self.data = bytearray(SHARED_BYTES)
        self.view = memoryview(self.data)


class Listening(Protocol[C_contra]):
    """What connections need of their server."""

    broker: Broker
    dispatcher: Dispatcher
    shared: SharedBuffer

    def connected(self, connection: C_contra) -> bool: ...

    def gate(self, connection: C_contra) -> Dispatcher:
        """Returns what serves a new connection: the dispatcher, or first the exchange that its listener asks for."""

    def admit(self, connection: C_contra) -> None: ...

    def disconnected(self, connection: C_contra) -> None: ...

    def held(self, connection: C_contra, more: int) -> None:
        """A connection holds `more` bytes than before; closes the one that holds the most if that is too much."""

    def again(self, connection: C_contra) -> None:
        """Serves what was buffered, in a later turn of the loop."""


def complain_of_tls(broker: Broker, peer: Peer, beginning: bytes) -> None:
    """Says that a client speaks TLS to a listener without it, if the beginning of its frame looks so."""
    if beginning == TLS_HANDSHAKE and not peer.security_protocol.has_tls:
        broker.sparsely.warning(
            "tls", "%s speaks TLS to the listener %s, which has no TLS", peer.address, peer.listener
        )
