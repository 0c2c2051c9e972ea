"""Delegation tokens in a whole broker with virtual time: expiry, removal, restarts, and logging in (KIP-48)."""

from __future__ import annotations

import logging
from base64 import b64encode
from typing import Any

import pytest
from ottla.broker.apis import apis
from ottla.broker.net.dispatch import Dispatcher
from ottla.broker.net.sasl_gate import SaslGate
from ottla.broker.peer import Peer, SecurityProtocol
from ottla.coordinator.metadata.tokens import sweep
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.scram import ScramClient
from ..support.token_world import create, expire, peer_of, renew, world_of
from ..support.world import World

HOUR, DAY = 3_600_000, 86_400_000


def listed(world: World) -> list[Any]:
    reply = world.ask("DescribeDelegationToken", 3, m.DescribeDelegationTokenRequest(owners=None))
    assert reply.error_code == 0
    found: list[Any] = reply.tokens
    return found


def log_in(world: World, token: Any, mechanism: str = "SCRAM-SHA-256") -> tuple[Any, Peer, Dispatcher]:
    """The last reply of a login with a token, the peer, and what serves it after that."""
    peer = Peer("AUTH", "127.0.0.1:9", SecurityProtocol.SASL_PLAINTEXT)
    plain, dispatchers = world.dispatcher, [Dispatcher(world.broker, apis())]
    gate = world.dispatcher = SaslGate(plain, world.broker.sasl["AUTH"], peer, dispatchers.append)
    own, world.peer = world.peer, peer
    client = ScramClient(mechanism, token.token_id, b64encode(token.hmac).decode(), extensions=",tokenauth=true")
    try:
        world.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
        reply = world.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=client.first()))
        if not reply.error_code:
            final = m.SaslAuthenticateRequest(auth_bytes=client.final(reply.auth_bytes))
            reply = world.ask("SaslAuthenticate", 2, final)
            if not reply.error_code:
                client.verify(reply.auth_bytes)
    finally:
        world.dispatcher, world.peer = plain, own
    return reply, peer, gate


@pytest.mark.slow
def test_a_token_expires_unless_it_is_renewed() -> None:
    world = world_of()
    token = create(world)
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 7 * DAY
    world.pass_ms(DAY - HOUR)
    assert renew(world, token).expiry_timestamp_ms == world.schedule.now_ms() - 1 + DAY
    world.pass_ms(DAY - HOUR)
    assert [one.token_id for one in listed(world)] == [token.token_id]
    world.pass_ms(3 * HOUR)
    assert listed(world) == []
    assert renew(world, token).error_code == Errors.DELEGATION_TOKEN_NOT_FOUND


def test_a_token_does_not_outlive_its_last_moment() -> None:
    world = world_of()
    token = create(world, 2 * HOUR)
    assert token.expiry_timestamp_ms == token.max_timestamp_ms == token.issue_timestamp_ms + 2 * HOUR
    world.pass_ms(HOUR)
    assert renew(world, token, 5 * HOUR).expiry_timestamp_ms == token.max_timestamp_ms
    assert expire(world, token, 5 * HOUR).expiry_timestamp_ms == token.max_timestamp_ms


def test_expired_tokens_are_removed_at_the_next_check() -> None:
    world = world_of(None, **{"delegation.token.expiry.check.interval.ms": "1000"})
    token = create(world, 500)
    world.pass_ms(500)
    assert renew(world, token).error_code == Errors.DELEGATION_TOKEN_EXPIRED
    assert expire(world, token, 1).error_code == Errors.DELEGATION_TOKEN_EXPIRED
    assert len(listed(world)) == 1
    world.pass_ms(1000)
    assert listed(world) == []
    assert expire(world, token).error_code == Errors.DELEGATION_TOKEN_NOT_FOUND


def test_more_tokens_than_one_batch_takes_are_removed_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ottla.coordinator.metadata.tokens", "ottla.broker.broker"):
        monkeypatch.setattr(f"{module}.SWEPT_AT_ONCE", 2)
    world = world_of(None, **{"delegation.token.expiry.check.interval.ms": "60000"})
    for _ in range(5):
        create(world, 1)
    controller = world.broker.metadata.controller
    result = None
    step = sweep(controller, world.schedule.now_ms() + 100)
    while result is None:
        try:
            next(step)
        except StopIteration as end:
            result = end.value
    assert (len(result.records), result.reply) == (2, 2)
    world.pass_ms(61_000)
    assert listed(world) == []


def test_a_token_that_is_taken_back_while_expired_ones_are_looked_for_stops_nothing() -> None:
    """The append of an earlier event may fail between two steps."""
    world = world_of(None, **{"delegation.token.expiry.check.interval.ms": "60000"})
    ids = [create(world, 1).token_id for _ in range(3)]
    controller = world.broker.metadata.controller
    step = sweep(controller, world.schedule.now_ms() + 100)
    next(step)
    controller.state.drop("tokens", ids[2])
    assert len(list(step)) == 2


def test_tokens_are_there_after_a_restart() -> None:
    world = world_of()
    token = create(world, -1, "bob")
    world.broker.stop()
    later = world_of(world.files)
    later.peer = peer_of("bob")
    assert renew(later, token).error_code == 0
    assert [bytes(one.hmac) for one in listed(later)] == [bytes(token.hmac)]
    assert log_in(later, token)[0].error_code == 0


def test_another_secret_key_makes_other_hmacs() -> None:
    world = world_of()
    token = create(world)
    world.broker.stop()
    other = world_of(world.files, **{"delegation.token.secret.key": "another key"})
    assert renew(other, token).error_code == Errors.DELEGATION_TOKEN_NOT_FOUND
    assert log_in(other, token)[0].error_code == Errors.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_logs_in_with_a_token_until_it_expires(mechanism: str) -> None:
    world = world_of()
    token = create(world)
    for _ in range(2):  # the second time the credential is there
        reply, peer, gate = log_in(world, token, mechanism)
        left_ms = token.expiry_timestamp_ms - world.schedule.now_ms()
        assert left_ms <= reply.session_lifetime_ms <= left_ms + 10
        assert (peer.principal, peer.token_authenticated) == ("User:alice", True)
    assert isinstance(gate, SaslGate)
    assert expire(world, token).error_code == 0
    assert log_in(world, token, mechanism)[0].error_code == Errors.SASL_AUTHENTICATION_FAILED


def test_who_logged_in_with_a_token_gets_no_tokens() -> None:
    world = world_of()
    token = create(world)
    world.peer.token_authenticated = True
    refused = Errors.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    assert world.ask("CreateDelegationToken", 3, m.CreateDelegationTokenRequest()).error_code == refused
    assert renew(world, token).error_code == expire(world, token).error_code == refused
    asked = m.DescribeDelegationTokenRequest(owners=None)
    assert world.ask("DescribeDelegationToken", 3, asked).error_code == refused


@pytest.mark.parametrize(
    ("protocol", "principal", "is_served"),
    [
        (SecurityProtocol.PLAINTEXT, "User:ANONYMOUS", False),
        (SecurityProtocol.SSL, "User:ANONYMOUS", False),
        (SecurityProtocol.SSL, "User:CN=alice", True),
        (SecurityProtocol.SASL_SSL, "User:alice", True),
    ],
)
def test_tokens_are_for_those_who_have_authenticated(
    protocol: SecurityProtocol, principal: str, is_served: bool
) -> None:
    world = world_of()
    world.peer = Peer("AUTH", "127.0.0.1:1", protocol)
    world.peer.principal = principal
    reply = world.ask("CreateDelegationToken", 3, m.CreateDelegationTokenRequest())
    assert (reply.error_code == 0) is is_served


def test_tokens_are_disabled_without_a_key() -> None:
    world = world_of(None, **{"delegation.token.secret.key": ""})
    disabled = Errors.DELEGATION_TOKEN_AUTH_DISABLED
    token = m.CreateDelegationTokenResponse(hmac=b"x")
    assert world.ask("CreateDelegationToken", 3, m.CreateDelegationTokenRequest()).error_code == disabled
    assert renew(world, token).error_code == expire(world, token).error_code == disabled
    asked = m.DescribeDelegationTokenRequest(owners=None)
    assert world.ask("DescribeDelegationToken", 3, asked).error_code == disabled


def test_hmacs_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    world = world_of()
    token = create(world, HOUR)
    log_in(world, token)
    world.pass_ms(2 * HOUR)
    text = caplog.text
    assert "1 expired delegation tokens were removed" in text
    assert b64encode(token.hmac).decode() not in text
    assert bytes(token.hmac).hex() not in text
    assert "the secret key" not in text
