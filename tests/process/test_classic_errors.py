"""`ottla.classic` goes on where a ZooKeeper is away or refuses, and where what brokers say does not fit together."""

from __future__ import annotations

import threading
from collections.abc import Collection

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from ottla.classic import BrokerUnreachable, ConsumerConfig, FailedToSendMessage, Producer, ProducerConfig, ProducerData
from ottla.classic import zookeeper as of_zookeeper
from ottla.classic.balance.assignment import TopicPartition
from ottla.classic.balance.operations import Lost, Put
from ottla.classic.cluster import Address, Cluster
from ottla.classic.fetchers import Fetching
from ottla.classic.streams import KafkaStream, PartitionPosition
from ottla.classic.zookeeper import ZooKeeper

from ..support.ports import free_port


def test_a_producer_without_a_zookeeper_gives_up_after_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_zookeeper, "CONNECT_S", 0.1)
    config = ProducerConfig(zk_connect=f"127.0.0.1:{free_port()}", message_send_max_retries=1, retry_backoff_ms=0)
    with Producer[bytes, bytes](config) as producer, pytest.raises(FailedToSendMessage, match="no ZooKeeper"):
        producer.send(ProducerData("t", [b"v"]))


@pytest.fixture
def zookeeper(monkeypatch: pytest.MonkeyPatch) -> ZooKeeper:
    """A session that has not begun."""
    monkeypatch.setattr(KazooClient, "start", lambda client, timeout: None)
    return ZooKeeper("127.0.0.1:1", 1, 1)


def test_what_a_zookeeper_refuses_is_tried_again(zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise NoAuthError

    monkeypatch.setattr(KazooClient, "set_async", refuses)
    with pytest.raises(Lost):
        zookeeper.do(Put("/consumers/g/offsets/t/0", b"1"))


def test_a_broker_without_a_number_is_left_out(zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "_children", lambda *_: ["not a number"])
    assert zookeeper.brokers() == []


class Confused(Cluster):
    """Brokers that name a leader that none of them has an address of. `asked`: released with each question."""

    def __init__(self) -> None:
        super().__init__(list, "", 1)
        self.asked = threading.Semaphore(0)

    def refresh(self, topics: Collection[str]) -> None:
        self.asked.release()

    def leaders(self, topic: str) -> dict[int, int]:
        return {0: 7}

    def address_of(self, broker_id: int) -> Address:
        raise BrokerUnreachable(f"broker {broker_id} is not known")


def test_a_leader_without_an_address_is_asked_for_again() -> None:
    stream = KafkaStream[bytes, bytes](lambda key: key or b"", lambda value: value or b"", 1, -1, "g-0")
    position, cluster = PartitionPosition(TopicPartition("t", 0), stream, 0), Confused()
    fetching = Fetching(ConsumerConfig("g", "127.0.0.1:1", refresh_leader_backoff_ms=0), cluster, [position])
    try:
        for _ in range(2):
            assert cluster.asked.acquire(timeout=10)
    finally:
        fetching.stop()
