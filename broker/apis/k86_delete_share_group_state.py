"""DeleteShareGroupState, version 0: deletes the state of share-partitions (KIP-932)."""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError
from ..net.context import Context
from ..security.authorization import Check
from ._share_states import answer, each_partition, refuse

AUTHORIZATION = (Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),)
ERRORS = (each_partition("GROUP_ID_NOT_FOUND FENCED_STATE_EPOCH"),)


async def handle(
    context: Context,
    request: messages.DeleteShareGroupStateRequest,
) -> messages.DeleteShareGroupStateResponse:
    r = messages.DeleteShareGroupStateResponse
    states = context.broker.share_states
    return r(
        results=await answer(
            context, request, lambda key, _: states.delete_state(key), r.DeleteStateResult, r.PartitionResult
        )
    )


def failed(
    context: Context, request: messages.DeleteShareGroupStateRequest, error: ApiError
) -> messages.DeleteShareGroupStateResponse:
    r = messages.DeleteShareGroupStateResponse
    return r(results=refuse(request, error, r.DeleteStateResult, r.PartitionResult))
