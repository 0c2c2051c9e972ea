"""What the connections of a loop share: their server, and the buffer into which they read."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..broker import Broker
from .dispatch import Dispatcher

C_contra = TypeVar("C_contra", contravariant=True)
SHARED_BYTES = 256 << 10


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
