"""ReadShareGroupState, version 0: the state of share-partitions, for the partitions' leader (KIP-932)."""

from __future__ import annotations

from typing import Any

from ...coordinator.share.state import as_messages
from ...protocol import messages
from ..context import Context
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    r = messages.ReadShareGroupStateResponse

    def fill(out: Any, state: Any) -> None:
        out.state_epoch, out.start_offset, out.state_batches = state.state_epoch, state.start_offset, as_messages(state.batches, r.StateBatch)

    states = context.broker.share_states
    calls = answer(request, lambda key, part: states.read_state(key, part.leader_epoch), r.ReadStateResult, r.PartitionResult, fill)
    return r(results=await calls)
