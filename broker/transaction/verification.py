"""Verifies with the transaction coordinator, before the first batch of a transaction in a partition, that the partition
belongs to it (KIP-890).

Clients that use transactions version 2 do not add partitions: the leader does. For older clients it verifies that they
did. Kafka sends an AddPartitionsToTxn request; here the coordinator is in the same process and is called.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING

from ...protocol.errors import ApiError, Errors

if TYPE_CHECKING:
    from ...coordinator.transaction.shard import Producer
    from ...coordinator.transaction.state import TopicPartition
    from .coordinators import TransactionCoordinators

RETRY_MS = 100  # how often the node of a coordinator is looked at that does not answer
PRODUCE_ADDS_SINCE, PRODUCE_ABORTABLE_SINCE = 12, 11
OFFSETS_ADD_SINCE, OFFSETS_ABORTABLE_SINCE = 5, 4


class Mode(Enum):
    """What a version of Produce or TxnOffsetCommit does if a partition is not in the transaction."""

    INVALID = "it gets INVALID_TXN_STATE"
    ABORTABLE = "it gets TRANSACTION_ABORTABLE"
    ADDS = "it is added"


def mode_of(version: int, abortable_since: int, adds_since: int) -> Mode:
    if version >= adds_since:
        return Mode.ADDS
    return Mode.ABORTABLE if version >= abortable_since else Mode.INVALID


def is_lost(code: int) -> bool:
    """Returns whether the coordinator could not be reached."""
    return code == Errors.NETWORK_EXCEPTION


async def ask_coordinator(
    coordinators: TransactionCoordinators,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
    mode: Mode,
) -> dict[TopicPartition, int]:
    """Returns error codes for the partitions that must not be written. The nodes that lead them ask."""
    began_ms = coordinators.monotonic_ms()
    try:
        found = await _ask(coordinators, transactional_id, producer, partitions, mode)
    except ApiError as error:
        found = dict.fromkeys(partitions, error.code)
    refused = {one: _translated(code, mode) for one, code in found.items() if code}
    coordinators.verification_ms.add(coordinators.monotonic_ms() - began_ms)
    coordinators.verification_failures += len(refused)
    return refused


async def _ask(
    coordinators: TransactionCoordinators,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
    mode: Mode,
) -> dict[TopicPartition, int]:
    from ...coordinator.transaction.state import BUMPS_SINCE

    if not transactional_id:
        raise ApiError(Errors.INVALID_REQUEST)
    if not coordinators.has_topic:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    await _reached(coordinators, transactional_id, partitions)
    if mode is Mode.ADDS:
        await coordinators.write(
            transactional_id,
            "add-partitions",
            lambda shard: shard.add_partitions(transactional_id, producer, partitions, BUMPS_SINCE),
        )
        return {}
    found: dict[TopicPartition, int] = coordinators.read(
        transactional_id, lambda shard, as_of: shard.verify(transactional_id, producer, partitions, as_of)
    )
    return found


async def _reached(
    coordinators: TransactionCoordinators, transactional_id: str, partitions: Collection[TopicPartition]
) -> None:
    """Waits until the coordinator's node answers. Raises ApiError(NETWORK_EXCEPTION) after `request.timeout.ms`."""
    index = coordinators.partition_for(transactional_id)
    by_name = coordinators.partitions.by_name
    nodes = {found.leader for key in partitions if (found := by_name.get(key)) is not None}
    until_ms = coordinators.monotonic_ms() + int(coordinators.config("request.timeout.ms"))
    while not all(coordinators.is_reachable(index, node) for node in nodes):
        if coordinators.monotonic_ms() >= until_ms:
            raise ApiError(Errors.NETWORK_EXCEPTION)
        await coordinators.turn.pause(RETRY_MS)


def _translated(code: int, mode: Mode) -> int:
    if code == Errors.PRODUCER_FENCED:
        return int(Errors.INVALID_PRODUCER_EPOCH)
    if code == Errors.TRANSACTION_ABORTABLE and mode is Mode.INVALID:
        return int(Errors.INVALID_TXN_STATE)
    return code
