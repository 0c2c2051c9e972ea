"""librdkafka in examinations of the verdict, by confluent-kafka."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, ShareConsumer, TopicPartition

from .program import (
    CHURN,
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
    run,
)

SECONDS: Final = 60
PLAIN: Final = TopicPartition("plain", 0)
LOGIN: Final[dict[str, Any]] = {
    "security_protocol": PROTOCOL,
    "sasl_mechanisms": MECHANISM,
    "sasl_username": USER,
    "sasl_password": PASSWORD,
}


def _config(at: str, **more: Any) -> dict[str, Any]:
    found = {"bootstrap.servers": at, "log_level": 0, "linger.ms": 0}
    return found | {name.replace("_", "."): value for name, value in more.items()}


def _consumer(at: str, **more: Any) -> Consumer:
    given = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "fetch_wait_max_ms": 50}
    return Consumer(_config(at, **given, **more))


def _send(producer: Producer, topic: str, partition: int = 0) -> None:
    producer.produce(topic, VALUE, partition=partition)
    assert producer.flush(SECONDS) == 0


def _gone(producer: Producer) -> None:
    """Closes the connections of a producer."""
    assert producer.close(SECONDS)


def _plain(at: str, enough: Enough, together: int = 0, codec: str = "none", **more: Any) -> None:
    """A producer, and a consumer that chooses its partition and commits. `together`: records that do not wait."""
    alone = {"batch_num_messages": 1} if together else {}
    producer = Producer(_config(at, enable_idempotence=True, compression_type=codec, **alone, **more))
    _send(producer, PLAIN.topic)
    consumer = _consumer(at, group_id="plain", **more)
    consumer.assign([TopicPartition(PLAIN.topic, PLAIN.partition, 0)])
    while not enough():
        for _ in range(together):
            producer.produce(PLAIN.topic, VALUE, partition=PLAIN.partition)
        _send(producer, PLAIN.topic)
        for message in consumer.consume(RECORDS_READ_MAX, 0.05):
            if message.error() is None:
                consumer.commit(message, asynchronous=True)
        with suppress(KafkaException):  # librdkafka gives up what is asked for when its brokers change
            consumer.get_watermark_offsets(PLAIN, SECONDS)
            producer.list_topics(timeout=SECONDS)
    consumer.close()
    _gone(producer)


def _seldom(at: str, enough: Enough) -> None:
    """A producer that sends a record now and then."""
    producer = Producer(_config(at, enable_idempotence=True))
    while not enough():
        _send(producer, PLAIN.topic)
        time.sleep(SELDOM_SECONDS)
    _gone(producer)


def _reading(at: str, enough: Enough) -> None:
    """A consumer that chooses its partition, and only reads."""
    consumer = _consumer(at, group_id="reading")
    consumer.assign([TopicPartition(READ, 0, 0)])
    while not enough():
        consumer.consume(RECORDS_READ_MAX, 0.05)
    consumer.close()


def _transactions(at: str, enough: Enough) -> None:
    """The offsets are those of a member of a group. The producer does not bootstrap again when it has lost its only
    broker: librdkafka 2.16 would wait for the broker that it had before, until the offsets time out.
    """
    writer = Producer(_config(at))
    _send(writer, "read")
    _gone(writer)
    consumer = _consumer(at, group_id="group", group_protocol="classic")
    consumer.subscribe(["read"])
    while not consumer.consume(1, 0.1):
        pass
    producer = Producer(_config(at, transactional_id="transactions", metadata_recovery_strategy="none"))
    producer.init_transactions(SECONDS)
    while not enough():
        consumer.poll(0.01)
        producer.begin_transaction()
        try:
            _send(producer, "written")
            _send(producer, "written")
            offsets = [TopicPartition("read", 0, 1)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
            producer.commit_transaction(SECONDS)
        except KafkaException:  # as the producer wants it
            producer.abort_transaction(SECONDS)
    consumer.close()
    _gone(producer)


def _classic(at: str, enough: Enough) -> None:
    more = {"heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_TIMEOUT_MS}
    _group(at, enough, group_protocol="classic", **more)


def _group(at: str, enough: Enough, **more: Any) -> None:
    """Two members read and commit; the second one goes and comes again. A static member of another group does so in
    the end.
    """
    producer = Producer(_config(at))
    _send(producer, "shared")
    members: list[Consumer] = []

    def comes() -> None:
        members.append(_consumer(at, group_id="members", **more))
        members[-1].subscribe(["shared"])

    comes()
    number = 0
    while not enough():
        moves = number % CHURN == 0 and all(one.assignment() for one in members)
        if moves and len(members) == 1:
            comes()
        elif moves:
            _leaves(members.pop())
        number += 1
        _send(producer, "shared", number % 2)
        for one in members:
            _read(one)
    for one in members:
        _leaves(one)
    for _ in range(2):
        static = _consumer(at, group_id=STATIC, group_instance_id=STATIC, **more)
        static.subscribe(["shared"])
        while not static.assignment():
            _read(static)
        _leaves(static)
    _gone(producer)


def _read(member: Consumer) -> None:
    if any(message.error() is None for message in member.consume(RECORDS_READ_MAX, 0.05)):
        with suppress(KafkaException):  # the group rebalances: what was read is read again
            member.commit(asynchronous=False)


def _leaves(member: Consumer) -> None:
    """Closes a member when it has a coordinator, which librdkafka needs to leave."""
    while True:
        _read(member)
        with suppress(KafkaException):
            if member.committed(member.assignment(), 1.0) is not None:
                break
    member.close()


def _share(at: str, enough: Enough) -> None:
    producer = Producer(_config(at))
    _send(producer, "queue")
    consumer = ShareConsumer(_config(at, group_id="queue", fetch_wait_max_ms=50))
    consumer.subscribe(["queue"])
    while not enough():
        _send(producer, "queue")
        consumer.poll(0.05)
        consumer.commit_sync()
    consumer.close()
    _gone(producer)


def _ended(producer: Producer) -> None:
    """Closes the connections of a producer, which says once more what it has ended by."""
    with suppress(KafkaException):
        _gone(producer)


def _ending_writes(at: str, enough: Enough) -> None:
    """Transactions, until a producer can neither commit nor abort."""
    producer = Producer(_config(at, transactional_id="ending"))
    producer.init_transactions(SECONDS)
    with suppress(KafkaException):
        while not enough():
            producer.begin_transaction()
            try:
                _send(producer, "written")
                producer.commit_transaction(SECONDS)
            except KafkaException:
                producer.abort_transaction(SECONDS)
    _ended(producer)


def _ending_sends(at: str, enough: Enough) -> None:
    """Records that do not wait for each other, until a producer takes no more."""
    producer = Producer(_config(at, enable_idempotence=True, batch_num_messages=1))
    with suppress(KafkaException):
        while not enough():
            for _ in range(TOGETHER):
                producer.produce(PLAIN.topic, VALUE, partition=PLAIN.partition)
            assert producer.flush(SECONDS) == 0
    _ended(producer)


def _ending_member(at: str, enough: Enough, protocol: str, **more: Any) -> None:
    """A member, which commits by itself, until it hears that it may not go on."""
    producer, ends = Producer(_config(at)), list[KafkaError]()
    _send(producer, "shared")
    given = {"auto_offset_reset": "earliest", "auto_commit_interval_ms": 500, "group_protocol": protocol}
    member = Consumer(_config(at, group_id=f"ending-{protocol}", **given, **more) | {"error_cb": ends.append})
    member.subscribe(["shared"])
    while not enough() and not any(one.fatal() for one in ends):
        _send(producer, "shared")
        for message in member.consume(RECORDS_READ_MAX, 0.1):
            error = message.error()
            if error is not None:
                ends.append(error)
    member.close()
    _gone(producer)


def _ending_static(at: str, enough: Enough) -> None:
    more = {"heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_TIMEOUT_MS}
    _ending_member(at, enough, "classic", group_instance_id="ending", **more)


if __name__ == "__main__":
    run({
        "basic": lambda at, enough: _plain(at, enough, codec=CODEC),
        "idempotence": lambda at, enough: _plain(at, enough, TOGETHER),
        "network": _plain,
        "login": lambda at, enough: _plain(at, enough, **LOGIN),
        "truncation": _reading,
        "connections": _seldom,
        "transactions": _transactions,
        "classic-group": _classic,
        "consumer-group": lambda at, enough: _group(at, enough, group_protocol="consumer"),
        "share-group": _share,
        "ending-writes": _ending_writes,
        "ending-sends": _ending_sends,
        "ending-static": _ending_static,
        "ending-member": lambda at, enough: _ending_member(at, enough, "consumer"),
    })  # fmt: skip
