"""Clients go through the examinations of the verdict: all that these provoke comes, and no client fails a rule."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition as Place
from ottla.verdict.report import lines

from ottla.lab_verdict import RunningVerdict
from ottla.testing import Broker

from ..oracle.kafka import program
from ..support.poll import until

pytestmark = pytest.mark.slow

SECONDS = 120
Step = Callable[[], object]
QUICK: dict[str, object] = {  # heartbeats come soon
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.share.heartbeat.interval.ms": 100,
    "group.share.min.heartbeat.interval.ms": 100,
    "num.partitions": 2,
}


@contextmanager
def examined(examination: str, seed: int = 0) -> Iterator[tuple[Broker, RunningVerdict]]:
    with Broker(QUICK) as broker, broker.lab.verdict(examination, provokes=True, seed=seed) as verdict:
        yield broker, verdict


def left(verdict: RunningVerdict, never: Sequence[str] = ()) -> list[str]:
    """What was not provoked yet. `never`: APIs that the client does not use, or a fault that is not for its version."""
    waits = [(one["api"], f"{one['api']} {one['nth']}") for one in verdict.provoked if not one["applied"]]
    return [fault for api, fault in waits if api not in never and fault not in never]


def goes_on(verdict: RunningVerdict, step: Step, never: Sequence[str] = ()) -> None:
    """Repeats a step of a client until all is provoked."""

    def done() -> bool:
        step()
        return not left(verdict, never)

    until(done, "all that the examination provokes", within=SECONDS)


def passed(broker: Broker, verdict: RunningVerdict, failing: Sequence[str] = ()) -> set[str]:
    """The rules that were passed, when the clients are gone. `failing`: those that the client is known to fail; no
    other is failed, not even a warning.
    """
    until(lambda: not broker.lab.clients(), "the clients are gone", within=SECONDS)
    outcomes = verdict.outcomes()
    failed = [rule for rule, outcome in outcomes.items() if outcome == "failed"]
    assert failed == list(failing), "\n".join(lines(verdict.clients))
    return {rule for rule, outcome in outcomes.items() if outcome == "passed"}


# librdkafka


def gone(producer: Producer) -> None:
    """Closes the connections of a producer."""
    assert producer.close(SECONDS)


def of_librdkafka(broker: Broker, **more: Any) -> dict[str, Any]:
    found = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0, "linger.ms": 0, "client.id": "librdkafka"}
    return found | {name.replace("_", "."): value for name, value in more.items()}


def reader(broker: Broker, **more: Any) -> Consumer:
    config = of_librdkafka(broker, group_id="g", auto_offset_reset="earliest", enable_auto_commit=False, **more)
    return Consumer(config | {"fetch.wait.max.ms": 50})


def produces(producer: Producer, topic: str) -> None:
    producer.produce(topic, b"value", partition=0)
    assert producer.flush(SECONDS) == 0


@pytest.mark.parametrize(
    ("examination", "expected"),
    [
        ("basic", {"KIP-35.api-versions-first", "KIP-320.metadata-refreshed", "protocol.metadata-first"}),
        ("idempotence", {"KIP-98.sequences-in-order", "KIP-98.batch-unchanged"}),
        ("network", {"KIP-219.throttle-kept", "KIP-580.back-off", "protocol.coordinator-found-again"}),
    ],
)
def test_librdkafka_goes_through(examination: str, expected: set[str]) -> None:
    with examined(examination) as (broker, verdict):
        producer = Producer(of_librdkafka(broker, enable_idempotence=True))
        produces(producer, "plain")
        consumer = reader(broker)
        consumer.assign([TopicPartition("plain", 0, 0)])

        def step() -> None:
            produces(producer, "plain")
            for message in consumer.consume(10, 0.05):
                if message.error() is None:
                    consumer.commit(message, asynchronous=True)
            with suppress(KafkaException):  # librdkafka gives up what is asked for when its brokers change
                consumer.get_watermark_offsets(TopicPartition("plain", 0), SECONDS)
                producer.list_topics(timeout=SECONDS)

        goes_on(verdict, step)
        consumer.close()
        gone(producer)
        assert expected <= passed(broker, verdict)


def test_librdkafka_goes_through_transactions() -> None:
    with examined("transactions") as (broker, verdict):
        producer = Producer(of_librdkafka(broker, transactional_id="tx"))
        consumer = reader(broker, group_protocol="classic")
        broker.lab.seed({"name": "read"})
        producer.init_transactions(SECONDS)
        read = [TopicPartition("read", 0, 1)]

        def step() -> None:
            producer.begin_transaction()
            try:
                producer.produce("written", b"value")
                producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata(), SECONDS)
                producer.commit_transaction(SECONDS)
            except KafkaException:  # as the producer wants it
                producer.abort_transaction(SECONDS)

        goes_on(verdict, step, ["Produce 12"])  # which is for versions that librdkafka does not use in transactions
        consumer.close()
        gone(producer)
        expected = {"KIP-98.commit-after-writes", "KIP-98.partitions-added", "KIP-98.offsets-added"}
        assert expected <= passed(broker, verdict, ["KIP-447.member-named"])  # this program is in no group


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (
            "classic",
            {"classic-group.rejoins-in-time", "classic-group.each-member-assigned", "classic-group.commits-own"},
        ),
        ("consumer", {"KIP-848.rejoins-when-fenced", "KIP-1082.member-id-kept", "KIP-848.assignment-told"}),
    ],
)
def test_librdkafka_goes_through_groups(protocol: str, expected: set[str]) -> None:
    with examined(f"{protocol}-group") as (broker, verdict):
        producer = Producer(of_librdkafka(broker))
        produces(producer, "shared")
        more = {"heartbeat_interval_ms": 100, "session_timeout_ms": 30_000} if protocol == "classic" else {}
        consumer = reader(broker, group_protocol=protocol, **more)
        consumer.subscribe(["shared"])

        def step() -> None:
            produces(producer, "shared")
            if any(message.error() is None for message in consumer.consume(10, 0.05)):
                with suppress(KafkaException):  # the group rebalances: what was read is read again
                    consumer.commit(asynchronous=False)

        def has_coordinator() -> bool:
            step()
            with suppress(KafkaException):
                return bool(consumer.committed(consumer.assignment(), 1.0))
            return False

        goes_on(verdict, step)
        until(has_coordinator, "a coordinator, which librdkafka needs to leave", within=SECONDS)
        consumer.close()
        gone(producer)
        assert expected <= passed(broker, verdict)


# kafka-python


@pytest.mark.parametrize(("examination", "failing"), [("basic", ["KIP-227.session-closed"]), ("idempotence", [])])
def test_kafka_python_goes_through(examination: str, failing: list[str]) -> None:
    with examined(examination) as (broker, verdict):
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
        producer.send("plain", b"value", partition=0).get(SECONDS)
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", fetch_max_wait_ms=50
        )
        consumer.assign([Place("plain", 0)])

        def step() -> None:
            producer.send("plain", b"value", partition=0).get(SECONDS)
            consumer.poll(50)
            consumer.end_offsets([Place("plain", 0)])

        goes_on(verdict, step)
        consumer.close()
        producer.close()
        assert passed(broker, verdict, failing)


# Kafka's own


EXPECTED = {
    "basic": {"KIP-516.topic-id-known", "KIP-320.metadata-refreshed", "KIP-227.session-restarted"},
    "idempotence": {"KIP-98.sequences-in-order", "KIP-98.batch-unchanged"},
    "transactions": {"KIP-890.aborts-after-abortable", "KIP-98.commit-after-writes", "KIP-890.epoch-taken"},
    "classic-group": {"classic-group.rejoins-in-time", "KIP-394.member-id-kept", "KIP-429.claims-own"},
    "consumer-group": {"KIP-848.rejoins-when-fenced", "KIP-1082.member-id-kept", "KIP-848.assignment-told"},
    "share-group": {"KIP-932.rejoins-when-fenced", "KIP-932.session-restarted", "KIP-932.acknowledges-acquired"},
    "network": {"KIP-219.throttle-kept", "KIP-580.back-off", "protocol.coordinator-found-again"},
}


@pytest.mark.oracle
def test_kafkas_own_clients_go_through_all(tmp_path: Path) -> None:
    command = program("tools", "ExaminedClients", tmp_path)
    with ExitStack() as stack:
        sites = {name: stack.enter_context(examined(name)) for name in EXPECTED}
        addresses = [f"{name}={broker.bootstrap_servers}" for name, (broker, _) in sites.items()]
        log = stack.enter_context((tmp_path / "java.log").open("w"))
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": log}
        java = stack.enter_context(subprocess.Popen([*command, *addresses], text=True, **pipes))
        stack.callback(java.kill)
        assert java.stdin is not None
        assert java.stdout is not None
        for name, (broker, verdict) in sites.items():
            wait_for_all(name, verdict, java, tmp_path / "java.log")
            java.stdin.write("enough\n")
            java.stdin.flush()
            assert java.stdout.readline() == f"{name} done\n"
            failing = ["KIP-447.member-named"] if name == "transactions" else []  # it is in no group
            assert passed(broker, verdict, failing) >= EXPECTED[name], name


def wait_for_all(name: str, verdict: RunningVerdict, java: subprocess.Popen[str], log: Path) -> None:
    never = ["AddPartitionsToTxn", "AddOffsetsToTxn"]  # transactions add themselves what they need
    until(lambda: java.poll() is not None or not left(verdict, never), f"all of {name}", SECONDS, 0.05)
    assert java.poll() is None, log.read_text()[-4000:]
