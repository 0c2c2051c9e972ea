"""kafka-python in examinations of the verdict."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Final

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError, RetriableError
from kafka.structs import OffsetAndMetadata

from .program import (
    CODEC,
    MECHANISM,
    PASSWORD,
    PROTOCOL,
    READ,
    RECORDS_READ_MAX,
    SELDOM_SECONDS,
    SESSION_TIMEOUT_MS,
    STATIC,
    TOGETHER,
    USER,
    VALUE,
    Enough,
    churn,
    come_again,
    run,
)

SECONDS: Final = 60
STEP_SECONDS: Final = 0.2
PLAIN = TopicPartition("plain", 0)
LOGIN: Final[dict[str, Any]] = {
    "security_protocol": PROTOCOL,
    "sasl_mechanism": MECHANISM,
    "sasl_plain_username": USER,
    "sasl_plain_password": PASSWORD,
}


def _consumer(at: str, *topics: str, **more: Any) -> KafkaConsumer:
    given = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_max_wait_ms": 50}
    return KafkaConsumer(*topics, bootstrap_servers=at, **given, **more)


def _send(producer: KafkaProducer, topic: str, partition: int = 0) -> None:
    producer.send(topic, VALUE, partition=partition).get(SECONDS)


def _plain(at: str, enough: Enough, together: int = 0, codec: str | None = None, **more: Any) -> None:
    """A producer, and a consumer that chooses its partition and commits. `together`: records that do not wait."""
    alone: dict[str, Any] = {"batch_size": 0} if together else {}
    alone |= {"compression_type": codec}
    producer = KafkaProducer(bootstrap_servers=at, enable_idempotence=True, **alone, **more)
    _send(producer, PLAIN.topic)
    consumer = _consumer(at, group_id="plain", **more)
    consumer.assign([PLAIN])
    while not enough():
        for _ in range(together):
            producer.send(PLAIN.topic, VALUE, partition=PLAIN.partition)
        _send(producer, PLAIN.topic)
        if consumer.poll(50, max_records=RECORDS_READ_MAX):
            consumer.commit()
        with suppress(RetriableError):  # the application asks again
            consumer.end_offsets([PLAIN])
            consumer.topics()
    consumer.close()
    producer.close()


def _seldom(at: str, enough: Enough) -> None:
    """A producer that sends a record now and then."""
    producer = KafkaProducer(bootstrap_servers=at, enable_idempotence=True)
    while not enough():
        _send(producer, PLAIN.topic)
        time.sleep(SELDOM_SECONDS)
    producer.close()


def _reading(at: str, enough: Enough) -> None:
    """A consumer that chooses its partition, and only reads."""
    consumer = _consumer(at)
    consumer.assign([TopicPartition(READ, 0)])
    while not enough():
        consumer.poll(50, max_records=RECORDS_READ_MAX)
    consumer.close()


def _transactions(at: str, enough: Enough) -> None:
    """The offsets are those of a consumer that is a member of a group."""
    with_records = KafkaProducer(bootstrap_servers=at)
    _send(with_records, "read")
    with_records.close()
    consumer = _consumer(at, "read", group_id="group")
    while not consumer.poll(100):
        pass
    producer = KafkaProducer(bootstrap_servers=at, transactional_id="transactions")
    producer.init_transactions()
    while not enough():
        consumer.poll(10)
        producer.begin_transaction()
        try:
            for _ in range(2):
                _send(producer, "written")
            offsets = {TopicPartition("read", 0): OffsetAndMetadata(1, "", -1)}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
        except KafkaError:
            producer.abort_transaction()
    producer.close()
    consumer.close()


class _Member(threading.Thread):
    """A member of a group, which reads and commits until it is told to go."""

    def __init__(self, at: str, group: str, **more: Any) -> None:
        super().__init__()
        self.goes = threading.Event()
        more |= {"group_id": group, "heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_TIMEOUT_MS}
        self._consumer = _consumer(at, "shared", **more)
        self.has_partitions = False
        self.start()

    def run(self) -> None:
        while not self.goes.is_set():
            if self._consumer.poll(50, max_records=RECORDS_READ_MAX):
                with suppress(KafkaError):  # the group rebalances: what was read is read again
                    self._consumer.commit()
            self.has_partitions = bool(self._consumer.assignment())
        self._consumer.close()

    def leave(self) -> None:
        self.goes.set()
        self.join()


def _group(at: str, enough: Enough) -> None:
    """Two members; the second one goes and comes again. A static member of another group does so in the end."""
    producer = KafkaProducer(bootstrap_servers=at)
    _send(producer, "shared")

    def step(number: int) -> None:
        _send(producer, "shared", number % 2)
        time.sleep(STEP_SECONDS)

    churn(lambda: _Member(at, "members"), step, enough)
    come_again(lambda: _Member(at, STATIC, group_instance_id=STATIC))
    producer.close()


def _ending_writes(at: str, enough: Enough) -> None:
    """Transactions, until a producer can do no more. One that takes a new epoch has no transaction to abort."""
    producer = KafkaProducer(bootstrap_servers=at, transactional_id="ending")
    producer.init_transactions()
    while not enough() and not producer._transaction_manager.has_fatal_error():
        try:
            producer.begin_transaction()
            _send(producer, "written")
            producer.commit_transaction()
        except KafkaError:
            with suppress(KafkaError):
                producer.abort_transaction()
            time.sleep(STEP_SECONDS)
    producer.close()


def _ending_sends(at: str, enough: Enough) -> None:
    """Records that do not wait for each other, until a producer takes no more."""
    producer = KafkaProducer(bootstrap_servers=at, enable_idempotence=True, batch_size=0)
    with suppress(KafkaError):
        while not enough():
            for sent in [producer.send(PLAIN.topic, VALUE, partition=0) for _ in range(TOGETHER)]:
                with suppress(KafkaError):  # a record that is refused is lost
                    sent.get(SECONDS)
    producer.close()


def _ending_static(at: str, enough: Enough) -> None:
    """A static member, which commits by itself, until it hears that it may not go on."""
    producer = KafkaProducer(bootstrap_servers=at)
    _send(producer, "shared")
    more: dict[str, Any] = {"heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_TIMEOUT_MS}
    more |= {"group_id": "ending", "group_instance_id": "ending", "auto_commit_interval_ms": 500}
    member = KafkaConsumer("shared", bootstrap_servers=at, auto_offset_reset="earliest", **more)
    with suppress(KafkaError):
        while not enough():
            _send(producer, "shared")
            member.poll(100)
    member.close()
    producer.close()


if __name__ == "__main__":
    run({
        "basic": lambda at, enough: _plain(at, enough, codec=CODEC),
        "idempotence": lambda at, enough: _plain(at, enough, TOGETHER),
        "network": _plain,
        "login": lambda at, enough: _plain(at, enough, **LOGIN),
        "truncation": _reading,
        "connections": _seldom,
        "transactions": _transactions,
        "classic-group": _group,
        "ending-writes": _ending_writes,
        "ending-sends": _ending_sends,
        "ending-static": _ending_static,
    })  # fmt: skip
