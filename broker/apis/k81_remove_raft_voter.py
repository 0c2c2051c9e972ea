"""RemoveRaftVoter, version 0: refuses to remove a voter of the metadata log (KIP-853).

**Behaviour**
- The last voter stays, and there is no other: VOTER_NOT_FOUND.
"""

from __future__ import annotations

from typing import NoReturn

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import CONTROLLER, Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check
from ._voters import ReplicaKey, check_cluster, own_voter

AUTHORIZATION = (Check(Operation.ALTER, ResourceType.CLUSTER),)
ERRORS = (
    Place(
        "the whole",
        CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED INVALID_REQUEST INCONSISTENT_CLUSTER_ID VOTER_NOT_FOUND"),
        text=Text.OF_CODE,
    ),
)


def handle(context: Context, request: messages.RemoveRaftVoterRequest) -> messages.RemoveRaftVoterResponse:
    try:
        _refuse(context, request)
    except ApiError as error:
        return error.put_into(messages.RemoveRaftVoterResponse())


def _refuse(context: Context, request: messages.RemoveRaftVoterRequest) -> NoReturn:
    check_cluster(context, request.cluster_id)
    removed = ReplicaKey(request.voter_id, request.voter_directory_id)
    if not removed.is_valid:
        raise ApiError(Errors.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
    text = f"Cannot remove voter {removed} from the set of voters [{own_voter(context)}]"
    raise ApiError(Errors.VOTER_NOT_FOUND, text)
