"""Real clients log in to a broker whose only setting is a user: PLAIN and SCRAM, good and bad passwords."""

from __future__ import annotations

import asyncio
import re
import ssl
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import errors as aio_errors
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer

from ottla.testing import Broker

from ..oracle import kafka as oracle
from ..oracle.kafka import tool
from ..support.poll import until
from ..support.tls import java, make_certificates
from .conftest import Run

pytestmark = pytest.mark.slow
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "alice", "alice: secret"
MODULES = "org.apache.kafka.common.security"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "ottla.users": f"{USER}:{PASSWORD}"}) as running:
        yield running


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:10]}"


def librdkafka(broker: Broker, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": mechanism,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
        "log_level": 0,
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka(broker: Broker, topic: str, mechanism: str) -> None:
    failures: list[KafkaError] = []
    settings = librdkafka(broker, mechanism)
    producer = Producer(settings)
    producer.produce(topic, b"hello")
    assert producer.flush(30) == 0
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"hello"
    consumer.close()
    refused = Producer({**settings, "sasl.password": "wrong", "error_cb": failures.append})
    until(lambda: refused.poll(0.05) >= 0 and bool(failures), "the client is refused")
    assert failures[0].code() == KafkaError._AUTHENTICATION


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(broker: Broker, topic: str, mechanism: str) -> None:
    settings = {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(**settings)
    producer.send(topic, b"hello").get(30)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, **settings)
    assert next(consumer).value == b"hello"
    consumer.close()
    assert is_refused(settings | {"sasl_plain_password": "wrong", "bootstrap_timeout_ms": 1000})


def is_refused(settings: dict[str, Any]) -> bool:
    """Whether a producer of kafka-python cannot log in. It leaves its sockets open, so that it is in a process."""
    program = f"import kafka; kafka.KafkaProducer(**{settings!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode == 1 and "Unable to bootstrap" in done.stderr


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_aiokafka(broker: Broker, topic: str, mechanism: str) -> None:
    settings = {
        "bootstrap_servers": broker.bootstrap_servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }

    async def run() -> None:
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        await producer.send_and_wait(topic, b"hello")
        await producer.stop()
        consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, **settings)
        await consumer.start()
        assert (await consumer.getone()).value == b"hello"
        await consumer.stop()
        refused = AIOKafkaProducer(**settings | {"sasl_plain_password": "wrong"})
        with pytest.raises((aio_errors.KafkaConnectionError, aio_errors.AuthenticationFailedError)):
            await refused.start()
        await refused.stop()

    asyncio.run(run())


@pytest.mark.usefixtures("kcat")
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat(broker: Broker, topic: str, mechanism: str) -> None:
    def run(
        *arguments: str, password: str = PASSWORD, stdin: bytes | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        user = [f"sasl.username={USER}", f"sasl.password={password}"]
        settings = ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanisms={mechanism}", *user]
        options = [word for one in settings for word in ("-X", one)]
        command = ["kcat", "-b", broker.bootstrap_servers, *options, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)

    assert run("-P", "-t", topic, stdin=b"hello\n").returncode == 0
    assert run("-C", "-t", topic, "-o", "beginning", "-e", "-q").stdout == b"hello\n"
    refused = run("-L", "-m", "5", password="wrong")
    assert refused.returncode == 1
    assert b"Authentication failed" in refused.stderr


def command_config(path: Path, mechanism: str, password: str, user: str = USER) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    jaas = f'{MODULES}.{module} required username="{user}" password="{password}";'
    path.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n")
    return str(path)


@pytest.mark.oracle
def test_kafkas_tools_add_users_and_log_in(broker: Broker, tmp_path: Path) -> None:
    at = ["--bootstrap-server", broker.bootstrap_servers, "--command-config"]
    good = command_config(tmp_path / "good", "SCRAM-SHA-256", PASSWORD)
    carol = ["--entity-type", "users", "--entity-name", "carol"]
    for credential in ("SCRAM-SHA-256=[iterations=8192,password=pencil]", "SCRAM-SHA-512=[password=pencil]"):
        done = tool("kafka.admin.ConfigCommand", *at, good, "--alter", *carol, "--add-config", credential)
        assert "Completed updating" in done.stdout, done.stdout + done.stderr
    admin = AdminClient(librdkafka(broker, "PLAIN"))
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result().scram_credential_infos
    assert [(one.mechanism.name, one.iterations) for one in described] == [
        ("SCRAM_SHA_256", 8192),
        ("SCRAM_SHA_512", 4096),
    ]
    as_carol = command_config(tmp_path / "carol", "SCRAM-SHA-512", "pencil", "carol")
    assert tool("TopicCommand", *at, as_carol, "--list").returncode == 0
    plain = command_config(tmp_path / "plain", "PLAIN", PASSWORD)
    assert tool("TopicCommand", *at, plain, "--list").returncode == 0
    tool("kafka.admin.ConfigCommand", *at, good, "--alter", *carol, "--delete-config", "SCRAM-SHA-512")
    refused = tool("TopicCommand", *at, as_carol, "--list")
    assert refused.returncode == 1
    assert "SaslAuthenticationException" in refused.stdout + refused.stderr


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def with_tls(certificates: Path) -> Iterator[Broker]:
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates / "good" / "server.pem",
        "ottla.users": f"{USER}:{PASSWORD}",
    }
    with Broker(settings) as running:
        yield running


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_python_over_tls(with_tls: Broker, certificates: Path, topic: str, mechanism: str) -> None:
    settings = {
        "bootstrap_servers": with_tls.bootstrap_servers,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    authority = str(certificates / "good" / "ca.crt")
    with KafkaProducer(ssl_cafile=authority, **settings) as producer:
        producer.send(topic, b"hello").get(30)
    wrong = {"sasl_plain_password": "wrong", "bootstrap_timeout_ms": 1000, "ssl_cafile": authority}
    assert is_refused(settings | wrong)

    async def run() -> None:
        async with AIOKafkaProducer(ssl_context=ssl.create_default_context(cafile=authority), **settings) as aio:
            await aio.send_and_wait(topic, b"hello")

    asyncio.run(run())


@pytest.mark.go
def test_franz_go_and_sarama_over_tls(with_tls: Broker, certificates: Path, go_clients: Run) -> None:
    go_clients(with_tls.bootstrap_servers, "sasl", USER, PASSWORD, str(certificates / "good"), within=120)


@pytest.mark.node
def test_kafkajs_over_tls(with_tls: Broker, certificates: Path, kafkajs: Run) -> None:
    kafkajs("sasl.js", with_tls.bootstrap_servers, USER, PASSWORD, str(certificates / "good"), within=120)


@pytest.mark.oracle
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_logging_in_over_tls(with_tls: Broker, certificates: Path, mechanism: str, topic: str, tmp_path: Path) -> None:
    over_tls = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(certificates / "good" / "ca.crt")}
    failures: list[KafkaError] = []
    producer = Producer({**librdkafka(with_tls, mechanism), **over_tls})
    producer.produce(topic, b"hello")
    assert producer.flush(30) == 0
    wrong = {"sasl.password": "wrong", "error_cb": failures.append}
    refused = Producer({**librdkafka(with_tls, mechanism), **over_tls, **wrong})
    until(lambda: refused.poll(0.05) >= 0 and bool(failures), "the client is refused")
    assert failures[0].code() == KafkaError._AUTHENTICATION
    config = Path(command_config(tmp_path / "config", mechanism, PASSWORD))
    stores = java(certificates, None) | {"security.protocol": "SASL_SSL"}
    config.write_text(config.read_text() + "".join(f"{key}={value}\n" for key, value in stores.items()))
    at = ["--bootstrap-server", with_tls.bootstrap_servers, "--command-config", str(config)]
    assert topic in tool("TopicCommand", *at, "--list").stdout


@pytest.mark.oracle
def test_java_and_librdkafka_renew_their_sessions(topic: str, tmp_path: Path) -> None:
    """Sessions last five seconds, and a producer of each goes on for longer without an error (KIP-368). Clients begin
    again when 85 to 95 % of the time are over. The broker's clock goes slowly, so that no session ends on a busy
    machine, and fast enough that a second has passed, before which a broker refuses who begins again.
    """
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "connections.max.reauth.ms": 5000,
        "ottla.users": f"{USER}:{PASSWORD}",
    }
    with Broker(settings) as broker:
        broker.clock.rate(0.3)

        def count(metric: str) -> int:
            with urllib.request.urlopen(f"{broker.lab_url}/metrics", timeout=10) as reply:
                text = reply.read().decode()
            return sum(
                int(float(one)) for one in re.findall(rf"^\w*_{metric}_total\{{.*\}} (\S+)$", text, re.MULTILINE)
            )

        failures: list[KafkaError] = []
        producer = Producer({**librdkafka(broker, "SCRAM-SHA-256"), "error_cb": failures.append})

        def is_renewed() -> bool:
            producer.produce(topic, b"hello")
            return producer.flush(30) == 0 and count("successful_reauthentication") >= 1

        until(is_renewed, "librdkafka renews its session")
        assert producer.close(30)
        before = count("successful_reauthentication")
        config = command_config(tmp_path / "config", "PLAIN", PASSWORD)
        at = ["--bootstrap-server", broker.bootstrap_servers, "--command-config", config]
        command = oracle.java("tools", "org.apache.kafka.tools.ConsoleProducer", *at, "--topic", topic)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
            lines, output = process.stdin, process.stdout
            assert lines is not None
            assert output is not None

            def is_renewed_by_java() -> bool:
                lines.write("hello\n")
                lines.flush()
                return count("successful_reauthentication") > before

            until(is_renewed_by_java, "Java renews its session", every=0.1)
            lines.close()
            said = output.read()
        assert (process.returncode, "ERROR" in said, "WARN" in said) == (0, False, False), said
        assert (failures, count("expired_connections_killed_count")) == ([], 0)


@pytest.mark.go
def test_franz_go_and_sarama(broker: Broker, go_clients: Run) -> None:
    go_clients(broker.bootstrap_servers, "sasl", USER, PASSWORD, within=120)


@pytest.mark.node
def test_kafkajs(broker: Broker, kafkajs: Run) -> None:
    kafkajs("sasl.js", broker.bootstrap_servers, USER, PASSWORD, within=120)
