"""What a trace is made of in tests: librdkafka's clients, one after the other, in every protocol with ids."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from .poll import until


def tell(bootstrap_servers: str) -> None:
    """An idempotent producer, a transaction with offsets, a classic group and one of KIP-848."""
    common: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap_servers}
    admin = AdminClient(dict(common))
    for made in admin.create_topics([NewTopic("orders", 2, 1)]).values():
        made.result()
    producer = Producer({**common, "enable.idempotence": True, "client.id": "idempotent"})
    for number in range(20):
        producer.produce("orders", f"value {number}", partition=number % 2)
    assert producer.flush(30) == 0
    _transaction(common)
    for protocol in ("classic", "consumer"):
        _consume(common, protocol)


def _transaction(common: dict[str, str | int | float | bool]) -> None:
    producer = Producer({**common, "transactional.id": "tx", "client.id": "transactional"})
    producer.init_transactions(30)
    group = Consumer({**common, "group.id": "of-transactions"})
    for is_committed in (True, False, True):
        producer.begin_transaction()
        producer.produce("orders", "in a transaction", partition=0)
        offsets = [TopicPartition("orders", 0, 3)]
        producer.send_offsets_to_transaction(offsets, group.consumer_group_metadata(), 30)
        if is_committed:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    group.close()


def _consume(common: dict[str, str | int | float | bool], protocol: str) -> None:
    settings = {"group.id": f"g-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({**common, **settings, "client.id": protocol, "enable.auto.commit": False})
    consumer.subscribe(["orders"])
    values: list[bytes] = []

    def has_all() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            values.append(message.value())
        return len(values) >= 22

    until(has_all, "all records are read", within=60)
    consumer.commit(asynchronous=False)
    consumer.close()
