"""AddOffsetsToTxn, versions 0 to 4: adds a group's offsets to a transaction before they are committed in it (KIP-98).

**Behaviour**
- Adds the partition of `__consumer_offsets` that stores the group.

**Versions**
- 2 PRODUCER_FENCED (KIP-588)
- 3 flexible
- 4 TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (
    Check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),
    Check(Operation.READ, ResourceType.GROUP, "group_id"),
)
FENCED_SINCE = 2
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_REQUEST INVALID_PRODUCER_EPOCH INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING "
            "GROUP_AUTHORIZATION_FAILED CONCURRENT_TRANSACTIONS TRANSACTIONAL_ID_AUTHORIZATION_FAILED "
            "PRODUCER_FENCED TRANSACTION_ABORTABLE"
        ),
    ),
)


async def handle(context: Context, request: messages.AddOffsetsToTxnRequest) -> messages.AddOffsetsToTxnResponse:
    broker, transactional_id = context.broker, request.transactional_id
    producer = Producer(request.producer_id, request.producer_epoch)
    offsets = (broker.groups.topic_name, broker.groups.partition_for(request.group_id))
    code = 0
    try:
        if not transactional_id:
            raise ApiError(Errors.INVALID_REQUEST)
        await broker.transactions.write(
            transactional_id,
            "add-offsets",
            lambda shard: shard.add_partitions(transactional_id, producer, [offsets], 0),
        )
    except ApiError as error:
        code = error.code
        if code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = int(Errors.INVALID_PRODUCER_EPOCH)
    return messages.AddOffsetsToTxnResponse(error_code=code)
