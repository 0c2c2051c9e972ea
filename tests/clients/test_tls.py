"""Clients over TLS, with good and bad certificates: each sees of ottla what it sees of Kafka."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError
from confluent_kafka import KafkaError, Producer
from ottla.protocol import messages as m

from ottla import certs
from ottla.testing import Broker

from ..oracle.kafka import Kafka, program
from ..support.ask import create
from ..support.poll import until
from ..support.tls import PASSWORD, Listeners, client_context, java, librdkafka, make_certificates
from ..support.wire import Wire
from .conftest import Run

pytestmark = pytest.mark.slow
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:CN=client",
}
CASES = {  # the listener, the client's certificate, and the authority that it trusts
    "good": ("NEEDED", "client", "good"),
    "asked": ("ASKED", "client", "good"),
    "asked without": ("ASKED", None, "good"),
    "open": ("OPEN", None, "good"),
    "no certificate": ("NEEDED", None, "good"),
    "stranger": ("NEEDED", "stranger", "good"),
    "stranger asked": ("ASKED", "stranger", "good"),
    "late": ("NEEDED", "late", "good"),
    "wrong authority": ("NEEDED", "client", "other"),
    "expired": ("EXPIRED", None, "good"),
    "elsewhere": ("ELSEWHERE", None, "good"),
    "TLS to plaintext": ("PLAINTEXT", "client", "good"),
    "not allowed": ("NEEDED", "writer", "good"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def ottla(folder: Path) -> Iterator[Listeners]:
    listeners = Listeners(folder)
    with Broker({**listeners.settings, **AUTHORIZER}) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "t")
        yield listeners


@pytest.fixture(scope="module")
def kafka(folder: Path) -> Iterator[Listeners]:
    listeners = Listeners(folder)
    oracle = Kafka()
    oracle.settings = {**listeners.of_kafka(oracle.controller_port), **AUTHORIZER}
    with oracle:
        with Wire(listeners.at("PLAINTEXT")) as wire:
            create(wire, "t")
        yield listeners


def java_sees(listeners: Listeners, folder: Path, tmp_path: Path) -> dict[str, str]:
    """What becomes of a record in each case, in one JVM."""
    arguments = []
    for name, (listener, client, authority) in CASES.items():
        settings = java(folder, client, authority) | {"bootstrap.servers": listeners.at(listener)}
        arguments.append((name, settings))
    arguments.append(("JKS", java(folder, kind="JKS") | {"bootstrap.servers": listeners.at("NEEDED")}))
    arguments.append(("plaintext to TLS", {"bootstrap.servers": listeners.at("OPEN")}))
    words = []
    for name, settings in arguments:
        path = tmp_path / f"{name}.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        words.append(f"{name}=t={path}")
    command = program("tools", "TlsClients", tmp_path)
    done = subprocess.run([*command, *words], capture_output=True, text=True, timeout=200, check=False)
    return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


REFUSED, DENIED = "SslAuthenticationException", "TopicAuthorizationException"
JAVA = {
    **dict.fromkeys(("good", "asked", "asked without", "open", "JKS"), "ok"),
    **dict.fromkeys(("no certificate", "stranger", "stranger asked", "late"), REFUSED),
    **dict.fromkeys(("wrong authority", "expired", "elsewhere"), REFUSED),
    "plaintext to TLS": "TimeoutException",
    "not allowed": DENIED,
}


@pytest.mark.oracle
def test_java_sees_what_it_sees_of_kafka(ottla: Listeners, kafka: Listeners, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "k").mkdir()
    seen, of_kafka = java_sees(ottla, folder, tmp_path / "o"), java_sees(kafka, folder, tmp_path / "k")
    for found in (seen, of_kafka):  # by chance either, of Kafka too: the connection ends while Java shakes hands
        assert found.pop("TLS to plaintext") in ("TimeoutException", REFUSED)
    assert seen == of_kafka
    assert seen == JAVA


def librdkafka_sees(listeners: Listeners, folder: Path) -> dict[str, str]:
    """What becomes of a record in each case, or the state in which the connection failed."""
    found = {}
    for name, (listener, client, authority) in CASES.items():
        settings = librdkafka(folder, client, authority) | {"socket.timeout.ms": "3000"}
        options = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
        command = ["kcat", "-b", listeners.at(listener), *options, "-X", "message.timeout.ms=3000", "-P", "-t", "t"]
        done = subprocess.run(command, input=b"x", capture_output=True, timeout=60, check=False)
        text = (done.stdout + done.stderr).decode(errors="replace")
        state = re.search(r"in state (\w+)", text)
        found[name] = "ok" if done.returncode == 0 else state[1] if state else text.strip().splitlines()[-1]
    return found


@pytest.mark.oracle
@pytest.mark.usefixtures("kcat")
def test_kcat_sees_what_it_sees_of_kafka(ottla: Listeners, kafka: Listeners, folder: Path) -> None:
    assert librdkafka_sees(ottla, folder) == librdkafka_sees(kafka, folder)


def answers_to_changes(listeners: Listeners, folder: Path, other: Path) -> list[tuple[str, int, str]]:
    """What the broker says of changes of the keys of a listener."""
    r = m.IncrementalAlterConfigsRequest
    prefix, found = "listener.name.open.ssl.", []
    changes: list[tuple[str, dict[str, str]]] = [
        ("1", {"keystore.location": "/nowhere"}),
        ("1", {"keystore.type": "JKS"}),
        ("1", {"keystore.location": str(other / "name" / "server.pem")}),
        ("1", {"keystore.location": str(other / "fewer" / "server.pem")}),
        ("1", {"keystore.location": str(folder / "good" / "server.p12")}),
        ("1", _java_store(folder, "p12", "PKCS12", "wrong")),
        ("1", _java_store(folder, "p12", "PKCS12", PASSWORD)),
        ("1", _java_store(folder, "jks", "JKS", PASSWORD)),
        ("", {"keystore.type": "PEM"}),
        ("1", {"truststore.location": "/nowhere"}),
        ("1", {"client.auth": "maybe"}),
        ("1", {"client.auth": "required"}),
        ("1", {"principal.mapping.rules": "DEFAULT"}),
    ]
    with Wire(listeners.at("PLAINTEXT")) as wire:
        for broker, values in changes:
            configs = [r.AlterableConfig(name=prefix + key, config_operation=0, value=v) for key, v in values.items()]
            resource = r.AlterConfigsResource(resource_type=4, resource_name=broker, configs=configs)
            answer = wire.ask("IncrementalAlterConfigs", 1, r(resources=[resource])).responses[0]
            found.append((str(values), answer.error_code, answer.error_message or ""))
    return found


def _java_store(folder: Path, ending: str, kind: str, password: str) -> dict[str, str]:
    location = str(folder / "good" / f"server.{ending}")
    return {"keystore.location": location, "keystore.type": kind, "keystore.password": password}


@pytest.mark.oracle
def test_changes_of_a_listeners_keys_are_answered_as_by_kafka(
    ottla: Listeners, kafka: Listeners, folder: Path, tmp_path: Path
) -> None:
    certs.make(tmp_path / "name", ["other", *certs.HOSTS], [], PASSWORD)
    certs.make(tmp_path / "fewer", ["localhost"], [], PASSWORD)
    ours, theirs = (answers_to_changes(one, folder, tmp_path) for one in (ottla, kafka))
    assert [(change, code) for change, code, _ in ours] == [(change, code) for change, code, _ in theirs]
    for (change, _, words), (_, _, kafkas) in zip(ours, theirs, strict=True):
        begin = kafkas.removesuffix(" for configuration Invalid dynamic configuration")  # ottla says more
        if "SubjectAltNames" in begin:  # a set of Java's, in any order
            begin = begin.partition(" existing=")[0]
        assert words.startswith(begin), change


KAFKA_PYTHON = """
import sys
from kafka import KafkaProducer
names = ("ssl_cafile", "ssl_certfile", "ssl_keyfile")
producer = KafkaProducer(bootstrap_servers=sys.argv[1], security_protocol="SSL", bootstrap_timeout_ms=1000,
                         **dict(zip(names, sys.argv[2:])))
producer.send("t", b"x").get(30)
producer.close()
"""


@pytest.mark.parametrize("name", ["good", "no certificate", "stranger", "late", "wrong authority"])
def test_clients_in_python(ottla: Listeners, folder: Path, name: str) -> None:
    """confluent-kafka, aiokafka, and kafka-python, in a process, because it leaves its sockets open when it is
    refused.
    """
    listener, client, authority = CASES[name]
    failures: list[KafkaError] = []
    settings = {**librdkafka(folder, client, authority), "error_cb": failures.append, "log_level": 0}
    confluent = Producer({"bootstrap.servers": ottla.at(listener), **settings})
    confluent.produce("t", b"x")
    until(lambda: confluent.flush(0.1) == 0 or bool(failures), "the client is let in, or refused")
    assert (not failures) is (name == "good"), failures
    of = folder / ("other" if client == "stranger" else "good")
    own = [str(of / f"{client}.crt"), str(of / f"{client}.key")] if client is not None else []
    command = [sys.executable, "-c", KAFKA_PYTHON, ottla.at(listener), str(folder / authority / "ca.crt"), *own]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0) is (name == "good"), done.stderr

    async def produce() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=ottla.at(listener),
            security_protocol="SSL",
            ssl_context=client_context(folder, client, authority),
        )
        try:
            if name == "good":
                await producer.start()
                await producer.send_and_wait("t", b"x")
            else:
                with pytest.raises(KafkaConnectionError):
                    await producer.start()
        finally:
            await producer.stop()

    asyncio.run(produce())


@pytest.mark.go
def test_franz_go_and_sarama(ottla: Listeners, folder: Path, go_clients: Run) -> None:
    go_clients(ottla.at("NEEDED"), "tls", str(folder / "good"), str(folder / "other"), within=100)


@pytest.mark.node
def test_kafkajs(ottla: Listeners, folder: Path, kafkajs: Run) -> None:
    kafkajs("tls.js", ottla.at("NEEDED"), str(folder / "good"), str(folder / "other"), within=100)
