"""Delegation tokens: ottla and Apache Kafka make, show and refuse the same, and let in and refuse the same clients.

Alice and Bob have no rights but those that a story grants; the administrator has all. Ids are random and moments
differ; the times between them are compared.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.protocol import messages as m

from ..support.acls import creations
from ..support.differential import Pair
from ..support.poll import until
from ..support.scram import ScramClient
from ..support.secured import PASSWORDS, SETTINGS, secured_brokers
from ..support.stories.topics import versions
from ..support.transcripts import Asks

pytestmark = pytest.mark.slow
SAME: dict[str, object] = {
    **SETTINGS,
    "connection.failed.authentication.delay.ms": 0,
    "delegation.token.secret.key": "a secret key",
    "delegation.token.max.lifetime.ms": 600_000,
    "delegation.token.expiry.time.ms": 60_000,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
}
OP, R = Operation, ResourceType
C = m.CreateDelegationTokenRequest
D = m.DescribeDelegationTokenRequest
EVERYONES = D(owners=None)
HOUR = 3_600_000
FAR = (1 << 63) - 1
Tokens = tuple[Any, Any]
"""What ours and what Kafka has answered to a creation."""


kafka, ours, settled = secured_brokers(SAME, "PLAIN", b"\0admin\0admin-secret")


def log_in(pair: Pair, name: str) -> None:
    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
    pair.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=f"\0{name}\0{name}-secret".encode()))


Users = Callable[[str], Pair]


@pytest.fixture
def users(pair: Pair) -> Iterator[Users]:
    """Connections of the users, and of others who log in themselves."""
    found: dict[str, Pair] = {}

    def of(name: str) -> Pair:
        if name not in found:
            found[name] = pair.beside(name)
            if name in PASSWORDS:
                log_in(found[name], name)
        return found[name]

    yield of
    for one in found.values():
        one.close()


@pytest.fixture(autouse=True)
def without_tokens(users: Users) -> Iterator[None]:
    """What a story has made is removed after it, by the owners."""
    yield
    for name in ("alice", "bob", "admin"):
        for wire in users(name).wires:
            for token in wire.ask("DescribeDelegationToken", 3, EVERYONES).tokens:
                gone = m.ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
                wire.ask("ExpireDelegationToken", 2, gone)
    for wire in users("admin").wires:
        asked_until(wire, "DescribeDelegationToken", EVERYONES, lambda reply: not reply.tokens)


def asked_until(wire: Asks, name: str, request: Any, done: Callable[[Any], bool]) -> None:
    """Asks one of the brokers until it answers so; each question is in the transcript, and so there is a pause."""
    version = versions(name)[-1]
    until(lambda: done(wire.ask(name, version, request)), f"an answer to {name}", every=0.02)


def create(pair: Pair, version: int = 3, renewers: tuple[str, ...] = (), life_ms: int = -1, owner: str = "") -> Tokens:
    """Makes tokens; the times between their moments are the same."""
    request = C(
        renewers=[C.CreatableRenewers(principal_type="User", principal_name=one) for one in renewers],
        max_lifetime_ms=life_ms,
    )
    if owner:
        request.owner_principal_type, request.owner_principal_name = "User", owner
    tokens: Tokens = pair.ask("CreateDelegationToken", version, request)
    lives = [
        (one.expiry_timestamp_ms - one.issue_timestamp_ms, one.max_timestamp_ms - one.issue_timestamp_ms)
        for one in tokens
    ]
    assert lives[0] == lives[1]
    described(pair, tokens)
    return tokens


def described(pair: Pair, tokens: Tokens) -> None:
    """Waits until each broker shows its token: Kafka's broker hears of it after its controller has answered."""
    if tokens[0].error_code:
        return
    for wire, token in zip(pair.wires, tokens, strict=True):
        shows = partial(_shows, token.token_id)
        asked_until(wire, "DescribeDelegationToken", EVERYONES, shows)


def _shows(token_id: str, reply: Any) -> bool:
    return any(one.token_id == token_id for one in reply.tokens)


def renew(pair: Pair, tokens: Tokens, period_ms: int = -1, version: int = 2) -> Tokens:
    return pair.both(
        "RenewDelegationToken",
        version,
        lambda side: m.RenewDelegationTokenRequest(hmac=tokens[side].hmac, renew_period_ms=period_ms),
    )


def expire(pair: Pair, tokens: Tokens, period_ms: int = -1, version: int = 2) -> Tokens:
    return pair.both(
        "ExpireDelegationToken",
        version,
        lambda side: m.ExpireDelegationTokenRequest(hmac=tokens[side].hmac, expiry_time_period_ms=period_ms),
    )


def describe(pair: Pair, *owners: str, version: int = 3) -> None:
    asked = [D.DescribeDelegationTokenOwner(principal_type="User", principal_name=one) for one in owners]
    pair.ask("DescribeDelegationToken", version, D(owners=asked or None))


def exchange(pair: Pair, names: tuple[str, str], passwords: tuple[str, str], mechanism: str = "SCRAM-SHA-256") -> None:
    """Logs in with tokens. The last reply has what is left of the token's time, which differs."""
    clients = [ScramClient(mechanism, *one, extensions=",tokenauth=true") for one in zip(names, passwords, strict=True)]

    def ask(tokens: list[bytes]) -> list[Any]:
        asked = [m.SaslAuthenticateRequest(auth_bytes=one) for one in tokens]
        replies = [wire.ask("SaslAuthenticate", 2, one) for wire, one in zip(pair.wires, asked, strict=True)]
        assert replies[0].error_code == replies[1].error_code
        assert replies[0].error_message == replies[1].error_message
        return replies

    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
    first = ask([one.first() for one in clients])
    if not first[0].error_code:
        assert {bytes(one.auth_bytes).rpartition(b",")[2] for one in first} == {b"i=4096"}
        last = ask([one.final(reply.auth_bytes) for one, reply in zip(clients, first, strict=True)])
        assert (last[0].session_lifetime_ms > 0) == (last[1].session_lifetime_ms > 0)
        assert all(0 <= one.session_lifetime_ms <= 60_000 for one in last)


def password(token: Any) -> str:
    return b64encode(token.hmac).decode()


# creating


@pytest.mark.parametrize("version", versions("CreateDelegationToken"))
def test_created(users: Users, version: int) -> None:
    alice = users("alice")
    for life_ms in (-1, 0, 1000, 60_001, HOUR, FAR):
        tokens = create(alice, version, ("bob", "", "a,b"), life_ms)
        for one in versions("DescribeDelegationToken"):
            describe(alice, version=one)
        expire(alice, tokens)
        until_known(alice)


def test_renewers_are_users(users: Users) -> None:
    alice = users("alice")
    for kind in ("Group", "", "user"):
        for version in versions("CreateDelegationToken"):
            alice.ask("CreateDelegationToken", version, C(renewers=[C.CreatableRenewers(principal_type=kind)]))
    assert alice.errors("CreateDelegationToken") == {"INVALID_PRINCIPAL_TYPE"}


def test_owners(users: Users) -> None:
    alice, bob, admin = users("alice"), users("bob"), users("admin")
    create(alice, owner="bob")
    create(alice, owner="alice")
    create(admin, owner="bob")
    for kind, name in (
        (None, "bob"),
        ("Group", "g"),
        ("User", ""),
        ("User", None),
        (None, None),
        ("", "alice"),
        ("A:b", "c"),
    ):
        renewers = [C.CreatableRenewers(principal_type="User", principal_name="admin")]  # who removes it
        asked = C(owner_principal_type=kind, owner_principal_name=name, renewers=renewers)
        admin.ask("CreateDelegationToken", 3, asked)
        alice.ask("CreateDelegationToken", 3, asked)
    describe(bob)
    grant(admin, (OP.CREATE_TOKENS, R.USER, "User:bob"))
    asked = C(owner_principal_type="User", owner_principal_name="bob")
    for wire in alice.wires:
        asked_until(wire, "CreateDelegationToken", asked, lambda reply: not reply.error_code)
    create(alice, owner="bob")
    revoke(admin)


def grant(admin: Pair, *rights: tuple[Operation, ResourceType, str]) -> None:
    acls = [Acl(kind, name, PatternType.LITERAL, "User:alice", "*", op, Permission.ALLOW) for op, kind, name in rights]
    admin.ask("CreateAcls", 3, creations(acls))


def revoke(admin: Pair) -> None:
    every = m.DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=1, resource_name_filter=None, pattern_type_filter=1, principal_filter="User:alice",
        host_filter=None, operation=1, permission_type=1,
    )  # fmt: skip
    for wire in admin.wires:
        wire.ask("DeleteAcls", 3, m.DeleteAclsRequest(filters=[every]))


# renewing and expiring


@pytest.mark.parametrize("version", versions("RenewDelegationToken"))
def test_renewed(users: Users, version: int) -> None:
    alice, bob, admin = users("alice"), users("bob"), users("admin")
    tokens = create(alice, renewers=("bob",), life_ms=HOUR)
    others = create(admin, owner="bob")
    for period_ms in (-1, 0, 30_000, HOUR, FAR):
        renew(alice, tokens, period_ms, version)
        until_known(alice)
        renew(bob, tokens, HOUR, version)
        until_known(alice)
    renew(admin, tokens, -1, version)
    renew(admin, others, -1, version)
    renew(alice, others, -1, version)
    for hmac in (b"", b"x", bytes(64)):
        alice.ask("RenewDelegationToken", version, m.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=1))
    assert alice.errors("RenewDelegationToken") == {
        "NONE", "DELEGATION_TOKEN_OWNER_MISMATCH", "DELEGATION_TOKEN_NOT_FOUND"
    }  # fmt: skip


def until_known(pair: Pair) -> None:
    """Lets what was changed reach Kafka's broker: it knows a token that is created after it."""
    expire(pair, create(pair))


@pytest.mark.parametrize("version", versions("ExpireDelegationToken"))
def test_expired(users: Users, version: int) -> None:
    alice, bob, admin = users("alice"), users("bob"), users("admin")
    tokens = create(alice, renewers=("bob",), life_ms=HOUR)
    for period_ms in (1000_000, FAR, 50_000):
        expire(alice, tokens, period_ms, version)
        until_known(alice)
        expire(admin, tokens, period_ms, version)
    expire(bob, tokens, -1, version)
    until_known(alice)
    expire(alice, tokens, -1, version)
    renew(alice, tokens)
    expire(alice, create(alice), -(1 << 63), version)
    for hmac in (b"", b"x", bytes(64)):
        alice.ask("ExpireDelegationToken", version, m.ExpireDelegationTokenRequest(hmac=hmac))
    assert alice.errors("ExpireDelegationToken") == {
        "NONE", "DELEGATION_TOKEN_OWNER_MISMATCH", "DELEGATION_TOKEN_NOT_FOUND"
    }  # fmt: skip


def test_after_the_last_moment(users: Users) -> None:
    alice, bob = users("alice"), users("bob")
    tokens = create(alice, renewers=(), life_ms=1)
    for wire, token in zip(alice.wires, tokens, strict=True):
        late = m.RenewDelegationTokenRequest(hmac=token.hmac)
        asked_until(wire, "RenewDelegationToken", late, lambda reply: reply.error_code == 66)
    renew(bob, tokens)
    expire(bob, tokens, 1)
    renew(alice, tokens)
    expire(alice, tokens, 0)
    describe(alice)
    exchange(users("expired"), (tokens[0].token_id, tokens[1].token_id), (password(tokens[0]), password(tokens[1])))
    expire(alice, tokens, -1)
    assert alice.errors("RenewDelegationToken") == {"DELEGATION_TOKEN_EXPIRED"}


# describing


@pytest.mark.parametrize("version", versions("DescribeDelegationToken"))
def test_described(users: Users, version: int) -> None:
    alice, bob, admin = users("alice"), users("bob"), users("admin")
    create(alice, renewers=("bob",))
    create(bob)
    create(admin, owner="bob", renewers=("carol", "alice"))
    for pair in (alice, bob, admin):
        describe(pair, version=version)
        pair.ask("DescribeDelegationToken", version, D(owners=[]))
        for owners in (("alice",), ("bob",), ("carol",), ("nobody", "alice", "alice"), ("admin",)):
            describe(pair, *owners, version=version)


@pytest.mark.parametrize("right", ["token", "every token", "user", "every user", "other"])
def test_rights_to_describe(users: Users, right: str) -> None:
    alice, bob, admin = users("alice"), users("bob"), users("admin")
    tokens = create(bob)
    create(admin)
    describe(alice)
    for side, wire in enumerate(admin.wires):
        op, kind, name = {
            "token": (OP.DESCRIBE, R.DELEGATION_TOKEN, tokens[side].token_id),
            "every token": (OP.DESCRIBE, R.DELEGATION_TOKEN, "*"),
            "user": (OP.DESCRIBE_TOKENS, R.USER, "User:bob"),
            "every user": (OP.DESCRIBE_TOKENS, R.USER, "*"),
            "other": (OP.CREATE_TOKENS, R.USER, "User:bob"),
        }[right]
        wire.ask(
            "CreateAcls", 3, creations([Acl(kind, name, PatternType.LITERAL, "User:alice", "*", op, Permission.ALLOW)])
        )
    alice.agree("DescribeDelegationToken", 3, EVERYONES)
    if right != "other":
        for wire in alice.wires:
            asked_until(wire, "DescribeDelegationToken", EVERYONES, lambda reply: bool(reply.tokens))
    describe(alice)
    describe(alice, "bob")
    revoke(admin)


# logging in


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_logging_in(users: Users, mechanism: str) -> None:
    """Who has logged in with a token may not ask for tokens."""
    alice, admin = users("alice"), users("admin")
    ours, theirs = create(admin, owner="alice", renewers=("bob",))
    client = users("with a token")
    exchange(client, (ours.token_id, theirs.token_id), (password(ours), password(theirs)), mechanism)
    client.ask("CreateDelegationToken", 3, C())
    renew(client, (ours, theirs))
    expire(client, (ours, theirs))
    describe(client)
    assert client.errors("ExpireDelegationToken") == {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED"}
    expire(alice, (ours, theirs))
    until_known(alice)
    client = users("with a token that is gone")
    exchange(client, (ours.token_id, theirs.token_id), (password(ours), password(theirs)), mechanism)


@pytest.mark.parametrize("wrong", ["password", "id", "user"])
def test_wrong_tokens(users: Users, wrong: str) -> None:
    alice = users("alice")
    ours, theirs = create(alice)
    names = {"id": ("x", "x"), "user": ("alice", "alice")}.get(wrong, (ours.token_id, theirs.token_id))
    passwords = ("x", "x") if wrong == "password" else (password(ours), password(theirs))
    exchange(users("wrong"), names, passwords)
