"""Java's clients and librdkafka log in with every mechanism that they have, by good and bad credentials: each sees of
ottla what it sees of Kafka.
"""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..oracle.kafka import program
from ..support.poll import until
from ..support.secured import LISTENER, MECHANISMS, MODULES, PASSWORDS, SETTINGS, SecuredKafka, settle
from ..support.wire import Wire

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
OAUTHBEARER = f"{MODULES}.oauthbearer.OAuthBearerLoginModule required"
WITH_ALL: dict[str, object] = {
    **SETTINGS,
    "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
    f"{LISTENER}.oauthbearer.sasl.jaas.config": (
        f'{OAUTHBEARER} unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="kafka";'
    ),
    "delegation.token.secret.key": "secret",
}
REFUSED = "SaslAuthenticationException"
PEOPLE = [("alice", "alice-secret", True), ("alice", "wrong", False), ("nobody", "alice-secret", False)]
PLAIN_TOKEN = b"\0admin\0admin-secret"


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[str, str]]:
    """ottla and Kafka, with SCRAM's credentials of Alice."""
    with Broker(WITH_ALL, lab=False) as ours, SecuredKafka(WITH_ALL) as kafka:
        found = (ours.bootstrap_servers, kafka.sasl_servers)
        for servers in found:
            settle(servers, "PLAIN", PLAIN_TOKEN)
            admin = AdminClient(librdkafka(servers, "PLAIN", "admin", PASSWORDS["admin"]))
            for kind in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
                password = UserScramCredentialUpsertion("alice", ScramCredentialInfo(kind, 4096), b"alice-secret")
                for done in admin.alter_user_scram_credentials([password]).values():
                    done.result(20)
            # Kafka shows a topic before its partition takes records, and a client of these tests does not try again
            assert librdkafka_sees(librdkafka(servers, "PLAIN", "admin", PASSWORDS["admin"])) == "ok"
        yield found


def token(servers: str) -> tuple[str, str]:
    """Makes a delegation token; its id, and its HMAC as clients write it."""
    with Wire(servers) as wire:
        wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=PLAIN_TOKEN))
        asked = m.CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1)
        made = wire.ask("CreateDelegationToken", 3, asked)
    assert made.error_code == 0
    return made.token_id, base64.b64encode(made.hmac).decode()


def of_java(servers: str) -> dict[str, tuple[str, str, bool]]:
    """By case: the mechanism, the JAAS line, and whether it lets in."""
    found = {}
    scram = f"{MODULES}.scram.ScramLoginModule required"
    for mechanism in MECHANISMS:
        module = f"{MODULES}.plain.PlainLoginModule required" if mechanism == "PLAIN" else scram
        for name, password, is_good in PEOPLE:
            found[f"{mechanism},{name},{password}"] = (
                mechanism, f'{module} username="{name}" password="{password}";', is_good
            )  # fmt: skip
    for scope, is_good in (("kafka", True), ("other", False)):
        claims = f'unsecuredLoginStringClaim_sub="alice" unsecuredLoginListClaim_scope=",{scope}"'
        found[f"OAUTHBEARER,{scope}"] = ("OAUTHBEARER", f"{OAUTHBEARER} {claims};", is_good)
    name, hmac = token(servers)
    for mechanism in MECHANISMS[1:]:
        for given, is_good in ((hmac, True), (hmac[::-1], False)):
            line = f'{scram} tokenauth=true username="{name}" password="{given}";'
            found[f"token,{mechanism},{is_good}"] = (mechanism, line, is_good)
    return found


def java_sees(servers: str, folder: Path) -> dict[str, str]:
    """What becomes of a record in each case, in one JVM."""
    words = []
    for name, (mechanism, line, _) in of_java(servers).items():
        path = folder / f"{name}.properties"
        path.write_text(
            f"bootstrap.servers={servers}\nsecurity.protocol=SASL_PLAINTEXT\n"
            f"sasl.mechanism={mechanism}\nsasl.jaas.config={line}\n"
        )
        words.append(f"{name}=t={path}")
    command = program("tools", "TlsClients", folder)
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=200, check=False)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def test_java(brokers: tuple[str, str], tmp_path: Path) -> None:
    expected = {name: "ok" if is_good else REFUSED for name, (_, _, is_good) in of_java(brokers[0]).items()}
    for number, servers in enumerate(brokers):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert java_sees(servers, folder) == expected


def librdkafka(servers: str, mechanism: str, name: str, password: str) -> dict[str, str | int]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        "log_level": 0,
    }


def librdkafka_sees(settings: dict[str, str | int]) -> str:
    """What becomes of a record, or why the client is refused."""
    failures: list[KafkaError] = []
    producer = Producer({**settings, "error_cb": failures.append})
    producer.produce("t", b"hello")
    until(lambda: producer.flush(0.1) == 0 or bool(failures), "the client is let in, or refused")
    if not failures:
        return "ok"
    assert failures[0].code() == KafkaError._AUTHENTICATION
    return re.sub(r"^.*?/bootstrap: | \(after .*", "", failures[0].str())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(brokers: tuple[str, str], mechanism: str) -> None:
    for name, password, is_good in PEOPLE:
        ours, kafkas = (librdkafka_sees(librdkafka(servers, mechanism, name, password)) for servers in brokers)
        assert ours == kafkas
        assert (ours == "ok") is is_good


@pytest.mark.parametrize("scope", ["kafka", "other"])
def test_librdkafka_with_tokens(brokers: tuple[str, str], scope: str) -> None:
    unsecured = {
        "enable.sasl.oauthbearer.unsecure.jwt": "true",
        "sasl.oauthbearer.config": f"principal=a scope={scope}",
    }
    ours, kafkas = (librdkafka_sees({**librdkafka(one, "OAUTHBEARER", "", ""), **unsecured}) for one in brokers)
    assert ours == kafkas
    assert (ours == "ok") is (scope == "kafka")
