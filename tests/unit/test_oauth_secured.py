"""Signed tokens without connections: keys, claims with the clock as an argument, the endpoint of keys, own tokens."""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from ottla.broker.clock import VirtualSchedule
from ottla.broker.config.users import User
from ottla.broker.lab.access import refusal, refused_content_type
from ottla.broker.lab.http import Request
from ottla.broker.security import jwks_endpoint
from ottla.broker.security.guesses import REMEMBERED_MAX, Guesses
from ottla.broker.security.jwks import KeySet
from ottla.broker.security.jwks_endpoint import JwksEndpoint, JwksFile
from ottla.broker.security.secured_jwt import SecuredValidator
from ottla.broker.security.token_issuer import LIFETIME_S, TokenIssuer
from ottla.broker.turn import Turn
from ottla.coordinator.security.oauth_token import InvalidToken, Token

from ..support.oauth import claims, jwk, signed, signing_key

NOW_MS = 1_000_000


def jwks(*kids: str) -> bytes:
    return json.dumps({"keys": [jwk(signing_key(), kid=kid) for kid in kids]}).encode()


def validator(skew_s: int = 0) -> SecuredValidator:
    keys = KeySet(jwks("one"))
    return SecuredValidator(lambda: keys, skew_s=skew_s)


@pytest.mark.parametrize(
    ("skew_s", "now_ms", "valid"), [(0, 1_059_999, True), (0, 1_060_000, False), (5, 1_064_999, True)]
)
def test_a_token_is_valid_until_exp(skew_s: int, now_ms: int, valid: bool) -> None:
    token = signed(claims(iat=1000, exp=1060))
    if valid:
        assert validator(skew_s).validate(token, now_ms) == Token("alice", 1_060_000)
    else:
        with pytest.raises(InvalidToken):
            validator(skew_s).validate(token, now_ms)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"keys":{}}', b"\xff", b"{" * 5000])
def test_what_is_no_jwks(data: bytes) -> None:
    with pytest.raises(ValueError, match="JWKS"):
        KeySet(data)


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "kid": "one"},
        {"kty": "oct", "k": 1, "kid": "one"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "one"},
        {"kty": "RSA", "kid": "one"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": ["EC"], "crv": {}},
        {"kty": "EC", "crv": "P-256", "key_ops": 1},
    ],
)
def test_keys_that_verify_nothing_are_left_out(key: dict[str, object]) -> None:
    assert KeySet(json.dumps({"keys": [key]}).encode()).keys == []


def test_the_key_of_a_secret_is_never_a_public_key() -> None:
    for algorithm in ("HS256", "none", "None", "", "ES256K", 1, None):
        with pytest.raises(InvalidToken):
            validator().validate(signed(alg=algorithm), NOW_MS)


Read = Callable[[str, ssl.SSLContext | None], bytes]


def endpoint(monkeypatch: pytest.MonkeyPatch, read: Read) -> tuple[JwksEndpoint, VirtualSchedule]:
    monkeypatch.setattr(jwks_endpoint, "read_url", read)
    schedule = VirtualSchedule()
    return JwksEndpoint("http://127.0.0.1/keys", None, Turn(schedule), 3_600_000, 100, 1000), schedule


def test_keys_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    given, reads = [b"", jwks("two"), jwks("one")], []

    def read(url: str, _: ssl.SSLContext | None) -> bytes:
        reads.append(url)
        return given.pop() if len(given) > 1 else given[0]

    found, schedule = endpoint(monkeypatch, read)
    assert [one.kid for one in found.keys.keys] == ["one"]
    schedule.advance(3_600_100)
    assert [one.kid for one in found.keys.keys] == ["two"]
    assert len(reads) == 2
    schedule.advance(3_605_000)
    assert [one.kid for one in found.keys.keys] == ["two"], "a failed read changes nothing"
    assert len(reads) == 2 + 5, "after 100, 200, 400 and 800 ms again"


def test_a_missing_key_is_looked_for_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def read(url: str, _: ssl.SSLContext | None) -> bytes:
        reads.append(url)
        return jwks("one")

    found, schedule = endpoint(monkeypatch, read)
    for kid in ("x", "x", "y" * 1001):
        found.refresh_for(kid)
        schedule.advance(100)
    assert len(reads) == 2
    schedule.advance(60_000)
    found.refresh_for("x")
    schedule.advance(100)
    assert len(reads) == 3


def test_a_file_of_keys_is_bounded(tmp_path: Path) -> None:
    file = tmp_path / "jwks.json"
    file.write_bytes(bytes(jwks_endpoint.BYTES_MAX + 1))
    with pytest.raises(ValueError, match="larger"):
        JwksFile(str(file))
    with pytest.raises(ValueError, match="cannot be read"):
        JwksFile(str(tmp_path / "missing"))


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "jwks.json"

    def write(data: bytes, at: int) -> None:
        file.write_bytes(data)
        os.utime(file, (at, at))

    write(jwks("one"), 1)
    keys = JwksFile(str(file))
    before = keys.keys()
    assert keys.keys() is before, "it is read once"
    write(jwks("two"), 2)
    assert [one.kid for one in keys.keys().keys] == ["two"]
    write(b"no JWKS", 3)
    file_of_nothing = keys.keys()
    assert [one.kid for one in file_of_nothing.keys] == ["two"]
    assert keys.keys() is file_of_nothing
    assert len(caplog.messages) == 1, "what is wrong is said once for each change"
    file.unlink()
    assert [one.kid for one in keys.keys().keys] == ["two"]


# own tokens

GRANT = b"grant_type=client_credentials"


PEER = "127.0.0.1"


def issuer(clock: VirtualSchedule | None = None) -> TokenIssuer:
    users = {"alice": User("alice", "a secret:+%"), "bob": User("bob", "b")}
    guesses = Guesses(3, (clock or VirtualSchedule()).monotonic_ms)
    return TokenIssuer(users, lambda: NOW_MS, lambda: bytes(16), guesses)


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


@pytest.mark.parametrize("authorization", [basic("alice:a secret:+%"), basic("alice:a+secret%3A%2B%25")])
def test_a_token_is_granted_for_the_password(authorization: str) -> None:
    own = issuer()
    keys = own.opened("me", ("kafka",))
    status, reply = own.grant(PEER, authorization, GRANT + b"&scope=kafka+more")
    assert (status, reply["token_type"], reply["expires_in"]) == (200, "Bearer", LIFETIME_S)
    taken = SecuredValidator(lambda: keys, ("kafka",), "me").validate(str(reply["access_token"]), NOW_MS)
    assert taken == Token("alice", NOW_MS + LIFETIME_S * 1000)
    assert b'"d"' not in (own.jwks or b"")


@pytest.mark.parametrize(
    ("authorization", "form", "error"),
    [
        (basic("alice:x"), GRANT, "invalid_client"),
        (basic("nobody:\0"), GRANT, "invalid_client"),
        (basic(":"), GRANT, "invalid_client"),
        ("Basic *", GRANT, "invalid_client"),
        ("", GRANT, "invalid_client"),
        ("", GRANT + b"&client_id=bob&client_secret=x", "invalid_client"),
        (basic("bob:b"), b"", "unsupported_grant_type"),
        (basic("bob:b"), b"grant_type=password", "unsupported_grant_type"),
        (basic("bob:b"), b"&".join([b"a=b"] * 30), "invalid_request"),
        (basic("bob:b"), b"\xff", "invalid_request"),
    ],
)
def test_requests_without_the_right_password_are_refused(authorization: str, form: bytes, error: str) -> None:
    own = issuer()
    own.opened(None, ())
    status, reply = own.grant(PEER, authorization, form)
    assert (status, reply["error"]) == (401 if error == "invalid_client" else 400, error)


def test_who_was_wrong_too_often_waits_with_the_right_secret_too() -> None:
    clock = VirtualSchedule()
    own = issuer(clock)
    own.opened(None, ())

    def grant(text: str, address: str = PEER) -> int:
        return own.grant(address, basic(text), GRANT).status

    assert [grant("bob:x") for _ in range(5)] == [401, 401, 401, 429, 429]
    assert grant("bob:b") == 429, "an answer would say that it is right"
    assert "too many wrong" in str(own.grant(PEER, basic("bob:b"), GRANT).reply["error_description"])
    assert (grant("bob:b", "127.0.0.2"), grant("alice:a secret:+%")) == (200, 200), "others are not concerned"
    clock.advance(20_000)
    assert (grant("bob:b"), grant("bob:x"), grant("bob:b")) == (200, 401, 429), "one more in a third of the minute"


def test_wrong_secrets_of_many_names_are_counted_by_address() -> None:
    clock = VirtualSchedule()
    own = issuer(clock)
    own.opened(None, ())
    found = [own.grant(PEER, basic(f"user-{n}:x"), GRANT).status for n in range(20)]
    assert found == [401] * 12 + [429] * 8
    clock.advance(60_000)
    assert own.grant(PEER, basic("bob:b"), GRANT).status == 200


def test_guessers_of_longest_ago_are_forgotten() -> None:
    guesses = Guesses(1, VirtualSchedule().monotonic_ms)
    for number in range(REMEMBERED_MAX):
        guesses.wrong(f"address-{number}", "x" * 1000)
    assert guesses.wait_ms("address-0", "bob") == 0
    assert guesses.wait_ms(f"address-{REMEMBERED_MAX - 1}", "x" * 1000) == 60_000
    assert len(guesses._levels) == REMEMBERED_MAX


def test_own_tokens_have_one_issuer() -> None:
    own = issuer()
    assert own.jwks is None
    own.opened("me", ())
    with pytest.raises(ValueError, match="one issuer, me"):
        own.opened("other", ())


@pytest.mark.parametrize(
    ("content_type", "is_taken"), [("application/x-www-form-urlencoded", True), ("application/json", False)]
)
def test_the_token_endpoint_takes_forms_and_wants_no_token_of_the_lab(content_type: str, is_taken: bool) -> None:
    request = Request("POST", "/oauth/token", b"", "127.0.0.1", {"content-type": content_type})
    assert refusal(request, False, (), "lab-token") is None
    assert (refused_content_type(request) is None) == is_taken
