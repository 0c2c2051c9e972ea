"""Tokens of OAUTHBEARER without connections, with the clock as an argument."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
from ottla.broker.security.oauthbearer import OAuthBearerServer
from ottla.coordinator.security.oauth_message import parse_first_message
from ottla.coordinator.security.oauth_token import InvalidToken, Token
from ottla.coordinator.security.sasl import SaslFailed
from ottla.coordinator.security.unsecured_jwt import UnsecuredValidator, unsecured_validator
from ottla.protocol.errors import MalformedMessage

from ..support.oauth import claims, first, unsecured
from ..support.seeds import slow

ISSUED, EXPIRES = 1000, 1060  # seconds
VALIDATOR = UnsecuredValidator(required_scope=("kafka",))


def token(**changed: Any) -> str:
    return unsecured(claims(**{"iat": ISSUED, "exp": EXPIRES} | changed))


@pytest.mark.parametrize(
    ("skew_ms", "now_ms", "valid"),
    [
        (0, 999_999, False),
        (0, 1_000_000, True),
        (0, 1_059_999, True),
        (0, 1_060_000, False),
        (500, 999_499, False),
        (500, 999_500, True),
        (500, 1_060_499, True),
        (500, 1_060_500, False),
    ],
)
def test_a_token_is_valid_from_iat_until_exp(skew_ms: int, now_ms: int, valid: bool) -> None:
    validator = UnsecuredValidator(skew_ms=skew_ms)
    if valid:
        assert validator.validate(token(), now_ms) == Token("alice", 1_060_000)
    else:
        with pytest.raises(InvalidToken):
            validator.validate(token(), now_ms)


@pytest.mark.parametrize(
    ("expires", "ms"), [(1060.25, 1_060_250), (10**17, 2**63 - 1), (1e300, 2**63 - 1), (10**400, 2**63 - 1)]
)
def test_the_end_of_a_token_fits_in_64_bits(expires: float, ms: int) -> None:
    assert VALIDATOR.validate(token(exp=expires), 1_000_000).expires_at_ms == ms


def test_claims_of_other_names() -> None:
    validator = unsecured_validator(
        {
            "unsecuredValidatorPrincipalClaimName": "client",
            "unsecuredValidatorScopeClaimName": "scp",
            "unsecuredValidatorRequiredScope": "a  b",
            "unsecuredValidatorAllowableClockSkewMs": "10",
        }
    )
    assert validator == UnsecuredValidator("client", "scp", ("a", "b"), 10)
    assert validator.validate(token(client="bob", scp=["b", "a"]), 1_000_000).principal == "bob"
    with pytest.raises(InvalidToken) as refused:
        validator.validate(token(client="bob", scp="a"), 1_000_000)
    assert refused.value.json == '{"status":"insufficient_scope", "scope":"[a, b]"}'


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("AllowableClockSkewMs", "-1"),
        ("AllowableClockSkewMs", "x"),
        ("AllowableClockSkewMs", "2147483648"),
        ("RequiredScope", 'a "'),
    ],
)
def test_wrong_options_are_refused(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=r"Allowable|scope"):
        unsecured_validator({f"unsecuredValidator{option}": value})


def test_an_exchange() -> None:
    server = OAuthBearerServer(VALIDATOR.validate, lambda: 1_000_000)
    assert server.evaluate(first(token(exp=999))) == b'{"status":"invalid_token"}'
    assert server.evaluate(first(token(), "alice", "one=1\x01")) == b""
    assert server.authorization_id == "alice"
    assert server.expires_at_ms == 1_060_000


def test_the_answer_to_an_error() -> None:
    server = OAuthBearerServer(VALIDATOR.validate, lambda: 1_000_000)
    with pytest.raises(SaslFailed) as first_message:
        server.evaluate(b"\x01")
    assert first_message.value.words is None
    server.evaluate(first(token(scope="x")))
    with pytest.raises(SaslFailed) as refused:
        server.evaluate(b"\x01")
    assert refused.value.words == '{"status":"insufficient_scope", "scope":"[kafka]"}'
    assert refused.value.reason == "the scope kafka is missing"


def test_extensions() -> None:
    found = parse_first_message(first("t", extensions="one=1\x01two=2=3\x01"))
    assert found.extensions == {"one": "1", "two": "2=3"}


def _mutated(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        changed[at : at + chance.randint(0, 3)] = chance.choice(
            (b"", b".", b"=", b"\x01", chance.randbytes(2), b"n,,\x01", b"A" * chance.randint(1, 9))
        )
    return bytes(changed)


def test_mutated_messages_are_taken_or_refused() -> None:
    chance = random.Random(7628)
    texts = ['{"sub":"alice","exp":1060,"iat":1000,"scope":["kafka"]}', claims(), '{"exp":[1e9],"sub":{}}', "[[1]]"]
    for _ in range(2000):
        text = _mutated(chance.choice(texts).encode(), chance).decode("latin-1")
        whole = first(unsecured(text, chance.choice(('{"alg":"none"}', text))))
        message = whole if chance.random() < 0.5 else _mutated(whole, chance)
        server = OAuthBearerServer(VALIDATOR.validate, lambda: 1_000_000)
        with contextlib.suppress(SaslFailed, MalformedMessage):
            server.evaluate(message)
            if server.authorization_id is None:
                server.evaluate(b"\x01")


@pytest.mark.parametrize("filler", [b"a", b"a=b\x01", *slow([b"\x01", b"=2C", b"[", b".", b"auth=Bearer x\x01"])])
def test_long_messages_take_no_time_in_proportion_to_their_square(filler: bytes) -> None:
    long = filler * (500_000 // len(filler))
    for message in (b"n,a=" + long, b"n,,\x01" + long, b"n,,\x01auth=Bearer " + long + b"\x01\x01"):
        server = OAuthBearerServer(VALIDATOR.validate, lambda: 1_000_000)
        with contextlib.suppress(SaslFailed):
            server.evaluate(message)
