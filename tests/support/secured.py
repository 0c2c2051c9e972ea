"""Brokers whose clients log in: their settings, and the oracle with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..oracle.kafka import Kafka
from . import transcripts
from .differential import Pair
from .poll import until
from .ports import free_port
from .wire import Wire

MODULES = "org.apache.kafka.common.security"
LISTENER = "listener.name.sasl_plaintext"
MAP = "listener.security.protocol.map"
BROKER = 4
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
JAAS = {
    f"{LISTENER}.plain.sasl.jaas.config": " ".join(
        [
            f'{MODULES}.plain.PlainLoginModule required username="admin" password="admin-secret"',
            *(f'user_{name}="{password}"' for name, password in PASSWORDS.items()),
        ]
    )
    + ";",
    f"{LISTENER}.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    f"{LISTENER}.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
}
SETTINGS: dict[str, object] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
    **JAAS,
}
"""Settings of an ottla whose clients log in with PLAIN, or with SCRAM once they have credentials."""


class SecuredKafka(Kafka):
    """Kafka with these settings on its SASL listener, whose address is `sasl_servers`; it talks to itself without."""

    def __init__(
        self,
        settings: dict[str, object],
        directory: Path | None = None,
        *,
        formatted: bool = False,
        quick: bool = True,
        own_process: bool = False,
    ) -> None:
        super().__init__(directory=directory, formatted=formatted, quick=quick, own_process=own_process)
        self.sasl_port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{self.port},SASL_PLAINTEXT://127.0.0.1:{self.sasl_port}"
        self.settings = {
            **settings,
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": listeners,
            "listener.security.protocol.map": (
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
        }

    def start(self) -> SecuredKafka:
        super().start()
        return self

    def __enter__(self) -> SecuredKafka:
        return self.start()

    @property
    def sasl_servers(self) -> str:
        return f"127.0.0.1:{self.sasl_port}"


def second_listener(broker: Broker) -> str:
    """The address of the other listener of a broker with two."""
    others = {int(one.rpartition(":")[2]) for one in (broker.bootstrap_servers, broker.lab_url) if one}
    found = psutil.Process(broker.pid).net_connections(kind="tcp")
    (port,) = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN} - others
    return f"127.0.0.1:{port}"


def secured_brokers(settings: dict[str, object], mechanism: str, token: bytes) -> tuple[Any, Any, Any]:
    """A module's fixtures `kafka`, `ours` and `settled`: both brokers with these settings, and Kafka caught up with its
    own metadata. `mechanism`, `token`: how to log in.
    """

    @pytest.fixture(scope="module")
    def kafka() -> Iterator[str]:
        if transcripts.mode() == "recorded":
            yield ""
            return
        with SecuredKafka(settings, own_process=True) as running:
            yield running.sasl_servers

    @pytest.fixture(scope="module")
    def ours() -> Iterator[Broker]:
        with Broker(settings, lab=False) as broker:
            yield broker

    @pytest.fixture(scope="module")
    def settled(kafka: str) -> None:
        settle(kafka, mechanism, token)

    return kafka, ours, settled


def settle(servers: str, mechanism: str, token: bytes) -> None:
    """Waits until Kafka, if there is one, has caught up with its own metadata."""
    if servers:
        versions = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
        with Wire(servers) as wire:
            wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism=mechanism))
            wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))
            until(lambda: bool(wire.ask("ApiVersions", 4, versions).finalized_features), "Kafka settles")


def log_in(pair: Pair, token: bytes) -> None:
    pair.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
    pair.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=token))


def alter_broker(pair: Pair, changes: dict[str, str | None], broker: str = "1") -> None:
    r = m.IncrementalAlterConfigsRequest
    configs = [
        r.AlterableConfig(name=key, value=value, config_operation=int(value is None)) for key, value in changes.items()
    ]
    resource = r.AlterConfigsResource(resource_type=BROKER, resource_name=broker, configs=configs)
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource]))
