"""Handshakes that are damaged, halved, endless or many, and what TLS lets a client ask for again and again."""

from __future__ import annotations

import contextlib
import random
import socket
import tempfile
from functools import cache
from pathlib import Path

from ottla.protocol import messages as m

from ..support.ask import create, produce
from ..support.fuzz_tls import asked_again, client_hello
from ..support.tls import Listeners, client_context, make_certificates
from ..support.wire import request_frame
from .harness import Site, attack


@cache
def _folder() -> Path:
    return make_certificates(Path(tempfile.mkdtemp(prefix="ottla-attack-")))


@cache
def _listeners() -> Listeners:
    return Listeners(_folder())


def _settings() -> dict[str, object]:
    _listeners.cache_clear()  # other ports for another broker
    return _listeners().settings


def _connected(name: str = "OPEN") -> socket.socket:
    return socket.create_connection(("127.0.0.1", _listeners().ports[name]), 30)


def _client_hello() -> bytes:
    return client_hello(client_context(_folder()))


def _until_closed(peer: socket.socket) -> None:
    with contextlib.suppress(ConnectionError), peer:
        peer.settimeout(60)
        while peer.recv(4096):
            pass


@attack(quick=True, settings=_settings)
def damaged_client_hellos(site: Site) -> None:
    """Every byte of a ClientHello changed at random, lengths too; then random bytes."""
    chance, hello = random.Random(20), _client_hello()
    for number in range(300):
        data = bytearray(hello)
        for _ in range(chance.choice((1, 2, 8))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with _connected() as peer, contextlib.suppress(ConnectionError):
            peer.sendall(chance.randbytes(300) if number % 10 == 9 else data)
            peer.shutdown(socket.SHUT_WR)
            _until_closed(peer)


@attack(quick=True, settings=_settings)
def half_handshakes_that_stay(site: Site) -> None:
    """Five hundred connections with half a ClientHello, which others need not wait for."""
    hello = _client_hello()
    peers = [_connected() for _ in range(500)]
    for peer in peers:
        peer.sendall(hello[: len(hello) // 2])
    for peer in peers:
        peer.close()


@attack(quick=True, settings=_settings)
def a_client_hello_byte_by_byte(site: Site) -> None:
    """A handshake that begins in pieces of one byte."""
    with _connected() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in _client_hello():
            peer.sendall(bytes([byte]))
        assert peer.recv(1) == b"\x16"


@attack(quick=True, settings=_settings)
def plaintext_on_a_port_of_tls(site: Site) -> None:
    """Requests of Kafka, of HTTP and nonsense, and megabytes of them after the alert."""
    frame = request_frame("ApiVersions", 0, m.ApiVersionsRequest(), 1, "t")
    for data in (frame, b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 100) * 50:
        with contextlib.suppress(ConnectionError):
            peer = _connected()
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            _until_closed(peer)
    with contextlib.suppress(ConnectionError), _connected() as peer:
        for _ in range(200):
            peer.sendall(b"GET / HTTP/1.1\r\n\r\n" * 1000)


@attack(settings=_settings)
def a_thousand_handshakes(site: Site) -> None:
    """Whole handshakes with certificates of both sides, one after the other and all open at once."""
    context = client_context(_folder())
    peers = [context.wrap_socket(_connected("NEEDED"), server_hostname="localhost") for _ in range(1000)]
    for peer in peers:
        peer.close()


@attack(quick=True, settings=_settings)
def connections_that_end_in_the_handshake(site: Site) -> None:
    """Clients that say hello and go."""
    hello = _client_hello()
    for _ in range(500):
        with _connected() as peer:
            peer.sendall(hello)


@attack(quick=True, settings=_settings)
def another_handshake_again_and_again(site: Site) -> None:
    """Renegotiation in TLS 1.2, which is refused."""
    for _ in range(10):
        asked_again(_listeners().ports["OPEN"], "-tls1_2", "R", 200)


@attack(quick=True, settings=_settings)
def other_keys_again_and_again(site: Site) -> None:
    """Updates of keys in TLS 1.3, each of which wants one of the broker."""
    for _ in range(10):
        asked_again(_listeners().ports["OPEN"], "-tls1_3", "K", 1000)


@attack(settings=_settings, memory_mib_max=150)
def consumers_over_tls_that_read_nothing(site: Site) -> None:
    """A hundred of them ask for 50 MB each."""
    with site.wire() as wire:
        create(wire, "fat")
        for _ in range(60):
            produce(wire, "fat", b"x" * 900_000)
    r = m.FetchRequest
    part = r.FetchPartition(partition=0, partition_max_bytes=50 << 20)
    fetch = r(topics=[r.FetchTopic(topic="fat", partitions=[part])], max_bytes=50 << 20, max_wait_ms=100)
    frame, context = request_frame("Fetch", 11, fetch, 1, "t"), client_context(_folder(), None)
    peers = [context.wrap_socket(_connected(), server_hostname="localhost") for _ in range(100)]
    for peer in peers:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.sendall(frame)
    with site.wire() as wire:
        for _ in range(300):
            wire.ask("ApiVersions", 0, m.ApiVersionsRequest())
    for peer in peers:
        peer.close()
