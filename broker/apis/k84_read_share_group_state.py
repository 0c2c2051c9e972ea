"""ReadShareGroupState, version 0: returns the state of share-partitions to the leader of their partitions (KIP-932)."""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.share.state import PartitionState, as_messages
from ...protocol import messages
from ..error_places import Text
from ..net.context import Context
from ..security.authorization import Check
from ._share_states import answer, each_partition

AUTHORIZATION = (Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),)
ERRORS = (each_partition("GROUP_ID_NOT_FOUND FENCED_LEADER_EPOCH", Text.OF_CODE),)


async def handle(
    context: Context,
    request: messages.ReadShareGroupStateRequest,
) -> messages.ReadShareGroupStateResponse:
    r = messages.ReadShareGroupStateResponse

    def fill(out: messages.ReadShareGroupStateResponse.PartitionResult, state: PartitionState) -> None:
        out.state_epoch, out.start_offset, out.state_batches = (
            state.state_epoch,
            state.start_offset,
            as_messages(state.batches, r.StateBatch),
        )

    states = context.broker.share_states
    calls = answer(
        context,
        request,
        lambda key, part: states.read_state(key, part.leader_epoch),
        r.ReadStateResult,
        r.PartitionResult,
        fill,
    )
    return r(results=await calls)
