"""InitializeShareGroupState, version 0: initializes share-partitions, or resets them to another offset (KIP-932).

**Behaviour**
- A topic without partitions is left out of the reply; the other four APIs refuse such a request as a whole.
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..net.context import Context
from ..security.authorization import Check
from ._share_states import answer, each_partition, refuse

AUTHORIZATION = (Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),)
ERRORS = (each_partition("FENCED_STATE_EPOCH"),)


async def handle(
    context: Context,
    request: messages.InitializeShareGroupStateRequest,
) -> messages.InitializeShareGroupStateResponse:
    r = messages.InitializeShareGroupStateResponse
    states = context.broker.share_states
    calls = answer(
        context,
        request,
        lambda key, part: states.initialize_state(key, part.state_epoch, part.start_offset),
        r.InitializeStateResult,
        r.PartitionResult,
        needs_partitions=False,
    )
    return r(results=await calls)


def failed(
    context: Context, request: messages.InitializeShareGroupStateRequest, error: ApiError
) -> messages.InitializeShareGroupStateResponse:
    r = messages.InitializeShareGroupStateResponse
    return r(results=refuse(request, error, r.InitializeStateResult, r.PartitionResult))
