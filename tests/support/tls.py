"""Certificates, good and bad, and a broker's listeners that use them. Everything is made at run time."""

from __future__ import annotations

import datetime
import ssl
from pathlib import Path

from ottla import certs

from .ports import free_ports
from .wire import Wire

PASSWORD = "changeit"
LISTENERS = ("NEEDED", "ASKED", "OPEN", "EXPIRED", "ELSEWHERE")


def make_certificates(folder: Path) -> Path:
    """Writes those of `ottla certs`, a client `stranger` of another authority, and two bad ones of the server."""
    good, other = folder / "good", folder / "other"
    certs.make(good, certs.HOSTS, ["client", "writer"], PASSWORD)
    certs.make(other, certs.HOSTS, ["stranger"], PASSWORD)
    ca = certs.authority_of(good)
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=30)
    certs.write_stores(good, "expired", certs.issue(ca, "localhost", certs.HOSTS, begin=long_ago, days=3), PASSWORD)
    certs.write_stores(good, "late", certs.issue(ca, "late", begin=long_ago, days=3), PASSWORD)
    certs.write_stores(good, "elsewhere", certs.issue(ca, "elsewhere", ["elsewhere.test"]), PASSWORD)
    return folder


class Listeners:
    """A broker's listeners: PLAINTEXT, and those of `LISTENERS` with TLS."""

    def __init__(self, folder: Path) -> None:
        good = folder / "good"
        self.ports = dict(zip(("PLAINTEXT", *LISTENERS), free_ports(len(LISTENERS) + 1), strict=True))
        protocols = ",".join(f"{name}:SSL" for name in LISTENERS)
        self.settings: dict[str, object] = {
            "listeners": self.listeners,
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{protocols}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": good / "server.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": good / "ca.crt",
            "listener.name.needed.ssl.client.auth": "required",
            "listener.name.asked.ssl.client.auth": "requested",
            "listener.name.expired.ssl.keystore.location": good / "expired.pem",
            "listener.name.elsewhere.ssl.keystore.location": good / "elsewhere.pem",
        }

    @property
    def listeners(self) -> str:
        return ",".join(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items())

    def of_kafka(self, controller_port: int) -> dict[str, object]:
        """The same settings for Kafka, which has a listener of its controller."""
        return {
            **self.settings,
            "listeners": f"{self.listeners},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": self.listeners,
        }

    def at(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"


def client_context(folder: Path, client: str | None = "client", authority: str = "good") -> ssl.SSLContext:
    """What a client in Python uses. `authority`: whose servers it trusts."""
    context = ssl.create_default_context(cafile=str(folder / authority / "ca.crt"))
    if client is not None:
        of = folder / ("other" if client == "stranger" else "good")
        context.load_cert_chain(of / f"{client}.crt", of / f"{client}.key")
    return context


class TlsWire(Wire):
    """A connection over TLS."""

    def __init__(self, bootstrap_servers: str, context: ssl.SSLContext) -> None:
        super().__init__(bootstrap_servers)
        self.socket = context.wrap_socket(self.socket, server_hostname="localhost")


def librdkafka(folder: Path, client: str | None = "client", authority: str = "good") -> dict[str, str]:
    found = {"security.protocol": "ssl", "ssl.ca.location": str(folder / authority / "ca.crt")}
    if client is not None:
        of = folder / ("other" if client == "stranger" else "good")
        found |= {"ssl.certificate.location": str(of / f"{client}.crt"), "ssl.key.location": str(of / f"{client}.key")}
    return found


def java(folder: Path, client: str | None = "client", authority: str = "good", kind: str = "PKCS12") -> dict[str, str]:
    ending = {"PKCS12": "p12", "JKS": "jks"}[kind]
    found = {
        "security.protocol": "SSL",
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(folder / authority / f"truststore.{ending}"),
        "ssl.truststore.password": PASSWORD,
    }
    if client is not None:
        of = folder / ("other" if client == "stranger" else "good")
        found |= {
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(of / f"{client}.{ending}"),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
        }
    return found
