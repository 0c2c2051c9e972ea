"""WriteShareGroupState, versions 0 and 1: writes the states of records of share-partitions (KIP-932).

**Versions**
- 1 the number of complete deliveries (KIP-1226)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.share.state import PartitionKey, Write, batches_of
from ...protocol import messages
from ..error_places import Text
from ..later import Later
from ..net.context import Context
from ..security.authorization import Check
from ._share_states import answer, each_partition

AUTHORIZATION = (Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),)
ERRORS = (each_partition("GROUP_ID_NOT_FOUND FENCED_LEADER_EPOCH FENCED_STATE_EPOCH", Text.OF_CODE),)


async def handle(
    context: Context,
    request: messages.WriteShareGroupStateRequest,
) -> messages.WriteShareGroupStateResponse:
    def write(key: PartitionKey, part: messages.WriteShareGroupStateRequest.PartitionData) -> Later[None]:
        what = Write(
            part.state_epoch, part.leader_epoch, part.start_offset, part.delivery_complete_count, batches_of(part)
        )
        return context.broker.share_states.write_state(key, what)

    r = messages.WriteShareGroupStateResponse
    return r(results=await answer(context, request, write, r.WriteStateResult, r.PartitionResult))
