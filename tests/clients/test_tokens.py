"""Kafka's command-line tool makes delegation tokens, in all its forms, and Java clients log in with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker

from ..oracle.tools import tool
from .conftest import Run

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
COMMAND = "DelegationTokenCommand"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings: dict[str, object] = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "ottla.users": "alice:alice-secret; bob:bob-secret",
        "delegation.token.secret.key": "secret",
    }
    with Broker(settings) as running:
        yield running


def config(path: Path, name: str, password: str, mechanism: str = "SCRAM-SHA-256", is_token: bool = False) -> str:
    jaas = f'{SCRAM} required {"tokenauth=true " if is_token else ""}username="{name}" password="{password}";'
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n")
    return str(path)


def test_kafkas_tool_and_java_clients(broker: Broker, tmp_path: Path) -> None:
    at = ["--bootstrap-server", broker.bootstrap_servers, "--command-config"]
    alice, bob = (config(tmp_path / name, name, f"{name}-secret") for name in ("alice", "bob"))

    def run(user: str, *arguments: str, is_refused: bool = False) -> str:
        done = tool(COMMAND, *at, user, *arguments)
        assert (done.returncode != 0) is is_refused, done.stdout + done.stderr
        return done.stdout + done.stderr

    made = run(alice, "--create", "--max-life-time-period", "3600000", "--renewer-principal", "User:bob")
    row = re.search(r"^(\S{22})\s+(\S{88})\s+User:alice\s+User:alice\s+\[User:bob\]", made, re.MULTILINE)
    assert row is not None, made
    token_id, hmac = row.groups()
    assert "Total number of tokens : 0" in run(bob, "--describe")  # the tool asks for the tokens of no owner
    shown = run(bob, "--describe", "--owner-principal", "User:alice")
    assert "Total number of tokens : 1" in shown
    assert token_id in shown
    assert "Total number of tokens : 0" in run(alice, "--describe", "--owner-principal", "User:carol")
    assert "Completed renew operation" in run(bob, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        token = config(tmp_path / "token", token_id, hmac, mechanism, is_token=True)
        assert tool("TopicCommand", *at, token, "--create", "--topic", f"t-{mechanism}").returncode == 0
        assert "Delegation Token requests are not allowed" in run(token, "--describe", is_refused=True)
    other = run(alice, "--create", "--max-life-time-period", "-1", "--owner-principal", "User:bob")
    theirs = re.search(r"^(\S{22})\s+(\S{88})\s+User:bob\s+User:alice\s+\[\]", other, re.MULTILINE)
    assert theirs is not None, other
    refused = run(alice, "--renew", "--renew-time-period", "-1", "--hmac", theirs[2], is_refused=True)
    assert "DelegationTokenOwnerMismatchException" in refused
    assert "Completed expire operation" in run(alice, "--expire", "--expiry-time-period", "60000", "--hmac", hmac)
    assert "Completed expire operation" in run(bob, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    gone = run(alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac, is_refused=True)
    assert "DelegationTokenNotFoundException" in gone
    assert "invalid credentials with SASL mechanism" in _topics_refused(at, token)


def _topics_refused(at: list[str], user: str) -> str:
    done = tool("TopicCommand", *at, user, "--list")
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.go
def test_franz_go(broker: Broker, go_clients: Run) -> None:
    """Makes a token and logs in with it by both mechanisms, and with a wrong HMAC does not."""
    go_clients(broker.bootstrap_servers, "token", "alice", "alice-secret", within=60)
