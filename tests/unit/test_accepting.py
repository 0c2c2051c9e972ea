"""How many turns of the loop clients wait that connect together."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from ottla.broker.addresses import PortTaken
from ottla.broker.apis import apis
from ottla.broker.config import sources
from ottla.broker.lab.server import LabServer
from ottla.broker.net.accepting import BURST, Acceptor
from ottla.broker.net.server import Server

LOOPS = (asyncio.new_event_loop, uvloop.new_event_loop)
TURNS_MAX = 8
"""Turns of the loop between a connection that waits and its protocol, also where it takes a turn for each step."""


@asynccontextmanager
async def listening(tmp_path: Path) -> AsyncIterator[tuple[Server, tuple[str, int]]]:
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}"]
    server = Server(sources.build(sources.from_arguments(settings)), apis())
    await server.listeners.bind()
    await server.listeners.serve()
    (found,) = (one for servers in server.listeners._open.values() for each, _ in servers for one in each.sockets)
    yield server, found.getsockname()
    for connection in list(server.connections):
        connection.drop()
    for node in server.broker.nodes:
        server.listeners.close(node)


async def turns_until(server: Server, count: int) -> int:
    """How many turns the loop needs until it has so many connections; 500 at most."""
    for turn in range(500):
        if len(server.connections) >= count:
            return turn
        await asyncio.sleep(0)
    raise AssertionError(f"{len(server.connections)} of {count} connections after 500 turns")


async def connect_at_once(tmp_path: Path, count: int) -> int:
    async with listening(tmp_path) as (server, address):
        clients = [socket.create_connection(address) for _ in range(count)]
        try:
            return await turns_until(server, count)
        finally:
            for one in clients:
                one.close()


async def serve_beside_another(tmp_path: Path, lab: bool) -> None:
    """Starts to serve at an address where another socket has begun to listen since it was bound: a listener's, or the
    lab's.
    """
    settings = ["listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}", "ottla.lab.port=0"]
    server = Server(sources.build(sources.from_arguments(settings)), apis())
    await server.listeners.bind()
    (((bound, _),),) = server.listeners._open.values()
    http = LabServer(server)
    await http.bind()
    taken = http._http if lab else bound
    assert taken is not None
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(taken.sockets[0].getsockname())
        other.listen()
        try:
            await server.listeners.serve()
            await http.serve()
        finally:
            server.listeners.close_all()
            http.stop()


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize(("lab", "named"), [(False, "PLAINTEXT://127.0.0.1"), (True, r"the lab's port 0 \(.*\)")])
def test_a_broker_does_not_serve_at_an_address_where_another_has_begun_to_listen(
    loop: object, lab: bool, named: str, tmp_path: Path
) -> None:
    with (
        asyncio.Runner(loop_factory=loop) as runner,  # type: ignore[arg-type]
        pytest.raises(PortTaken, match=rf"{named}:.*[Aa]ddress already in use"),
    ):
        runner.run(serve_beside_another(tmp_path, lab))


@pytest.mark.parametrize("named", [[], ["controller.listener.names=controller"], ["controller.listener.names=OTHER"]])
def test_only_the_listeners_of_clients_are_served(named: list[str], tmp_path: Path) -> None:
    """Kafka's own files have a listener CONTROLLER; a file that does not say so means it as well."""
    listeners = "listeners=SECOND://127.0.0.1:0,CONTROLLER://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"
    protocols = "listener.security.protocol.map=SECOND:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"

    async def served() -> list[str]:
        server = Server(
            sources.build(sources.from_arguments([listeners, protocols, f"log.dirs={tmp_path}", *named])), apis()
        )
        await server.listeners.bind()
        try:
            await server.listeners.serve()
            return [one.name for servers in server.listeners._open.values() for _, one in servers]
        finally:
            server.listeners.close_all()

    expected = (
        ["SECOND", "PLAINTEXT"]
        if named != ["controller.listener.names=OTHER"]
        else ["SECOND", "CONTROLLER", "PLAINTEXT"]
    )
    assert asyncio.run(served()) == expected


@pytest.mark.parametrize("loop", LOOPS)
def test_clients_that_connect_together_wait_for_a_few_turns(loop: object, tmp_path: Path) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        assert runner.run(connect_at_once(tmp_path, BURST)) <= TURNS_MAX
        assert runner.run(connect_at_once(tmp_path, 3 * BURST)) <= 3 * TURNS_MAX


def test_one_turn_accepts_a_bounded_number(tmp_path: Path) -> None:
    """The others come with the next connection that the loop accepts by itself."""

    async def accepted_in_one_call() -> int:
        async with listening(tmp_path) as (server, address):
            acceptor = Acceptor(asyncio.get_running_loop(), asyncio.Protocol)
            acceptor.serves(next(each for servers in server.listeners._open.values() for each, _ in servers))
            clients = [socket.create_connection(address) for _ in range(2 * BURST)]
            acceptor._accept_others()
            for one in clients:
                one.close()
            return len(acceptor._tasks)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(accepted_in_one_call()) == BURST


def test_nothing_is_accepted_for_a_server_that_has_closed(tmp_path: Path) -> None:
    async def accepted() -> int:
        async with listening(tmp_path) as (server, address):
            (mine,) = (each for servers in server.listeners._open.values() for each, _ in servers)
            acceptor = Acceptor(asyncio.get_running_loop(), asyncio.Protocol)
            acceptor.serves(mine)
            client = socket.create_connection(address)
            mine.close()
            acceptor._accept_others()
            client.close()
            return len(acceptor._tasks)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(accepted()) == 0


def test_what_was_accepted_before_the_server_closed_gets_no_connection(tmp_path: Path) -> None:
    async def made() -> tuple[int, bytes]:
        async with listening(tmp_path) as (server, address):
            (mine,) = (each for servers in server.listeners._open.values() for each, _ in servers)
            protocols: list[asyncio.Protocol] = []

            def make() -> asyncio.Protocol:
                protocols.append(asyncio.Protocol())
                return protocols[-1]

            acceptor = Acceptor(asyncio.get_running_loop(), make)
            acceptor.serves(mine)
            client = socket.create_connection(address)
            acceptor._accept_others()
            mine.close()
            await asyncio.gather(*acceptor._tasks)
            client.settimeout(10)
            with client:
                return len(protocols), client.recv(1)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(made()) == (0, b"")
