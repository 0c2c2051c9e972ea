"""Delegation tokens go both ways in a data directory: Kafka lets in who has ottla's token, and ottla Kafka's."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.poll import until
from ..support.scram import ScramClient
from ..support.scram import log_in as scram_log_in
from ..support.secured import SETTINGS, SecuredKafka
from ..support.wire import Wire

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SAME = {**SETTINGS, "connection.failed.authentication.delay.ms": 0, "delegation.token.secret.key": "one key"}


def create(servers: str, name: str) -> Any:
    """Makes a token of a user, which the administrator may renew."""
    r = m.CreateDelegationTokenRequest
    with Wire(servers) as wire:
        log_in(wire, name)
        renewer = r.CreatableRenewers(principal_type="User", principal_name="admin")
        token = wire.ask("CreateDelegationToken", 3, r(renewers=[renewer], max_lifetime_ms=3_600_000))
        assert token.error_code == 0
        return token


def log_in(wire: Wire, name: str) -> None:
    wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
    token = f"\0{name}\0{name}-secret".encode()
    assert wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token)).error_code == 0


def lets_in(servers: str, token: Any, mechanism: str) -> bool:
    client = ScramClient(mechanism, token.token_id, b64encode(token.hmac).decode(), extensions=",tokenauth=true")
    with Wire(servers) as wire:
        return scram_log_in(wire, client, mechanism)


def check(servers: str, *tokens: Any) -> None:
    """Each token lets in, is shown as it was made, and can be renewed."""
    for token in tokens:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            until(lambda t=token, k=mechanism: lets_in(servers, t, k), "the token lets in")  # type: ignore[misc]
    with Wire(servers) as wire:
        log_in(wire, "admin")
        shown = wire.ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None)).tokens
        moments = {one.token_id: (one.issue_timestamp, one.max_timestamp, bytes(one.hmac)) for one in shown}
        made = {one.token_id: (one.issue_timestamp_ms, one.max_timestamp_ms, bytes(one.hmac)) for one in tokens}
        assert moments == made
        for token in tokens:
            renewal = m.RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=60_000)
            assert wire.ask("RenewDelegationToken", 2, renewal).error_code == 0


def remove(servers: str, token: Any) -> None:
    with Wire(servers) as wire:
        log_in(wire, "admin")
        gone = m.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
        assert wire.ask("ExpireDelegationToken", 2, gone).error_code == 0
    until(lambda: not lets_in(servers, token, "SCRAM-SHA-256"), "the token is gone")


def test_tokens_go_both_ways(tmp_path: Path) -> None:
    with Broker(SAME, directory=tmp_path) as broker:
        first, second = (create(broker.bootstrap_servers, name) for name in ("alice", "bob"))
        check(broker.bootstrap_servers, first, second)
    with SecuredKafka(SAME, tmp_path, formatted=True) as kafka:
        check(kafka.sasl_servers, first, second)
        third = create(kafka.sasl_servers, "alice")
        remove(kafka.sasl_servers, first)
        check(kafka.sasl_servers, second, third)
    with Broker(SAME, directory=tmp_path) as broker:
        check(broker.bootstrap_servers, second, third)
        assert not lets_in(broker.bootstrap_servers, first, "SCRAM-SHA-256")
