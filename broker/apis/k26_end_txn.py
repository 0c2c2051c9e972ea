"""EndTxn, versions 0 to 5: commits or aborts a transaction (KIP-98).

2 the producer may be fenced; 3 flexible; 4 TRANSACTION_ABORTABLE; 5 the producer goes on with the epoch, or the id, that the reply tells
(KIP-890). The reply leaves when the end is decided; markers are written after it.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

FENCED_SINCE = 2
TWO_SINCE = 5  # from where on a client speaks version 2 of transactions


async def handle(context: Context, request: Any) -> Any:
    r = messages.EndTxnResponse
    transactional_id, commits = request.transactional_id, bool(request.committed)
    producer = Producer(request.producer_id, request.producer_epoch)
    version = 2 if context.version >= TWO_SINCE else 0
    try:
        if not transactional_id:
            raise ApiError(Errors.INVALID_REQUEST)
        found = await context.broker.transactions.write(transactional_id, lambda shard: shard.end(transactional_id, producer, commits, version))
    except ApiError as error:
        code = error.code
        if code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = int(Errors.INVALID_PRODUCER_EPOCH)
        return r(error_code=code)
    return r(producer_id=found.id, producer_epoch=found.epoch)
