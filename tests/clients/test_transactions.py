"""Transactional clients of others: Java, its tools and Streams; librdkafka, aiokafka, kafka-python,
kafkajs, franz-go, sarama.
"""

from __future__ import annotations

import re
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyTopicPartition
from kafka.structs import OffsetAndMetadata
from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from ..oracle.kafka import program
from ..oracle.tools import tool
from ..support import chain
from ..support.committed import committed
from ..support.poll import until
from ..support.wire import Wire
from .conftest import Run

pytestmark = pytest.mark.slow
PROMPT: dict[str, object] = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(PROMPT) as running:
        yield running


def topic(broker: Broker, partitions: int = 3) -> str:
    name = f"txn-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    return name


def transactional(broker: Broker, name: str) -> Producer:
    made = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name, "log_level": 2})
    made.init_transactions(20)
    return made


def committed_text(broker: Broker, name: str, partitions: int = 3) -> list[tuple[str, str]]:
    """Key and value of every committed record, partition by partition."""
    return [
        ((one.key() or b"").decode(), (one.value() or b"").decode())
        for one in committed(broker.bootstrap_servers, name, partitions)
    ]


def test_librdkafka_commits_and_aborts(broker: Broker) -> None:
    name = topic(broker)
    producer = transactional(broker, name)
    for n in range(30):
        producer.begin_transaction()
        for part in range(6):
            producer.produce(name, f"{n}-{part}", partition=part % 3)
        if n % 3:
            producer.commit_transaction(20)
        else:
            producer.flush(60)
            producer.abort_transaction(20)
    values = [value for _, value in committed_text(broker, name)]
    assert sorted(values) == sorted(f"{n}-{part}" for n in range(30) if n % 3 for part in range(6))


def test_librdkafka_is_fenced(broker: Broker) -> None:
    name = topic(broker, 1)
    old = transactional(broker, name)
    old.begin_transaction()
    old.produce(name, "old")
    old.flush(60)
    young = transactional(broker, name)
    with pytest.raises(KafkaException) as refused:
        old.commit_transaction(20)
    assert refused.value.args[0].fatal()
    young.begin_transaction()
    young.produce(name, "young")
    young.commit_transaction(20)
    assert committed_text(broker, name, 1) == [("", "young")]


def test_librdkafka_consumes_transforms_and_produces(broker: Broker) -> None:
    source, target = topic(broker, 1), topic(broker, 1)
    feeder = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
    for n in range(100):
        feeder.produce(source, str(n))
    assert feeder.flush(60) == 0
    producer = transactional(broker, source)
    for life in range(3):
        settings = {"group.id": source, "enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 2}
        reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
        reader.subscribe([source])
        for turn in range(2):
            messages = reader.consume(20, 20)
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, b"x" + message.value())
            producer.send_offsets_to_transaction(reader.position(reader.assignment()), reader.consumer_group_metadata())
            if (life, turn) == (1, 1):
                producer.flush(60)
                producer.abort_transaction(20)  # the next life reads this again
            else:
                producer.commit_transaction(20)
        reader.close()
    assert [value for _, value in committed_text(broker, target, 1)] == [f"x{n}" for n in range(100)]


async def test_aiokafka(broker: Broker) -> None:
    name = topic(broker, 1)
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name)
    await producer.start()
    for n in range(6):
        await producer.begin_transaction()
        await producer.send_and_wait(name, b"%d" % n)
        await producer.send_offsets_to_transaction({AioTopicPartition(name, 0): n}, f"{name}-group")
        await (producer.commit_transaction() if n % 2 else producer.abort_transaction())
    await producer.stop()
    reader = AIOKafkaConsumer(
        name, bootstrap_servers=broker.bootstrap_servers, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    await reader.start()
    assert [(await reader.getone()).value for _ in range(3)] == [b"1", b"3", b"5"]
    await reader.stop()
    group = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=f"{name}-group")
    await group.start()
    assert await group.committed(AioTopicPartition(name, 0)) == 5
    await group.stop()


def test_kafka_python(broker: Broker) -> None:
    name = topic(broker, 1)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id=name)
    producer.init_transactions()
    for n in range(6):
        producer.begin_transaction()
        producer.send(name, b"%d" % n).get(20)
        producer.send_offsets_to_transaction({PyTopicPartition(name, 0): OffsetAndMetadata(n, "", -1)}, f"{name}-group")
        if n % 2:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    producer.close()
    reader = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, isolation_level="read_committed", auto_offset_reset="earliest"
    )
    reader.assign([PyTopicPartition(name, 0)])
    assert [next(reader).value for _ in range(3)] == [b"1", b"3", b"5"]
    reader.close()


@pytest.mark.node
def test_kafkajs(broker: Broker, kafkajs: Run) -> None:
    kafkajs("transactions.js", broker.bootstrap_servers, within=60)


@pytest.mark.go
def test_franz_go_and_sarama(broker: Broker, go_clients: Run) -> None:
    """Consume-transform-produce sessions, fencing, and a producer of an older protocol."""
    go_clients(broker.bootstrap_servers, "transactions", within=200)


# Java


@pytest.mark.oracle
def test_kafkas_own_clients(broker: Broker, tmp_path: Path) -> None:
    """Commits, aborts, zombies, time-outs, both group protocols, the seed's exactly-once example, administration, eight
    producers at once.
    """
    command = program("tools", "TransactionClients", tmp_path)
    done = subprocess.run(
        [*command, broker.bootstrap_servers], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]


@pytest.mark.oracle
def test_kafka_streams_exactly_once(broker: Broker, tmp_path: Path) -> None:
    """exactly_once_v2 with state: killed in the middle, it counts every record once, in order by key."""
    source, target, count, keys = topic(broker, 2), topic(broker, 2), 800, 4
    command = [
        *program("streams", "StreamsClient", tmp_path),
        broker.bootstrap_servers,
        source,
        target,
        str(tmp_path / "state"),
    ]

    def started() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    feeder = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
    reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "streams-reader", "log_level": 2})
    reader.assign([TopicPartition(target, p, 0) for p in range(2)])
    found: dict[str, list[str]] = {}
    seen = sent = 0
    process, killed = started(), False

    def has_all() -> bool:
        nonlocal sent, seen, process, killed
        for _ in range(20 if sent < count else 0):
            feeder.produce(source, str(sent), key=f"k{sent % keys}")
            sent += 1
        feeder.poll(0)
        for message in reader.consume(100, 0.05):
            assert message.error() is None
            found.setdefault(message.key().decode(), []).append(message.value().decode())
            seen += 1
        if not killed and seen > count // 3:
            process.kill()
            process.communicate()
            process, killed = started(), True
        return seen >= count

    until(has_all, f"{count} records come out", within=240)
    process.communicate(timeout=120)  # the end of its input ends it
    reader.close()
    for key, values in found.items():
        first = int(key[1:])
        assert values == [f"{first + keys * n}/{n + 1}" for n in range(count // keys)], key


def transactions(broker: Broker, *arguments: str) -> str:
    done = tool("TransactionsCommand", "--bootstrap-server", broker.bootstrap_servers, *arguments)
    return done.stdout + done.stderr


@pytest.mark.oracle
def test_kafkas_tool_for_transactions(broker: Broker) -> None:
    """Every form of kafka-transactions on a transaction that is open."""
    name = topic(broker, 2)
    producer = transactional(broker, name)
    producer.begin_transaction()
    for part in range(2):
        producer.produce(name, "open", partition=part)
    producer.flush(60)
    listed = transactions(broker, "list")
    assert re.search(rf"{name}\s+1\s+\d+\s+Ongoing", listed), listed
    assert name in transactions(broker, "list", "--transactional-id-pattern", "txn-.*")
    assert name not in transactions(broker, "list", "--transactional-id-pattern", "other")
    assert name not in transactions(broker, "list", "--duration-filter", "3600000")
    described = transactions(broker, "describe", "--transactional-id", name)
    assert "Ongoing" in described
    assert f"{name}-0,{name}-1" in described or f"{name}-1,{name}-0" in described
    of = ["describe-producers", "--topic", name, "--partition", "0"]
    open_producer = transactions(broker, *of)
    assert re.search(r"^\d+\s+0\s+-1\s+0\s+\d+\s+0\s*$", open_producer, re.M), open_producer
    transactions(broker, "abort", "--topic", name, "--partition", "0", "--start-offset", "0")
    assert re.search(r"None\s*$", transactions(broker, *of), re.M)
    ended = transactions(broker, "forceTerminateTransaction", "--transactionalId", name)
    described = transactions(broker, "describe", "--transactional-id", name)
    assert re.search(r"\bEmpty\b", described), ended + described
    assert committed_text(broker, name, 2) == []


@pytest.mark.oracle
def test_a_hanging_transaction_is_found_and_aborted() -> None:
    """A transactional batch of which no coordinator knows, as older clients could leave it, holds the last stable
    offset until it is aborted.
    """
    with Broker({"transaction.partition.verification.enable": False, **PROMPT}, lab=False) as broker:
        name = topic(broker, 1)
        hour_ago = int(time.time() * 1000) - 3_600_000
        template = Template(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
        data = bytes(records.encode([Record(None, b"hangs", hour_ago)], template))
        r = m.ProduceRequest
        part = r.PartitionProduceData(index=0, records=data)
        with Wire(broker.bootstrap_servers) as wire:
            wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
            request = r(
                transactional_id=name,
                acks=-1,
                timeout_ms=1000,
                topic_data=[r.TopicProduceData(name=name, partition_data=[part])],
            )
            assert wire.ask("Produce", 11, request).responses[0].partition_responses[0].error_code == 0
        plain = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
        plain.produce(name, "after it")
        plain.flush(60)
        for where in (["--broker-id", "1"], ["--topic", name, "--partition", "0"]):
            found = transactions(broker, "find-hanging", *where, "--max-transaction-timeout", "15")
            assert re.search(rf"^{name}\s+0\s+7\s+0\s", found, re.M), found
        transactions(
            broker,
            "abort",
            "--topic",
            name,
            "--partition",
            "0",
            "--producer-id",
            "7",
            "--producer-epoch",
            "0",
            "--coordinator-epoch",
            "0",
        )
        assert committed_text(broker, name, 1) == [("", "after it")]


def test_a_chain_under_kills_of_broker_and_links(tmp_path: Path) -> None:
    """Ten seconds of SIGKILLs; `python -m tests.support.chain` goes on for minutes."""
    assert "each once and in order" in chain.run(tmp_path, seconds=10, seed=3)
