"""RemoveRaftVoter, version 0: makes a voter of the metadata log one that only follows it (KIP-853).

**Behaviour**
- The last voter stays: VOTER_NOT_FOUND. The active controller resigns, and another voter is elected.
- Where most of the voters that are left are not reached for two seconds, it says REQUEST_TIMED_OUT, and there is no
  controller until they are.
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.metadata_log import ReplicaKey
from ..error_places import CONTROLLER, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check
from ._voters import listed, voters_of

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
AGREE_MS = 2000  # the default of `controller.quorum.request.timeout.ms`
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST INCONSISTENT_CLUSTER_ID VOTER_NOT_FOUND"),
        text=Text.OF_CODE,
    ),
)


async def handle(context: Context, request: messages.RemoveRaftVoterRequest) -> messages.RemoveRaftVoterResponse:
    try:
        await _remove(context, request)
    except ApiError as error:
        return error.put_into(messages.RemoveRaftVoterResponse())
    return messages.RemoveRaftVoterResponse(error_message=None)


async def _remove(context: Context, request: messages.RemoveRaftVoterRequest) -> None:
    voters = await voters_of(context, request.cluster_id)
    removed = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not removed.is_valid:
        raise ApiError(Errors.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    if removed not in voters or len(voters) == 1:
        text = f"Cannot remove voter {removed} from the set of voters {listed(voters)}"
        raise ApiError(Errors.VOTER_NOT_FOUND, text)
    metadata = context.broker.metadata
    await context.turn.within(AGREE_MS, metadata.reached())
    metadata.quorum.remove(removed.id)
    if not metadata.quorum.is_possible:
        await context.turn.within(AGREE_MS, metadata.reached())
