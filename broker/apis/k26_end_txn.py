"""EndTxn, versions 0 to 5: commits or aborts a transaction (KIP-98).

**Behaviour**
- The reply is sent when the decision is committed; the markers are written after it.

**Versions**
- 2 PRODUCER_FENCED (KIP-588)
- 3 flexible
- 4 TRANSACTION_ABORTABLE (KIP-890)
- 5 the reply contains the producer id and epoch of the next transaction (KIP-890)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id"),)
FENCED_SINCE = 2
TWO_SINCE = 5  # first API version of clients that use transactions version 2
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "INVALID_REQUEST INVALID_PRODUCER_EPOCH INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING "
            "CONCURRENT_TRANSACTIONS TRANSACTIONAL_ID_AUTHORIZATION_FAILED PRODUCER_FENCED "
            "TRANSACTION_ABORTABLE"
        ),
    ),
)


async def handle(context: Context, request: messages.EndTxnRequest) -> messages.EndTxnResponse:
    r = messages.EndTxnResponse
    transactional_id, commits = request.transactional_id, bool(request.committed)
    producer = Producer(request.producer_id, request.producer_epoch)
    version = 2 if context.version >= TWO_SINCE else 0
    try:
        if not transactional_id:
            raise ApiError(Errors.INVALID_REQUEST)
        found = await context.broker.transactions.write(
            transactional_id, "end-transaction", lambda shard: shard.end(transactional_id, producer, commits, version)
        )
    except ApiError as error:
        code = error.code
        if code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = int(Errors.INVALID_PRODUCER_EPOCH)
        return r(error_code=code)
    return r(producer_id=found.id, producer_epoch=found.epoch)
