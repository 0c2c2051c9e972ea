"""Mutated handshakes of TLS and exchanges of SASL against a broker with every kind of listener: each connection gets
what the contract of its listener says, or ends; others are served; and nothing is left of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from ottla.protocol import messages as m
from ottla.protocol.frames import framed

from ottla.testing import Broker

from . import fuzz_tls
from .ask import lab_text
from .kerberos import REALM, Missing, Realm
from .oauth import first, unsecured
from .poll import until
from .ports import free_ports
from .sasl_order import Order, answered
from .scram import ScramClient
from .tls import client_context
from .wire import Closed, Wire

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PLAIN_TOKEN = b"\0alice\0alice-secret"
PLAIN_TOKENS = (PLAIN_TOKEN, b"alice" + PLAIN_TOKEN)
MEMORY_GROWTH_MAX = 60 << 20
CHECK_EVERY = 100  # connections
OPEN, TLS, MUTUAL_TLS, SASL, SASL_TLS = PROTOCOLS = {
    "PLAINTEXT": "PLAINTEXT",
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
}


Gssapi = tuple[dict[str, object], Sequence[bytes]]


class Target:
    """A broker with listeners of every security protocol. `gssapi`: settings of its mechanism GSSAPI, and tokens of a
    client with a ticket.
    """

    def __init__(self, folder: Path, gssapi: Gssapi = ({}, ())) -> None:
        self.contexts = {version: client_context(folder) for version in ("TLSv1_2", "TLSv1_3")}
        for version, context in self.contexts.items():
            context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
        self.ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))
        more, self.tickets = gssapi
        self.mechanisms = (*MECHANISMS, *(["GSSAPI"] if more else []))
        protocols = ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items())
        settings: dict[str, object] = {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": f"CONTROLLER:PLAINTEXT,{protocols}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": folder / "good/server.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": folder / "good/ca.crt",
            f"listener.name.{MUTUAL_TLS.lower()}.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(self.mechanisms),
            "ottla.users": "alice:alice-secret",
            "connection.failed.authentication.delay.ms": 0,
            **more,
        }
        self.broker = Broker(settings)

    def __enter__(self) -> Target:
        self.broker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.broker.stop()

    def wire(self, name: str) -> Wire:
        """A connection to one of the listeners; its handshake of TLS is done."""
        made = Wire(f"127.0.0.1:{self.ports[name]}", timeout=fuzz_tls.END_SECONDS)
        if name in (TLS, MUTUAL_TLS, SASL_TLS):
            made.socket = self.contexts["TLSv1_3"].wrap_socket(made.socket, server_hostname="localhost")
        return made


@contextlib.contextmanager
def kerberos(folder: Path) -> Iterator[Gssapi]:
    """What a target needs for GSSAPI, while a KDC runs; nothing where Kerberos cannot be had."""
    try:
        realm = Realm(folder)
    except Missing:
        yield {}, ()
        return
    with realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        broker, client = realm.keytab("kafka/localhost"), realm.keytab("alice")
        own = os.environ | {"KRB5_CLIENT_KTNAME": str(client)}
        with socket.create_server(("localhost", 0)) as silent:
            command = [sys.executable, "-m", "tests.support.gss_client", str(silent.getsockname()[1]), "tokens"]
            made = subprocess.run(command, env=own, check=True, capture_output=True, timeout=60)
        module = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
        jaas = f'{module} keyTab="{broker}" principal="kafka/localhost@{REALM}";'
        settings: dict[str, object] = {
            f"listener.name.{name.lower()}.gssapi.sasl.jaas.config": jaas for name in (SASL, SASL_TLS)
        }
        settings["sasl.kerberos.service.name"] = "kafka"
        yield settings, [bytes.fromhex(token) for token in json.loads(made.stdout)["tokens"]]


def log_in(wire: Wire) -> None:
    assert wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN")).error_code == 0
    assert wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN)).error_code == 0


# cases: each makes one connection


def damaged_hello(target: Target, chance: random.Random) -> None:
    hello = fuzz_tls.client_hello(target.contexts[chance.choice(sorted(target.contexts))])
    port = target.ports[chance.choice((TLS, MUTUAL_TLS, SASL_TLS))]
    fuzz_tls.send_hello(port, chance.choice((fuzz_tls.flipped, fuzz_tls.disturbed))(hello, chance))


def changed_hello(target: Target, chance: random.Random) -> None:
    hello = fuzz_tls.Hello(fuzz_tls.client_hello(target.contexts[chance.choice(sorted(target.contexts))]))
    for _ in range(chance.choice((1, 1, 3))):
        if hello.extensions:
            hello.change(chance)
    more = chance.choice((b"", b"", fuzz_tls.record(fuzz_tls.DATA, chance.randbytes(200))))  # early data
    answer = fuzz_tls.send_hello(target.ports[chance.choice((TLS, MUTUAL_TLS, SASL_TLS))], hello.packed() + more)
    assert answer or more, f"a whole record is not answered, not even by an alert: {hello.packed().hex()}"


def cut_hello(target: Target, chance: random.Random) -> None:
    hello = fuzz_tls.client_hello(target.contexts["TLSv1_3"])
    fuzz_tls.send_hello(target.ports[TLS], hello[: chance.randrange(len(hello))])


def handshake(target: Target, chance: random.Random) -> None:
    mutate = chance.choice((*fuzz_tls.HARMLESS, fuzz_tls.flipped, fuzz_tls.disturbed))
    context = target.contexts[chance.choice(sorted(target.contexts))]
    number = 0 if mutate in fuzz_tls.HARMLESS else chance.randrange(3)  # 2: the request
    port = target.ports[chance.choice((TLS, MUTUAL_TLS))]
    is_served = fuzz_tls.Handshake(port, context, mutate, number, chance).served()
    assert is_served or mutate not in fuzz_tls.HARMLESS, f"{mutate.__name__} keeps a client out"


def wrong_port(target: Target, chance: random.Random) -> None:
    """What is no TLS on a port of TLS, and TLS where there is none."""
    if chance.random() < 0.7:
        fuzz_tls.send_hello(target.ports[chance.choice((TLS, MUTUAL_TLS, SASL_TLS))], chance.choice(fuzz_tls.JUNK))
        return
    name = chance.choice((OPEN, SASL))
    hello = fuzz_tls.client_hello(target.contexts[chance.choice(sorted(target.contexts))])
    with fuzz_tls.connected(target.ports[name]) as peer:
        with contextlib.suppress(ConnectionError):
            peer.sendall(hello)
        assert fuzz_tls.until_end(peer) == b"", f"a ClientHello is answered on {name}"


def mutated_tokens(target: Target, chance: random.Random) -> None:
    """An exchange of which each token may be mutated; without the password no one is authenticated."""
    mechanism, knows = chance.choice(target.mechanisms), chance.random() < 0.5
    tokens = _tokens(target, mechanism, "alice-secret" if knows else "alice-guess", chance)
    version, token = chance.choice((0, 1, 1)), next(tokens)
    with target.wire(chance.choice((SASL, SASL, SASL_TLS))) as wire:
        wire.ask("SaslHandshake", version, m.SaslHandshakeRequest(mechanism=mechanism))
        while True:
            reply = answered(wire, version, token, chance)
            if reply is None:
                assert mechanism != "PLAIN" or token not in PLAIN_TOKENS, f"{token!r} is refused"
                return
            try:
                token = tokens.send(reply)
            except StopIteration:
                break
    assert mechanism == "OAUTHBEARER" or knows, f"{mechanism} lets in who sends {token!r}"
    assert mechanism != "PLAIN" or token in PLAIN_TOKENS, f"{token!r} is let in"


def _tokens(target: Target, mechanism: str, password: str, chance: random.Random) -> Generator[bytes, bytes, None]:
    """The tokens of an exchange, each made after the answer to the one before."""

    def perhaps(token: bytes) -> bytes:
        return fuzz_tls.flipped(token, chance) if chance.random() < 0.6 else token

    if mechanism == "PLAIN":
        yield perhaps(b"\0alice\0" + password.encode())
    elif mechanism == "OAUTHBEARER":
        yield perhaps(first(unsecured()))
    elif mechanism == "GSSAPI":
        yield fuzz_tls.flipped(chance.choice(target.tickets), chance)
        yield chance.randbytes(20)  # its client knows nothing of the context
        raise AssertionError("GSSAPI takes noise for what it agreed on")
    else:
        client = ScramClient(mechanism, "alice", password)
        answer = yield perhaps(client.first())
        with contextlib.suppress(ValueError, KeyError):
            yield perhaps(client.final(answer))
            return
        yield b"c=biws,r=x,p="  # the answer to another first message


def any_order(target: Target, chance: random.Random) -> None:
    """Requests of an exchange in any order and version; each answer is predicted."""
    order = Order()
    with target.wire(chance.choice((SASL, SASL, SASL_TLS))) as wire:
        for _ in range(8):
            if not order.step(wire, chance):
                return


def raw_token(target: Target, chance: random.Random) -> None:
    """A frame that is a token of GSSAPI, as clients of Kafka 0.9 send it, whole or not."""
    token = chance.choice((*target.tickets, b"\x60\x82\x02\x6a\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\0"))
    with target.wire(chance.choice((SASL, SASL_TLS))) as wire, contextlib.suppress(Closed, OSError):
        wire.send(framed(fuzz_tls.flipped(token, chance)))
        wire.socket.settimeout(fuzz_tls.END_SECONDS)
        wire.read_frame()


Case = Callable[[Target, random.Random], None]
CASES: tuple[Case, ...] = (
    *(damaged_hello, damaged_hello, changed_hello, changed_hello, cut_hello, handshake, handshake, wrong_port),
    *(mutated_tokens, mutated_tokens, mutated_tokens, mutated_tokens, any_order, any_order, raw_token),
)


def every_cut(target: Target) -> int:
    """A ClientHello that ends after each of its bytes."""
    hello = fuzz_tls.client_hello(target.contexts["TLSv1_3"])
    for size in range(len(hello)):
        fuzz_tls.send_hello(target.ports[TLS], hello[:size])
    return len(hello)


def run(target: Target, count: int, seed: int, *, with_every_cut: bool = True) -> int:
    """Makes `count` connections; AssertionError with the seed if the broker takes harm, or breaks a contract."""
    chance, process = random.Random(seed), psutil.Process(target.broker.pid)
    for one in CASES:  # what is made once is there
        one(target, random.Random(0))
    _check(target)
    before, descriptors = process.memory_info().rss, process.num_fds()
    done = every_cut(target) if with_every_cut else 0
    fuzz_tls.asked_again(target.ports[TLS], "-tls1_2", "R", 20)
    fuzz_tls.asked_again(target.ports[TLS], "-tls1_3", "K", 100)
    with Wire(target.broker.bootstrap_servers) as other:
        for number in range(count):
            case = chance.choice(CASES)
            try:
                case(target, chance)
                if number % CHECK_EVERY == 0:
                    other.ask("ApiVersions", 0, m.ApiVersionsRequest())
            except Exception as error:
                raise AssertionError(f"seed {seed}, {case.__name__} number {number}: {error!r}") from error
    _check(target)
    until(lambda: process.num_fds() <= descriptors, f"descriptors are closed (seed {seed})")
    growth = process.memory_info().rss - before
    assert growth < MEMORY_GROWTH_MAX, f"seed {seed}: {growth >> 20} MiB more"
    return done + count


def _check(target: Target) -> None:
    """The broker serves each listener, and no exception was unexpected."""
    broker = target.broker
    assert broker.running, broker.log[-3000:]
    for name in (OPEN, TLS, MUTUAL_TLS, SASL, SASL_TLS):
        with target.wire(name) as wire:
            if name in (SASL, SASL_TLS):
                log_in(wire)
            assert wire.ask("Metadata", 12, m.MetadataRequest(topics=[])).cluster_id
    assert "Traceback" not in broker.log, broker.log[-3000:]
    assert "ottla_bugs_total 0.0" in lab_text(broker, "/metrics").splitlines()
