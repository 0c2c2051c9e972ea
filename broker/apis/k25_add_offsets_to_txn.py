"""AddOffsetsToTxn, versions 0 to 4: a group's offsets join a transaction before they are committed in it (KIP-98).

2 the producer may be fenced; 3 flexible; 4 TRANSACTION_ABORTABLE. What joins is the partition of `__consumer_offsets` that the group is on.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

FENCED_SINCE = 2


async def handle(context: Context, request: Any) -> Any:
    broker, transactional_id = context.broker, request.transactional_id
    producer = Producer(request.producer_id, request.producer_epoch)
    offsets = (broker.groups.topic_name, broker.groups.partition_for(request.group_id))
    code = 0
    try:
        if not transactional_id:
            raise ApiError(Errors.INVALID_REQUEST)
        await broker.transactions.write(transactional_id, lambda shard: shard.add_partitions(transactional_id, producer, [offsets], 0))
    except ApiError as error:
        code = error.code
        if code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = int(Errors.INVALID_PRODUCER_EPOCH)
    return messages.AddOffsetsToTxnResponse(error_code=code)
