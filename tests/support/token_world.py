"""A world in which Alice has logged in, and asks for delegation tokens."""

from __future__ import annotations

from typing import Any

from ottla.broker.peer import Peer, SecurityProtocol
from ottla.protocol import messages as m

from .memory_files import MemFiles
from .world import World

SETTINGS = {
    "listeners": "AUTH://127.0.0.1:9092",
    "listener.security.protocol.map": "AUTH:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": "the secret key",
}


def world_of(files: MemFiles | None = None, **settings: str) -> World:
    """A world whose requests come from Alice, who has logged in with a password."""
    world = World(files, **{**SETTINGS, **settings})
    world.peer = peer_of("alice")
    return world


def peer_of(name: str, listener: str = "AUTH") -> Peer:
    peer = Peer(listener, "127.0.0.1:1", SecurityProtocol.SASL_PLAINTEXT)
    peer.principal = f"User:{name}"
    return peer


def create(world: World, life_ms: int = -1, *renewers: str) -> Any:
    r = m.CreateDelegationTokenRequest
    wanted = [r.CreatableRenewers(principal_type="User", principal_name=one) for one in renewers]
    reply = world.ask("CreateDelegationToken", 3, r(renewers=wanted, max_lifetime_ms=life_ms))
    assert reply.error_code == 0
    return reply


def renew(world: World, token: Any, period_ms: int = -1) -> Any:
    return world.ask(
        "RenewDelegationToken", 2, m.RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=period_ms)
    )


def expire(world: World, token: Any, period_ms: int = -1) -> Any:
    return world.ask(
        "ExpireDelegationToken", 2, m.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=period_ms)
    )
