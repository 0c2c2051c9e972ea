"""Clients that push their metrics meet each error that is declared for it (KIP-714): they push again, ask for their
subscription again, or stop; and their application goes on.

No error of telemetry reaches an application, so that the broker tells what a client does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer
from ottla.broker.apis import apis
from ottla.protocol.errors import Errors

from ottla.lab_faults import FaultRule
from ottla.testing import Broker

from ..oracle.kafka import program
from ..support.poll import until
from ..support.telemetry import altered
from ..support.wire import Wire

pytestmark = pytest.mark.slow
GET, PUSH = "GetTelemetrySubscriptions", "PushTelemetry"
AGAIN, ASKS, STOPS = "pushes again", "asks for the subscription again", "stops"
PRODUCED_AFTER: Final = 60
"""Requests of the application after the error, within which a client that goes on with telemetry has done so."""
BY_NAME = {api.name: api for api in apis().values()}
# ClientTelemetryUtils.maybeFetchErrorIntervalMs
OF_JAVA = {
    (GET, "INVALID_REQUEST"): STOPS,
    (GET, "THROTTLING_QUOTA_EXCEEDED"): ASKS,
    (PUSH, "INVALID_REQUEST"): STOPS,
    (PUSH, "INVALID_RECORD"): STOPS,
    (PUSH, "THROTTLING_QUOTA_EXCEEDED"): ASKS,
    (PUSH, "UNKNOWN_SUBSCRIPTION_ID"): ASKS,
    (PUSH, "TELEMETRY_TOO_LARGE"): ASKS,
    (PUSH, "UNSUPPORTED_COMPRESSION_TYPE"): ASKS,
}
# rdkafka_telemetry.c, rd_kafka_handle_get_telemetry_subscriptions and rd_kafka_handle_push_telemetry
OF_LIBRDKAFKA = {**OF_JAVA, (GET, "INVALID_REQUEST"): ASKS, (PUSH, "TELEMETRY_TOO_LARGE"): AGAIN}
# metrics_714.go, pushMetrics: it asks again 30 s after an error of its asking, and goes on pushing where it says in its
# log that it asks
OF_FRANZ_GO = {
    **OF_LIBRDKAFKA,
    (PUSH, "THROTTLING_QUOTA_EXCEEDED"): AGAIN,
    (PUSH, "UNSUPPORTED_COMPRESSION_TYPE"): AGAIN,
}
Goes = Callable[[], None]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        with Wire(running.bootstrap_servers) as wire:
            asked = altered("all", metrics="*", interval_ms="100")
            assert wire.ask("IncrementalAlterConfigs", 1, asked).responses[0].error_code == 0
        yield running


def client_id(client: str, api: str, error: str) -> str:
    return f"{client}-{api}-{error}"


def asked(broker: Broker, name: str) -> dict[str, int]:
    """How often a client has asked each API."""
    found: dict[str, int] = {}
    for one in broker.lab.clients():
        if one["client_id"] == name:
            for api, count in one["requests"].items():
                found[api.split()[0]] = found.get(api.split()[0], 0) + count
    return found


def failing(broker: Broker, name: str, api: str, error: str) -> FaultRule:
    """The API fails once for a client: at the first push, or when it asks for the subscription again, which it does
    after an error of a push. Then it knows an interval, after which it may try again.
    """
    if api == GET:
        broker.lab.fault("error", error="UNKNOWN_SUBSCRIPTION_ID", api=PUSH, client_id=name, times=1)
    return broker.lab.fault("error", error=error, api=api, client_id=name, times=1, nth=2 if api == GET else 1)


def does(broker: Broker, name: str, rule: FaultRule, expected: str, goes: Goes) -> str:
    """Returns what a client does after the error: of a push, or of the second time that it asks."""

    def has_failed() -> bool:
        goes()
        return rule.applied == 1

    until(has_failed, f"the error of {name}", every=0.02)
    at = asked(broker, name)

    def more(api: str) -> int:
        return asked(broker, name).get(api, 0) - at.get(api, 0)

    def has_gone_on() -> bool:
        goes()
        return more("Produce") >= PRODUCED_AFTER if expected == STOPS else more(PUSH) >= 1

    until(has_gone_on, f"what {name} does after its error", every=0.02)
    if more(GET) + more(PUSH) == 0:
        return STOPS
    return ASKS if asked(broker, name)[GET] > (2 if GET in name else 1) else AGAIN


def of_java(broker: Broker, names: list[str], request: pytest.FixtureRequest) -> AbstractContextManager[Goes]:
    directory: Path = request.getfixturevalue("tmp_path")
    return running([*program("broker", "TelemetryErrors", directory), broker.bootstrap_servers, "t", *names])


def of_franz_go(broker: Broker, names: list[str], request: pytest.FixtureRequest) -> AbstractContextManager[Goes]:
    clients = str(request.getfixturevalue("go_program"))
    return running([clients, broker.bootstrap_servers, "franz-telemetry", "t", *names])


@contextmanager
def running(command: list[str]) -> Iterator[Goes]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield lambda: None
        finally:
            process.kill()


@contextmanager
def of_librdkafka(broker: Broker, names: list[str], request: pytest.FixtureRequest) -> Iterator[Goes]:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "linger.ms": 0}
    producers = [Producer({**settings, "client.id": name}) for name in names]

    def produce() -> None:
        for producer in producers:
            producer.produce("t", b"value")
            assert producer.flush(60) == 0

    with ExitStack() as closing:
        for producer in producers:
            closing.callback(producer.flush, 60)
        yield produce


@pytest.mark.parametrize(
    ("client", "starts", "table"),
    [
        pytest.param("java", of_java, OF_JAVA, marks=pytest.mark.oracle),
        pytest.param("librdkafka", of_librdkafka, OF_LIBRDKAFKA),
        pytest.param("franz-go", of_franz_go, OF_FRANZ_GO, marks=pytest.mark.go),
    ],
    ids=["java", "librdkafka", "franz-go"],
)
def test_a_client_meets_each_error_of_telemetry(
    broker: Broker,
    client: str,
    starts: Callable[[Broker, list[str], pytest.FixtureRequest], AbstractContextManager[Goes]],
    table: dict[tuple[str, str], str],
    request: pytest.FixtureRequest,
) -> None:
    rules = {place: failing(broker, client_id(client, *place), *place) for place in table}
    found = {}
    with starts(broker, [client_id(client, *place) for place in table], request) as goes:
        for place, expected in table.items():
            found[place] = does(broker, client_id(client, *place), rules[place], expected, goes)
    assert found == table


@pytest.mark.parametrize("table", [OF_JAVA, OF_LIBRDKAFKA, OF_FRANZ_GO], ids=["java", "librdkafka", "franz-go"])
def test_the_table_has_each_declared_error(table: dict[tuple[str, str], str]) -> None:
    declared = {
        (api, Errors(code).name) for api in (GET, PUSH) for place in BY_NAME[api].errors for code in place.errors
    }
    assert set(table) == declared
