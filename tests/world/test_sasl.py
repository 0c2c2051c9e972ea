"""Connections of a SASL listener in a whole broker: the order of requests, failures and their delay, sessions."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from ottla.broker import seed
from ottla.broker.apis import apis
from ottla.broker.config.config import ConfigError, SeedError
from ottla.broker.config.users import User
from ottla.broker.later import drive
from ottla.broker.net.dispatch import Dispatcher, Refused
from ottla.broker.net.sasl_gate import SaslGate
from ottla.broker.peer import Peer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support import sasl_world
from ..support.memory_files import MemFiles
from ..support.sasl_world import LISTENER, handshake, secured
from ..support.scram import ScramClient
from ..support.world import Answer, World

KAFKA = "org.apache.kafka.common.security"
ILLEGAL = int(Errors.ILLEGAL_SASL_STATE)
FAILED = int(Errors.SASL_AUTHENTICATION_FAILED)
SETTINGS = sasl_world.SETTINGS | {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    f"{LISTENER}.plain.sasl.jaas.config": (
        f'{KAFKA}.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
    ),
}
IN_SESSIONS = SETTINGS | {f"{LISTENER}.plain.connections.max.reauth.ms": "60000"}
METADATA = m.MetadataRequest(topics=[])
VERSIONS = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")


def authenticate(world: World, token: bytes, version: int = 2) -> Answer:
    return world.send("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=token))


def log_in(world: World, name: str = "alice", password: str = "") -> Any:
    assert handshake(world).reply.error_code == 0
    return authenticate(world, f"\0{name}\0{password or name + '-secret'}".encode()).reply


def delayed(world: World, answer: Answer) -> Any:
    """The answer to a failed authentication, which comes after 100 ms and ends the connection."""
    world.pass_ms(99)
    assert not answer.done
    world.pass_ms(1)
    assert answer.done
    assert answer.closed
    return answer.reply


def raw(world: World, token: bytes) -> list[tuple[bytes | None, bool]]:
    found: list[tuple[bytes | None, bool]] = []
    world.dispatcher.handle(
        world.peer,
        memoryview(token),
        lambda reply, end: found.append((None if reply is None else bytes(reply.head[4:]), end)),
    )
    return found


# the order


@pytest.mark.parametrize("asks_for_versions", [False, True])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_client_logs_in(asks_for_versions: bool, version: int) -> None:
    world = secured(SETTINGS)
    if asks_for_versions:
        assert world.send("ApiVersions", 3, VERSIONS).reply.error_code == 0
        assert world.peer.software == ("test", "1")
    assert handshake(world).reply.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert world.peer.principal == "User:ANONYMOUS"
    reply = authenticate(world, b"\0alice\0alice-secret", version).reply
    assert (reply.error_code, reply.auth_bytes, reply.session_lifetime_ms) == (0, b"", 0)
    assert world.peer.principal == "User:alice"
    assert not isinstance(world.dispatcher, SaslGate)
    assert world.ask("Metadata", 12, METADATA).controller_id == 1


def test_tokens_without_headers_follow_a_handshake_of_version_0() -> None:
    world = secured(SETTINGS)
    handshake(world, version=0)
    assert raw(world, b"\0alice\0alice-secret") == [(b"", False)]
    assert world.peer.principal == "User:alice"


@pytest.mark.parametrize(("token", "at_once"), [(b"\0alice\0wrong", False), (b"", False), (b"n,,n=x,r=y", True)])
def test_a_token_without_headers_that_is_wrong_ends_the_connection(token: bytes, at_once: bool) -> None:
    world = secured(SETTINGS)
    handshake(world, "SCRAM-SHA-256" if at_once else "PLAIN", version=0)
    found = raw(world, token)
    assert found == ([(None, True)] if at_once else [])
    world.pass_ms(100)
    assert found == [(None, True)]


def test_other_requests_before_the_handshake_end_the_connection() -> None:
    for name, version, request in (
        ("Metadata", 12, METADATA),
        ("SaslAuthenticate", 2, m.SaslAuthenticateRequest()),
        ("ApiVersions", 3, VERSIONS),
    ):
        world = secured(SETTINGS)
        world.send("ApiVersions", 3, VERSIONS)
        with pytest.raises(Refused):
            world.send(name, version, request)
    with pytest.raises(Refused):
        raw(secured(SETTINGS), b"\x60" * 20)
    with pytest.raises(Refused):
        raw(secured(SETTINGS), b"")


def test_invalid_or_unknown_versions_of_api_versions_are_answered_and_do_not_count() -> None:
    world = secured(SETTINGS)
    assert world.send("ApiVersions", 3, m.ApiVersionsRequest()).reply.error_code == Errors.INVALID_REQUEST
    assert raw(world, b"\0\x12\0\x63" + bytes(4) + b"\xff\xff\0")[0][0] is not None
    assert world.send("ApiVersions", 3, VERSIONS).reply.error_code == 0
    assert handshake(world).reply.error_code == 0


def test_the_cluster_that_a_client_expects_is_not_compared_before_it_is_known() -> None:
    expected = m.ApiVersionsRequest(
        client_software_name="test", client_software_version="1", cluster_id="other", node_id=9
    )
    world = secured(SETTINGS)
    assert world.send("ApiVersions", 5, expected).reply.error_code == 0
    log_in(world)
    assert world.send("ApiVersions", 5, expected).reply.error_code == Errors.REBOOTSTRAP_REQUIRED


@pytest.mark.parametrize("version", [0, 1])
def test_an_unknown_mechanism_is_refused_with_those_that_are_enabled(version: int) -> None:
    world = secured(SETTINGS)
    reply = delayed(world, handshake(world, "GSSAPI", version))
    assert reply.error_code == Errors.UNSUPPORTED_SASL_MECHANISM
    assert reply.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]


def test_other_requests_during_the_exchange_are_refused_with_their_own_errors() -> None:
    for name, version, request in (
        ("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN")),
        ("ApiVersions", 3, VERSIONS),
        ("ListGroups", 4, m.ListGroupsRequest()),
    ):
        world = secured(SETTINGS)
        handshake(world)
        assert delayed(world, world.send(name, version, request)).error_code == ILLEGAL
        assert world.peer.principal == "User:ANONYMOUS"


def test_what_comes_after_the_exchange_out_of_order_is_refused_and_the_connection_goes_on() -> None:
    world = secured(SETTINGS)
    log_in(world)
    assert handshake(world).reply.error_code == ILLEGAL
    answer = authenticate(world, b"\0alice\0alice-secret")
    assert answer.reply.error_code == ILLEGAL
    assert answer.reply.error_message == "SaslAuthenticate request received after successful authentication"
    assert not answer.closed


def test_a_wrong_password_is_answered_after_a_delay() -> None:
    world = secured(SETTINGS)
    handshake(world)
    reply = delayed(world, authenticate(world, b"\0alice\0wrong"))
    assert (reply.error_code, reply.error_message) == (FAILED, "Authentication failed: Invalid username or password")
    assert world.broker.metrics.authentications == {("AUTH", "failed_authentication"): 1}


def test_log_ins_are_in_the_audit_log() -> None:
    """Also those that fail, with the reason that only the log has."""
    world = secured(SETTINGS)
    noted: list[tuple[str, str, str | None]] = []

    class Notes:
        def right(self, *decision: object) -> None:
            raise AssertionError("no authorizer decides")

        def login(self, peer: Peer, mechanism: str, reason: str | None) -> None:
            noted.append((peer.principal, mechanism, reason))

    world.broker.audit = Notes()
    log_in(world, password="wrong")
    assert [(who, how, bool(why)) for who, how, why in noted] == [("User:ANONYMOUS", "PLAIN", True)]
    noted.clear()
    again = secured(SETTINGS)
    again.broker.audit = world.broker.audit
    log_in(again)
    assert noted == [("User:alice", "PLAIN", None)]


def test_a_client_that_leaves_during_the_delay_ends_it() -> None:
    world = secured(SETTINGS)
    handshake(world)
    answer = authenticate(world, b"\0alice\0wrong")
    answer.waiting.cancel()
    world.pass_ms(1000)
    assert not answer.done


# SCRAM


def credential(name: str, password: str, mechanism: int = 1) -> m.AlterUserScramCredentialsRequest:
    salted = hashlib.pbkdf2_hmac("sha256" if mechanism == 1 else "sha512", password.encode(), b"salt", 4096)
    up = m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=4096, salt=b"salt", salted_password=salted
    )
    return m.AlterUserScramCredentialsRequest(upsertions=[up])


def scram(world: World, mechanism: str, name: str, password: str) -> Any:
    client = ScramClient(mechanism, name, password)
    handshake(world, mechanism)
    answer = authenticate(world, client.first())
    if not answer.done:
        return delayed(world, answer)
    answer = authenticate(world, client.final(answer.reply.auth_bytes))
    if not answer.done:
        return delayed(world, answer)
    client.verify(answer.reply.auth_bytes)
    return answer.reply


def put(world: World, request: m.AlterUserScramCredentialsRequest) -> None:
    """Over a connection of another listener."""
    answer = Answer()
    gate, world.dispatcher = world.dispatcher, Dispatcher(world.broker, apis())
    answer = world.send("AlterUserScramCredentials", 0, request, Peer("OTHER", "127.0.0.1:2"))
    world.dispatcher = gate
    world.pass_ms(100)
    assert [one.error_code for one in answer.reply.results] == [0]


@pytest.mark.parametrize(("mechanism", "number"), [("SCRAM-SHA-256", 1), ("SCRAM-SHA-512", 2)])
def test_scram_takes_the_credentials_of_the_metadata(mechanism: str, number: int) -> None:
    world = secured(SETTINGS)
    put(world, credential("carol", "pencil", number))
    assert scram(world, mechanism, "carol", "pencil").error_code == 0
    assert world.peer.principal == "User:carol"


@pytest.mark.parametrize(("name", "password"), [("carol", "wrong"), ("nobody", "pencil"), ("alice", "alice-secret")])
def test_scram_does_not_say_what_is_wrong(name: str, password: str) -> None:
    world = secured(SETTINGS)
    put(world, credential("carol", "pencil"))
    reply = scram(world, "SCRAM-SHA-256", name, password)
    assert (reply.error_code, reply.error_message) == (
        FAILED,
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256",
    )


def test_a_deleted_credential_does_not_let_in() -> None:
    world = secured(SETTINGS)
    put(world, credential("carol", "pencil"))
    gone = m.AlterUserScramCredentialsRequest.ScramCredentialDeletion(name="carol", mechanism=1)
    put(world, m.AlterUserScramCredentialsRequest(deletions=[gone]))
    assert scram(world, "SCRAM-SHA-256", "carol", "pencil").error_code == FAILED


# sessions


def test_a_session_ends_unless_the_client_authenticates_again() -> None:
    world = secured(IN_SESSIONS)
    assert log_in(world).session_lifetime_ms == 60_000
    world.pass_ms(59_000)
    assert log_in(world).session_lifetime_ms == 60_000
    world.pass_ms(60_000)
    world.ask("Metadata", 12, METADATA)
    world.pass_ms(1)
    with pytest.raises(Refused, match="expired"):
        world.send("Metadata", 12, METADATA)
    assert world.broker.metrics.authentications == {
        ("AUTH", "successful_authentication"): 1,
        ("AUTH", "successful_reauthentication"): 1,
        ("AUTH", "expired_connections_killed_count"): 1,
    }
    assert world.broker.metrics.reauthentication_ms["AUTH"].count == 1


@pytest.mark.parametrize(("handshakes", "version"), [(0, None), (1, 0), (1, 1)])
def test_clients_that_cannot_authenticate_again_are_counted(handshakes: int, version: int | None) -> None:
    world = secured(SETTINGS)
    handshake(world, version=handshakes)
    token = b"\0alice\0alice-secret"
    if version is None:
        raw(world, token)
    else:
        world.ask("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=token))
    counted = dict(world.broker.metrics.authentications)
    assert counted.pop(("AUTH", "successful_authentication")) == 1
    assert counted == ({} if version == 1 else {("AUTH", "successful_authentication_no_reauth"): 1})


def test_a_client_may_authenticate_again_after_its_session() -> None:
    world = secured(IN_SESSIONS)
    log_in(world)
    world.pass_ms(100_000)
    assert log_in(world).error_code == 0
    world.ask("Metadata", 12, METADATA)


def test_a_session_is_not_begun_again_more_often_than_once_a_second() -> None:
    world = secured(IN_SESSIONS)
    log_in(world)
    log_in(world)
    assert handshake(world).reply.error_code == ILLEGAL
    world.pass_ms(1000)
    assert log_in(world).error_code == 0


def test_nothing_else_is_served_while_a_client_authenticates_again() -> None:
    world = secured(IN_SESSIONS)
    log_in(world)
    handshake(world)
    assert delayed(world, world.send("ListGroups", 4, m.ListGroupsRequest())).error_code == ILLEGAL


def test_a_client_cannot_become_another_one() -> None:
    world = secured(IN_SESSIONS)
    log_in(world)
    handshake(world)
    reply = delayed(world, authenticate(world, b"\0bob\0bob-secret"))
    words = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert (reply.error_code, reply.error_message) == (FAILED, words)
    assert world.peer.principal == "User:alice"
    assert world.broker.metrics.authentications == {
        ("AUTH", "successful_authentication"): 1,
        ("AUTH", "failed_reauthentication"): 1,
    }


def test_another_mechanism_ends_the_connection_after_the_next_token() -> None:
    world = secured(IN_SESSIONS)
    log_in(world)
    assert handshake(world, "SCRAM-SHA-256").reply.error_code == 0
    assert delayed(world, authenticate(world, b"n,,n=alice,r=x")) is None


def test_an_unknown_mechanism_ends_a_session_at_once() -> None:
    world = secured(IN_SESSIONS)
    log_in(world)
    answer = handshake(world, "GSSAPI")
    assert answer.closed
    assert answer.reply is None


# who is there


def test_acls_decide_about_the_user_that_logged_in() -> None:
    r = m.CreateTopicsRequest
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    codes = []
    for name in ("alice", "bob"):
        world = secured({**SETTINGS, "authorizer.class.name": authorizer, "super.users": "User:alice"})
        log_in(world, name)
        topic = r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        codes.append(world.ask("CreateTopics", 7, r(topics=[topic])).topics[0].error_code)
    assert codes == [0, Errors.TOPIC_AUTHORIZATION_FAILED]


# the configuration


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("sasl.enabled.mechanisms", "PLAIN,NOPE", "ottla has no SASL mechanism 'NOPE'"),
        ("sasl.enabled.mechanisms", "", "No SASL mechanisms are enabled"),
        (f"{LISTENER}.plain.sasl.jaas.config", "x.Y required;", "No LoginModule found for x.Y"),
        (f"{LISTENER}.plain.sasl.jaas.config", "x.Y required a", "Value not specified for key 'a' in JAAS config"),
        (f"{LISTENER}.plain.sasl.server.callback.handler.class", "my.Handler", "ottla cannot load Java classes"),
        ("ottla.users", "alice", "entry 1 must be NAME:PASSWORD"),
    ],
)
def test_wrong_settings_are_refused(key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        World(**SETTINGS | {key: value})


def test_plain_without_users_is_refused() -> None:
    settings = {key: value for key, value in SETTINGS.items() if "jaas" not in key}
    with pytest.raises(ConfigError, match="PLAIN has no users"):
        World(**settings)


def test_users_get_credentials_that_stay_as_long_as_their_passwords() -> None:
    def records(*entries: str, files: MemFiles | None = None) -> tuple[dict[Any, Any], World]:
        world = World(files, **{"ottla.users": ";".join(entries)})
        planting = drive(seed.plant_users(world.broker))
        while not planting.done:
            world.pass_ms(1)
        assert planting.error is None
        return dict(world.broker.image.credentials), world

    first, world = records("alice:a:PLAIN", "bob:b", "carol:c:SCRAM-SHA-512")
    assert sorted(first) == [("bob", 1), ("bob", 2), ("carol", 2)]
    world.broker.stop()
    second, _ = records("bob:b:SCRAM-SHA-256", "carol:changed:SCRAM-SHA-512", files=world.files)
    assert {name for name in first if first[name] != second[name]} == {("carol", 2)}
    assert sorted(second) == sorted(first)


def test_a_seed_file_names_users(tmp_path: Path) -> None:
    path = tmp_path / "seed.yaml"
    path.write_text("users:\n  - {name: alice, password: a}\n  - {name: bob, password: 7, mechanisms: [plain]}\n")
    assert seed.load(str(path)).users == [User("alice", "a"), User("bob", "7", ("PLAIN",))]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("users: [secret]", "users[0] must be a mapping"),
        ("users: [{name: alice}]", "users[0] needs a name and a password"),
        ("users: [{password: secret}]", "users[0] needs a name and a password"),
        ("users: [{name: alice, password: secret, mechanisms: PLAIN}]", "users[0].mechanisms must be a list"),
        ("users: [{name: alice, password: secret, mechanisms: [GSSAPI]}]", "users[0]: GSSAPI takes no password"),
        ("users: [{name: a, password: secret}, {name: a, password: secret}]", "the user 'a' is named twice"),
        ("users: [{name: alice, password: secret", "the file is not valid YAML"),
    ],
)
def test_wrong_users_of_a_seed_file_are_refused_without_their_passwords(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "seed.yaml"
    path.write_text(text)
    with pytest.raises(SeedError) as refused:
        seed.load(str(path))
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_users_need_no_other_setting() -> None:
    settings = {key: value for key, value in SETTINGS.items() if "sasl" not in key}
    world = secured({**settings, "ottla.users": "alice:alice-secret:PLAIN; bob:bob-secret:SCRAM-SHA-256"})
    assert handshake(world).reply.mechanisms == ["PLAIN", "SCRAM-SHA-512", "SCRAM-SHA-256"]
    assert authenticate(world, b"\0alice\0alice-secret").reply.error_code == 0
