"""SCRAM credentials go both ways in a data directory: Kafka lets in whom ottla knows, and ottla whom Kafka knows."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.poll import until
from ..support.scram import ScramClient, log_in
from ..support.secured import SETTINGS, SecuredKafka
from ..support.wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def lets_in(servers: str, mechanism: str, name: str, password: str) -> bool:
    """Whether the broker takes the password, in which case it also shows that it knows it."""
    client = ScramClient(mechanism, name, password)
    with Wire(servers) as wire:
        return log_in(wire, client, mechanism)


def put(servers: str, name: str, password: str) -> None:
    r = m.AlterUserScramCredentialsRequest
    with Wire(servers) as wire:
        wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\0admin\0admin-secret"))
        for number, digest in ((1, "sha256"), (2, "sha512")):
            salted = hashlib.pbkdf2_hmac(digest, password.encode(), b"salt", 5000)
            up = r.ScramCredentialUpsertion(
                name=name, mechanism=number, iterations=5000, salt=b"salt", salted_password=salted
            )
            reply = wire.ask("AlterUserScramCredentials", 0, r(upsertions=[up]))
            assert [one.error_code for one in reply.results] == [0]


def check(servers: str, passwords: dict[str, str]) -> None:
    for name, password in passwords.items():
        for mechanism in MECHANISMS:
            until(lambda n=name, k=mechanism, p=password: lets_in(servers, k, n, p), f"{name} logs in")  # type: ignore[misc]
            assert not lets_in(servers, mechanism, name, password + "x")


def test_users_go_both_ways(tmp_path: Path) -> None:
    """Users of ottla's configuration and of its API; Kafka adds one, and ottla knows all of them."""
    settings = {**SETTINGS, "connection.failed.authentication.delay.ms": 0}
    with Broker({**settings, "ottla.users": "dora:red"}, directory=tmp_path) as broker:
        put(broker.bootstrap_servers, "erik", "blue")
        check(broker.bootstrap_servers, {"dora": "red", "erik": "blue"})
    with SecuredKafka(settings, tmp_path, formatted=True) as kafka:
        check(kafka.sasl_servers, {"dora": "red", "erik": "blue"})
        put(kafka.sasl_servers, "fay", "green")
        check(kafka.sasl_servers, {"fay": "green"})
    with Broker(settings, directory=tmp_path) as broker:
        check(broker.bootstrap_servers, {"dora": "red", "erik": "blue", "fay": "green"})
