"""The server: listeners, connection limits, idle connections, signals, and the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from ...storage.files import OsFiles
from .. import bugs
from ..addresses import PortTaken
from ..broker import Broker
from ..broker_schedule import BrokerSchedule
from ..client_activity import ClientActivity
from ..config.config import Config, ConfigError, ScenarioError, SeedError, ZooKeeperError
from ..config.lab_clock import MACHINE
from ..later import drive
from ..limits import BUFFERED_BYTES
from ..machine import Machine
from ..tls.listeners import LAB
from . import descriptors, warming
from .api import Api
from .chances import chances
from .connection import Connection
from .connection_counts import ConnectionCounts
from .dispatch import Dispatcher
from .idle import SWEEP_MS, IdleConnections
from .listeners import Listeners
from .listening import IdlePoll, SharedBuffer
from .logs import Logs
from .sending import Pipe

if TYPE_CHECKING:
    from ..lab.clock.clock import LabClock
    from ..lab.http import HttpConnection
    from ..lab.scenario.file import Scenario
    from ..lab.seam import Attached
    from ..lab.server import LabServer
    from ..seed import SeedTopic
    from .intercepting import Seam
    from .tls import Share

logger = logging.getLogger("ottla.kafka.network.SocketServer")
WARM_AFTER_SECONDS = 0.1
WARM_STEP_SECONDS = 0.02
WARM_STEP_NS = 2_000_000  # of work; to wake up for each import or function would take more than these
WARM_DEFERRALS_MAX = 200

EXIT_OK = 0
EXIT_BAD_CONFIG = 2
EXIT_PORT_TAKEN = 3
EXIT_LOCKED = 4
EXIT_DIRECTORY = 5
EXIT_FAILED = 6
EXIT_ZOOKEEPER = 7


class Server:
    """A broker and its sockets. `apis`: the APIs that it serves, by key."""

    def __init__(self, config: Config, apis: Mapping[int, Api], make_dispatcher: type[Dispatcher] = Dispatcher) -> None:
        self.config = config
        self.machine = Machine()
        self.schedule = BrokerSchedule(self.machine, repeatable=config["ottla.lab.seed"] is not None)
        self._clock: LabClock | None = None
        if config.clock != MACHINE:
            self.clock()
        self.files = OsFiles(descriptors.RESERVED)
        self.chances = chances(config, self.files)
        self.broker = Broker(config, self.schedule, self.files, self.chances.new_id)
        self.broker.turn.fatal = self._fatal
        self.logs = Logs(config, self.schedule, self.machine)
        self.dispatcher = make_dispatcher(self.broker, apis)
        self.shared = SharedBuffer()
        self.pipe = Pipe()
        self.poll = IdlePoll(self.machine, config["ottla.idle.poll.us"])
        self.connections: dict[Connection, None] = {}
        self.broker.log_directories.pool.limit, connections = descriptors.shared_out(descriptors.open_files_max())
        self.counts = ConnectionCounts(self.broker, connections)
        self.broker.metadata.watch(self.counts.metadata_changed)
        self.buffered_bytes = 0
        self.buffered_bytes_max: int = config["ottla.buffered.bytes.max"]
        self.stopping = asyncio.Event()
        self.failure: str | None = None
        self.listeners = Listeners(self, self.dispatcher)
        self.broker.node_lives.sockets = self.listeners
        self._loggers_changed()
        self.broker.loggers.watch(self._loggers_changed)
        self.lab: LabServer | None = None
        self._ends: list[Callable[[], None]] = []
        self._seam: Seam | None = None  # made with the first interceptor
        self._tls_share: Share | None = None  # over the listeners with TLS
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(_unhandled)

    def clock(self) -> LabClock:
        """Returns the lab's clock; makes it when it is first asked for."""
        if self._clock is None:
            from ..lab.clock.clock import LabClock

            self._clock = LabClock(self.schedule, self.config.clock)
        return self._clock

    def _loggers_changed(self) -> None:
        self.listeners.share_logs()

    # start and stop

    async def start(self) -> None:
        """Binds the listeners and the lab, opens the data and starts to serve.
        Raises PortTaken, ConfigError, ZooKeeperError, DirectoryError or OSError.
        """
        try:
            await self.listeners.bind()
            if self.config["ottla.lab.port"] >= 0:
                await self._bind_lab()
            if self.config.uses_zookeeper:
                from . import zookeeper

                await zookeeper.connect(self.broker, self.machine)
            self.broker.start()
            if self.config["ottla.trace"]:
                await self._start_trace()
        except BaseException:
            self._close_listeners()
            raise
        self._start_tls()
        self.counts.load()
        try:
            await self.listeners.serve()
            if self.lab is not None:
                await self.lab.serve()
        except PortTaken:
            await self.stop()
            raise
        if self.broker.zookeeper is not None:
            from . import zookeeper

            await zookeeper.register(self.broker)
        IdleConnections(self.broker.turn, self.connections, self.config["connections.max.idle.ms"])
        # the rest obeys the machine's time
        self._loop.call_later(SWEEP_MS / 1000, self._sweep)
        self._loop.call_later(0.1, self._watch_lag, self._loop.time() + 0.1)
        self._loop.call_later(WARM_AFTER_SECONDS, self._warm, warming.steps(self.dispatcher.apis))

    def tls_share(self) -> Share:
        """Returns what the listeners with TLS share."""
        from .tls import Share

        self._tls_share = self._tls_share or Share(self._loop)
        return self._tls_share

    async def _bind_lab(self) -> None:
        from ..lab.server import LabServer

        lab = LabServer(self)
        await lab.bind(self._around_http())
        self.lab = lab

    def _around_http(self) -> Callable[[HttpConnection], asyncio.BaseProtocol] | None:
        """Returns what puts TLS before a connection of the lab; None if the lab has no TLS."""
        if LAB not in self.broker.tls:
            return None
        from .lab_tls import over_tls

        return partial(over_tls, self, self.tls_share(), self.broker.tls[LAB])

    async def _start_trace(self) -> None:
        """Starts the trace that the configuration asks for, when the cluster has its id. Raises ConfigError."""
        from ..lab.lab import Lab
        from ..lab.traces import at_start

        try:
            at_start.start(self.lab.lab if self.lab is not None else Lab(self))
        except ConfigError:
            await self.stop()
            raise

    def _close_listeners(self) -> None:
        self.listeners.close_all()
        if self.lab is not None:
            self.lab.stop()

    def _fatal(self, reason: str) -> None:
        self.failure = reason
        self.stopping.set()

    async def stop(self) -> None:
        """Closes listeners and connections, then the logs. An error of the logs becomes the failure, unless there is an
        earlier one.
        """
        self._close_listeners()
        for connection in list(self.connections):
            connection.close(why="stop")
        await asyncio.sleep(0)
        if self.broker.zookeeper is not None:
            await asyncio.to_thread(self.broker.zookeeper.close)
        wrong = self.broker.stop()
        if wrong is not None and self.failure is None:
            self.failure = f"the shutdown was not clean: {wrong}; the next start recovers the logs"
        self.pipe.close()
        self.schedule.close()
        self.machine.close()
        self.logs.close()
        for end in self._ends:
            end()

    # connections

    def gate(self, connection: Connection) -> Dispatcher:
        """Returns the dispatcher that serves a new connection first."""
        peer = connection.peer
        if not peer.security_protocol.has_sasl:
            return connection.own_dispatcher
        from .sasl_gate import SaslGate

        return SaslGate(connection.own_dispatcher, self.broker.sasl[peer.listener], peer, connection.serve_by)

    def connected(self, connection: Connection) -> bool:
        """Whether a new connection may stay: some descriptors are reserved for files."""
        self.connections[connection] = None
        self.broker.turn.wake()  # it may become idle
        address = connection.peer.address.rpartition(":")[0]
        broker = connection.own_dispatcher.broker
        broker.metrics.connections_opened += 1
        if self.lab is not None:
            connection.peer.activity = ClientActivity(self.schedule.monotonic_ms())
        if self._seam is not None:
            self._seam.opened(connection)
        self.listeners.accepted(connection)
        limit = self.counts.at(broker).opened(connection.peer.listener, address)
        if limit is None:
            return True
        broker.metrics.connections_refused += 1
        self.broker.limits.reached(limit, address)
        return False

    def admit(self, connection: Connection) -> None:
        """Has the connection served, later or never if too many are opened."""
        peer, rates = connection.peer, connection.own_dispatcher.broker.connection_rates
        rates.opened(peer.listener, peer.host_address, connection.admitted)

    def disconnected(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if self._seam is not None:
            self._seam.closed(connection)
        broker = connection.own_dispatcher.broker
        broker.connection_rates.closed(connection.peer.listener, connection.admitted)
        self.counts.at(broker).closed(connection.peer.listener, connection.peer.address.rpartition(":")[0])
        broker.metrics.connections_closed += 1

    def held(self, connection: Connection, more: int) -> None:
        self.buffered_bytes += more
        while more > 0 and self.buffered_bytes > self.buffered_bytes_max:
            most = max(self.connections, key=lambda one: one.held_bytes)
            if most.held_bytes == 0:
                return
            self.broker.limits.reached(BUFFERED_BYTES, f"{most.peer.address} with {most.held_bytes} bytes")
            most.drop("limit")

    def intercept(self, one: Attached) -> None:
        """Shows the requests and replies of all connections to an interceptor or a watcher from now on."""
        if self._seam is None:
            from .intercepting import Seam

            self._seam = Seam(self)
        self._seam.add(one)
        self.listeners.share_seam()

    def release(self, one: Attached) -> None:
        """Removes an interceptor or a watcher."""
        if self._seam is not None:
            self._seam.remove(one)
            self.listeners.share_seam()

    def at_end(self, call: Callable[[], None]) -> None:
        """Calls when the server has ended and no thread works any more."""
        self._ends.append(call)

    def api_keys(self) -> Collection[int]:
        return self.dispatcher.apis

    def api(self, key: int) -> Api:
        return self.dispatcher.apis[key]

    def dropped_lines(self) -> int:
        return self.logs.dropped_lines()

    def again(self, connection: Connection) -> None:
        self.schedule.soon(connection.serve_again)

    def _start_tls(self) -> None:
        """Takes over what the metadata says of TLS."""
        if self.broker.tls:
            from . import tls

            tls.start(self.broker)

    def _follow_tls(self) -> None:
        if self.broker.tls:
            from . import tls

            tls.follow(self.broker)

    def _sweep(self) -> None:
        """Frees what is not used at the moment, and looks for new keys of TLS."""
        self.files.refill()
        self._follow_tls()
        for connection in self.connections:
            connection.shrink()
        self._loop.call_later(SWEEP_MS / 1000, self._sweep)

    def _watch_lag(self, expected: float) -> None:
        late_ms = (self._loop.time() - expected) * 1000
        metrics = self.broker.metrics
        metrics.loop_lag_ms_max = max(metrics.loop_lag_ms_max * 0.99, late_ms)
        self._loop.call_later(0.1, self._watch_lag, self._loop.time() + 0.1)

    def _warm(self, steps: Iterator[None], deferrals: int = 0) -> None:
        """Imports some modules that the start did not need, between other events, and between long requests."""
        if self.broker.turn.has_steps and deferrals < WARM_DEFERRALS_MAX:
            self._loop.call_later(WARM_STEP_SECONDS, self._warm, steps, deferrals + 1)
            return
        ends_ns = self.machine.work_ns() + WARM_STEP_NS
        try:
            next(steps)
            while self.machine.work_ns() < ends_ns:
                next(steps)
        except StopIteration:
            return warming.freeze()
        self._loop.call_later(WARM_STEP_SECONDS, self._warm, steps, deferrals)


def _unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handles an exception that reached the event loop."""
    bugs.report(context.get("message", "the loop"), context.get("exception") or RuntimeError("without an exception"))


def install_loop() -> Callable[..., Any]:
    """Returns uvloop's runner if it is installed, else asyncio's; also asyncio's if OTTLA_LOOP=asyncio."""
    if os.environ.get("OTTLA_LOOP") != "asyncio":
        try:
            import uvloop
        except ImportError:
            logger.info("uvloop is not installed; using the event loop of asyncio")
        else:
            runner: Callable[..., Any] = uvloop.run
            return runner
    return asyncio.run


async def serve(
    config: Config,
    apis: Mapping[int, Api],
    announce: Callable[[Server], None],
    make_dispatcher: type[Dispatcher] = Dispatcher,
) -> int:
    """Runs a server of `apis` until it receives a signal to stop or fails; returns the exit code."""
    from ..replica.directories import DirectoryError, DirectoryLocked

    descriptors.raise_limit()
    try:
        seed_topics = _seeded(config)
        scenario = _scenario(config)
        server = Server(config, apis, make_dispatcher)
    except (ConfigError, SeedError, ScenarioError) as error:
        print(f"ottla: {error}", file=sys.stderr)
        return EXIT_BAD_CONFIG
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.stopping.set)
    try:
        await server.start()
    except ConfigError as error:
        return _refuse(server, EXIT_BAD_CONFIG, str(error))
    except ZooKeeperError as error:
        if server.broker.cluster_id:
            await server.stop()
        return _refuse(server, EXIT_ZOOKEEPER, str(error))
    except PortTaken as error:
        return _refuse(server, EXIT_PORT_TAKEN, f"cannot listen on {error}")
    except DirectoryLocked as error:
        return _refuse(server, EXIT_LOCKED, str(error))
    except (DirectoryError, OSError) as error:
        where = f" in {', '.join(config.log_dirs)}" if isinstance(error, OSError) and error.filename is None else ""
        return _refuse(server, EXIT_DIRECTORY, f"cannot use the data directory: {error}{where}")
    try:
        if config.users or seed_topics:
            from .. import seed

            await seed.settled(drive(seed.plant_users(server.broker)))
            await seed.settled(drive(seed.plant(server.broker, seed_topics)))
    except SeedError as error:
        await server.stop()
        return _refuse(server, EXIT_BAD_CONFIG, f"{config['ottla.seed.file']}: {error}")
    if scenario is not None:
        await _begin(server, scenario)
    announce(server)
    await server.stopping.wait()
    await server.stop()
    if server.failure is not None:
        print(f"ottla: {server.failure}", file=sys.stderr)
    return EXIT_FAILED if server.failure is not None else EXIT_OK


def _seeded(config: Config) -> list[SeedTopic]:
    """Adds the users of the seed file, if there is one, to the configuration; returns its topics. Raises SeedError."""
    path = config["ottla.seed.file"]
    if not path:
        return []
    from .. import seed

    planted = seed.load(path)
    config.users |= {user.name: user for user in planted.users}
    return planted.topics


def _scenario(config: Config) -> Scenario | None:
    """Raises ScenarioError."""
    if not config["ottla.lab.scenario"]:
        return None
    from ..lab.scenario.file import read

    return read(config["ottla.lab.scenario"])


async def _begin(server: Server, scenario: Scenario) -> None:
    """Runs a scenario beside the clients; returns when it waits for the first time, or at its end."""
    from .. import seed
    from ..lab.scenario.at_start import AtStart
    from ..lab.server import LabServer

    running = AtStart(server.lab or LabServer(server), scenario)
    running.start()
    await seed.settled(running.begun)


def _refuse(server: Server, code: int, reason: str) -> int:
    print(f"ottla: {reason}", file=sys.stderr)
    server.machine.close()
    return code
