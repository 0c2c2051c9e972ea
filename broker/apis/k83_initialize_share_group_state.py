"""InitializeShareGroupState, version 0: share-partitions begin, or begin again at another offset (KIP-932)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    r = messages.InitializeShareGroupStateResponse
    states = context.broker.share_states
    calls = answer(
        request, lambda key, part: states.initialize_state(key, part.state_epoch, part.start_offset), r.InitializeStateResult, r.PartitionResult
    )
    return r(results=await calls)
