"""WriteShareGroupState, versions 0 and 1: what became of records of share-partitions (KIP-932). 1 the count of complete records (KIP-1226)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    r = messages.WriteShareGroupStateResponse
    return r(results=await answer(request, context.broker.share_states.write_state, r.WriteStateResult, r.PartitionResult))
