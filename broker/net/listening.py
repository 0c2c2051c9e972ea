"""What the connections of a loop share: their server, and the buffer into which they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..broker import Broker
from .dispatch import Dispatcher

if TYPE_CHECKING:
    from .connection import Connection

SHARED_BYTES = 256 << 10


class SharedBuffer:
    """The buffer into which the idle connections of a loop read."""

    def __init__(self) -> None:
        self.data = bytearray(SHARED_BYTES)
        self.view = memoryview(self.data)


class Listening(Protocol):
    """What connections need of their server."""

    broker: Broker
    dispatcher: Dispatcher
    shared: SharedBuffer

    def connected(self, connection: Connection) -> bool: ...

    def gate(self, connection: Connection) -> Dispatcher:
        """Returns what serves a new connection: the dispatcher, or first the exchange that its listener asks for."""

    def admit(self, connection: Connection) -> None: ...

    def disconnected(self, connection: Connection) -> None: ...

    def held(self, connection: Connection, more: int) -> None:
        """A connection holds `more` bytes than before; closes the one that holds the most if that is too much."""

    def again(self, connection: Connection) -> None:
        """Serves what was buffered, in a later turn of the loop."""
