"""The records of `__transaction_state`: a transactional id and its `Transaction`,
or None if it was removed (Kafka's TransactionLog).
"""

from __future__ import annotations

from collections.abc import Callable

from ...protocol import messages
from ...protocol.records import Record
from ..format import CoordinatorFormat, transaction_key_names
from .state import State, TopicPartition, Transaction

TransactionRecord = tuple[str, Transaction | None]
TAGS_SINCE = 1  # the version of TransactionLogValue that is written if the finalized transaction.version is 1 or higher


class TransactionFormat:
    """`version`: the version of TransactionLogValue to write."""

    def __init__(self, version: Callable[[], int]) -> None:
        self._version = version
        self._formats = [
            CoordinatorFormat(transaction_key_names(), {"TransactionLogValue": number}) for number in (0, TAGS_SINCE)
        ]

    def encode(self, record: TransactionRecord) -> Record:
        transactional_id, transaction = record
        key = messages.TransactionLogKey(transactional_id=transactional_id)
        version = self._version()
        return self._formats[version].encode((key, None if transaction is None else value_of(transaction, version)))

    def replayed(self, record: TransactionRecord) -> TransactionRecord:
        return record

    def decode(self, record: Record) -> TransactionRecord | None:
        found = self._formats[0].decode(record)
        if found is None:
            return None
        key, value = found
        return key.transactional_id, None if value is None else transaction_of(value)


def value_of(transaction: Transaction, version: int) -> messages.TransactionLogValue:
    v = messages.TransactionLogValue
    value = v(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=int(transaction.state),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        transaction_partitions=None,
    )
    if transaction.state is not State.EMPTY:
        value.transaction_partitions = [
            v.PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic(transaction.partitions).items()
        ]
    if version >= TAGS_SINCE:
        value.previous_producer_id = transaction.previous_producer_id
        value.next_producer_id = transaction.next_producer_id
        value.client_transaction_version = transaction.client_version
    return value


def by_topic(partitions: frozenset[TopicPartition]) -> dict[str, list[int]]:
    """Returns the partitions of each topic, ascending."""
    found: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        found.setdefault(topic, []).append(index)
    return found


def transaction_of(value: messages.TransactionLogValue) -> Transaction:
    partitions = frozenset((p.topic, index) for p in value.transaction_partitions or () for index in p.partition_ids)
    state = State(value.transaction_status)
    return Transaction(
        value.producer_id,
        value.previous_producer_id,
        value.next_producer_id,
        value.producer_epoch,
        -1,
        value.transaction_timeout_ms,
        state,
        frozenset() if state is State.EMPTY else partitions,
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.client_transaction_version,
    )
