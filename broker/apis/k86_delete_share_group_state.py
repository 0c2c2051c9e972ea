"""DeleteShareGroupState, version 0: share-partitions are forgotten (KIP-932)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    r = messages.DeleteShareGroupStateResponse
    states = context.broker.share_states
    return r(results=await answer(request, lambda key, _: states.delete_state(key), r.DeleteStateResult, r.PartitionResult))
