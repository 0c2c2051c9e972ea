"""The lab's clock and security on a running broker: delays, sessions and tokens obey it; handshakes of TLS do not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.wire import Closed, Wire

pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {
    "ottla.lab.clock": "frozen",
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "ottla.users": "alice:alice-secret",
    "connection.failed.authentication.delay.ms": 5000,
    "connections.max.reauth.ms": 3_600_000,
    "connections.max.idle.ms": 360_000_000,
    "delegation.token.secret.key": "secret",
    "delegation.token.expiry.time.ms": 1_800_000,
    "delegation.token.expiry.check.interval.ms": 60_000,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


def authenticate(wire: Wire, password: bytes) -> None:
    """Says who it is; the reply has not been read."""
    assert wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN")).error_code == 0
    wire.say("SaslAuthenticate", 1, m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + password))


def test_a_failed_authentication_is_answered_after_its_delay(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers, timeout=20) as wire:
        authenticate(wire, b"wrong")
        wire.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            wire.socket.recv(1)
        wire.socket.settimeout(20)
        broker.clock.advance("5s")
        assert wire.reply("SaslAuthenticate", 1).error_code == 58, "SASL_AUTHENTICATION_FAILED"
        with pytest.raises(Closed):
            wire.read(1)


def test_a_session_ends(broker: Broker) -> None:
    with Wire(broker.bootstrap_servers, timeout=20) as wire:
        authenticate(wire, b"alice-secret")
        assert wire.reply("SaslAuthenticate", 1).session_lifetime_ms == 3_600_000
        broker.clock.advance("59m")
        assert wire.ask("Metadata", 12, m.MetadataRequest(topics=[])).brokers
        broker.clock.advance("2m")
        with pytest.raises(Closed):
            wire.ask("Metadata", 12, m.MetadataRequest(topics=[]))


def test_a_token_expires(broker: Broker) -> None:
    def tokens(wire: Wire) -> int:
        return len(wire.ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None)).tokens)

    with Wire(broker.bootstrap_servers, timeout=20) as wire:
        authenticate(wire, b"alice-secret")
        assert wire.reply("SaslAuthenticate", 1).error_code == 0
        created = wire.ask("CreateDelegationToken", 3, m.CreateDelegationTokenRequest(max_lifetime_ms=-1))
        assert created.error_code == 0
        assert created.issue_timestamp_ms == broker.clock.now_ms
        broker.clock.advance("29m")
        assert tokens(wire) == 1
        broker.clock.advance("2m")
        assert tokens(wire) == 0
