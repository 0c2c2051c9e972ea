"""Clients of others: librdkafka through confluent-kafka, aiokafka, kafka-python. They assign partitions
themselves.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import errors as AioErrors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import TopicPartition as AioTopicPartition
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyTopicPartition
from kafka import errors as PyErrors

from ottla.testing import Broker

from ..support.poll import until

pytestmark = pytest.mark.slow
T = int(time.time() * 1000) - 60_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MODES = [(True, "all"), (False, "0"), (False, "1"), (False, "all")]


@pytest.fixture
def topic(broker: Broker) -> str:
    """A fresh topic of two partitions."""
    name = f"t-{uuid.uuid4().hex[:10]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result()
    return name


def config(broker: Broker, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "log_level": 2,
        **{k.replace("_", "."): v for k, v in more.items()},
    }


@pytest.fixture
def reader(broker: Broker) -> Iterator[Consumer]:
    consumer = Consumer(
        config(broker, group_id="none", enable_auto_commit=False, auto_offset_reset="error", session_timeout_ms=6000)
    )
    yield consumer
    consumer.close()


def read(consumer: Consumer, count: int) -> list[Any]:
    found: list[Any] = []

    def is_read() -> bool:
        for message in consumer.consume(count - len(found), 1.0):
            if message.error():
                raise KafkaException(message.error())
            found.append(message)
        return len(found) >= count

    until(is_read, f"{count} records")
    return found


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("idempotent", "acks"), MODES)
def test_librdkafka_produces_and_consumes_in_order(
    broker: Broker, topic: str, reader: Consumer, codec: str, idempotent: bool, acks: str
) -> None:
    producer = Producer(config(broker, compression_type=codec, enable_idempotence=idempotent, acks=acks, linger_ms=1))
    failed: list[Any] = []
    for n in range(500):
        producer.produce(
            topic,
            b"v%d" % n * 10,
            b"k%d" % n,
            0,
            lambda e, m: failed.append(e) if e else None,
            timestamp=T + n,
            headers=[("h", b"1")],
        )
    assert producer.flush(60) == 0
    assert failed == []
    reader.assign([TopicPartition(topic, 0, 0)])
    found = read(reader, 500)
    assert [m.value() for m in found] == [b"v%d" % n * 10 for n in range(500)]
    assert [m.offset() for m in found] == list(range(500))
    assert found[7].headers() == [("h", b"1")]
    assert found[7].timestamp()[1] == T + 7


def test_librdkafka_seeks_by_offset_and_time(broker: Broker, topic: str, reader: Consumer) -> None:
    producer = Producer(config(broker))
    for n in range(100):
        producer.produce(topic, b"%d" % n, None, 1, timestamp=T + 10 * n)
    producer.flush()
    reader.assign([TopicPartition(topic, 1, 42)])
    assert read(reader, 1)[0].value() == b"42"
    (at,) = reader.offsets_for_times([TopicPartition(topic, 1, T + 555)], 10)
    assert at.offset == 56
    reader.seek(TopicPartition(topic, 1, 99))
    assert read(reader, 1)[0].value() == b"99"
    assert reader.get_watermark_offsets(TopicPartition(topic, 1), 10) == (0, 100)


def test_librdkafka_meets_the_right_errors(broker: Broker, topic: str, reader: Consumer) -> None:
    errors: list[Any] = []
    producer = Producer(config(broker, message_max_bytes=5_000_000))
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda e, m: errors.append(e.code()))
    producer.flush(60)
    assert errors == [KafkaError.MSG_SIZE_TOO_LARGE]
    reader.assign([TopicPartition(topic, 0, 777)])
    with pytest.raises(KafkaException) as caught:
        read(reader, 1)
    assert caught.value.args[0].code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
    told = (
        AdminClient(config(broker, allow_auto_create_topics=False))
        .list_topics("no-such-topic", 10)
        .topics["no-such-topic"]
    )
    assert told.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_librdkafka_administers(broker: Broker, topic: str) -> None:
    admin = AdminClient(config(broker))
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
    assert len(admin.list_topics(topic, 10).topics[topic].partitions) == 5
    entry = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result()
    described = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)])
    (found,) = (future.result() for future in described.values())
    assert found["retention.ms"].value == "12345"
    partition = TopicPartition(topic, 0)
    assert admin.list_offsets({partition: OffsetSpec.latest()})[partition].result().offset == 0
    assert admin.describe_cluster().result().controller.id == 1
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    admin.delete_topics([topic])[topic].result()
    assert topic not in admin.list_topics(timeout=60).topics


def acks_of(acks: str) -> int | str:
    """As aiokafka and kafka-python want it."""
    return acks if acks == "all" else int(acks)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("idempotent", "acks"), MODES)
async def test_aiokafka_produces_and_consumes_in_order(
    broker: Broker, topic: str, codec: str, idempotent: bool, acks: str
) -> None:
    compression = None if codec == "none" else codec
    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        compression_type=compression,
        enable_idempotence=idempotent,
        acks=acks_of(acks),
    )
    await producer.start()
    for n in range(50):
        done = await producer.send_and_wait(topic, b"v%d" % n, b"k", partition=0, timestamp_ms=T + n)
        assert acks == "0" or done.offset == n
    await producer.stop()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="none", enable_auto_commit=False
    )
    await consumer.start()
    tp = AioTopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek(tp, 0)
    assert [(await consumer.getone()).value for _ in range(50)] == [b"v%d" % n for n in range(50)]
    at = await consumer.offsets_for_times({tp: T + 30})
    assert at[tp].offset == 30
    consumer.seek(tp, 17)
    assert (await consumer.getone()).value == b"v17"
    assert (await consumer.end_offsets([tp]))[tp] == 50
    await consumer.stop()


async def test_aiokafka_meets_the_right_errors(broker: Broker, topic: str) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=4_000_000)
    await producer.start()
    with pytest.raises(AioErrors.MessageSizeTooLargeError):
        await producer.send_and_wait(topic, b"x" * 2_000_000, partition=1)
    await producer.stop()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="none", enable_auto_commit=False
    )
    await consumer.start()
    tp = AioTopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek(tp, 777)
    with pytest.raises(AioErrors.OffsetOutOfRangeError):
        await consumer.getone()
    await consumer.stop()
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    await admin.start()
    (told,) = await admin.describe_topics([f"no-{topic}"])
    assert told["error_code"] == AioErrors.UnknownTopicOrPartitionError.errno
    await admin.close()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(("idempotent", "acks"), MODES)
def test_kafka_python_produces_and_consumes_in_order(
    broker: Broker, topic: str, codec: str, idempotent: bool, acks: str
) -> None:
    compression = None if codec == "none" else codec
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        compression_type=compression,
        enable_idempotence=idempotent,
        acks=acks_of(acks),
    )
    sent = [producer.send(topic, b"v%d" % n, b"k", partition=0, timestamp_ms=T + n) for n in range(50)]
    offsets = [s.get(20).offset for s in sent]
    assert acks == "0" or offsets == list(range(50))
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="none", enable_auto_commit=False
    )
    tp = PyTopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek(tp, 0)
    assert [next(consumer).value for _ in range(50)] == [b"v%d" % n for n in range(50)]
    assert consumer.offsets_for_times({tp: T + 30})[tp].offset == 30
    consumer.seek(tp, 17)
    assert next(consumer).value == b"v17"
    assert consumer.end_offsets([tp])[tp] == 50
    consumer.close()


def test_kafka_python_meets_the_right_errors(broker: Broker, topic: str) -> None:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=4_000_000)
    with pytest.raises(PyErrors.MessageSizeTooLargeError):
        producer.send(topic, b"x" * 2_000_000, partition=1).get(20)
    producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers,
        auto_offset_reset="none",
        enable_auto_commit=False,
        allow_auto_create_topics=False,
    )
    assert not consumer.partitions_for_topic(f"no-{topic}")
    tp = PyTopicPartition(topic, 0)
    consumer.assign([tp])
    consumer.seek(tp, 777)
    with pytest.raises(PyErrors.OffsetOutOfRangeError):
        next(consumer)
    consumer.close()
