"""InitProducerId, versions 0 to 5: a producer id for an idempotent producer (KIP-98).

2 flexible; 3 a known id may ask for the next epoch (KIP-360); 4 the producer may be fenced; 5 transaction version 2.
Not served yet: transactional ids. They get COORDINATOR_NOT_AVAILABLE, and no client comes this far, as FindCoordinator is not listed.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import Errors
from ..context import Context


class ProducerIds:
    """The block of ids that this node hands out, with the next one fetched when it is used up."""

    def __init__(self) -> None:
        self.next = self.end = 0

    def take(self) -> int:
        found = self.next
        self.next += 1
        return found


async def handle(context: Context, request: Any) -> Any:
    r = messages.InitProducerIdResponse
    if request.transactional_id == "":
        return r(error_code=Errors.INVALID_REQUEST, producer_id=-1, producer_epoch=-1)
    if request.transactional_id is not None:
        return r(error_code=Errors.COORDINATOR_NOT_AVAILABLE, producer_id=-1, producer_epoch=-1)
    broker = context.broker
    ids: ProducerIds = broker.extensions.setdefault("producer_ids", ProducerIds())
    metadata = broker.metadata
    epoch = metadata.broker_epoch
    while ids.next >= ids.end:
        first, count = await metadata.submit(lambda: metadata.controller.allocate_producer_ids(context.node_id, epoch))
        if ids.next >= ids.end:  # another request may have fetched a block meanwhile; this one is lost then
            ids.next, ids.end = first, first + count
    return r(producer_id=ids.take(), producer_epoch=0)
