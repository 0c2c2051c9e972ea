"""AddRaftVoter, versions 0 and 1: makes a node that follows the metadata log a voter (KIP-853).

**Behaviour**
- The checks are Kafka's. A controller that is no node of the cluster gets REQUEST_TIMED_OUT, as from a Kafka that
  cannot connect to it, or to which it is not up to date: no other process can be a voter.
- Where the controller is at no node, it is the only voter.

**Versions**
- 1 an answer before the change is committed (KIP-1186)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..controller.metadata_log import ReplicaKey
from ..error_places import CONTROLLER, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check
from ._voters import check_listeners, is_reached, listed, voters_of

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST INCONSISTENT_CLUSTER_ID DUPLICATE_VOTER"),
        text=Text.OF_CODE,
    ),
)


async def handle(context: Context, request: messages.AddRaftVoterRequest) -> messages.AddRaftVoterResponse:
    try:
        await _add(context, request)
    except ApiError as error:
        return error.put_into(messages.AddRaftVoterResponse())
    return messages.AddRaftVoterResponse(error_message=None)


async def _add(context: Context, request: messages.AddRaftVoterRequest) -> None:
    voters = await voters_of(context, request.cluster_id)
    added = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not added.is_valid:
        raise ApiError(Errors.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    check_listeners(context, request.listeners)
    if any(one.id == added.id for one in voters):
        text = f"The voter id for {added} is already part of the set of voters {listed(voters)}."
        raise ApiError(Errors.DUPLICATE_VOTER, text)
    if not is_reached(context, added.id, request.listeners):
        raise ApiError(
            Errors.REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
        )
    metadata = context.broker.metadata
    if added not in map(metadata.replica_key, metadata.quorum.can_vote):
        text = f"Aborted add voter operation for {added} since it is lagging behind"
        raise ApiError(Errors.REQUEST_TIMED_OUT, text)
    await metadata.reached()
    metadata.quorum.add(added.id)
