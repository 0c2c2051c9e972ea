"""What a partition's leader asks of the transaction coordinator before it takes the first batch of a transaction (KIP-890).

Clients of version 2 of transactions do not announce partitions: the leader adds them. For others it asks whether they were announced. Kafka
sends an AddPartitionsToTxn for that; the coordinator is in this process, so it is a call.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING

from ..protocol.errors import ApiError, Errors

if TYPE_CHECKING:
    from ..coordinator.transaction.shard import Producer
    from ..coordinator.transaction.state import TopicPartition
    from .broker import Broker

PRODUCE_ADDS_SINCE, PRODUCE_ABORTABLE_SINCE = 12, 11
OFFSETS_ADD_SINCE, OFFSETS_ABORTABLE_SINCE = 5, 4


class Mode(Enum):
    """What a version of Produce or TxnOffsetCommit makes of a partition that is not in the transaction."""

    INVALID = "it gets INVALID_TXN_STATE"
    ABORTABLE = "it gets TRANSACTION_ABORTABLE"
    ADDS = "it is added"


def mode_of(version: int, abortable_since: int, adds_since: int) -> Mode:
    if version >= adds_since:
        return Mode.ADDS
    return Mode.ABORTABLE if version >= abortable_since else Mode.INVALID


async def ask_coordinator(
    broker: Broker, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition], mode: Mode
) -> dict[TopicPartition, int]:
    """Error codes of the partitions that may not be written to."""
    began_ms = broker.schedule.monotonic_ms()
    try:
        found = await _ask(broker, transactional_id, producer, partitions, mode)
    except ApiError as error:
        found = dict.fromkeys(partitions, error.code)
    refused = {one: _translated(code, mode) for one, code in found.items() if code}
    coordinators = broker.transactions
    coordinators.verification_ms.add(broker.schedule.monotonic_ms() - began_ms)
    coordinators.verification_failures += len(refused)
    return refused


async def _ask(
    broker: Broker, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition], mode: Mode
) -> dict[TopicPartition, int]:
    from ..coordinator.transaction.state import BUMPS_SINCE

    coordinators = broker.transactions
    if not transactional_id:
        raise ApiError(Errors.INVALID_REQUEST)
    if broker.topic(coordinators.topic_name) is None:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    if mode is Mode.ADDS:
        await coordinators.write(transactional_id, lambda shard: shard.add_partitions(transactional_id, producer, partitions, BUMPS_SINCE))
        return {}
    found: dict[TopicPartition, int] = coordinators.read(
        transactional_id, lambda shard, as_of: shard.verify(transactional_id, producer, partitions, as_of)
    )
    return found


def _translated(code: int, mode: Mode) -> int:
    if code == Errors.PRODUCER_FENCED:
        return int(Errors.INVALID_PRODUCER_EPOCH)
    if code == Errors.TRANSACTION_ABORTABLE and mode is Mode.INVALID:
        return int(Errors.INVALID_TXN_STATE)
    return code
