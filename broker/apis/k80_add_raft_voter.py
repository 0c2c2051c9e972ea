"""AddRaftVoter, versions 0 and 1: refuses a new voter of the metadata log (KIP-853).

**Behaviour**
- The checks are Kafka's. A request that passes them gets REQUEST_TIMED_OUT, as from a Kafka that cannot connect to the
  new controller: the broker connects to no other.

**Versions**
- 1 an answer before the change is committed (KIP-1186)
"""

from __future__ import annotations

from typing import NoReturn

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import CONTROLLER, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check
from ._voters import ReplicaKey, check_cluster, check_listeners, own_voter

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST INCONSISTENT_CLUSTER_ID DUPLICATE_VOTER"),
        text=Text.OF_CODE,
    ),
)


def handle(context: Context, request: messages.AddRaftVoterRequest) -> messages.AddRaftVoterResponse:
    try:
        _refuse(context, request)
    except ApiError as error:
        return error.put_into(messages.AddRaftVoterResponse())


def _refuse(context: Context, request: messages.AddRaftVoterRequest) -> NoReturn:
    check_cluster(context, request.cluster_id)
    added, voter = ReplicaKey(request.voter_id, request.voter_directory_id), own_voter(context)
    if not added.is_valid:
        raise ApiError(Errors.INVALID_REQUEST, "Add voter request didn't include a valid voter")
    check_listeners(context, request.listeners)
    if added.id == voter.id:
        text = f"The voter id for {added} is already part of the set of voters [{voter}]."
        raise ApiError(Errors.DUPLICATE_VOTER, text)
    raise ApiError(
        Errors.REQUEST_TIMED_OUT,
        "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE",
    )
