"""WriteShareGroupState, versions 0 and 1: what became of records of share-partitions (KIP-932). 1 the count of complete records (KIP-1226)."""

from __future__ import annotations

from typing import Any

from ...coordinator.share.state import PartitionKey, Write, batches_of
from ...protocol import messages
from ..context import Context
from ..later import Later
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    def write(key: PartitionKey, part: Any) -> Later[None]:
        what = Write(part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count, batches_of(part))
        return context.broker.share_states.write_state(key, what)

    r = messages.WriteShareGroupStateResponse
    return r(results=await answer(request, write, r.WriteStateResult, r.PartitionResult))
