"""Relays between processes, with which the network between brokers of Kafka is parted."""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
from collections.abc import Iterator

import pytest

from ..support.ports import free_ports
from ..support.relays import Relays

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere loopback has one address")


class Echo(socketserver.BaseRequestHandler):
    """Sends back what comes."""

    heard = b""

    def handle(self) -> None:
        while data := self.request.recv(100):
            Echo.heard += data
            self.request.sendall(data)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The relay ends connections."""


@pytest.fixture
def port() -> Iterator[int]:
    """Of the second of two processes."""
    (found,) = free_ports(1)
    with Server(("127.0.0.1", found), Echo) as server:
        Echo.heard = b""
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def has_ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(100) == b""
    except ConnectionResetError:
        return True


def test_what_is_sent_while_the_network_is_parted_is_lost(port: int) -> None:
    with Relays({1: [], 2: [port]}) as relays:
        with socket.create_connection(("127.0.1.2", port)) as before:
            before.sendall(b"before")
            assert before.recv(100) == b"before"
            relays.part([[1], [2]])
            before.sendall(b"lost")
            relays.join()
            assert has_ended(before)
        with socket.create_connection(("127.0.1.2", port)) as after:
            after.sendall(b"after")
            assert after.recv(100) == b"after"
    assert Echo.heard == b"beforeafter"
