"""Real clients log in with OAUTHBEARER: tokens without signatures, and tokens of the broker's own endpoint."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from confluent_kafka import KafkaError, Producer

from ottla.testing import Broker

from ..oracle.kafka import tool
from ..support.oauth import KAFKA, claims, served, signed, unsecured
from ..support.poll import until
from ..support.secured import SecuredKafka
from ..support.tls import PASSWORD, make_certificates
from .conftest import Run

pytestmark = pytest.mark.slow
PREFIX = "listener.name.sasl_plaintext.oauthbearer"
LISTENER: dict[str, object] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
}
HANDLER: dict[str, object] = {
    f"{PREFIX}.sasl.server.callback.handler.class": f"{KAFKA}.OAuthBearerValidatorCallbackHandler"
}


@pytest.fixture(scope="module")
def development() -> Iterator[Broker]:
    option = 'unsecuredValidatorRequiredScope="kafka"'
    jaas = {f"{PREFIX}.sasl.jaas.config": f"{KAFKA}.OAuthBearerLoginModule required {option};"}
    with Broker(LISTENER | jaas) as running:
        yield running


@pytest.fixture(scope="module")
def granting() -> Iterator[Broker]:
    more = {"ottla.users": "alice:alice-secret", "connections.max.reauth.ms": 60_000}
    with Broker(LISTENER | HANDLER | more) as running:
        yield running


def librdkafka(servers: str, **settings: object) -> tuple[int, list[KafkaError]]:
    """Produces a record; returns how many are left, and the errors."""
    failures: list[KafkaError] = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "OAUTHBEARER",
            "log_level": 0,
            "error_cb": failures.append,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    producer.produce("t", b"hello")
    until(lambda: producer.flush(0.1) == 0 or bool(failures), "the client is let in, or refused")
    return len(producer), failures


def oidc(granting: Broker, secret: str) -> dict[str, object]:
    """Settings of librdkafka that get a token."""
    return {
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_client_id": "alice",
        "sasl_oauthbearer_client_secret": secret,
        "sasl_oauthbearer_token_endpoint_url": f"{granting.lab_url}/oauth/token",
    }


@pytest.mark.parametrize(("scope", "is_good"), [("kafka", True), ("other", False)])
def test_librdkafka_without_signatures(development: Broker, scope: str, is_good: bool) -> None:
    left, failures = librdkafka(
        development.bootstrap_servers,
        enable_sasl_oauthbearer_unsecure_jwt="true",
        sasl_oauthbearer_config=f"principal=alice scope={scope}",
    )
    assert (left == 0) == is_good
    if not is_good:
        assert failures[0].code() == KafkaError._AUTHENTICATION
        assert "insufficient_scope" in failures[0].str()


@pytest.mark.parametrize(("secret", "is_good"), [("alice-secret", True), ("wrong", False)])
def test_librdkafka_gets_its_token(granting: Broker, secret: str, is_good: bool) -> None:
    left, failures = librdkafka(granting.bootstrap_servers, **oidc(granting, secret))
    assert (left == 0) == is_good
    assert is_good or "invalid_client" in failures[0].str()


def test_keys_come_from_a_url(granting: Broker) -> None:
    """Another broker takes the same tokens, by the public key that the first one shows."""
    settings = (
        LISTENER
        | HANDLER
        | {
            "sasl.oauthbearer.jwks.endpoint.url": f"{granting.lab_url}/oauth/jwks",
            "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"{granting.lab_url}/oauth/jwks",
            "sasl.oauthbearer.expected.issuer": "ottla",
            "sasl.oauthbearer.allow.unverified.audience": "true",
        }
    )
    with Broker(settings) as other:
        left, failures = librdkafka(other.bootstrap_servers, **oidc(granting, "alice-secret"))
        assert (left, failures) == (0, [])


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["PEM", "PKCS12"])
def test_the_keys_of_a_url_of_https(
    granting: Broker, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options of the JAAS line say whom the broker trusts there; Kafka takes the same. Java and librdkafka log in."""
    good = make_certificates(tmp_path) / "good"
    store = {"PEM": "ca.crt", "PKCS12": "truststore.p12"}[kind]
    password = f'ssl.truststore.password="{PASSWORD}"' if kind == "PKCS12" else ""
    trust = f'ssl.truststore.type="{kind}" ssl.truststore.location="{good / store}" {password}'
    own = 'unsecuredLoginStringClaim_sub="broker"'  # without it Kafka does not start
    with urllib.request.urlopen(f"{granting.lab_url}/oauth/jwks", timeout=10) as reply:
        jwks = reply.read()
    with served(jwks, good / "server.pem") as url:
        token_url = f"{granting.lab_url}/oauth/token"
        settings: dict[str, object] = {
            **HANDLER,
            **LISTENER,
            f"{PREFIX}.sasl.jaas.config": f"{KAFKA}.OAuthBearerLoginModule required {own} {trust};",
            "sasl.oauthbearer.jwks.endpoint.url": url,
            "sasl.oauthbearer.expected.issuer": "ottla",
            "sasl.oauthbearer.allow.unverified.audience": "true",
            "org.apache.kafka.sasl.oauthbearer.allowed.urls": url,
        }
        allow_in_java(monkeypatch, url, token_url)
        with Broker(settings) as ours, SecuredKafka(settings) as kafka:
            for servers in (ours.bootstrap_servers, kafka.sasl_servers):
                left, failures = librdkafka(servers, **oidc(granting, "alice-secret"))
                assert (left, failures) == (0, [])
            done = java(ours, tmp_path / "config", credentials(token_url, "alice-secret"))
            assert done.returncode == 0, done.stdout + done.stderr


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    def __init__(self, given: str) -> None:
        self.given = given

    async def token(self) -> str:
        return self.given


@pytest.mark.parametrize("scope", ["kafka", "other"])
async def test_aiokafka(development: Broker, scope: str) -> None:
    """It does not see that a token is refused, of Kafka neither, as it does not answer the error (RFC 7628, 3.2.3); its
    next request is refused, so that it knows no broker.
    """
    producer = AIOKafkaProducer(
        bootstrap_servers=development.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Tokens(unsecured(claims(scope=scope))),
    )
    await producer.start()
    try:
        if scope == "kafka":
            await producer.send_and_wait("t", b"hello")
        else:
            assert not producer.client.cluster.brokers()
    finally:
        await producer.stop()


def granted(broker: Broker) -> str:
    """A token of the broker's endpoint."""
    form = b"grant_type=client_credentials&client_id=alice&client_secret=alice-secret"
    with urllib.request.urlopen(f"{broker.lab_url}/oauth/token", form, timeout=10) as reply:
        return str(json.load(reply)["access_token"])


KAFKA_PYTHON = """
import sys
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

class Tokens(AbstractTokenProvider):
    def token(self):
        return sys.argv[2]

producer = KafkaProducer(bootstrap_servers=sys.argv[1], security_protocol="SASL_PLAINTEXT", bootstrap_timeout_ms=1000,
                         sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Tokens())
producer.send("t", b"hello").get(30)
producer.close()
"""


@pytest.mark.parametrize("is_good", [True, False])
def test_kafka_python(granting: Broker, is_good: bool) -> None:
    """A token of another key is refused. The client leaves its sockets open then, so that it is in a process."""
    token = granted(granting) if is_good else signed()
    command = [sys.executable, "-c", KAFKA_PYTHON, granting.bootstrap_servers, token]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (0 if is_good else 1), done.stderr
    assert is_good or "Unable to bootstrap" in done.stderr


@pytest.mark.usefixtures("kcat")
@pytest.mark.parametrize("is_good", [True, False])
def test_kcat(development: Broker, is_good: bool) -> None:
    scope = "kafka" if is_good else "other"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal=alice scope={scope}",
    }
    options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
    command = ["kcat", "-b", development.bootstrap_servers, *options, "-L", "-m", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (0 if is_good else 1), done.stderr
    assert is_good or "insufficient_scope" in done.stderr


@pytest.mark.go
def test_franz_go_and_sarama(granting: Broker, go_clients: Run) -> None:
    """Good tokens, forged ones, and a wrong secret at the endpoint."""
    endpoint = f"{granting.lab_url}/oauth/token"
    go_clients(granting.bootstrap_servers, "oauth", endpoint, "alice", "alice-secret", within=60)


@pytest.mark.node
def test_kafkajs(granting: Broker, kafkajs: Run) -> None:
    """As the clients in Go."""
    endpoint = f"{granting.lab_url}/oauth/token"
    kafkajs("oauth.js", granting.bootstrap_servers, endpoint, "alice", "alice-secret", within=60)


def java(broker: Broker, path: Path, lines: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Lists topics with Kafka's tool."""
    common = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
    path.write_text("".join(f"{key}={value}\n" for key, value in (common | lines).items()))
    return tool("TopicCommand", "--bootstrap-server", broker.bootstrap_servers, "--command-config", str(path), "--list")


def credentials(url: str, secret: str) -> dict[str, str]:
    """Settings of Java's clients that get a token."""
    return {
        "sasl.jaas.config": f"{KAFKA}.OAuthBearerLoginModule required;",
        "sasl.login.callback.handler.class": f"{KAFKA}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": secret,
        "sasl.oauthbearer.scope": "kafka",
    }


def allow_in_java(monkeypatch: pytest.MonkeyPatch, *urls: str) -> None:
    options = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(urls)}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {options}")


@pytest.mark.oracle
@pytest.mark.parametrize(("scope", "is_good"), [("kafka", True), ("other", False)])
def test_java_without_signatures(development: Broker, scope: str, is_good: bool, tmp_path: Path) -> None:
    claim = f'unsecuredLoginStringClaim_sub="alice" unsecuredLoginListClaim_scope=",{scope}"'
    extension = 'unsecuredLoginExtension_tenant="one"'
    jaas = {"sasl.jaas.config": f"{KAFKA}.OAuthBearerLoginModule required {claim} {extension};"}
    done = java(development, tmp_path / "config", jaas)
    said = done.stdout + done.stderr
    assert done.returncode == (0 if is_good else 1), said
    assert is_good or "insufficient_scope" in said


@pytest.mark.oracle
@pytest.mark.parametrize(("secret", "is_good"), [("alice-secret", True), ("wrong", False)])
def test_java_gets_its_token(
    granting: Broker, secret: str, is_good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{granting.lab_url}/oauth/token"
    allow_in_java(monkeypatch, url)
    done = java(granting, tmp_path / "config", credentials(url, secret))
    assert done.returncode == (0 if is_good else 1), done.stdout + done.stderr
