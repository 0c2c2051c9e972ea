"""ReadShareGroupStateSummary, versions 0 and 1: where share-partitions are (KIP-932). 1 the count of complete records (KIP-1226)."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ..context import Context
from ..share_states import answer

UNSET = -1


async def handle(context: Context, request: Any) -> Any:
    r = messages.ReadShareGroupStateSummaryResponse
    states = context.broker.share_states
    calls = answer(request, lambda key, _: states.read_summary(key), r.ReadStateSummaryResult, r.PartitionResult, _fill)
    return r(results=await calls)


def _fill(out: Any, state: Any) -> None:
    if state is None:
        out.start_offset = out.delivery_complete_count = UNSET
        return
    out.state_epoch, out.leader_epoch = state.state_epoch, state.leader_epoch
    out.start_offset, out.delivery_complete_count = state.start_offset, state.complete_count
