"""Kafka Streams with `group.protocol=streams` (KIP-1071): each program passes on ottla and on Kafka.

The programs are in `java/Streams*.java`. They share one JVM and, unless they stop it, a broker. They mostly wait, so
all of them begin with the first test and run beside each other.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import cast

import pytest

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from ..support.streams_programs import Programs

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
SETTINGS: dict[str, object] = {
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 50,
    "group.streams.heartbeat.interval.ms": 200,
    "group.streams.min.session.timeout.ms": 1000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
PROGRAMS = (
    "scale",
    "standbys",
    "rolling",
    "joins",
    "foreign-keys",
    "internal-topics",
    "purge",
)
ALONE: frozenset[str] = frozenset()
"""Programs that have a broker of their own."""
SERVERS = {"ottla": Broker, "kafka": Kafka}
BESIDE_EACH_OTHER = 3
Server = Broker | Kafka


class Runs:
    """Runs programs on both servers."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack
        self.programs = Programs()
        stack.callback(self.programs.close)
        self.shared: dict[str, Server] = {}

    def run(self, kind: str, name: str) -> None:
        """Raises ProgramFailed."""
        if name not in ALONE:
            self._run(self.shared[kind], kind, name)
            return
        with SERVERS[kind](SETTINGS) as server:
            self._run(server, kind, name)

    def _run(self, server: Server, kind: str, name: str) -> None:
        def kill(_: str) -> str:
            if isinstance(server, Kafka):
                server.stop(signal.SIGKILL)
            else:
                server.kill()
            server.start()
            return "started"

        self.programs.run(name, f"{name}-{kind}", server.bootstrap_servers, {"kill": kill})


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, str], Future[None]]]:
    """What became of the programs of all tests that run."""
    wanted = [
        (cast(str, item.callspec.params["server"]), cast(str, item.callspec.params["program"]))
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_a_program_passes
    ]
    with ExitStack() as stack, ThreadPoolExecutor(BESIDE_EACH_OTHER) as pool:
        runs = Runs(stack)
        for kind in dict.fromkeys(kind for kind, name in wanted if name not in ALONE):
            runs.shared[kind] = stack.enter_context(SERVERS[kind](SETTINGS))
        yield {one: pool.submit(runs.run, *one) for one in wanted}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_passes(server: str, program: str, outcomes: dict[tuple[str, str], Future[None]]) -> None:
    outcomes[server, program].result()
