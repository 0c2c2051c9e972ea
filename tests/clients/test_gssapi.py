"""Real clients log in with tickets of a KDC (MIT's, from Debian's packages) to a broker with a keytab."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ottla.testing import Broker, BrokerFailed

from ..oracle.kafka import tool
from ..support.kerberos import REALM, Missing, Realm
from ..support.secured import SecuredKafka
from .conftest import Run as RunClient

pytestmark = pytest.mark.slow
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
FAILED = "invalid credentials with SASL mechanism GSSAPI"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm that this process, the brokers and the clients that it starts use."""
    with pytest.MonkeyPatch.context() as patch:
        try:
            made = Realm(tmp_path_factory.mktemp("realm"))
        except Missing as reason:
            if os.environ.get("CI"):
                raise
            pytest.skip(str(reason))
        for name, value in made.environment.items():
            patch.setenv(name, value)
        with made:
            yield made


@pytest.fixture(scope="module")
def keys(realm: Realm) -> dict[str, Path]:
    """Keytabs by name; `old` has keys of the broker that another keytab has replaced."""
    old = realm.keytab("kafka/localhost")
    names = {"broker": "kafka/localhost", "alice": "alice", "admin": "alice/admin", "wrong": "mallory", "bob": "bob"}
    return {"old": old} | {name: realm.keytab(principal) for name, principal in names.items()}


def jaas(keytab: Path, principal: str) -> str:
    return f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'


def settings(keytab: Path) -> dict[str, object]:
    return {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:alice-root;User:ANONYMOUS",  # the users that the rules make
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": (
            "RULE:[1:$1@$0](bob@.*),RULE:[2:$1-$2](alice-.*)s/admin/root/,DEFAULT"
        ),
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(keytab, "kafka/localhost"),
    }


@pytest.fixture(scope="module")
def broker(keys: dict[str, Path]) -> Iterator[Broker]:
    with Broker(settings(keys["broker"])) as running:
        yield running


def at(broker: Broker) -> str:
    return f"localhost:{broker.bootstrap_servers.rpartition(':')[2]}"


@pytest.fixture
def python(keys: dict[str, Path]) -> Run:
    """Runs a program of Python that logs in with a keytab."""

    def run(program: str, keytab: str = "alice") -> subprocess.CompletedProcess[str]:
        own = {"KRB5_CLIENT_KTNAME": str(keys[keytab]), "KRB5CCNAME": "MEMORY:"}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=120, check=False)

    return run


KAFKA_PYTHON = """
from kafka import KafkaConsumer, KafkaProducer
settings = dict(bootstrap_servers={at!r}, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI",
                sasl_kerberos_service_name={service!r}, sasl_kerberos_domain_name="localhost")
producer = KafkaProducer(bootstrap_timeout_ms=3000, **settings)
producer.send("of-kafka-python", b"hello").get(30)
producer.close()
consumer = KafkaConsumer("of-kafka-python", auto_offset_reset="earliest", **settings)
print(next(consumer).value.decode())
consumer.close()
"""
AIOKAFKA = """
import asyncio
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
settings = dict(bootstrap_servers={at!r}, security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI",
                sasl_kerberos_service_name={service!r}, sasl_kerberos_domain_name="localhost")
async def main():
    producer = AIOKafkaProducer(**settings)
    try:
        await producer.start()
        await producer.send_and_wait("of-aiokafka", b"hello")
    finally:
        await producer.stop()
    consumer = AIOKafkaConsumer("of-aiokafka", auto_offset_reset="earliest", **settings)
    await consumer.start()
    print((await consumer.getone()).value.decode())
    await consumer.stop()
asyncio.run(main())
"""


@pytest.mark.parametrize("program", [KAFKA_PYTHON, AIOKAFKA], ids=["kafka-python", "aiokafka"])
def test_clients_of_python(broker: Broker, python: Run, program: str) -> None:
    done = python(program.format(at=at(broker), service="kafka"))
    assert done.stdout == "hello\n", done.stderr
    unknown = python(program.format(at=at(broker), service="other"))
    assert unknown.returncode == 1  # the KDC does not know other/localhost
    assert unknown.stdout == ""


@pytest.mark.usefixtures("kcat")
def test_kcat(broker: Broker, keys: dict[str, Path], realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    """kcat of Debian has a librdkafka with Cyrus SASL."""
    monkeypatch.setenv("SASL_PATH", str(realm.sasl_plugins))
    monkeypatch.setenv("KRB5CCNAME", "MEMORY:")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keys["alice"]))

    def run(*arguments: str, service: str = "kafka") -> subprocess.CompletedProcess[bytes]:
        options = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanisms=GSSAPI", "sasl.kerberos.kinit.cmd=true",
                   f"sasl.kerberos.service.name={service}"]  # fmt: skip
        command = ["kcat", "-b", at(broker), *(word for one in options for word in ("-X", one)), *arguments]
        return subprocess.run(command, input=b"hello\n", capture_output=True, timeout=60, check=False)

    done = run("-P", "-t", "of-kcat")
    assert done.returncode == 0, done.stderr
    assert run("-C", "-t", "of-kcat", "-o", "beginning", "-e", "-q").stdout == b"hello\n"
    assert run("-L", "-m", "5", service="other").returncode == 1


@pytest.mark.go
def test_franz_go(broker: Broker, keys: dict[str, Path], go_clients: RunClient) -> None:
    """With the keys of Alice, with those of another, and for a service that the KDC does not know."""
    keytabs = (str(keys["alice"]), str(keys["wrong"]))
    go_clients(at(broker), "kerberos", "alice", REALM, *keytabs, within=100)


def command_config(path: Path, keytab: Path, principal: str, service: str = "kafka") -> list[str]:
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name={service}\n"
        f"sasl.jaas.config={jaas(keytab, principal)}\n"
    )
    return ["--command-config", str(path)]


@pytest.mark.oracle
def test_kafkas_tools(broker: Broker, keys: dict[str, Path], tmp_path: Path) -> None:
    to = ["--bootstrap-server", at(broker)]
    good = command_config(tmp_path / "good", keys["admin"], "alice/admin")
    done = tool("TopicCommand", *to, *good, "--create", "--topic", "of-java")
    assert "Created topic of-java" in done.stdout, done.stdout + done.stderr
    wrong = command_config(tmp_path / "wrong", keys["wrong"], "alice")
    done = tool("TopicCommand", *to, *wrong, "--list")
    assert done.returncode != 0
    assert "LoginException" in done.stdout + done.stderr


def stories(port: int, which: str = "stories") -> dict[str, list[str]]:
    command = [sys.executable, "-m", "tests.support.gss_client", str(port), which]
    own = {"PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{Path(__file__).parents[2]}", "KRB5CCNAME": "MEMORY:"}
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.oracle
def test_answers_are_kafkas(
    broker: Broker, keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever a client sends in the exchange, and a broker whose keytab is not that of the KDC."""
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keys["alice"]))
    with SecuredKafka(settings(keys["broker"]), tmp_path / "good") as kafka:
        expected = stories(kafka.sasl_port)
        monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keys["bob"]))
        assert stories(kafka.sasl_port, "log-in")["a log-in"][3:] == ["0 bytes", "closed"]
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    # no rule makes a user of bob: Kafka closes the connection at the first request, ottla before
    assert stories(port, "log-in")["a log-in"][3:] == ["closed", "closed"]
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keys["alice"]))
    found = stories(port)
    assert found == expected
    assert found["good"] == ["a token", "32 bytes", "01010000", "0 bytes", "metadata"]
    assert found["a handshake of version 0"] == ["metadata"]
    with Broker(settings(keys["old"])) as other:
        assert FAILED in stories(int(other.bootstrap_servers.rpartition(":")[2]), "first")["a ticket"][0]


def test_an_expired_ticket_is_refused(realm: Realm, keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.keytab("short", "-maxlife 1s")))
    monkeypatch.setenv("KRB5_CONFIG", realm.strict())
    with Broker(settings(keys["broker"])) as broker:
        assert FAILED in stories(int(broker.bootstrap_servers.rpartition(":")[2]), "late")["late"][0]
        assert "xpired" in broker.log


def test_a_keytab_without_the_principal_is_refused_at_start(keys: dict[str, Path]) -> None:
    with pytest.raises(BrokerFailed, match=r"has no keys for kafka/localhost@OTTLA\.TEST"):
        Broker(settings(keys["alice"])).start()
