"""TxnOffsetCommit, versions 0 to 6: writes a group's offsets as part of a transaction; they take effect when it is
committed (KIP-98).

**Versions**
- 2 leader epochs (KIP-320), COORDINATOR_LOAD_IN_PROGRESS
- 3 flexible, members and generations (KIP-447)
- 4 TRANSACTION_ABORTABLE (KIP-890)
- 5 adds the group's partition to the transaction implicitly (KIP-890)
- 6 topic ids, GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (KIP-1319)
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ...coordinator.batch import APPEND_ERRORS, told
from ...coordinator.group import routes
from ...coordinator.group.offsets.commit import TXN_TOPIC_IDS_SINCE
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Decided
from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, array, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..transaction.verification import (
    OFFSETS_ABORTABLE_SINCE,
    OFFSETS_ADD_SINCE,
    Mode,
    ask_coordinator,
    is_lost,
    mode_of,
)
from . import _offset_commits as offset_commits
from ._groups import client_of
from ._offset_commits import Kind, commit

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ...storage.producers import Verification

TOPICS = Check(Operation.READ, ResourceType.TOPIC, "topics.name", Refusal.ELEMENT)
AUTHORIZATION = (
    Check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
    Check(Operation.READ, ResourceType.GROUP, "group_id"),
    TOPICS,
)
LOADING_SINCE = 2
STALE_EPOCH_SINCE = 6
NO_SEQUENCE = -1


_R = messages.TxnOffsetCommitResponse
KIND = Kind(_R, _R.TxnOffsetCommitResponseTopic, _R.TxnOffsetCommitResponsePartition, TXN_TOPIC_IDS_SINCE)
ERRORS = (
    Place(
        "each partition",
        COORDINATOR
        + codes(
            "UNKNOWN_TOPIC_OR_PARTITION REQUEST_TIMED_OUT OFFSET_METADATA_TOO_LARGE ILLEGAL_GENERATION "
            "INVALID_GROUP_ID UNKNOWN_MEMBER_ID REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE "
            "TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION GROUP_ID_NOT_FOUND "
            "GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID UNKNOWN_TOPIC_ID FENCED_MEMBER_EPOCH STALE_MEMBER_EPOCH "
            "INVALID_REQUEST UNSUPPORTED_FOR_MESSAGE_FORMAT INVALID_PRODUCER_EPOCH INVALID_TXN_STATE "
            "INVALID_PRODUCER_ID_MAPPING CONCURRENT_TRANSACTIONS TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
            "PRODUCER_FENCED NOT_ENOUGH_REPLICAS TRANSACTION_ABORTABLE"
        ),
        (
            array("topics", "topics", topic="name", topic_id="topic_id"),
            array("partitions", "partitions", partition="partition_index"),
        ),
    ),
)


async def narrowed(
    context: Context, request: messages.TxnOffsetCommitRequest
) -> Callable[[messages.TxnOffsetCommitResponse], messages.TxnOffsetCommitResponse] | None:
    return await offset_commits.narrowed(context, request, KIND, TOPICS)


def handle(context: Context, request: messages.TxnOffsetCommitRequest) -> Awaitable[messages.TxnOffsetCommitResponse]:
    return commit(context, request, KIND, lambda: _commit(context, request))


async def _commit(context: Context, request: messages.TxnOffsetCommitRequest) -> messages.TxnOffsetCommitResponse:
    """Raises ApiError."""
    if not request.group_id:
        raise ApiError(Errors.INVALID_GROUP_ID)
    client, groups = client_of(context), context.broker.groups
    producer = Producer(request.producer_id, request.producer_epoch)
    index = groups.partition_for(request.group_id)

    def commit_offsets(shard: GroupShard) -> Decided[messages.TxnOffsetCommitResponse]:
        groups.room.check_group(shard, request.group_id)
        return routes.commit_offsets_in_transaction(shard, client, request)

    try:
        verification = await _verified(context, request.transactional_id, producer, index)
        return await groups.write_in_transaction(index, producer, verification, commit_offsets)
    except ApiError as error:
        if error.code in APPEND_ERRORS:  # before the append, too: of a log that is opened again
            raise told(error) from None
        if error.code == Errors.COORDINATOR_LOAD_IN_PROGRESS and context.version < LOADING_SINCE:
            raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE) from None
        if error.code == Errors.STALE_MEMBER_EPOCH and context.version < STALE_EPOCH_SINCE:
            raise ApiError(Errors.ILLEGAL_GENERATION) from None
        raise


async def _verified(context: Context, transactional_id: str, producer: Producer, index: int) -> Verification | None:
    """Returns the verification for the write; None if the transaction has already written
    to the partition. Raises ApiError.
    """
    broker = context.broker
    partition = broker.partitions.by_name.get((broker.groups.topic_name, index))
    if partition is None:
        raise ApiError(Errors.COORDINATOR_NOT_AVAILABLE)
    is_left = broker.groups.left_at(index) is not None
    if not is_left and not broker.partitions.leads(partition):
        raise ApiError(Errors.NOT_COORDINATOR)
    mode = mode_of(context.version, OFFSETS_ABORTABLE_SINCE, OFFSETS_ADD_SINCE)
    if mode is not Mode.ADDS and not broker.appender.verifies():
        return None
    if is_left:  # alone, it does not reach the transaction's coordinator
        raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS)
    now = broker.schedule.now_ms()
    producers = partition.open_log().producers
    verification = producers.begin_verification(
        producer.id, producer.epoch, NO_SEQUENCE, context.version >= OFFSETS_ADD_SINCE, now
    )
    if verification is not None:
        key = (partition.topic, partition.index)
        refused = await ask_coordinator(broker.transactions.everywhere, transactional_id, producer, [key], mode)
        if refused:
            # older clients do not retry NETWORK_EXCEPTION
            raise ApiError(Errors.COORDINATOR_LOAD_IN_PROGRESS if is_lost(refused[key]) else refused[key])
    return verification
