"""ReadShareGroupStateSummary, versions 0 and 1: returns the start offsets of share-partitions (KIP-932).

**Versions**
- 1 the number of complete deliveries (KIP-1226)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.share.state import PartitionState
from ...protocol import messages
from ..error_places import Text
from ..net.context import Context
from ..security.authorization import Check
from ._share_states import answer, each_partition

AUTHORIZATION = (Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),)
UNSET = -1
ERRORS = (each_partition("GROUP_ID_NOT_FOUND FENCED_LEADER_EPOCH", Text.OF_CODE),)


async def handle(
    context: Context,
    request: messages.ReadShareGroupStateSummaryRequest,
) -> messages.ReadShareGroupStateSummaryResponse:
    r = messages.ReadShareGroupStateSummaryResponse
    states = context.broker.share_states
    calls = answer(
        context, request, lambda key, _: states.read_summary(key), r.ReadStateSummaryResult, r.PartitionResult, _fill
    )
    return r(results=await calls)


def _fill(out: messages.ReadShareGroupStateSummaryResponse.PartitionResult, state: PartitionState | None) -> None:
    if state is None:
        out.start_offset = out.delivery_complete_count = UNSET
        return
    out.state_epoch, out.leader_epoch = state.state_epoch, state.leader_epoch
    out.start_offset, out.delivery_complete_count = state.start_offset, state.complete_count
