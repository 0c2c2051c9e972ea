"""SASL without connections: the mechanisms, by the RFCs' examples and by what Kafka answers; JAAS lines; users."""

from __future__ import annotations

import hashlib
import hmac
import string
from base64 import b64decode, b64encode

import pytest
from ottla.broker.config.jaas import parse_jaas
from ottla.broker.config.users import PASSWORD_MECHANISMS, User, parse_users
from ottla.broker.security.plain import Plain
from ottla.coordinator.security.sasl import SaslFailed
from ottla.coordinator.security.scram import (
    MECHANISMS,
    ScramCredential,
    ScramIdentity,
    ScramServer,
    credential_of,
    nonce_of,
    salted_password,
)
from ottla.protocol.errors import MalformedMessage

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def credential(mechanism: str, password: str = "pencil", iterations: int = 4096) -> ScramCredential:
    digest = MECHANISMS[mechanism].digest
    return credential_of(digest, salted_password(digest, password, SALT, iterations), SALT, iterations)


def server(mechanism: str = "SCRAM-SHA-256", nonce: str = SERVER_NONCE, name: str = "user") -> ScramServer:
    def find(found: str, is_token: bool) -> ScramIdentity | None:
        if is_token:
            return ScramIdentity(credential(mechanism), "owner", 7) if found == "token" else None
        return ScramIdentity(credential(mechanism), name) if found == name else None

    return ScramServer(MECHANISMS[mechanism], nonce, find)


def server_id(one: ScramServer) -> str | None:
    return one.authorization_id


def proof(mechanism: str, bare: str, reply: bytes, without_proof: str, password: str = "pencil") -> str:
    digest = MECHANISMS[mechanism].digest
    salted = salted_password(digest, password, SALT, 4096)
    key = hmac.digest(salted, b"Client Key", digest)
    signed = f"{bare},{reply.decode()},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(digest, key).digest(), signed, digest)
    return b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()


def finish(one: ScramServer, bare: str, header: str = "n,,", password: str = "pencil") -> bytes:
    reply = one.evaluate((header + bare).encode())
    without = f"c={b64encode(header.encode()).decode()},{reply.decode().partition(',')[0]}"
    return one.evaluate(f"{without},p={proof(one.mechanism.name, bare, reply, without, password)}".encode())


# SCRAM


def test_scram_sha_256_is_that_of_the_rfc() -> None:
    one = server()
    first = one.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert one.authorization_id is None
    last = one.evaluate(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert last == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (server_id(one), one.expires_at_ms, one.token_authenticated) == ("user", None, False)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    ("bare", "header"),
    [
        ("n=user,r=abc", "n,,"),
        ("n=user,r=abc", "n,a=user,"),
        ("n=user,r=abc,foo=bar", "n,,"),
        ("n=user,r=abc,tokenauth=false", "n,,"),
    ],
)
def test_scram_lets_in_who_knows_the_password(mechanism: str, bare: str, header: str) -> None:
    one = server(mechanism)
    assert finish(one, bare, header).startswith(b"v=")
    assert one.authorization_id == "user"


def test_scram_finds_names_with_a_comma_and_an_equals_sign() -> None:
    one = server(name="a=b,c")
    finish(one, "n=a=3Db=2Cc,r=abc")
    assert one.authorization_id == "a=b,c"


def test_a_name_of_scram_may_be_that_of_a_delegation_token() -> None:
    one = server()
    finish(one, "n=token,r=abc,tokenauth=true")
    assert (one.authorization_id, one.expires_at_ms, one.token_authenticated) == ("owner", 7, True)
    with pytest.raises(SaslFailed):
        server().evaluate(b"n,,n=user,r=abc,tokenauth=true")


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"n,,n=nobody,r=abc",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user",
        "n,,n=usér,r=abc".encode(),
        b"\xff\xfe",
        b"n" * 500_000,
        b"n,,n=" + b"u" * 500_000,
        b"n,,n=" + b"=2C" * 100_000,
        b"n,,n=user,r=abc" + b",x=y" * 100_000 + b",",
    ],
)
def test_scram_refuses_a_first_message_without_saying_why(token: bytes) -> None:
    with pytest.raises(SaslFailed) as refused:
        server().evaluate(token)
    assert refused.value.words is None


def test_scram_refuses_an_authorization_id_of_someone_else() -> None:
    with pytest.raises(SaslFailed) as refused:
        server().evaluate(b"n,a=admin,n=user,r=abc")
    assert refused.value.words == (
        "Authentication failed: Client requested an authorization id that is different from username"
    )


def test_scram_refuses_a_credential_with_few_iterations() -> None:
    mechanism = MECHANISMS["SCRAM-SHA-256"]
    weak = ScramServer(mechanism, "n", lambda *_: ScramIdentity(credential(mechanism.name, iterations=4095), "user"))
    with pytest.raises(SaslFailed):
        weak.evaluate(b"n,,n=user,r=abc")


@pytest.mark.parametrize("change", ["another password", "nonce", "text", "extension after the proof", "nothing"])
def test_scram_refuses_a_final_message(change: str) -> None:
    one = server(nonce="xyz")
    reply = one.evaluate(b"n,,n=user,r=abc")
    without = "c=biws,r=abcxyz" if change != "nonce" else "c=biws,r=abcxy"
    password = "ballpen" if change == "another password" else "pencil"
    final = f"{without},p={proof('SCRAM-SHA-256', 'n=user,r=abc', reply, without, password)}"
    final = {"text": "hello", "extension after the proof": final + ",x=y", "nothing": ""}.get(change, final)
    with pytest.raises(SaslFailed) as refused:
        one.evaluate(final.encode())
    assert refused.value.words is None
    assert one.authorization_id is None


def test_a_proof_of_another_length_ends_the_connection() -> None:
    one = server(nonce="xyz")
    one.evaluate(b"n,,n=user,r=abc")
    with pytest.raises(MalformedMessage):
        one.evaluate(b"c=biws,r=abcxyz,p=AAAA")


def test_an_exchange_that_failed_cannot_be_continued() -> None:
    one = server(nonce="xyz")
    reply = one.evaluate(b"n,,n=user,r=abc")
    with pytest.raises(SaslFailed):
        one.evaluate(b"c=biws,r=abcxyz,p=" + b64encode(bytes(32)))
    without = "c=biws,r=abcxyz"
    with pytest.raises(SaslFailed):
        one.evaluate(f"{without},p={proof('SCRAM-SHA-256', 'n=user,r=abc', reply, without)}".encode())


def test_nonces_are_in_base_36() -> None:
    assert nonce_of(b"\0" * 32) == "0"
    assert nonce_of((36**5 + 35).to_bytes(32, "big")) == "10000z"
    assert len(nonce_of(b"\xff" * 32)) == 26
    assert set(nonce_of(bytes(range(32)))) <= set(string.digits + string.ascii_lowercase)


# PLAIN


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret"])
def test_plain_lets_in_who_knows_the_password(token: bytes) -> None:
    one = Plain({"alice": "secret"}).begin()
    assert one.evaluate(token) == b""
    assert one.authorization_id == "alice"


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"a\0b", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0\xff\xfe\0secret", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_plain_refuses(token: bytes, words: str) -> None:
    one = Plain({"alice": "secret"}).begin()
    with pytest.raises(SaslFailed) as refused:
        one.evaluate(token)
    assert refused.value.words == words
    assert one.authorization_id is None


# JAAS lines


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("a.B required;", {}),
        ('a.B required user_alice="x" user_bob="y z";', {"user_alice": "x", "user_bob": "y z"}),
        ("a.B  Optional\n  user-name='x\"y' ; ", {"user-name": 'x"y'}),
        (r'a.B required p="a\"b\\c\n\x\101";', {"p": 'a"b\\c\nxA'}),
        ("a.B required /* user */ user=x // y\n other=z;", {"user": "x", "other": "z"}),
        ('a.B required user_ä="x" user$=y;', {"user_ä": "x", "user$": "y"}),
    ],
)
def test_a_jaas_line_is_read_as_java_reads_it(text: str, options: dict[str, str]) -> None:
    entry = parse_jaas(text)
    assert (entry.module, entry.options) == ("a.B", options)
    assert not any(value in repr(entry) for value in options.values() if len(value) > 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Login module not specified in JAAS config"),
        ("a.B", "Login module control flag not specified in JAAS config"),
        ("a.B;", "Login module control flag is not available in the JAAS config"),
        ("a.B sometimes;", "Invalid login module control flag 'sometimes' in JAAS config"),
        ("a.B required", "JAAS config entry not terminated by semi-colon"),
        ("a.B required a=b", "JAAS config entry not terminated by semi-colon"),
        ("a.B required a;", "Value not specified for key 'a' in JAAS config"),
        ("a.B required a=;", "Value not specified for key 'a' in JAAS config"),
        ("a.B required a=1;", "Value not specified for key 'a' in JAAS config"),
        ("a.B required 1=a;", "Value not specified for key 'null' in JAAS config"),
        ("a.B required; c.D required;", "JAAS config property contains 2 login modules, should be 1 module"),
    ],
)
def test_a_jaas_line_is_refused_with_kafkas_words(text: str, words: str) -> None:
    with pytest.raises(ValueError, match="JAAS") as refused:
        parse_jaas(text)
    assert str(refused.value) == words


# users


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", []),
        ("alice:x", [User("alice", "x")]),
        (" alice : x ; bob:y\ncarol:z;", [User("alice", "x"), User("bob", "y"), User("carol", "z")]),
        ("alice:a:b", [User("alice", "a:b")]),
        ("alice:x:PLAIN", [User("alice", "x", ("PLAIN",))]),
        ("alice:a:b:plain, scram-sha-256", [User("alice", "a:b", ("PLAIN", "SCRAM-SHA-256"))]),
        ("alice:PLAIN", [User("alice", "PLAIN")]),
    ],
)
def test_users_are_named_in_a_line(text: str, users: list[User]) -> None:
    assert parse_users(text) == users
    assert ("PLAIN", *MECHANISMS) == PASSWORD_MECHANISMS


@pytest.mark.parametrize("text", ["alice", "alice:", ":secret", "alice:secret;alice:secret", "alice:secret;bob"])
def test_wrong_users_are_refused_without_their_passwords(text: str) -> None:
    with pytest.raises(ValueError, match=r"entry|twice") as refused:
        parse_users(text)
    assert "secret" not in str(refused.value)
