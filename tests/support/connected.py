"""A world with connections: real ones, on transports in memory."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from ottla.broker.connection_rates import Verdict
from ottla.broker.net.connection import Connection
from ottla.broker.net.dispatch import Dispatcher
from ottla.broker.net.listening import IdlePoll, SharedBuffer
from ottla.broker.net.sasl_gate import SaslGate
from ottla.broker.net.sending import Pipe
from ottla.broker.peer import SecurityProtocol
from ottla.broker.unsupported_version import is_of_version_0
from ottla.protocol import codec, headers

from .machine import VirtualMachine
from .memory_files import MemFiles
from .wire import request_frame
from .world import World


class Transport:
    """Takes all that is written, and notes each write with the time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.writes: list[tuple[int, bytes]] = []
        self.closed = False

    @property
    def written(self) -> bytes:
        return b"".join(data for _, data in self.writes)

    def write(self, data: Any) -> None:
        self.writes.append((self._world.schedule.monotonic_ms(), bytes(data)))

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def close(self) -> None:
        self.closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1)

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_write_buffer_size(self) -> int:
        return 0


class Client:
    """A client of one connection, which sends what it is given and reads what comes."""

    def __init__(self, world: ConnectedWorld, listener: str, security_protocol: SecurityProtocol) -> None:
        self.world = world
        self.transport = Transport(world)
        self.connection = Connection(cast(Any, world), listener, security_protocol)
        self.connection.connection_made(cast(asyncio.Transport, self.transport))
        self._sent: list[tuple[str, int]] = []

    def send(self, name: str, version: int, message: Any, client_id: str = "client") -> int:
        """Sends a request; returns its correlation id."""
        self._sent.append((name, version))
        self.feed(request_frame(name, version, message, len(self._sent), client_id))
        return len(self._sent)

    def feed(self, data: bytes) -> None:
        """Bytes arrive."""
        while data and not self.closed:
            view = self.connection.get_buffer(-1)
            count = min(len(view), len(data))
            view[:count], data = data[:count], data[count:]
            self.connection.buffer_updated(count)
            free = self.connection.get_buffer(-1)
            if free.obj is view.obj:  # what it has kept may be in the same buffer
                count, view = min(count, len(free)), free
            view[:count] = bytes(count)  # the buffer is used for other bytes, and other connections
        self.world.pass_ms(0)

    @property
    def frames(self) -> list[bytes]:
        """The complete replies, without their length."""
        data, found = self.transport.written, []
        while len(data) >= 4 and len(data) - 4 >= (size := int.from_bytes(data[:4], "big")):
            found.append(data[4 : 4 + size])
            data = data[4 + size :]
        return found

    @property
    def ids(self) -> list[int]:
        """The correlation ids of the replies."""
        return [int.from_bytes(frame[:4], "big") for frame in self.frames]

    def reply(self, correlation_id: int) -> Any:
        """Returns the message that answers a request."""
        name, version = self._sent[correlation_id - 1]
        (frame,) = (one for one in self.frames if int.from_bytes(one[:4], "big") == correlation_id)
        if is_of_version_0(f"{name}Response", version, bytes(4) + frame):
            version = 0
        start = 5 if headers.response_header_version(f"{name}Response", version) else 4
        return codec.parse(f"{name}Response", version, frame, start)

    def ask(self, name: str, version: int, message: Any, within_ms: int = 60_000) -> Any:
        """Sends a request and lets time pass until it is answered."""
        number = self.send(name, version, message)
        for _ in range(within_ms):
            if number in self.ids:
                return self.reply(number)
            self.world.pass_ms(1)
        raise AssertionError(f"{name} was not answered within {within_ms} ms")

    @property
    def closed(self) -> bool:
        """Whether the broker has closed the connection."""
        return self.transport.closed

    def lose(self) -> None:
        """The connection breaks."""
        self.transport.closed = True
        self.connection.connection_lost(None)


class ConnectedWorld(World):
    """As much of a server as connections need."""

    def __init__(self, files: MemFiles | None = None, seed: int = 0, /, **settings: str) -> None:
        super().__init__(files, seed, **settings)
        self.shared = SharedBuffer()
        self.pipe = Pipe()
        self.poll = IdlePoll(VirtualMachine(), 0)

    def connect(
        self, listener: str = "PLAINTEXT", security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    ) -> Client:
        return Client(self, listener, security_protocol)

    def connected(self, connection: Connection) -> bool:
        self.connections[connection] = None
        self.seam.opened(connection)
        return True

    def admit(self, connection: Connection) -> None:
        connection.admitted(Verdict(is_served=True))

    def gate(self, connection: Connection) -> Dispatcher:
        peer = connection.peer
        if not peer.security_protocol.has_sasl:
            return self.dispatcher
        return SaslGate(self.dispatcher, self.broker.sasl[peer.listener], peer, connection.serve_by)

    def disconnected(self, connection: Connection) -> None:
        del self.connections[connection]
        self.seam.closed(connection)

    def held(self, connection: Connection, more: int) -> None: ...

    def again(self, connection: Connection) -> None:
        self.broker.schedule.soon(connection.serve_again)
