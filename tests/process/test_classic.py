"""`ottla.classic` with a broker of today, and with brokers that emulate those of its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.classic import (
    EARLIEST_TIME,
    LATEST_TIME,
    FailedToSendMessage,
    FetchRequest,
    KafkaError,
    MessageAndOffset,
    OffsetOutOfRange,
    Producer,
    ProducerConfig,
    ProducerData,
    SimpleConsumer,
    StringEncoder,
)

from ottla.testing import Broker

from ..support.ports import free_port

RELEASES = ("0.8.2", "0.10.2", "2.8", "4.4")


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def broker(release: str) -> Iterator[Broker]:
    with Broker({"ottla.emulate": release, "num.partitions": 2}, lab=False) as running:
        yield running


@pytest.fixture
def consumer(broker: Broker) -> Iterator[SimpleConsumer]:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    with SimpleConsumer(host, int(port)) as made:
        yield made


def everything(consumer: SimpleConsumer, topic: str, partition: int, max_size: int = 100) -> list[MessageAndOffset]:
    (end,) = consumer.get_offsets_before(topic, partition, LATEST_TIME, 1)
    found: list[MessageAndOffset] = []
    offset = 0
    while offset < end:
        messages = consumer.fetch(FetchRequest(topic, partition, offset, max_size))
        found += messages
        assert messages.next_offset > offset
        offset = messages.next_offset
    return found


@pytest.mark.long
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_messages_are_read_as_they_were_sent(broker: Broker, consumer: SimpleConsumer, codec: str) -> None:
    config = ProducerConfig(
        broker.bootstrap_servers,
        request_required_acks=-1,
        compression_codec=codec,  # type: ignore[arg-type]  # each of them
        message_send_max_retries=20,
    )
    topic = f"sent-{codec}"
    with Producer[str, bytes | None](config, key_encoder=StringEncoder()) as producer:
        producer.send(ProducerData(topic, [b"a", None, b"c" * 5000], key="k"))
        producer.send(ProducerData(topic, [b"d"], key="k"), ProducerData(topic, [b"e"], key="k"))
    found = [one for partition in range(2) for one in everything(consumer, topic, partition)]
    assert [one.message.value for one in found] == [b"a", None, b"c" * 5000, b"d", b"e"]
    assert [one.offset for one in found] == [0, 1, 2, 3, 4]
    assert {one.message.key for one in found} == {b"k"}


def test_offsets_before_a_time_and_out_of_range(broker: Broker, consumer: SimpleConsumer) -> None:
    config = ProducerConfig(broker.bootstrap_servers, request_required_acks=1, message_send_max_retries=20)
    with Producer[str, bytes](config, key_encoder=StringEncoder()) as producer:
        producer.send(ProducerData("few", [b"v"] * 3, key="b"))  # of two partitions, it belongs to the first
    assert consumer.get_offsets_before("few", 0, LATEST_TIME, 10) == [3, 0]
    assert consumer.get_offsets_before("few", 0, LATEST_TIME, 1) == [3]
    assert consumer.get_offsets_before("few", 0, EARLIEST_TIME, 10) == [0]
    with pytest.raises(OffsetOutOfRange):
        consumer.fetch(FetchRequest("few", 0, 4, 100))
    some, none, missing = consumer.multifetch(
        [FetchRequest("few", 0, 1, 1000), FetchRequest("few", 1, 0, 1000), FetchRequest("few", 7, 0, 1000)]
    )
    assert [one.offset for one in some] == [1, 2]
    assert list(none) == []
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        list(missing)


def test_an_asynchronous_producer_sends_what_is_queued_when_it_closes(broker: Broker, consumer: SimpleConsumer) -> None:
    config = ProducerConfig(
        broker.bootstrap_servers,
        producer_type="async",
        request_required_acks=1,
        batch_size=10,
        queue_time_ms=600_000,
        message_send_max_retries=20,
    )
    with Producer[bytes, bytes](config) as producer:
        for number in range(25):
            producer.send(ProducerData("queued", [b"%d" % number]))
    values = [one.message.value or b"" for partition in range(2) for one in everything(consumer, "queued", partition)]
    assert sorted(values, key=int) == [b"%d" % number for number in range(25)]


def test_a_producer_without_a_broker_gives_up_after_its_tries() -> None:
    config = ProducerConfig(f"127.0.0.1:{free_port()}", message_send_max_retries=2, retry_backoff_ms=0)
    with Producer[bytes, bytes](config) as producer, pytest.raises(FailedToSendMessage, match="in 3 tries"):
        producer.send(ProducerData("t", [b"v"]))
