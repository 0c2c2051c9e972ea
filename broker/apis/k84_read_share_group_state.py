"""ReadShareGroupState, version 0: the state of share-partitions, for the partitions' leader (KIP-932)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    from ...coordinator.share.state import as_messages

    r = messages.ReadShareGroupStateResponse

    def result(index: int, state: Any) -> Any:
        if state is None:
            return r.PartitionResult(partition=index)
        batches = as_messages(state.batches, r.StateBatch)
        return r.PartitionResult(partition=index, state_epoch=state.state_epoch, start_offset=state.start_offset, state_batches=batches)

    states = context.broker.share_states
    results = await answer(request, lambda key, part: states.read_state(key, part.leader_epoch), r.ReadStateResult, result, "read")
    return r(results=results)
