"""The listeners of the nodes: each node has sockets, a dispatcher and connections of its own."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, cast

from ..addresses import PortTaken, start_serving
from ..config.config import Config
from ..config.listener_values import Listener
from ..config.nodes import Node
from ..later import Later
from .accepting import Acceptor
from .chances import Chances
from .connection import Connection
from .dispatch import Dispatcher
from .listening import Listening
from .logs import Logs

if TYPE_CHECKING:
    from ..broker import Broker
    from .tls import Share

BACKLOG = 1024
BACKLOG_KEY = "socket.listen.backlog.size"
BUFFERS = {"socket.receive.buffer.bytes": socket.SO_RCVBUF, "socket.send.buffer.bytes": socket.SO_SNDBUF}


class Owner(Listening[Connection], Protocol):
    """What listeners need of their server."""

    chances: Chances
    logs: Logs
    connections: dict[Connection, None]

    def tls_share(self) -> Share: ...


class Listeners:
    """The sockets of all nodes of a server."""

    def __init__(self, server: Owner, dispatcher: Dispatcher) -> None:
        self._server = server
        self._nodes = server.broker.nodes
        self._dispatchers = dict.fromkeys(self._nodes.by_id, dispatcher)
        self._open: dict[int, list[tuple[asyncio.Server, Listener]]] = {}
        self._loop = asyncio.get_running_loop()
        self._paused: set[int] = set()
        self._task: asyncio.Task[None] | None = None  # the loop itself keeps no tasks

    # start and stop

    async def bind(self) -> None:
        """Binds the listeners of all nodes. Raises PortTaken."""
        for number, node in enumerate(self._nodes):
            await self._bind_node(node, number)

    async def serve(self) -> None:
        """Lets clients connect, after the start of the broker. Raises PortTaken."""
        broker, first = self._server.broker, self._server.dispatcher
        if len(self._nodes) > 1:
            for node in self._nodes:
                self._dispatchers[node.id] = self._dispatcher(broker, node, first)
            self._server.dispatcher = self._dispatchers[self._nodes.first.id]
        for node in self._nodes:
            await self._serve_node(node)

    async def _serve_node(self, node: Node) -> None:
        for server, address in self._open[node.id]:
            await start_serving(server, str(address))

    def _dispatcher(self, broker: Broker, node: Node, first: Dispatcher) -> Dispatcher:
        made = type(first)(broker.of_node(node), first.apis)
        made.seam = first.seam
        self._share_logs(made)
        return made

    def close_all(self) -> None:
        for node in self._nodes:
            self._close_listeners(node)

    def _close_listeners(self, node: Node) -> None:
        for one, _ in self._open.pop(node.id, ()):
            one.close()

    # one node, for `controller/node_lives.py`

    def join(self, node: Node) -> None:
        """A node was added."""
        first = self._server.dispatcher
        self._dispatchers[node.id] = self._dispatcher(self._server.broker, node, first)

    def leave(self, node: Node) -> None:
        """A node was removed; none of its connections is open."""
        del self._dispatchers[node.id]

    def open(self, node: Node) -> Later[None]:
        """Opens the listeners of a node again, at the same addresses."""
        turn, later = self._server.broker.turn, Later[None]()

        async def opened() -> None:
            await self._bind_node(node, self._nodes.number(node))
            await self._serve_node(node)

        def done(task: asyncio.Task[None]) -> None:
            error = task.exception()
            if error is not None:
                self._close_listeners(node)
                error = OSError(str(error))
            turn.event(lambda: later.settle(None, error))

        self._task = self._loop.create_task(opened())
        self._task.add_done_callback(done)
        return later

    def close(self, node: Node) -> None:
        self._close_listeners(node)
        self._paused.discard(node.id)
        for connection in self._connections(node):
            connection.drop("stop")

    def pause(self, node: Node) -> None:
        self._paused.add(node.id)
        for connection in self._connections(node):
            connection.freeze()

    def resume(self, node: Node) -> None:
        self._paused.discard(node.id)
        for connection in self._connections(node):
            connection.thaw()

    def accepted(self, connection: Connection) -> None:
        """A client has connected, maybe to a node that answers nothing."""
        if self._paused and any(connection.own_dispatcher is self._dispatchers[one] for one in self._paused):
            connection.freeze()

    def _connections(self, node: Node) -> list[Connection]:
        own = self._dispatchers[node.id]
        return [one for one in self._server.connections if one.own_dispatcher is own]

    def share_seam(self) -> None:
        """Lets what looks at requests of the first node look at those of all nodes."""
        for one in self._dispatchers.values():
            one.seam = self._server.dispatcher.seam

    def share_logs(self) -> None:
        """Lets what notes requests and rights note those of all nodes, as the levels of their loggers say."""
        for one in self._dispatchers.values():
            self._share_logs(one)

    def _share_logs(self, dispatcher: Dispatcher) -> None:
        logs, broker = self._server.logs, dispatcher.broker
        dispatcher.log = logs.notes_of_requests(broker.loggers)
        broker.audit = logs.notes_of_rights(broker.loggers)

    async def _bind_node(self, node: Node, number: int) -> None:
        """Port 0 means any free port: the port that was bound is advertised."""
        config, given = node.config, []
        opened = self._open[node.id] = []
        for one in config.listeners:
            server = await self._bind(node, one, self._server.chances.port(one, number))
            bound = one._replace(host=one.host or "127.0.0.1", port=server.sockets[0].getsockname()[1])
            opened.append((server, bound))
            given.append(str(bound))
        config.values["listeners"] = [*given, str(config.controller_listener)]
        config.values["controller.listener.names"] = [config.controller_listener.name]

    async def _bind(self, node: Node, listener: Listener, port: int) -> asyncio.Server:
        host = self._to_bind(listener.host or "127.0.0.1")
        accepting = Acceptor(self._loop, self._making(node, listener))
        backlog = node.config[BACKLOG_KEY] if BACKLOG_KEY in node.config.given else BACKLOG
        try:
            made = await self._loop.create_server(accepting, host, port, backlog=backlog, start_serving=False)
            accepting.serves(made)
            _set_buffers(made, node.config)
            return made
        except (OSError, UnicodeError) as error:
            raise PortTaken(str(listener), error) from None

    def _to_bind(self, host: str) -> str | list[str]:
        """Returns the host for `create_server`. uvloop encodes a str with IDNA, whose tables Python imports for that,
        and takes bytes as they are; asyncio takes no bytes.
        """
        if isinstance(self._loop, asyncio.BaseEventLoop) or not host.isascii():
            return host
        return cast("list[str]", [host.encode()])

    def _making(self, node: Node, listener: Listener) -> Callable[[], asyncio.BaseProtocol]:
        """Returns a function that makes the protocol of a new connection."""
        server, dispatchers, name = self._server, self._dispatchers, listener.name
        protocol = node.config.security_protocol(name)

        def make() -> Connection:
            return Connection(server, name, protocol, dispatchers[node.id])

        if protocol.has_tls:
            from .tls import TlsConnection

            share, tls = server.tls_share(), server.broker.tls
            return lambda: TlsConnection(server, share, tls[name], make())
        if isinstance(self._loop, asyncio.BaseEventLoop):
            from .on_asyncio import OnAsyncio

            return lambda: OnAsyncio(make())
        return cast(Callable[[], asyncio.BaseProtocol], make)


def _set_buffers(server: asyncio.Server, config: Config) -> None:
    """Sets the sizes of buffers that the configuration names: connections have those of the socket that listens. -1,
    and a key that is not given, leave the operating system's.
    """
    for key, option in BUFFERS.items():
        if key in config.given and config[key] != -1:
            for one in server.sockets:
                with socket.socket(fileno=os.dup(one.fileno())) as same:
                    same.setsockopt(socket.SOL_SOCKET, option, config[key])
