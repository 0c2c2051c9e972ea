"""Clients in Python that connect anew: they ask for the versions of APIs, and log in where the listener wants it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

import kafka
from aiokafka import admin as aiokafka_admin
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as librdkafka

from .error_clients import PASSWORD, USER, Addresses

LOGINS: Final = ["SaslHandshake", "SaslAuthenticate"]
APIS: Final = ["ApiVersions", *LOGINS]
MECHANISM: Final = "SCRAM-SHA-256"
_ONLY_TELL: Final = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)  # librdkafka connects again
_LOGIN: Final = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": MECHANISM,
    "sasl_plain_username": USER,
    "sasl_plain_password": PASSWORD,
}


def of_librdkafka(at: Addresses, api: str, settings: Mapping[str, object], within_s: float) -> None:
    """Raises KafkaException with the first error that the client tells its application."""
    told: list[KafkaError] = []
    more: dict[str, object] = {"error_cb": told.append, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20}
    if api in LOGINS:
        user = {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD}
        more |= {"bootstrap.servers": at.secured, "security.protocol": "SASL_PLAINTEXT", **user}
    client = librdkafka.AdminClient({**settings, **more})
    found = client.describe_cluster()
    until = time.monotonic() + within_s
    while not found.done() and time.monotonic() < until:
        client.poll(0.02)
        for error in told:
            if error.code() not in _ONLY_TELL:
                raise KafkaException(error)
    found.result(0)


def of_kafka_python(at: Addresses, api: str) -> None:
    admin = kafka.KafkaAdminClient(retry_backoff_ms=10, reconnect_backoff_ms=10, **_in_python(at, api))
    try:
        admin.describe_cluster()
    finally:
        admin.close()


async def of_aiokafka(at: Addresses, api: str) -> None:
    admin = aiokafka_admin.AIOKafkaAdminClient(retry_backoff_ms=10, **_in_python(at, api))
    try:
        await admin.start()
        await admin.describe_cluster()
    finally:
        await admin.close()


def _in_python(at: Addresses, api: str) -> dict[str, str]:
    if api in LOGINS:
        return {"bootstrap_servers": at.secured, **_LOGIN}
    return {"bootstrap_servers": at.bootstrap}
