"""Kafka Streams with `group.protocol=streams` (KIP-1071): each program passes on ottla and on Kafka.

The programs are in `java/Streams*.java`. They share one JVM and, unless they stop it, a broker. They mostly wait, so
all of them begin with the first test and run beside each other.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from threading import Lock
from typing import cast

import pytest

from ottla.testing import Broker

from ..oracle.kafka import FEW_PARTITIONS, Kafka
from ..oracle.tools import tool
from ..support import secured
from ..support.secured import SecuredKafka
from ..support.streams_programs import Programs

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
SETTINGS: dict[str, object] = {
    **FEW_PARTITIONS,
    # A client that asks for an internal topic before the coordinator has made it would have it made with one partition.
    "auto.create.topics.enable": "false",
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.min.assignment.interval.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "group.streams.min.heartbeat.interval.ms": 50,
    "group.streams.heartbeat.interval.ms": 200,
    "group.streams.min.session.timeout.ms": 1000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
AUTHORIZED: dict[str, object] = {
    **SETTINGS,
    **secured.SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
TROUBLES = (
    "missing-topics",
    "missing-for-long",
    "wrong-topics",
    "another-topology",
    "shutdown",
    "internal-topic-deleted",
    "more-partitions",
)
PROGRAMS = (  # what takes long begins first
    "broker-killed",
    "instance-killed",
    "rolling",
    "migration",
    "reset",
    "scale",
    "queries",
    "denied",
    "standbys",
    "joins",
    "foreign-keys",
    "internal-topics",
    "purge",
    *TROUBLES,
)
ALONE = ("broker-killed", "denied")
"""Programs that have a broker of their own."""
KINDS = ("ottla", "kafka")
NOT_ON_KAFKA = ("broker-killed",)
"""Some records are counted twice after a Kafka, alone, is killed: the program failed in two of three runs."""
BESIDE_EACH_OTHER = 4
Server = Broker | Kafka


class Runs:
    """Runs programs on both servers."""

    def __init__(self, stack: ExitStack) -> None:
        self.programs = Programs()
        stack.callback(self.programs.close)
        self.shared: dict[str, Server] = {}
        self._one_tool = Lock()

    def run(self, kind: str, name: str) -> None:
        """Raises ProgramFailed."""
        if name == "denied":
            with started(kind, AUTHORIZED) as server:
                servers = server.sasl_servers if isinstance(server, SecuredKafka) else server.bootstrap_servers
                self.programs.run(name, f"{name}-{kind}", servers, {}, admin="admin", user="alice")
        elif name in ALONE:
            with started(kind, SETTINGS, is_killed=True) as server:
                self._run(server, kind, name)
        else:
            self._run(self.shared[kind], kind, name)

    def _run(self, server: Server, kind: str, name: str) -> None:
        def kill(_: str) -> str:
            if isinstance(server, Kafka):
                server.stop(signal.SIGKILL)
            else:
                server.kill()
            server.start()
            return "started"

        def run_tool(words: str) -> str:
            command, *arguments = words.split(" ")
            with self._one_tool:
                done = tool(command, "--bootstrap-server", server.bootstrap_servers, *arguments)
            return f"{done.returncode} {done.stdout} {done.stderr}".replace("\n", " ")

        self.programs.run(name, f"{name}-{kind}", server.bootstrap_servers, {"kill": kill, "tool": run_tool})


def started(kind: str, settings: dict[str, object], is_killed: bool = False) -> AbstractContextManager[Server]:
    """A broker to be entered."""
    if kind == "ottla":
        return Broker(settings)
    return SecuredKafka(settings) if settings is AUTHORIZED else Kafka(settings, own_process=is_killed)


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
            runs.shared[kind] = stack.enter_context(started(kind, SETTINGS))
        yield {one: pool.submit(runs.run, *one) for one in wanted}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize(
    ("program", "server"),
    [(name, kind) for name in PROGRAMS for kind in KINDS if kind != "kafka" or name not in NOT_ON_KAFKA],
)
def test_a_program_passes(program: str, server: str, outcomes: dict[tuple[str, str], Future[None]]) -> None:
    outcomes[server, program].result()
