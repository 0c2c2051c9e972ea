"""Transactions of clients in Python under test: a record and an offset, in one transaction each. Each raises the error
that it hears.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final

import aiokafka
import confluent_kafka
import kafka
from aiokafka import errors as aiokafka_errors
from kafka import errors as kafka_errors
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata

APIS: Final = ["InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"]
WRITTEN: Final = "transactions"
"""The topic of the records, which no other client reads."""


def of_librdkafka(settings: Mapping[str, object], read: str, name: str, within_s: float) -> None:
    """`read`: the topic of the offset; `name`: of the transaction and of the group."""
    producer = confluent_kafka.Producer({**settings, "transactional.id": name})
    producer.init_transactions(within_s)
    producer.begin_transaction()
    producer.produce(WRITTEN, b"x", partition=0)
    producer.flush(within_s)
    consumer = confluent_kafka.Consumer({**settings, "group.id": name})
    try:
        offsets = [confluent_kafka.TopicPartition(read, 0, 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), within_s)
        producer.commit_transaction(within_s)
    finally:
        consumer.close()


class Raised(Exception):
    """An error that a transaction has raised. `code`: of the error that it names, or that it was raised from."""

    def __init__(self, error: Exception) -> None:
        super().__init__(repr(error))
        named = re.search(r"\[Error (-?\d+)\]", f"{error} {error.__cause__}")
        self.code = int(getattr(error, "errno", named[1] if named else -1))


def of_kafka_python(bootstrap: str, read: str, name: str, within_s: float) -> None:
    """Raises Raised."""
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=name, retry_backoff_ms=10, max_block_ms=int(within_s * 1000)
    )
    try:
        producer.init_transactions()
        producer.begin_transaction()
        # or its error and the next step would meet in any order
        producer.send(WRITTEN, b"x", partition=0).get(within_s)
        offsets = {kafka.TopicPartition(read, 0): OffsetAndMetadata(1, "", -1)}
        producer.send_offsets_to_transaction(offsets, ConsumerGroupMetadata(name, -1, "", None))
        producer.commit_transaction()
    except kafka_errors.KafkaError as error:
        raise Raised(error) from error
    finally:
        producer.close(timeout=within_s)


async def of_aiokafka(bootstrap: str, read: str, name: str, within_s: float) -> None:
    """Raises Raised. Futures that the client leaves behind with an error are not told, because they would be told when
    Python collects them: while it parses another module, that ends the parsing (SystemError in Python 3.11).
    """
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=name,
        retry_backoff_ms=10,
        request_timeout_ms=int(within_s * 1000),
    )
    try:
        await producer.start()
        await producer.begin_transaction()
        await producer.send_and_wait(WRITTEN, b"x", partition=0)
        await producer.send_offsets_to_transaction({aiokafka.TopicPartition(read, 0): 1}, name)
        await producer.commit_transaction()
    except aiokafka_errors.KafkaError as error:
        raise Raised(error) from error
    finally:
        await producer.stop()
