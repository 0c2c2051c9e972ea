"""Listeners with TLS of a broker process: clients in Python, principals, certificates that change, bytes that are none
of TLS, and what the log says.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla import certs
from ottla.testing import Broker

from ..support.ask import create, fetch, produce
from ..support.poll import until
from ..support.ports import free_port
from ..support.tls import PASSWORD, Listeners, TlsWire, client_context, librdkafka, make_certificates
from ..support.wire import Closed, Wire, request_frame

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:client",
    "ssl.principal.mapping.rules": "RULE:^CN=(client)$/$1/,DEFAULT",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificates(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def listeners(folder: Path) -> Listeners:
    return Listeners(folder)


@pytest.fixture(scope="module")
def broker(listeners: Listeners) -> Iterator[Broker]:
    with Broker({**listeners.settings, **AUTHORIZER}) as running:
        with Wire(running.bootstrap_servers) as wire:
            create(wire, "t")
            create(wire, "mine")
        yield running


@pytest.mark.long
def test_clients_in_python_are_served(broker: Broker, listeners: Listeners, folder: Path) -> None:
    confluent = confluent_kafka.Producer({"bootstrap.servers": listeners.at("NEEDED"), **librdkafka(folder)})
    confluent.produce("t", b"confluent")
    assert confluent.flush(30) == 0
    context = client_context(folder)
    plain = kafka.KafkaProducer(bootstrap_servers=listeners.at("NEEDED"), security_protocol="SSL", ssl_context=context)
    plain.send("t", b"kafka-python").get(30)
    plain.close()

    async def send() -> None:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=listeners.at("NEEDED"), security_protocol="SSL", ssl_context=context
        )
        await producer.start()
        await producer.send_and_wait("t", b"aiokafka")
        await producer.stop()

    asyncio.run(send())
    with Wire(broker.bootstrap_servers) as wire:
        assert set(fetch(wire, "t")) >= {b"confluent", b"kafka-python", b"aiokafka"}


def test_large_requests_and_replies_pass_in_both_directions(broker: Broker, listeners: Listeners, folder: Path) -> None:
    large = bytes(range(256)) * 3500
    with Wire(broker.bootstrap_servers) as wire:
        create(wire, "large")
    with TlsWire(listeners.at("OPEN"), client_context(folder, None)) as wire:
        for _ in range(4):
            assert produce(wire, "large", large).error_code == 0
        assert fetch(wire, "large") == [large] * 4
        for _ in range(300):  # many requests before the first reply is read
            wire.send(request_frame("ApiVersions", 0, m.ApiVersionsRequest(), 7, "t"))
        assert {wire.read_frame()[:4] for _ in range(300)} == {b"\0\0\0\7"}


def test_the_principal_of_a_certificate_decides(broker: Broker, listeners: Listeners, folder: Path) -> None:
    with Wire(broker.bootstrap_servers) as wire:
        c = m.CreateAclsRequest.AclCreation
        acl = c(
            resource_type=2,
            resource_name="mine",
            resource_pattern_type=3,
            principal="User:CN=writer",
            host="*",
            operation=4,
            permission_type=3,
        )
        assert wire.ask("CreateAcls", 3, m.CreateAclsRequest(creations=[acl])).results[0].error_code == 0
    with TlsWire(listeners.at("NEEDED"), client_context(folder, "writer")) as wire:
        assert produce(wire, "mine", b"1").error_code == 0
        assert produce(wire, "t", b"2").error_code == Errors.TOPIC_AUTHORIZATION_FAILED
    with TlsWire(listeners.at("NEEDED"), client_context(folder)) as wire:  # the rules make it a super user
        assert produce(wire, "t", b"3").error_code == 0


def test_metadata_has_the_addresses_of_the_listener(broker: Broker, listeners: Listeners, folder: Path) -> None:
    with TlsWire(listeners.at("OPEN"), client_context(folder, None)) as wire:
        found = wire.ask("Metadata", 12, m.MetadataRequest(topics=[])).brokers
        assert [(one.host, one.port) for one in found] == [("127.0.0.1", listeners.ports["OPEN"])]


def dropped(address: str, data: bytes, timeout: float = 20) -> bytes:
    """What comes back for bytes until the broker closes the connection."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout) as peer:
        peer.sendall(data)
        found = bytearray()
        try:
            while part := peer.recv(4096):
                found += part
        except ConnectionResetError:
            pass
        return bytes(found)


@pytest.mark.slow
def test_bytes_that_are_no_tls_close_the_connection_and_are_logged(folder: Path) -> None:
    listeners = Listeners(folder)
    with Broker(listeners.settings) as broker:
        dropped(listeners.at("OPEN"), request_frame("ApiVersions", 0, m.ApiVersionsRequest(), 1, "t"))
        until(lambda: "the TLS handshake failed with 127.0.0.1:" in broker.log, "it is logged")
        assert "on the listener OPEN: wrong version number" in broker.log
    with Broker(listeners.settings) as broker:
        hello = ssl.MemoryBIO()
        tls_client = client_context(folder).wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost")
        with pytest.raises(ssl.SSLWantReadError):
            tls_client.do_handshake()
        dropped(listeners.at("PLAINTEXT"), hello.read())
        until(lambda: "speaks TLS to the listener PLAINTEXT" in broker.log, "it is logged")


@pytest.mark.parametrize(
    ("version", "client", "words"),
    [
        (ssl.TLSVersion.TLSv1_3, "stranger", "UNKNOWN_CA"),
        (ssl.TLSVersion.TLSv1_3, "late", "CERTIFICATE_EXPIRED"),
        (ssl.TLSVersion.TLSv1_3, None, "CERTIFICATE_REQUIRED"),
        (ssl.TLSVersion.TLSv1_2, "stranger", "BAD_CERTIFICATE"),
        (ssl.TLSVersion.TLSv1_2, "late", "CERTIFICATE_UNKNOWN"),
        (ssl.TLSVersion.TLSv1_2, None, "BAD_CERTIFICATE"),
    ],
)
def test_a_refused_client_gets_the_alert(
    version: ssl.TLSVersion, client: str | None, words: str, broker: Broker, listeners: Listeners, folder: Path
) -> None:
    """OpenSSL's with TLS 1.3, where it is encrypted, and Java's with TLS 1.2."""
    context = client_context(folder, client)
    context.maximum_version = version
    with pytest.raises(ssl.SSLError, match=words), TlsWire(listeners.at("NEEDED"), context) as wire:
        wire.ask("ApiVersions", 0, m.ApiVersionsRequest())


@pytest.mark.slow
def test_a_certificate_that_changes_is_used_without_a_restart(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "server.pem"
    path.write_bytes((folder / "good" / "server.pem").read_bytes())
    listeners = Listeners(folder)
    name = "listener.name.open.ssl.keystore.location"
    certs.make(tmp_path / "new", certs.HOSTS, [], PASSWORD)
    trusts_new = ssl.create_default_context(cafile=str(tmp_path / "new" / "ca.crt"))

    def is_served(context: ssl.SSLContext) -> bool:
        try:
            with TlsWire(listeners.at("OPEN"), context) as wire:
                return bool(wire.ask("ApiVersions", 0, m.ApiVersionsRequest()).error_code == 0)
        except (ssl.SSLError, Closed, ConnectionError):
            return False

    with Broker({**listeners.settings, name: path}) as broker:
        with TlsWire(listeners.at("OPEN"), client_context(folder, None)) as before:
            path.write_bytes(b"nothing")
            until(lambda: "keeps its keys and certificates" in broker.log, "the file is refused")
            assert is_served(client_context(folder, None))
            path.write_bytes((tmp_path / "new" / "server.pem").read_bytes())
            until(lambda: is_served(trusts_new), "the new certificate is used")
            assert before.ask("ApiVersions", 0, m.ApiVersionsRequest()).error_code == 0
        r = m.IncrementalAlterConfigsRequest
        change = r.AlterableConfig(name=name, config_operation=0, value=str(folder / "good" / "server.pem"))
        resource = r.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])
        with Wire(broker.bootstrap_servers) as wire:
            done = wire.ask("IncrementalAlterConfigs", 1, r(resources=[resource]))
            assert done.responses[0].error_code == 0
        until(lambda: is_served(client_context(folder, None)), "the old certificate is used again")
        broker.stop()
        broker.bootstrap_servers = ""  # it restarts with its listeners
        broker.start()
        assert is_served(client_context(folder, None))  # the metadata has the location


@pytest.mark.slow
def test_a_health_check_makes_a_handshake(broker: Broker, listeners: Listeners) -> None:
    def exit_code(name: str, *more: str) -> int:
        command = [sys.executable, "-m", "ottla", "ready", "-b", listeners.at(name), *more]
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode

    assert [exit_code("OPEN", "--tls"), exit_code("PLAINTEXT"), exit_code("PLAINTEXT", "--tls")] == [0, 0, 1]


@pytest.mark.slow
def test_clients_log_in_after_the_handshake(folder: Path) -> None:
    port = free_port()
    settings: dict[str, object] = {
        **Listeners(folder).settings,
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
        "ssl.client.auth": "required",  # which counts for SSL only
        "ottla.users": "alice:secret",
        **AUTHORIZER,
        "super.users": "User:ANONYMOUS;User:alice",
    }
    with Broker(settings) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            create(wire, "t")
        for mechanism, password, code in (
            ("PLAIN", "secret", None),
            ("SCRAM-SHA-512", "secret", None),
            ("PLAIN", "wrong", confluent_kafka.KafkaError._AUTHENTICATION),
        ):
            errors: list[confluent_kafka.KafkaError] = []
            client = confluent_kafka.Producer(
                {
                    **librdkafka(folder, None),
                    "bootstrap.servers": f"127.0.0.1:{port}",
                    "security.protocol": "sasl_ssl",
                    "sasl.mechanism": mechanism,
                    "sasl.username": "alice",
                    "sasl.password": password,
                    "error_cb": errors.append,
                    "message.timeout.ms": 5000,
                    "log_level": 0,
                }
            )
            delivered: list[object] = []
            client.produce("t", b"1", on_delivery=lambda error, _, delivered=delivered: delivered.append(error))
            client.flush(20)
            assert (delivered[0] is None) == (code is None), (mechanism, errors)
            assert code is None or code in [error.code() for error in errors]


@pytest.mark.slow
def test_listeners_whose_keys_cannot_be_used_end_the_start(folder: Path) -> None:
    listeners = Listeners(folder)
    name = "listener.name.open.ssl.keystore.location"
    running = Broker({**listeners.settings, name: "/nowhere"})
    with pytest.raises(RuntimeError, match=rf"(?s)exit code 2.*command line: {name}: .*No such file"):
        running.start()
    running.close()


def test_a_client_that_ends_without_a_goodbye_leaves_nothing(
    broker: Broker, listeners: Listeners, folder: Path
) -> None:
    wires = [TlsWire(listeners.at("OPEN"), client_context(folder, None)) for _ in range(5)]
    for wire in wires:
        wire.ask("ApiVersions", 0, m.ApiVersionsRequest())
        wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.close()
    assert "Traceback" not in broker.log
