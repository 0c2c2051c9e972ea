"""The server: listeners on the event loop, connection limits, idle connections, signals, and why it ended."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from ..storage.files import OsFiles
from .broker import Broker
from .clock import SystemSchedule
from .config import Config, Listener
from .connection import Connection, SharedBuffer
from .dispatch import Dispatcher

logger = logging.getLogger("ottla")
BACKLOG = 1024
SWEEP_MS = 1000
FREEZE_SECONDS = 1.0
GC_THRESHOLDS = (20_000, 20, 20)

EXIT_OK = 0
EXIT_BAD_CONFIG = 2
EXIT_PORT_TAKEN = 3
EXIT_LOCKED = 4
EXIT_DIRECTORY = 5
EXIT_FAILED = 6


class PortTaken(Exception):
    """A listener's address is in use or not ours."""


def new_id() -> bytes:
    """A random uuid whose text does not begin with a dash, as Kafka makes them."""
    while True:
        value = bytearray(os.urandom(16))
        value[6] = value[6] & 0x0F | 0x40
        value[8] = value[8] & 0x3F | 0x80
        if value[0] >> 2 != 0x3E:
            return bytes(value)


class Server:
    """A broker and its sockets."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.schedule = SystemSchedule()
        self.broker = Broker(config, self.schedule, OsFiles(), new_id)
        self.broker.fatal = self._fatal
        self.log = None
        if config["ottla.request.log"]:
            from .request_log import RequestLog

            self.log = RequestLog(config["ottla.request.log"])
        self.dispatcher = Dispatcher(self.broker, self.log)
        self.shared = SharedBuffer()
        self.connections: dict[Connection, None] = {}
        self.per_address: Counter[str] = Counter()
        self.request_bytes_max = config["socket.request.max.bytes"]
        self.stopping = asyncio.Event()
        self.failure: str | None = None
        self._servers: list[asyncio.Server] = []
        self.lab: Any = None
        self._loop = asyncio.get_running_loop()

    # start and stop

    async def start(self) -> None:
        """Binds the listeners, opens the data and begins to serve. PortTaken, DirectoryError, OSError."""
        listeners = self.config.listeners
        bound = [await self._bind(one) for one in listeners]
        self._note_ports(listeners)
        try:
            self.broker.start()
        except BaseException:
            for server in bound:
                server.close()
            raise
        for server in bound:
            await server.start_serving()
        if self.config["ottla.lab.port"] >= 0:
            from .lab import Lab

            self.lab = Lab(self)
            await self.lab.start()
        self._loop.call_later(SWEEP_MS / 1000, self._sweep)
        self._loop.call_later(0.1, self._watch_lag, self._loop.time() + 0.1)
        self._loop.call_later(FREEZE_SECONDS, _freeze)

    async def _bind(self, listener: Listener) -> asyncio.Server:
        host = listener.host or "127.0.0.1"
        try:
            server = await self._loop.create_server(
                lambda: Connection(self, listener.name), host, listener.port, backlog=BACKLOG, start_serving=False
            )
        except OSError as error:
            raise PortTaken(f"{listener}: {error.strerror or error}") from None
        self._servers.append(server)
        return server

    def _note_ports(self, listeners: list[Listener]) -> None:
        """Port 0 means any: what the system chose is what is advertised."""
        given = []
        for listener, server in zip(listeners, self._servers, strict=True):
            port = server.sockets[0].getsockname()[1]
            given.append(f"{listener.name}://{listener.host or '127.0.0.1'}:{port}")
        self.config.values["listeners"] = [*given, str(self.config.controller_listener)]
        self.config.values["controller.listener.names"] = [self.config.controller_listener.name]

    def _fatal(self, reason: str) -> None:
        self.failure = reason
        self.stopping.set()

    async def stop(self) -> None:
        """Closes the listeners and connections, then the logs."""
        for server in self._servers:
            server.close()
        if self.lab is not None:
            self.lab.stop()
        for connection in list(self.connections):
            connection.close()
        await asyncio.sleep(0)
        self.broker.stop()
        self.schedule.close()
        if self.log is not None:
            self.log.close()

    # connections

    def connected(self, connection: Connection) -> bool:
        """Whether a new connection may stay."""
        self.connections[connection] = None
        address = connection.peer.address.rpartition(":")[0]
        self.per_address[address] += 1
        self.broker.metrics.connections_opened += 1
        too_many = len(self.connections) > self.config["max.connections"]
        return not too_many and self.per_address[address] <= self.config["max.connections.per.ip"]

    def disconnected(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        address = connection.peer.address.rpartition(":")[0]
        self.per_address[address] -= 1
        if self.per_address[address] <= 0:
            del self.per_address[address]
        self.broker.metrics.connections_closed += 1

    def again(self, connection: Connection) -> None:
        self._loop.call_soon(connection.serve_again)

    def _sweep(self) -> None:
        """Closes connections that have been idle too long, and takes back their buffers."""
        limit = self.config["connections.max.idle.ms"]
        now = self.schedule.monotonic_ms()
        for connection in list(self.connections):
            if now - connection.last_active_ms > SWEEP_MS:
                connection.shrink()
            if limit >= 0 and now - connection.last_active_ms > limit and not connection.is_waiting():
                connection.close("idle for too long")
        self._loop.call_later(SWEEP_MS / 1000, self._sweep)

    def _watch_lag(self, expected: float) -> None:
        late_ms = (self._loop.time() - expected) * 1000
        metrics = self.broker.metrics
        metrics.loop_lag_ms_max = max(metrics.loop_lag_ms_max * 0.99, late_ms)
        self._loop.call_later(0.1, self._watch_lag, self._loop.time() + 0.1)


def _freeze() -> None:
    """What is there now stays: the collector need not look at it again. It was off while the broker started.

    From now on it comes less often than it would: a request makes some dozens of objects, and hardly a cycle.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()


def raise_descriptor_limit() -> None:
    """As many open files as the system lets us have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else 1 << 20
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def install_loop() -> Callable[..., Any]:
    """uvloop's runner where it is installed, asyncio's otherwise or where OTTLA_LOOP=asyncio."""
    if os.environ.get("OTTLA_LOOP") != "asyncio":
        try:
            import uvloop
        except ImportError:
            logger.info("uvloop is not installed, asyncio serves")
        else:
            runner: Callable[..., Any] = uvloop.run
            return runner
    return asyncio.run


async def serve(config: Config, announce: Callable[[Server], None]) -> int:
    """Runs a server until it is told to stop; returns the exit code."""
    from .directories import DirectoryError, DirectoryLocked

    raise_descriptor_limit()
    server = Server(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stopping.set)
    server.broker.pool.limit = max(64, min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))
    try:
        await server.start()
    except PortTaken as error:
        return _refuse(server, EXIT_PORT_TAKEN, f"cannot listen on {error}")
    except DirectoryLocked as error:
        return _refuse(server, EXIT_LOCKED, str(error))
    except (DirectoryError, OSError) as error:
        return _refuse(server, EXIT_DIRECTORY, f"cannot use the data directory: {error}")
    if config["ottla.seed.file"]:
        from .seed import SeedError, plant

        try:
            await plant(server.broker, config["ottla.seed.file"])
        except SeedError as error:
            await server.stop()
            return _refuse(server, EXIT_BAD_CONFIG, str(error))
    announce(server)
    await server.stopping.wait()
    if server.failure is not None:
        print(f"ottla: {server.failure}", file=sys.stderr)
    await server.stop()
    return EXIT_FAILED if server.failure is not None else EXIT_OK


def _refuse(server: Server, code: int, reason: str) -> int:
    print(f"ottla: {reason}", file=sys.stderr)
    server.schedule.close()
    return code
