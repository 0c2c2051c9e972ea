"""TxnOffsetCommit, versions 0 to 6: a group's offsets are written as a part of a transaction, and hold once it is committed (KIP-98).

2 leader epochs, COORDINATOR_LOAD_IN_PROGRESS; 3 flexible, members and generations (KIP-447); 4 TRANSACTION_ABORTABLE; 5 the group's
partition joins the transaction by itself (KIP-890); 6 topics by id, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...coordinator.group import offsets
from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from .. import committing
from ..appending import verifies
from ..committing import Kind, commit
from ..context import Context
from ..grouping import client_of
from ..verification import OFFSETS_ABORTABLE_SINCE, OFFSETS_ADD_SINCE, Mode, ask_coordinator, mode_of

if TYPE_CHECKING:
    from ...storage.producers import Verification

LOADING_SINCE = 2
NO_SEQUENCE = -1


_R = messages.TxnOffsetCommitResponse
KIND = Kind(_R, _R.TxnOffsetCommitResponseTopic, _R.TxnOffsetCommitResponsePartition, offsets.TXN_TOPIC_IDS_SINCE)


def handle(context: Context, request: Any) -> Any:
    return commit(context, request, KIND, lambda: _commit(context, request))


def failed(context: Context, request: Any, error: ApiError) -> Any:
    return committing.failed(context, request, KIND, error)


async def _commit(context: Context, request: Any) -> Any:
    """ApiError."""
    if not request.group_id:
        raise ApiError(Errors.INVALID_GROUP_ID)
    client, groups = client_of(context), context.broker.groups
    producer = Producer(request.producer_id, request.producer_epoch)
    index = groups.partition_for(request.group_id)
    try:
        verification = await _verified(context, request.transactional_id, producer, index)
        return await groups.write_in_transaction(index, producer, verification, lambda shard: offsets.commit_in_transaction(shard, client, request))
    except ApiError as error:
        if error.code == Errors.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_SINCE:
            raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE) from None
        raise


async def _verified(context: Context, transactional_id: str, producer: Any, index: int) -> Verification | None:
    """What the write brings along, None where the transaction has written to the partition before. ApiError."""
    broker = context.broker
    partition = broker.partitions.by_name.get((broker.groups.topic_name, index))
    if partition is None:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    mode = mode_of(context.version, OFFSETS_ABORTABLE_SINCE, OFFSETS_ADD_SINCE)
    if mode is not Mode.ADDS and not verifies(broker):
        return None
    now = broker.schedule.now_ms()
    producers = partition.open_log().producers
    verification = producers.begin_verification(producer.id, producer.epoch, NO_SEQUENCE, context.version >= OFFSETS_ADD_SINCE, now)
    if verification is not None:
        key = (partition.topic, partition.index)
        refused = await ask_coordinator(broker, transactional_id, producer, [key], mode)
        if refused:
            raise ApiError(refused[key])
    return verification
