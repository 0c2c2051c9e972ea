"""A broker is killed in the middle of its work, and started again: what it acknowledged is there."""

from itertools import islice

from kafka import KafkaConsumer, KafkaProducer

from ottla.testing import Broker

with Broker() as broker:
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    acknowledged = [producer.send("orders", f"{n}".encode()).get(timeout=10).offset for n in range(100)]
    producer.close()

    broker.kill()
    broker.start()

    consumer = KafkaConsumer(
        "orders", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=30000
    )
    found = [record.offset for record in islice(consumer, len(acknowledged))]
    consumer.close()
    print(f"{len(acknowledged)} acknowledged, {len(found)} found, the same: {acknowledged == found}")
