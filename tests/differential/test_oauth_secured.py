"""Logging in with signed tokens: ottla and Apache Kafka take and refuse the same, by the same file of keys."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator

import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support import transcripts
from ..support.differential import Pair
from ..support.oauth import FAR_AWAY, KAFKA, LONG_AGO, claims, encoded, first, jwk, signed, signing_key, unsecured
from ..support.secured import LISTENER, SecuredKafka, settle

pytestmark = pytest.mark.slow
PREFIX = f"{LISTENER}.oauthbearer"
ONE, TWO, FOUR = signing_key(1), signing_key(2), signing_key(4)
SECRET = bytes(range(32))
METADATA = m.MetadataRequest(topics=[])
VERSIONS = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")


def secret(kid: str, data: bytes, **more: object) -> dict[str, object]:
    return {"kty": "oct", "k": encoded(data), "kid": kid, **more}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    file = tmp_path_factory.mktemp("jwks") / "jwks.json"
    keys = [jwk(ONE, kid="one"), jwk(TWO, kid="two", use="sig", alg="ES256"), jwk(signing_key(3), kid="e", use="enc")]
    keys += [secret("secret", SECRET), secret("short", SECRET[:31]), secret("for 512", SECRET * 2, alg="HS512")]
    keys += [jwk(FOUR, kid="four", x5t="AQID", **{"x5t#S256": "BAUG"})]
    file.write_text(json.dumps({"keys": [*keys, {"kty": "none"}, {"kty": "EC", "kid": "bad"}]}))
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "connection.failed.authentication.delay.ms": 0,
        f"{PREFIX}.connections.max.reauth.ms": 60_000,
        f"{PREFIX}.sasl.jaas.config": f'{KAFKA}.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="b";',
        f"{PREFIX}.sasl.server.callback.handler.class": f"{KAFKA}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": file.as_uri(),
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": file.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka,other",
        "sasl.oauthbearer.expected.issuer": "issuer",
    }


@pytest.fixture(scope="module")
def kafka(settings: dict[str, object], monkeypatch_module: pytest.MonkeyPatch) -> Iterator[str]:
    if transcripts.mode() == "recorded":
        yield ""
        return
    url = settings["sasl.oauthbearer.jwks.endpoint.url"]
    monkeypatch_module.setenv("JAVA_TOOL_OPTIONS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")
    with SecuredKafka(settings) as running:
        yield running.sasl_servers


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def ours(settings: dict[str, object]) -> Iterator[Broker]:
    with Broker(settings, lab=False) as broker:
        yield broker


@pytest.fixture(scope="module")
def settled(kafka: str) -> None:
    settle(kafka, "OAUTHBEARER", first(signed()))


def of(**changed: object) -> str:
    return signed(claims(**{"iss": "issuer", "aud": "kafka"} | changed))


def by_secret(secret: bytes, kid: str | None, alg: str = "HS256", payload: str = "", **more: object) -> str:
    header = {"alg": alg, **({} if kid is None else {"kid": kid}), **more}
    message = f"{encoded(json.dumps(header))}.{encoded(payload or claims(iss='issuer', aud='kafka'))}"
    return f"{message}.{encoded(hmac.digest(secret, message.encode(), alg.replace('HS', 'sha')))}"


def by_a_public_key() -> str:
    """A token whose secret is the public key."""
    return by_secret(json.dumps(jwk(ONE, kid="one")).encode(), "one")


GOOD = signed()
TOKENS = {
    "good": GOOD,
    "another key": signed(key=TWO, kid="two"),
    "no identifier": signed(kid=None),
    "no identifier of the second key": signed(key=TWO, kid=None),
    "an unknown identifier": signed(kid="three"),
    "the other key": signed(key=TWO),
    "an encryption key": signed(key=signing_key(3), kid="e"),
    "a bad key": signed(kid="bad"),
    "no algorithm": signed(alg=None),
    "none": unsecured(claims(iss="issuer", aud="kafka"), '{"alg":"none","kid":"one"}'),
    "none with a signature": signed(alg="none"),
    "a secret": by_a_public_key(),
    "a symmetric key": by_secret(SECRET, "secret"),
    "a symmetric key without its name": by_secret(SECRET, None),
    "a symmetric key of 384 bits": by_secret(SECRET, "secret", "HS384"),
    "a symmetric key that is short": by_secret(SECRET[:31], "short"),
    "a symmetric key of 512 bits": by_secret(SECRET * 2, "for 512", "HS512"),
    "a symmetric key for another algorithm": by_secret(SECRET * 2, "for 512"),
    "another symmetric key": by_secret(b"x" * 32, "secret"),
    "an elliptic curve by a symmetric key's name": signed(kid="secret"),
    "a certificate's thumb": signed(key=FOUR, kid=None, x5t="AQID"),
    "a certificate's other thumb": signed(key=FOUR, kid=None, **{"x5t#S256": "BAUG"}),
    "another certificate's thumb": signed(key=FOUR, kid="four", x5t="XXXX"),
    "a thumb for a key without": signed(x5t="AQID"),
    "the key and no thumb": signed(key=FOUR, kid="four"),
    "a token in a token": signed(by_secret(SECRET, "secret"), cty="JWT"),
    "a token in a token by another type": signed(GOOD, cty="application/jwt"),
    "a token in a token in a token": signed(signed(GOOD, cty="jwt"), cty="JWT"),
    "a wrong token in a token": signed(GOOD[:-4] + "AAAA", cty="JWT"),
    "a token in a wrong token": signed(GOOD, key=TWO, cty="JWT"),
    "a token without its type in a token": signed(GOOD),
    "claims of the type of a token": signed(cty="JWT"),
    "claims of another type": signed(cty="json"),
    "an unsigned token in a token": signed(unsecured(claims(iss="issuer", aud="kafka")), cty="JWT"),
    "RSA": signed(alg="RS256"),
    "another curve": signed(alg="ES384"),
    "a critical header": signed(crit=["x"], x=1),
    "no signature": GOOD.rpartition(".")[0] + ".",
    "another signature": GOOD[:-4] + "AAAA",
    "a short signature": GOOD[:-8],
    "other claims": ".".join([GOOD.split(".")[0], encoded(claims(sub="bob")), GOOD.split(".")[2]]),
    "two parts": GOOD.rpartition(".")[0],
    "no JSON": signed("alice"),
    "a list": signed("[]"),
    "another issuer": of(iss="other"),
    "no issuer": of(iss=None),
    "an issuer that is a number": of(iss=1),
    "another audience": of(aud="x"),
    "no audience": of(aud=None),
    "audiences": of(aud=["x", "other"]),
    "an audience that is a number": of(aud=1),
    "expired": of(exp=LONG_AGO + 1),
    "no end": of(exp=None),
    "an end that is text": of(exp="x"),
    "an end that is a fraction": of(exp=FAR_AWAY + 0.5),
    "no beginning": of(iat=None),
    "a beginning in the future": of(iat=FAR_AWAY - 1),
    "an end before the beginning": of(iat=FAR_AWAY + 1),
    "not yet": of(nbf=FAR_AWAY - 1),
    "a time before": of(nbf=LONG_AGO),
    "no principal": of(sub=None),
    "a principal that is a number": of(sub=1),
    "a principal of spaces": of(sub=" "),
    "a principal with spaces": of(sub=" alice "),
    "no scope": of(scope=None),
    "a scope that is text": of(scope="kafka more"),
    "an empty scope": of(scope=""),
    "a scope that is a number": of(scope=1),
    "a scope twice": of(scope=["kafka", "kafka "]),
    "an identifier that is a number": of(jti=1),
}


@pytest.mark.parametrize("token", TOKENS)
def test_tokens(pair: Pair, token: str) -> None:
    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="OAUTHBEARER"))
    for one in (first(TOKENS[token]), b"\x01"):
        pair.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=one))
    pair.ask("Metadata", 12, METADATA)


@pytest.mark.parametrize(
    "message",
    [first(GOOD, "alice"), first(GOOD, "bob"), first(GOOD, extensions="a=b\x01")],
    ids=["own", "other", "extensions"],
)
def test_names_and_extensions(pair: Pair, message: bytes) -> None:
    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="OAUTHBEARER"))
    pair.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=message))
    pair.ask("Metadata", 12, METADATA)
