"""Logging in: ottla and Apache Kafka take and refuse the same, with the same errors and words, in any order.

Failures are answered without a delay here; `tests/world/test_sasl.py` has the delays, and the end of sessions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.scram import ScramClient
from ..support.secured import LISTENER, SETTINGS, secured_brokers
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow
SAME = {
    **SETTINGS,
    "connection.failed.authentication.delay.ms": 0,
    f"{LISTENER}.plain.connections.max.reauth.ms": 60_000,
    f"{LISTENER}.scram-sha-512.connections.max.reauth.ms": 60_000,
}
METADATA = m.MetadataRequest(topics=[])
VERSIONS = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
ALICE = b"\0alice\0alice-secret"


kafka, ours, settled = secured_brokers(SAME, "PLAIN", b"\0admin\0admin-secret")


def handshake(pair: Pair, mechanism: str = "PLAIN", version: int = 1) -> None:
    pair.ask("SaslHandshake", version, m.SaslHandshakeRequest(mechanism=mechanism))


def authenticate(pair: Pair, token: bytes, version: int = 2) -> None:
    pair.ask("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=token))


def log_in(pair: Pair, token: bytes = ALICE, version: int = 2) -> None:
    handshake(pair)
    authenticate(pair, token, version)


def logged_in(pair: Pair) -> None:
    pair.ask("Metadata", 12, METADATA)


# PLAIN, and the order of requests


@pytest.mark.parametrize("version", [0, 1, 2])
def test_plain(pair: Pair, version: int) -> None:
    pair.ask("ApiVersions", 3, VERSIONS)
    log_in(pair, version=version)
    logged_in(pair)


@pytest.mark.parametrize(
    "token",
    [
        b"\0alice\0wrong",
        b"\0nobody\0x",
        b"\0\0x",
        b"\0alice\0",
        b"alice\0alice\0alice-secret",
        b"bob\0alice\0alice-secret",
        b"",
        b"a\0b",
        b"a\0b\0c\0d\0e",
        b"\0\xff\xfe\0x",
    ],
    ids=[
        *("wrong password", "unknown user", "no user", "no password", "authorization id", "another authorization id"),
        *("nothing", "two parts", "five parts", "no text"),
    ],
)
def test_tokens_of_plain(pair: Pair, token: bytes) -> None:
    log_in(pair, token)


@pytest.mark.parametrize("version", [0, 1])
def test_an_unknown_mechanism(pair: Pair, version: int) -> None:
    handshake(pair, "NOPE", version)


FIRST: dict[str, tuple[str, int, object]] = {
    "authenticate": ("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=ALICE)),
    "metadata": ("Metadata", 12, METADATA),
    "versions": ("ApiVersions", 3, VERSIONS),
    "invalid versions": ("ApiVersions", 3, m.ApiVersionsRequest()),
}


@pytest.mark.parametrize("request_", FIRST)
@pytest.mark.parametrize("after_versions", [False, True])
def test_what_comes_before_the_handshake(pair: Pair, request_: str, after_versions: bool) -> None:
    if after_versions:
        pair.ask("ApiVersions", 3, VERSIONS)
    pair.ask(*FIRST[request_])
    handshake(pair)


DURING: dict[str, tuple[str, int, object]] = {
    "handshake": ("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN")),
    "versions": ("ApiVersions", 3, VERSIONS),
    "metadata": ("Metadata", 12, METADATA),
    "groups": ("ListGroups", 4, m.ListGroupsRequest()),
    "coordinator": ("FindCoordinator", 3, m.FindCoordinatorRequest(key="g")),
    "coordinators": ("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g", "h"])),
    "producer": ("InitProducerId", 4, m.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)),
    "commit": ("OffsetCommit", 8, m.OffsetCommitRequest(group_id="g")),
    "cluster": ("DescribeCluster", 1, m.DescribeClusterRequest()),
}


@pytest.mark.parametrize("request_", DURING)
@pytest.mark.parametrize("again", [False, True])
def test_what_comes_during_the_exchange(pair: Pair, request_: str, again: bool) -> None:
    if again:
        log_in(pair)
    handshake(pair)
    pair.ask(*DURING[request_])


def test_what_comes_after_the_exchange(pair: Pair) -> None:
    log_in(pair)
    authenticate(pair, ALICE)
    log_in(pair)
    handshake(pair)
    logged_in(pair)


FRAMES = {
    "empty": b"",
    "no request": b"\x60" * 20,
    "produce": bytes(8),
    "unknown API": b"\x03\xe7\0\0\0\0\0\x01\xff\xff",
    "unknown handshake": b"\0\x11\0\x02\0\0\0\x01\xff\xff\0\x05PLAIN",
    "half a handshake": b"\0\x11\0\x01\0\0\0\x01\xff\xff\0\x05PL",
    "unknown versions": b"\0\x12\0\x63\0\0\0\x01\xff\xff\0",
}


@pytest.mark.parametrize("frame", FRAMES)
def test_frames(pair: Pair, frame: str) -> None:
    ours, theirs = pair.raw(FRAMES[frame])
    assert ours == theirs


# SCRAM


def put(pair: Pair, name: str, password: str, iterations: int = 4096) -> None:
    """Gives both brokers credentials of a user, over a connection of the administrator."""
    r = m.AlterUserScramCredentialsRequest
    salt = name.encode()
    admin = pair.beside("admin")
    log_in(admin, b"\0admin\0admin-secret")
    for number, digest in ((1, "sha256"), (2, "sha512")):
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
        up = r.ScramCredentialUpsertion(
            name=name, mechanism=number, iterations=iterations, salt=salt, salted_password=salted
        )
        admin.ask("AlterUserScramCredentials", 0, r(upsertions=[up]))
    asked = m.DescribeUserScramCredentialsRequest(users=[m.DescribeUserScramCredentialsRequest.UserName(name=name)])
    admin.until("DescribeUserScramCredentials", 0, asked, lambda reply: len(reply.results[0].credential_infos) == 2)
    admin.close()


def exchange(
    pair: Pair,
    mechanism: str,
    name: str,
    password: str,
    extensions: str = "",
    change: Callable[[bytes], bytes] = lambda final: final,
) -> None:
    clients = [ScramClient(mechanism, name, password, extensions=extensions) for _ in range(2)]
    handshake(pair, mechanism)

    def token(make: Callable[[int], bytes]) -> tuple[object, object]:
        return pair.both("SaslAuthenticate", 2, lambda side: m.SaslAuthenticateRequest(auth_bytes=make(side)))

    replies = token(lambda side: clients[side].first())
    if all(isinstance(one, m.SaslAuthenticateResponse) and not one.error_code for one in replies):
        token(lambda side: change(clients[side].final(replies[side].auth_bytes)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(
    ("name", "password"), [("carol", "pencil"), ("carol", "wrong"), ("nobody", "x"), ("a=b,c", "pencil")]
)
def test_scram(pair: Pair, mechanism: str, name: str, password: str) -> None:
    if name != "nobody":
        put(pair, name, "pencil")
    exchange(pair, mechanism, name, password)
    logged_in(pair)


@pytest.mark.parametrize("extensions", [",foo=bar", ",tokenauth=true", ",tokenauth=false", ",x"])
def test_extensions_of_scram(pair: Pair, extensions: str) -> None:
    put(pair, "carol", "pencil")
    exchange(pair, "SCRAM-SHA-256", "carol", "pencil", extensions)
    logged_in(pair)


@pytest.mark.parametrize(
    "token",
    [b"", b"y,,n=carol,r=x", b"p=tls-unique,,n=carol,r=x", b"n,a=bob,n=carol,r=x", b"n,a=carol,n=carol,r=x", b"\xff"],
    ids=["nothing", "y", "p", "of someone else", "of the same", "no text"],
)
def test_first_messages_of_scram(pair: Pair, token: bytes) -> None:
    put(pair, "carol", "pencil")
    handshake(pair, "SCRAM-SHA-256")
    authenticate(pair, token)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "another nonce": lambda final: final.replace(b",p=", b"x,p="),
    "a longer nonce": lambda final: final.replace(b"r=", b"r=x", 1),
    "an extension": lambda final: final.replace(b",p=", b",x=y,p="),
    "an extension at the end": lambda final: final + b",x=y",
    "a short proof": lambda final: final.partition(b",p=")[0] + b",p=AAAA",
    "no proof": lambda final: final.partition(b",p=")[0] + b",p=",
    "nothing": lambda _: b"",
}


@pytest.mark.parametrize("change", CHANGES)
def test_final_messages_of_scram(pair: Pair, change: str) -> None:
    put(pair, "carol", "pencil")
    exchange(pair, "SCRAM-SHA-256", "carol", "pencil", change=CHANGES[change])
    logged_in(pair)


# sessions (KIP-368)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN", "NOPE"])
def test_another_mechanism_in_a_session(pair: Pair, mechanism: str) -> None:
    log_in(pair)
    handshake(pair, mechanism)
    authenticate(pair, ALICE)
    logged_in(pair)


@pytest.mark.parametrize(
    "token",
    [ALICE, b"\0bob\0bob-secret", b"\0alice\0wrong", b""],
    ids=["the same user", "another user", "wrong password", "nothing"],
)
def test_a_session_goes_on(pair: Pair, token: bytes) -> None:
    log_in(pair)
    log_in(pair, token)
    logged_in(pair)


@pytest.mark.parametrize("password", ["pencil", "wrong"])
def test_a_session_of_scram_goes_on(pair: Pair, password: str) -> None:
    put(pair, "carol", "pencil")
    exchange(pair, "SCRAM-SHA-512", "carol", "pencil")
    exchange(pair, "SCRAM-SHA-512", "carol", password)
    logged_in(pair)


# changes of the configuration


OF_LISTENERS = {
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.jaas.config": "x",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
    "listeners": "PLAINTEXT://:1",
    "principal.builder.class": "x.Y",
    "connections.max.reauth.ms": "7",
    f"{LISTENER}.plain.sasl.jaas.config": "x",
}


@pytest.mark.parametrize("key", OF_LISTENERS)
def test_what_belongs_to_listeners_has_no_value_for_all_brokers(pair: Pair, key: str) -> None:
    r = m.IncrementalAlterConfigsRequest
    log_in(pair)
    config = r.AlterableConfig(name=key, config_operation=0, value=OF_LISTENERS[key])
    resource = r.AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource], validate_only=True))


def test_delegation_tokens_without_a_secret_key(pair: Pair) -> None:
    c, d = m.CreateDelegationTokenRequest, m.DescribeDelegationTokenRequest
    log_in(pair)
    for version in versions("CreateDelegationToken"):
        pair.ask("CreateDelegationToken", version, c(renewers=[c.CreatableRenewers("User", "bob")]))
        pair.ask("CreateDelegationToken", version, c(renewers=[c.CreatableRenewers("Group", "bob")]))
    pair.ask("CreateDelegationToken", 3, c(owner_principal_type="User", owner_principal_name="bob"))
    for version in versions("RenewDelegationToken"):
        pair.ask("RenewDelegationToken", version, m.RenewDelegationTokenRequest(hmac=b"x"))
        pair.ask("ExpireDelegationToken", version, m.ExpireDelegationTokenRequest(hmac=b"x"))
    for version in versions("DescribeDelegationToken"):
        pair.ask("DescribeDelegationToken", version, d(owners=None))
        pair.ask("DescribeDelegationToken", version, d(owners=[]))
    assert pair.errors("DescribeDelegationToken") == {"DELEGATION_TOKEN_AUTH_DISABLED"}
