"""ReadShareGroupStateSummary, versions 0 and 1: where share-partitions are (KIP-932). 1 the count of complete records (KIP-1226)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context
from ..share_states import answer


async def handle(context: Context, request: Any) -> Any:
    r = messages.ReadShareGroupStateSummaryResponse

    def result(index: int, state: Any) -> Any:
        if state is None:
            return r.PartitionResult(partition=index, start_offset=-1, delivery_complete_count=-1)
        return r.PartitionResult(
            partition=index,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.complete_count,
        )

    states = context.broker.share_states
    results = await answer(request, lambda key, _: states.read_summary(key), r.ReadStateSummaryResult, result, "read")
    return r(results=results)
