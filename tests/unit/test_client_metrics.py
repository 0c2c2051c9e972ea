"""Metrics of clients (KIP-714): which subscriptions apply to a client, and when its requests are taken."""

from __future__ import annotations

import pytest
from ottla.coordinator.metadata.client_metrics import PATTERNS_MAX, check_client_metrics
from ottla.coordinator.telemetry.client_instance import ClientInstance
from ottla.coordinator.telemetry.subscriptions import Attributes, Subscription, Wanted, wanted_of
from ottla.protocol.config_def import ConfigInvalid
from ottla.protocol.errors import ApiError, Errors

ID = bytes(range(16))
JAVA: Attributes = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "app-1",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.4.0",
    "client_source_address": "127.0.0.1",
    "client_source_port": "5000",
}
NAMELESS: Attributes = {**JAVA, "client_id": None}


@pytest.mark.parametrize(
    ("match", "attributes", "applies"),
    [
        ("", NAMELESS, True),
        ("client_id=app.*", JAVA, True),
        ("client_id=app", JAVA, False),
        ("client_id=.*", NAMELESS, False),
        ("client_software_name=apache-kafka-java,client_software_version=3\\..*", JAVA, False),
        ("client_source_port=\\d+ , client_software_version = 4\\..*", JAVA, True),
    ],
)
def test_all_patterns_must_match_in_full(match: str, attributes: Attributes, applies: bool) -> None:
    assert Subscription.of({"metrics": "*", "match": match}).applies_to(attributes) is applies


@pytest.mark.parametrize("pattern", ["client_id=(", "client_id=(?=a)", "client_id=(a)\\1", "client_id", "id=a"])
def test_a_pattern_that_cannot_be_matched_in_linear_time_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError, match="Illegal client matching pattern") as refused:
        check_client_metrics("m", {"match": pattern})
    assert refused.value.code == Errors.INVALID_CONFIG


def test_a_subscription_has_a_few_patterns_because_each_takes_its_time() -> None:
    patterns = [f"client_id=[^{n}]{{900}}" for n in range(PATTERNS_MAX + 1)]
    check_client_metrics("m", {"match": ",".join(patterns[:-1])})
    with pytest.raises(ApiError, match=rf"Illegal client matching pattern: client_id=\[\^{PATTERNS_MAX}\]"):
        check_client_metrics("m", {"match": ",".join(patterns)})


def test_metrics_may_be_empty_texts_as_in_kafka_before_4_2_if_it_is_emulated() -> None:
    values = {"metrics": "a.b,,a.b", "match": "client_id=a,client_id=a"}
    with pytest.raises(ConfigInvalid, match="values must not be empty"):
        check_client_metrics("m", values)
    check_client_metrics("m", values, "4.1")
    assert Subscription.of(values).applies_to({**JAVA, "client_id": "a"})


def test_a_client_is_asked_for_the_metrics_of_all_subscriptions_at_the_shortest_interval() -> None:
    subscriptions = {
        "a": Subscription.of({"metrics": "x,y", "interval.ms": "5000"}),
        "b": Subscription.of({"metrics": "y,z"}),
        "c": Subscription.of({"metrics": "*", "interval.ms": "100", "match": "client_id=other"}),
    }
    assert wanted_of({}, JAVA, ID)[:2] == ((), 300_000)
    assert wanted_of(subscriptions, JAVA, ID)[:2] == (("x", "y", "z"), 5000)
    assert wanted_of(subscriptions, {**JAVA, "client_id": "other"}, ID)[:2] == (("*",), 100)


def test_the_subscription_id_follows_from_what_is_asked_for_and_the_client() -> None:
    """Kafka's ids of these are in the differential test."""
    one = Subscription.of({"metrics": "x"})
    ids = {wanted_of({"a": one}, JAVA, ID).subscription_id, wanted_of({}, JAVA, ID).subscription_id}
    ids |= {wanted_of({"a": one}, JAVA, ID[:8] + bytes(8)).subscription_id}
    assert len(ids) == 3
    assert all(-(1 << 31) <= found < 1 << 31 for found in ids)


def client(interval_ms: int = 1000) -> ClientInstance:
    return ClientInstance("c", Wanted(("*",), interval_ms, 7), 1)


def code_of_push(
    one: ClientInstance, now_ms: int, subscription_id: int = 7, codec: int = 0, size: int = 1, last: bool = False
) -> int:
    try:
        one.take_push(now_ms, subscription_id, codec, size, 100, last)
    except ApiError as error:
        return error.code
    return 0


def code_of_get(one: ClientInstance, now_ms: int) -> int:
    try:
        one.take_get(now_ms)
    except ApiError as error:
        return error.code
    return 0


def test_a_client_asks_and_pushes_once_per_interval() -> None:
    one = client()
    assert [code_of_get(one, at) for at in (0, 999, 1000)] == [0, 89, 0]
    assert [code_of_push(one, at) for at in (1001, 2000, 2001)] == [0, 89, 0]  # the first one at any time
    assert [code_of_get(one, at) for at in (3000, 3001)] == [89, 0]
    assert code_of_push(one, 3002) == 0


def test_after_an_error_that_a_new_subscription_cures_a_client_asks_at_once() -> None:
    one = client()
    assert code_of_get(one, 0) == 0
    assert code_of_push(one, 1, subscription_id=8) == Errors.UNKNOWN_SUBSCRIPTION_ID
    assert [code_of_get(one, at) for at in (2, 3)] == [0, 89]
    assert code_of_push(one, 2000, codec=5) == Errors.UNSUPPORTED_COMPRESSION_TYPE
    assert code_of_get(one, 2001) == 0
    assert code_of_push(one, 3000, size=101) == Errors.TELEMETRY_TOO_LARGE
    assert code_of_get(one, 3001) == 89


def test_the_last_push_may_come_early_and_is_the_last() -> None:
    one = client()
    assert [code_of_push(one, at, last=at == 1) for at in (0, 1)] == [0, 0]
    assert code_of_push(one, 5000) == Errors.INVALID_REQUEST
    assert code_of_push(one, 5001) == 0  # as in Kafka
