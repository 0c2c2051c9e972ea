"""Logging in with unsecured tokens: ottla and Apache Kafka take and refuse the same, with the same errors and words."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.oauth import FAR_AWAY, KAFKA, LONG_AGO, UNSECURED_HEADER, claims, encoded, first, unsecured
from ..support.secured import LISTENER, secured_brokers

pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "connection.failed.authentication.delay.ms": 0,
    f"{LISTENER}.oauthbearer.connections.max.reauth.ms": 60_000,
    f"{LISTENER}.oauthbearer.sasl.jaas.config": (
        f'{KAFKA}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker" '
        'unsecuredValidatorRequiredScope="kafka more" unsecuredValidatorAllowableClockSkewMs="3000";'
    ),
}
GOOD = first(unsecured())
METADATA = m.MetadataRequest(topics=[])
VERSIONS = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")


kafka, ours, settled = secured_brokers(SETTINGS, "OAUTHBEARER", GOOD)


def log_in(pair: Pair, *messages: bytes, version: int = 2) -> None:
    """Begins an exchange, and sends messages until one closes the connection."""
    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="OAUTHBEARER"))
    for one in messages:
        pair.ask("SaslAuthenticate", version, m.SaslAuthenticateRequest(auth_bytes=one))
    pair.ask("Metadata", 12, METADATA)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token(pair: Pair, version: int) -> None:
    log_in(pair, GOOD, version=version)


FIRST_MESSAGES = {
    "nothing": b"",
    "an error seen": b"\x01",
    "not a message": b"\0alice\0alice-secret",
    "not UTF-8": GOOD.replace(b"Bearer", b"\xff\xfe"),
    "channel binding": b"y" + GOOD[1:],
    "the name": first(unsecured(), "alice"),
    "another name": first(unsecured(), "bob"),
    "a name with escapes": first(unsecured(claims(sub="a,b")), "a=2Cb"),
    "another escape": first(unsecured(), "a=2Db"),
    "extensions": first(unsecured(), extensions="one=1\x01two=2 3\r\n\x01"),
    "extensions twice": first(unsecured(), extensions="one=1\x01one=2\x01"),
    "an extension without a value": first(unsecured(), extensions="one=\x01"),
    "an extension with a wrong name": first(unsecured(), extensions="one1=1\x01"),
    "an extension with a wrong value": first(unsecured(), extensions="one=\x02\x01"),
    "another authorization as an extension": first(unsecured(), extensions="auth=x\x01"),
    "the authorization twice": first("x", extensions=f"auth=Bearer {unsecured()}\x01"),
    "no authorization": b"n,,\x01one=1\x01\x01",
    "no pairs": b"n,,\x01\x01",
    "no end": GOOD[:-1],
    "bytes after the end": GOOD + b"x",
    "basic": first(unsecured(), scheme="Basic"),
    "small letters": first(unsecured(), scheme="bEARER"),
    "spaces": first(f"   {unsecured()}"),
    "spaces after": first(f"{unsecured()} "),
    "no token": first(""),
    "other characters": first("a*b"),
}


@pytest.mark.parametrize("message", FIRST_MESSAGES)
def test_first_messages(pair: Pair, message: str) -> None:
    log_in(pair, FIRST_MESSAGES[message], b"\x01")


NONE = f"{encoded(UNSECURED_HEADER)}."
TOKENS = {
    "one part": "x",
    "two parts": NONE + encoded(claims()),
    "four parts": unsecured() + ".x",
    "empty parts": "..",
    "parts that are empty at the end": "x..",
    "no header": f".{encoded(claims())}.",
    "no claims": unsecured(""),
    "an encoding that is cut": f"{NONE}A.",
    "another encoding": f"{NONE}a+b/.",
    "padding": f"{unsecured()}==",
    "a header that is no JSON": unsecured(header="{"),
    "a header that is a list": unsecured(header="[]"),
    "a header without an algorithm": unsecured(header="{}"),
    "a header with null": unsecured(header='{"alg":null}'),
    "bytes after the header": unsecured(header=UNSECURED_HEADER + " x"),
    "bytes after the claims": unsecured(claims() + "}"),
    "claims that are no JSON": unsecured("alice"),
    "claims that are a list": unsecured("[1]"),
    "claims that are deep": unsecured('{"a":' + "[" * 2000 + "]" * 2000 + "}"),
    "claims with NaN": unsecured('{"sub":"alice","exp":NaN,"scope":["kafka","more"]}'),
    "a claim twice": unsecured(claims()[:-1] + ',"sub":"bob"}'),
    "an algorithm": unsecured(header='{"alg":"HS256"}', signature="eA"),
    "an algorithm without a signature": unsecured(header='{"alg":"RS256"}'),
    "a signature": unsecured(signature="eA"),
    "no principal": unsecured(claims(sub=None)),
    "a principal that is a number": unsecured(claims(sub=1)),
    "a principal that is true": unsecured(claims(sub=True)),
    "a principal that is a list": unsecured(claims(sub=["alice"])),
    "a principal of spaces": unsecured(claims(sub="  ")),
    "a principal with spaces": unsecured(claims(sub=" alice ")),
    "no end of time": unsecured(claims(exp=None)),
    "expired": unsecured(claims(exp=LONG_AGO + 1)),
    "an end that is text": unsecured(claims(exp=str(FAR_AWAY))),
    "an end that is a fraction": unsecured(claims(exp=FAR_AWAY + 0.25)),
    "an end that is huge": unsecured('{"sub":"alice","exp":1e400,"scope":["kafka","more"]}'),
    "an end that is long": unsecured(claims(exp=10**300)),
    "an end of many digits": unsecured(claims(exp=10**400)),
    "an end before the beginning": unsecured(claims(exp=LONG_AGO)),
    "not begun": unsecured(claims(iat=FAR_AWAY - 1)),
    "a beginning that is text": unsecured(claims(iat="x")),
    "no beginning": unsecured(claims(iat=None)),
    "no scope": unsecured(claims(scope=None)),
    "a scope that is text": unsecured(claims(scope="kafka more")),
    "a scope that is a number": unsecured(claims(scope=1)),
    "a scope that is an object": unsecured(claims(scope={"kafka": 1})),
    "half the scope": unsecured(claims(scope=["more"])),
    "a scope of other things": unsecured(claims(scope=[" kafka ", "more", 1, None, "", {}, []])),
}


@pytest.mark.parametrize("token", TOKENS)
def test_tokens(pair: Pair, token: str) -> None:
    log_in(pair, first(TOKENS[token]), b"\x01")


EXPIRED = first(TOKENS["expired"])


@pytest.mark.parametrize("after", [GOOD, EXPIRED, b"", b"\x01\x01"], ids=["good", "expired", "nothing", "twice"])
def test_messages_after_an_error(pair: Pair, after: bytes) -> None:
    log_in(pair, EXPIRED, after, b"\x01")


@pytest.mark.parametrize("token", ["alice", "bob", "expired"])
def test_a_session_goes_on(pair: Pair, token: str) -> None:
    log_in(pair, GOOD)
    log_in(pair, EXPIRED if token == "expired" else first(unsecured(claims(sub=token))), b"\x01")
