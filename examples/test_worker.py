"""A test in which one of two workers leaves, and the other takes over its partitions. `pytest
examples/test_worker.py`
"""

import threading
import time

import pytest
from kafka import KafkaConsumer
from kafka.admin import KafkaAdminClient, NewTopic

from ottla.testing import Broker


class Worker(threading.Thread):
    """Consumes a topic as a member of the group `workers`, until it leaves."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.bootstrap_servers, self.topic = bootstrap_servers, topic
        self.partitions: set[int] = set()
        self.leaving = threading.Event()

    def run(self) -> None:
        consumer = KafkaConsumer(self.topic, bootstrap_servers=self.bootstrap_servers, group_id="workers")
        while not self.leaving.is_set():
            consumer.poll(timeout_ms=100)
            self.partitions = {part.partition for part in consumer.assignment()}
        consumer.close()

    def leave(self) -> None:
        self.leaving.set()
        self.join()


def eventually(worker: Worker, partitions: set[int], within_s: float = 60) -> None:
    end = time.monotonic() + within_s
    while worker.partitions != partitions:
        assert time.monotonic() < end, f"the worker has {worker.partitions}"
        time.sleep(0.05)


@pytest.fixture
def topic(ottla_broker: Broker, ottla_topic: str) -> str:
    admin = KafkaAdminClient(bootstrap_servers=ottla_broker.bootstrap_servers)
    admin.create_topics([NewTopic(ottla_topic, num_partitions=2, replication_factor=1)])
    admin.close()
    return ottla_topic


def test_the_second_worker_takes_over(ottla_broker: Broker, topic: str) -> None:
    first, second = (Worker(ottla_broker.bootstrap_servers, topic) for _ in range(2))
    first.start()
    eventually(first, {0, 1})
    second.start()
    first.leave()
    eventually(second, {0, 1})
    second.leave()
