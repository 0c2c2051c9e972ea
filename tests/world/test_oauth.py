"""Clients with tokens in a whole broker: the session ends with the token; URLs of keys must be allowed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ottla.broker.config.config import ALLOWED_URLS, ConfigError
from ottla.broker.config.sources import build, from_environment
from ottla.broker.lab.http import Request, Response
from ottla.broker.later import Later
from ottla.broker.net.dispatch import Refused
from ottla.broker.security import secured_jwt
from ottla.broker.security.oauthbearer import SECURED_HANDLER
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.lab import LabWorld
from ..support.oauth import claims, first, jwk, signed, signing_key, unsecured
from ..support.sasl_world import LISTENER, handshake, secured
from ..support.sasl_world import SETTINGS as LISTENERS
from ..support.world import Answer, World

SETTINGS = LISTENERS | {"sasl.enabled.mechanisms": "OAUTHBEARER"}
METADATA = m.MetadataRequest(topics=[])


def log_in(world: World, seconds: int, name: str = "alice") -> Answer:
    """Logs in with a token that expires in some seconds."""
    assert handshake(world, "OAUTHBEARER").reply.error_code == 0
    now = world.broker.schedule.now_ms() // 1000
    message = first(unsecured(claims(sub=name, iat=now - 1, exp=now + seconds)))
    return world.send("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=message))


@pytest.mark.parametrize(("configured", "lifetime_ms"), [("0", 90_000), ("60000", 60_000), ("100000", 90_000)])
def test_a_session_ends_with_its_token(configured: str, lifetime_ms: int) -> None:
    world = secured(SETTINGS | {f"{LISTENER}.oauthbearer.connections.max.reauth.ms": configured})
    reply = log_in(world, 90).reply
    assert (reply.error_code, reply.session_lifetime_ms) == (0, lifetime_ms)
    assert world.peer.principal == "User:alice"
    world.pass_ms(lifetime_ms - 1)
    assert world.ask("Metadata", 12, METADATA).controller_id == 1
    world.pass_ms(2)
    with pytest.raises(Refused):
        world.send("Metadata", 12, METADATA)


def test_a_client_brings_another_token_in_time() -> None:
    world = secured(SETTINGS)
    log_in(world, 90)
    world.pass_ms(80_000)
    assert log_in(world, 90).reply.session_lifetime_ms == 90_000
    world.pass_ms(80_000)
    assert world.ask("Metadata", 12, METADATA).controller_id == 1


def test_the_error_of_a_token_comes_first_and_the_failure_after_the_answer_of_the_client() -> None:
    world = secured(SETTINGS)
    reply = log_in(world, -1).reply
    assert (reply.error_code, reply.auth_bytes) == (0, b'{"status":"invalid_token"}')
    answer = world.send("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\x01"))
    world.pass_ms(100)
    assert answer.closed
    assert answer.reply.error_code == Errors.SASL_AUTHENTICATION_FAILED
    assert answer.reply.error_message == '{"status":"invalid_token"}'


@pytest.mark.parametrize(
    ("url", "allowed", "words"),
    [
        (
            "file:///keys.json",
            "",
            "Invalid value file:///keys.json for configuration sasl.oauthbearer.jwks.endpoint.url: The URL cannot be "
            f"accessed due to restrictions. Update the system property '{ALLOWED_URLS}' to allow the URL to be "
            "accessed.",
        ),
        ("http://127.0.0.1:1/keys", "http://127.0.0.1:1/", "The URL cannot be accessed due to restrictions."),
        ("file:///nowhere/keys.json", " http://x , file:///nowhere/keys.json ", "the JWKS cannot be read: "),
        (
            "foo",
            "foo",
            "The OAuth configuration option sasl.oauthbearer.jwks.endpoint.url contains a URL (foo) that is malformed: "
            "no protocol: foo",
        ),
        ("ftp://x/keys", "ftp://x/keys", '(ftp); only "http", "https", and "file" protocol are supported'),
    ],
)
def test_only_urls_that_are_allowed_are_read(url: str, allowed: str, words: str) -> None:
    settings = {
        f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": SECURED_HANDLER,
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": "issuer",
        "sasl.oauthbearer.expected.audience": "kafka",
        ALLOWED_URLS: allowed,
    }
    with pytest.raises(ConfigError) as failed:
        secured(SETTINGS | settings)
    assert words in str(failed.value)


def test_javas_system_properties_count() -> None:
    """As in compose files for Kafka's image."""
    options = f"-Xmx1G -D{ALLOWED_URLS}=https://login.example.com/keys,file:///x -Dother=1"
    given = {"KAFKA_OPTS": options, "KAFKA_NODE_ID": "2"}
    config = build(from_environment(given))
    assert config[ALLOWED_URLS] == "https://login.example.com/keys,file:///x"
    assert config.warnings == []


def grant(lab: LabWorld, password: str) -> Response | Later[Response]:
    form = {"host": "localhost", "content-type": "application/x-www-form-urlencoded"}
    body = f"grant_type=client_credentials&client_id=alice&client_secret={password}".encode()
    return lab.server.answer(Request("POST", "/oauth/token", body, "127.0.0.1", form))


def test_a_wrong_secret_is_answered_later_and_too_many_are_counted_and_refused() -> None:
    handler = {f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": SECURED_HANDLER}
    world = secured(SETTINGS | handler | {"ottla.users": "alice:secret", "ottla.oauth.failures.max": "2"})
    lab = LabWorld(world)
    right = grant(lab, "secret")
    assert isinstance(right, Response)
    assert right.status == 200
    for _ in range(2):
        wrong = grant(lab, "guess")
        assert isinstance(wrong, Later)
        world.pass_ms(99)
        assert not wrong.done
        world.pass_ms(2)
        assert wrong.get().status == 401
    refused = grant(lab, "secret")
    assert isinstance(refused, Response)
    assert refused.status == 429
    assert dict(world.broker.limits.counts) == {"wrong-secrets": 1}


def test_a_request_without_the_token_of_the_lab_is_answered_later() -> None:
    world = secured(SETTINGS | {"ottla.lab.token": "secret"})
    wrong = LabWorld(world).send("GET /v1/state")
    assert isinstance(wrong, Later)
    world.pass_ms(101)
    assert wrong.get().status == 401


# each key of the validator


def starts(tmp_path: Path, **settings: str) -> World:
    """A broker that validates tokens with the key of a file. `settings`: keys of OAUTHBEARER."""
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [jwk(signing_key(), kid="one")]}))
    url = file.as_uri()
    given = {"jwks.endpoint.url": url, "expected.issuer": "me", "expected.audience": "kafka", **settings}
    own = {f"sasl.oauthbearer.{name}": value for name, value in given.items() if value}
    handler = {f"{LISTENER}.oauthbearer.sasl.server.callback.handler.class": SECURED_HANDLER}
    return secured(SETTINGS | handler | own | {ALLOWED_URLS: given["jwks.endpoint.url"]})


def is_let_in(world: World, **changed: object) -> bool:
    assert handshake(world, "OAUTHBEARER").reply.error_code == 0
    now = world.broker.schedule.now_ms() // 1000
    token = signed(claims(**{"iat": now - 90, "exp": now + 90, "iss": "me", "aud": "kafka", **changed}))
    message = m.SaslAuthenticateRequest(auth_bytes=first(token))
    return bool(world.send("SaslAuthenticate", 2, message).reply.auth_bytes == b"")


@pytest.mark.parametrize(
    ("key", "value", "changed"),
    [
        ("sub.claim.name", "user", {"sub": None, "user": "alice"}),
        ("scope.claim.name", "scp", {"scope": ["twice", "twice"]}),
        ("clock.skew.seconds", "3600", {"exp": 1_699_999_000, "iat": 1_699_998_000}),
        ("expected.issuer", "you", {"iss": "you"}),
        ("expected.audience", "x,shop", {"aud": "shop"}),
    ],
)
def test_a_key_of_the_validator_lets_a_token_in(
    tmp_path: Path, key: str, value: str, changed: dict[str, object]
) -> None:
    assert is_let_in(starts(tmp_path))
    assert not is_let_in(starts(tmp_path), **changed)
    assert is_let_in(starts(tmp_path, **{key: value}), **changed)


@pytest.mark.parametrize(
    ("expected", "allowed"),
    [("expected.issuer", "allow.unverified.issuer"), ("expected.audience", "allow.unverified.audience")],
)
def test_what_is_not_verified_must_be_allowed(tmp_path: Path, expected: str, allowed: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        starts(tmp_path, **{expected: ""})
    assert is_let_in(starts(tmp_path, **{expected: "", allowed: "true"}))


def test_another_validator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot load Java classes"):
        starts(tmp_path, **{"jwt.validator.class": "org.example.Validator"})


def test_keys_are_read_again_as_often_as_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, ...]] = []

    class Endpoint:
        keys = None

        def __init__(self, *arguments: object) -> None:
            made.append(arguments[-3:])

        def refresh_for(self, kid: str) -> None: ...

    monkeypatch.setattr(secured_jwt, "JwksEndpoint", Endpoint)
    url = "http://127.0.0.1:1/keys"
    times = {
        "jwks.endpoint.refresh.ms": "7000",
        "jwks.endpoint.retry.backoff.ms": "11",
        "jwks.endpoint.retry.backoff.max.ms": "13",
    }
    starts(tmp_path, **{"jwks.endpoint.url": url, **times})
    assert made == [(7000, 11, 13)]
