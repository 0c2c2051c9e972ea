"""Metrics that clients push (KIP-714): what they are asked for, and what is refused, as in Kafka with a plug-in that
takes metrics.
"""

from __future__ import annotations

import hashlib

import pytest
from ottla.protocol import compression
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers

pytestmark = pytest.mark.slow
BYTES_MAX = 4096
kafka, ours, coordinators = own_brokers(
    {"metric.reporters": "TelemetrySink", "telemetry.max.bytes": BYTES_MAX, "ottla.client.metrics": "always"}
)
GET, PUSH = m.GetTelemetrySubscriptionsRequest, m.PushTelemetryRequest
EMPTY_METRICS = b"\x0a\x00" * 8  # ResourceMetrics without anything
CODECS = (0, 1, 2, 3, 4)


def instance(name: str) -> bytes:
    """The id of a client."""
    return hashlib.sha256(name.encode()).digest()[:16]


def subscribe(pair: Pair, name: str, expected: set[str], **values: str | None) -> None:
    """Changes a subscription (`None` removes a value), and waits until a client like that of the pair is asked for
    these metrics.
    """
    i = m.IncrementalAlterConfigsRequest
    configs = [
        i.AlterableConfig(name=key.replace("_", "."), config_operation=int(value is None), value=value)
        for key, value in values.items()
    ]
    pair.ask(
        "IncrementalAlterConfigs",
        1,
        i(resources=[i.AlterConfigsResource(resource_type=16, resource_name=name, configs=configs)]),
    )
    pair.until("GetTelemetrySubscriptions", 0, GET(), lambda reply: set(reply.requested_metrics) == expected)


def unsubscribe(pair: Pair, name: str, expected: set[str] | None = None) -> None:
    subscribe(pair, name, expected or set(), metrics=None, interval_ms=None, match=None)


def get(pair: Pair, name: str) -> m.GetTelemetrySubscriptionsResponse:
    """Asks for the subscriptions of a client; returns Kafka's reply."""
    found: m.GetTelemetrySubscriptionsResponse
    _, found = pair.ask("GetTelemetrySubscriptions", 0, GET(client_instance_id=instance(name)))
    return found


def push(
    pair: Pair, name: str, subscription_id: int, data: bytes = b"", codec: int = 0, *, terminating: bool = False
) -> int:
    """Pushes metrics; returns the code of Kafka's error."""
    request = PUSH(
        client_instance_id=instance(name),
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=codec,
        metrics=data,
    )
    _, found = pair.ask("PushTelemetry", 0, request)
    return int(found.error_code)


def test_the_apis_are_listed(pair: Pair) -> None:
    _, found = pair.ask("ApiVersions", 4, m.ApiVersionsRequest(client_software_name="n", client_software_version="1"))
    assert {71, 72} <= {one.api_key for one in found.api_keys}


def test_what_a_client_is_asked_for(pair: Pair) -> None:
    """The metrics of all subscriptions that match, in Kafka's order; the shortest interval; the subscription id."""
    assert get(pair, "nothing").push_interval_ms == 300_000
    many = [f"org.apache.kafka.producer.metric.{n}" for n in range(20)]
    subscribe(pair, "many", set(many), metrics=",".join(many))
    assert len(get(pair, "many").requested_metrics) == 20
    subscribe(pair, "other", {*many, "b", "a"}, metrics="b,a", interval_ms="500")
    assert get(pair, "both").push_interval_ms == 500
    subscribe(pair, "all", {"*"}, metrics="*,c", interval_ms="700000")
    assert get(pair, "all").requested_metrics == ["*"]
    for name, left in (("all", {*many, "b", "a"}), ("other", set(many)), ("many", set())):
        unsubscribe(pair, name, left)


MATCHING = {
    "client_id=wire": True,
    "client_id=wir": False,
    "client_id=w.*": True,
    "client_id=.*": True,
    "client_id=W.*": False,
    "client_id=wire=": True,
    "client_id=other,client_id=wire": True,
    "client_id=wire,client_id=other": False,
    "client_id = w[a-i]+re ": True,
    "client_software_name=unknown": True,
    "client_software_version=unknown": True,
    "client_source_address=127\\..*": True,
    "client_source_port=\\d+": True,
    "client_source_port=x": False,
    "client_instance_id=.{22}": True,
    "client_id=wire,client_software_name=librdkafka": False,
    "client_id=wire,client_source_port=[0-9]*": True,
    "client_id=(": None,
    "client_id=[": None,
    "client_id=*": None,
}


def test_to_whom_a_subscription_applies(pair: Pair) -> None:
    for pattern, matches in MATCHING.items():
        if matches is None:
            subscribe(pair, "m", set(), match=pattern)
            continue
        subscribe(pair, "m", {"a"} if matches else set(), metrics="a", match=pattern)
        get(pair, pattern)
        unsubscribe(pair, "m")


def test_the_software_of_a_client(pair: Pair) -> None:
    subscribe(pair, "m", set(), metrics="a", match="client_software_name=ottla-test,client_software_version=1\\..*")
    other = pair.beside("wire")
    other.ask(
        "ApiVersions", 4, m.ApiVersionsRequest(client_software_name="ottla-test", client_software_version="1.2.3")
    )
    assert get(other, "known software").requested_metrics == ["a"]
    unsubscribe(pair, "m")
    other.close()


def test_pushes(pair: Pair) -> None:
    subscribe(pair, "m", {"a"}, metrics="a")
    for codec in CODECS:
        name = f"codec {codec}"
        wanted = get(pair, name).subscription_id
        assert push(pair, name, wanted, compression.compress(codec, EMPTY_METRICS), codec) == 0
        assert push(pair, name, wanted, b"") == 89  # too early
        assert push(pair, name, wanted, EMPTY_METRICS, terminating=True) == 0
        assert push(pair, name, wanted, EMPTY_METRICS) == 42  # after the last one
        push(pair, name, wanted, EMPTY_METRICS)
    unsubscribe(pair, "m")


def test_refused_pushes(pair: Pair) -> None:
    subscribe(pair, "m", {"a"}, metrics="a")
    cases: dict[str, tuple[bytes, int]] = {
        "not OTLP": (b"\xff\xff\xff", 0),
        "cut": (b"\x0a\x05ab", 0),
        "not gzip": (b"nonsense", 1),
        "not snappy": (b"nonsense", 2),
        "not lz4": (b"nonsense", 3),
        "not zstd": (b"nonsense", 4),
        "an unknown codec": (EMPTY_METRICS, 5),
        "a negative codec": (EMPTY_METRICS, -1),
        "as large as may be": (b"\x0a\x00" * (BYTES_MAX // 2), 0),
        "too large": (b"\x0a\x00" * (BYTES_MAX // 2 + 1), 0),
        "nothing": (b"", 0),
        "nothing, in gzip": (b"", 1),
    }
    for codec in CODECS[1:]:
        large = compression.compress(codec, b"\x0a\x00" * (BYTES_MAX // 2 + 1))
        cases[f"too large after decompression, {codec}"] = (large, codec)
        cases[f"cut, {codec}"] = (compression.compress(codec, EMPTY_METRICS * 9)[:-9], codec)
    for name, (data, codec) in cases.items():
        wanted = get(pair, name).subscription_id
        push(pair, name, wanted, data, codec)
        push(pair, name, wanted, data, codec)
        get(pair, name)
        get(pair, name)
    assert pair.errors("PushTelemetry") == {
        *("NONE", "INVALID_RECORD", "UNSUPPORTED_COMPRESSION_TYPE", "TELEMETRY_TOO_LARGE"),
        "THROTTLING_QUOTA_EXCEEDED",
    }
    unsubscribe(pair, "m")


def test_ids_that_are_wrong(pair: Pair) -> None:
    for reserved in (bytes(16), bytes(15) + b"\x01"):
        request = PUSH(client_instance_id=reserved, metrics=EMPTY_METRICS)
        assert pair.ask("PushTelemetry", 0, request)[1].error_code == 42
    pair.ask("GetTelemetrySubscriptions", 0, GET(client_instance_id=bytes(15) + b"\x01"))
    wanted = get(pair, "wrong").subscription_id
    assert push(pair, "wrong", wanted + 1, EMPTY_METRICS) == 117
    assert get(pair, "wrong").error_code == 0  # at once
    get(pair, "wrong")
    assert push(pair, "wrong", wanted, EMPTY_METRICS) == 89
    assert push(pair, "never asked", 5, EMPTY_METRICS) == 117


def test_a_subscription_that_changes(pair: Pair) -> None:
    subscribe(pair, "m", {"a"}, metrics="a")
    before = get(pair, "changing").subscription_id
    assert get(pair, "changing").error_code == 89
    subscribe(pair, "m", {"a", "b"}, metrics="a,b")
    assert push(pair, "changing", before, EMPTY_METRICS) == 117
    after = get(pair, "changing")
    assert sorted(after.requested_metrics) == ["a", "b"]
    assert push(pair, "changing", after.subscription_id, EMPTY_METRICS) == 89  # the push before was the one that counts
    unsubscribe(pair, "m")
    assert get(pair, "changing").requested_metrics == []


def test_a_client_whose_connection_ends_is_forgotten(pair: Pair) -> None:
    first = pair.beside("first")
    assert get(first, "moving").error_code == 0
    assert get(pair, "moving").error_code == 89
    first.close()
    pair.until(
        "GetTelemetrySubscriptions",
        0,
        GET(client_instance_id=instance("moving")),
        lambda reply: reply.error_code == 0,
    )
