"""The lab's port with TLS: its clients, who is refused, and connections that say nothing."""

from __future__ import annotations

import http.client
import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from ottla.broker.lab.http import CONNECTIONS_MAX

from ottla import certs
from ottla.cli import main
from ottla.lab_client import Lab, LabUnreachable
from ottla.testing import Broker, BrokerFailed

from ..support.ask import create
from ..support.poll import until
from ..support.tls import PASSWORD
from ..support.wire import Wire

TOKEN = "a-token"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certs")
    for name in ("good", "other"):
        certs.make(made / name, certs.HOSTS, [], PASSWORD)
    shutil.copy(made / "good" / "server.pem", made / "used.pem")
    return made


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    settings: dict[str, object] = {
        "ottla.lab.token": TOKEN,
        "ottla.lab.tls": "true",
        "ssl.client.auth": "required",  # of listeners, not of the lab
        "listener.name.lab.ssl.keystore.type": "PEM",
        "listener.name.lab.ssl.keystore.location": folder / "used.pem",
    }
    with Broker(settings) as broker, Wire(broker.bootstrap_servers) as wire:
        create(wire, "orders", 3)
        yield broker


def address(broker: Broker) -> tuple[str, int]:
    host, _, port = broker.lab_url.removeprefix("https://").rpartition(":")
    return host, int(port)


def test_clients_and_commands_use_https(broker: Broker, folder: Path) -> None:
    authority = str(folder / "good" / "ca.crt")
    assert broker.lab_url.startswith("https://127.0.0.1:")
    found = Lab(broker.lab_url, TOKEN, ca_file=authority).get("topics")
    assert [one["topic"] for one in found["topics"]] == ["orders"]
    environment = {"OTTLA_LAB": broker.lab_url, "OTTLA_LAB_TOKEN": TOKEN, "OTTLA_LAB_CA": authority}
    held = CliRunner().invoke(main, ["hold", "orders"], env=environment)
    assert (held.exit_code, held.stdout.count("held")) == (0, 3)


def test_a_client_that_trusts_another_authority_hangs_up(broker: Broker, folder: Path) -> None:
    with pytest.raises(LabUnreachable):
        Lab(broker.lab_url, TOKEN, ca_file=str(folder / "other" / "ca.crt")).get("topics")


def test_requests_without_tls_are_not_answered(broker: Broker) -> None:
    with socket.create_connection(address(broker), timeout=20) as plain:
        plain.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = plain.recv(1000)
        assert not answer.startswith(b"HTTP")


def test_pages_of_the_lab_itself_are_those_of_https(broker: Broker, folder: Path) -> None:
    """Requests over one connection, one after another; the replies are as without TLS."""
    context = ssl.create_default_context(cafile=str(folder / "good" / "ca.crt"))
    wire = http.client.HTTPSConnection(*address(broker), context=context, timeout=20)
    found = []
    for scheme in ("https", "http", "https"):
        host = f"127.0.0.1:{address(broker)[1]}"
        wire.request("GET", "/live", headers={"Host": host, "Origin": f"{scheme}://{host}"})
        reply = wire.getresponse()
        found.append((reply.status, len(reply.read()) > 0))
    wire.close()
    assert found == [(200, True), (403, True), (200, True)]


def test_connections_that_say_nothing_are_bounded(broker: Broker, folder: Path) -> None:
    wires = [socket.create_connection(address(broker), timeout=20) for _ in range(CONNECTIONS_MAX + 5)]
    try:
        assert [one.recv(1) for one in wires[CONNECTIONS_MAX:]] == [b""] * 5
    except ConnectionResetError:
        pass  # closed, too
    finally:
        for one in wires:
            one.close()
    until(lambda: answers(broker, folder / "good"), "there is room again", every=0.1)


def answers(broker: Broker, authority: Path) -> bool:
    """Whether the lab answers a client that trusts an authority."""
    try:
        return bool(Lab(broker.lab_url, TOKEN, ca_file=str(authority / "ca.crt")).get("state"))
    except LabUnreachable:
        return False


def test_a_new_certificate_is_used_without_a_restart(broker: Broker, folder: Path) -> None:
    assert not answers(broker, folder / "other")
    shutil.copy(folder / "other" / "server.pem", folder / "used.pem")
    until(lambda: answers(broker, folder / "other"), "the other certificate is shown", every=0.1)
    assert not answers(broker, folder / "good")


def test_a_lab_with_tls_needs_a_certificate() -> None:
    broker = Broker({"ottla.lab.tls": "true"})
    with pytest.raises(BrokerFailed, match=r"ottla.lab.tls needs a certificate: set ssl.keystore.location"):
        broker.start()
    broker.close()
