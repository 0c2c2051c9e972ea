"""Dynamic keys of listeners: what is refused with which words, and that keys of SASL change nothing, as in Kafka."""

from __future__ import annotations

import contextlib

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair
from ..support.secured import BROKER, LISTENER, MAP, MODULES, SETTINGS, alter_broker, log_in, secured_brokers

pytestmark = pytest.mark.slow
DYNAMIC_BROKER = 2  # the source of a value
ZOE = f'{MODULES}.plain.PlainLoginModule required user_zoe="zoe-secret";'
REFUSED: list[dict[str, str]] = [
    {f"{LISTENER}.max.connections": "0"},
    {f"{LISTENER}.max.connections": "x"},
    {f"{LISTENER}.max.connections.per.ip": "-1"},
    {f"{LISTENER}.num.network.threads": "99"},
    {f"{LISTENER}.num.network.threads": "0"},
    {f"{LISTENER}.num.network.threads": "1", f"{LISTENER}.max.connections": "0"},
    {"max.connections": "0"},
    {"max.connections.per.ip": "-1"},
    {"max.connections.per.ip": "0"},
    {"metric.reporters": "x.y.Z"},
    {"leader.replication.throttled.rate": "-5"},
    {"follower.replication.throttled.rate": "abc"},
    {"replica.alter.log.dirs.io.max.bytes.per.second": "-1"},
    {"log.cleaner.threads": "3"},
    {MAP: "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:PLAINTEXT"},
    *({MAP: malformed} for malformed in ("x", "A:B", ":PLAINTEXT", "a:b:c")),
    {f"{LISTENER}.max.connection.creation.rate": "0"},
    {"max.connection.creation.rate": "0"},
    {f"{LISTENER}.connections.max.reauth.ms": "x"},
    {"listener.name.nowhere.max.connections": "x"},
    {"listener.name.nowhere.ssl.client.auth": "sometimes"},
    {"listener.name.nowhere.ssl.engine.factory.class": "x.y.Z"},
    {"ssl.keystore.type": "JKS"},
    {"ssl.client.auth": "sometimes"},
]
OF_ALL_REFUSED: list[dict[str, str]] = [
    {f"{LISTENER}.max.connections": "0"},
    {f"{LISTENER}.max.connections.per.ip": "x"},
    {f"{LISTENER}.max.connections.per.ip": "5"},
    {f"{LISTENER}.max.connections": "1000", f"{LISTENER}.ssl.client.auth": "none"},
    {"ssl.client.auth": "none"},
    {"advertised.listeners": "PLAINTEXT://127.0.0.1:9092"},
    {"log.dirs": "x"},
]
OF_ALL_TAKEN: list[dict[str, str]] = [
    {f"{LISTENER}.max.connections": "1000", f"{LISTENER}.max.connection.creation.rate": "1000"},
    {"listener.name.nowhere.num.network.threads": "2"},  # Kafka ends connections whose thread goes
]
LOST = ("log.dirs", "ssl.keystore.type", "advertised.listeners", "no.such.key", f"{LISTENER}.max.connections.per.ip")
TAKEN: list[dict[str, str]] = [
    {"metric.reporters": ""},
    {"metric.reporters": "org.apache.kafka.common.metrics.JmxReporter"},
    {"leader.replication.throttled.rate": "0"},
    {"listener.name.nowhere.max.connections": "0"},
    {f"{LISTENER}.max.connections": "1000", "max.connections": "2000"},
    {"max.connections.per.ip.overrides": "127.0.0.9:5,no.such.host.invalid:6"},
    {"listener.name.a.b.max.connections": "x"},
    {"ssl.client.auth": "none", "ssl.protocol": "TLSv1.2"},
]

kafka, ours, settled = secured_brokers(
    {**SETTINGS, "connection.failed.authentication.delay.ms": 0}, "PLAIN", b"\0admin\0admin-secret"
)


def until_stored(pair: Pair, key: str, is_there: bool) -> None:
    """Waits until both describe the key, or do not describe it."""
    r = m.DescribeConfigsRequest
    asked = r(resources=[r.DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=[key])])
    pair.until(
        "DescribeConfigs",
        4,
        asked,
        lambda reply: any(one.config_source == DYNAMIC_BROKER for one in reply.results[0].configs) is is_there,
    )


def test_values_that_are_refused_and_taken(pair: Pair) -> None:
    log_in(pair, b"\0admin\0admin-secret")
    for refused in REFUSED:
        alter_broker(pair, dict(refused))
    for taken in TAKEN:
        alter_broker(pair, dict(taken))
        alter_broker(pair, dict.fromkeys(taken))
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_listeners_of_all_brokers(pair: Pair) -> None:
    log_in(pair, b"\0admin\0admin-secret")
    for refused in OF_ALL_REFUSED:
        alter_broker(pair, dict(refused), "")
    for taken in OF_ALL_TAKEN:
        alter_broker(pair, dict(taken), "")
        alter_broker(pair, dict.fromkeys(taken), "")
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}


def test_any_key_may_lose_its_value(pair: Pair) -> None:
    log_in(pair, b"\0admin\0admin-secret")
    for broker in ("", "1"):
        alter_broker(pair, dict.fromkeys(LOST), broker)
    assert pair.errors("IncrementalAlterConfigs") == {"NONE"}


def test_keys_of_sasl_change_nothing_and_fix_those_of_all_listeners(pair: Pair) -> None:
    log_in(pair, b"\0admin\0admin-secret")
    own = f"{LISTENER}.plain.sasl.jaas.config"
    alter_broker(pair, {"sasl.enabled.mechanisms": "PLAIN"})
    until_stored(pair, "sasl.enabled.mechanisms", is_there=True)
    alter_broker(pair, {own: ZOE})
    until_stored(pair, own, is_there=True)
    alter_broker(pair, {"sasl.enabled.mechanisms": "GSSAPI"})
    alter_broker(pair, {"sasl.enabled.mechanisms": "PLAIN", "log.retention.ms": "100000"})
    with contextlib.closing(pair.beside("other")) as other:
        log_in(other, b"\0zoe\0zoe-secret")
    alter_broker(pair, {own: None})
    until_stored(pair, own, is_there=False)
    alter_broker(pair, {"sasl.enabled.mechanisms": None, "log.retention.ms": None})
    assert pair.errors("IncrementalAlterConfigs") == {"NONE", "INVALID_REQUEST"}
