"""ListPartitionReassignments, version 0: returns no reassignments, because there is one node (KIP-455)."""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ..error_places import CONTROLLER, ITSELF, Place, Text, array, codes
from ..net.context import Context
from ..security.authorization import Check

AUTHORIZATION = (Check(Operation.DESCRIBE, ResourceType.CLUSTER),)
ERRORS = (
    Place("the whole", CONTROLLER + codes("CLUSTER_AUTHORIZATION_FAILED"), text=Text.OWN),
    Place(
        "each partition",
        (),
        (
            array("topics", "topics", topic="name"),
            array("partitions", "partition_indexes", partition=("partition_index", ITSELF)),
        ),
        code=None,
    ),
)


def handle(
    context: Context,
    request: messages.ListPartitionReassignmentsRequest,
) -> messages.ListPartitionReassignmentsResponse:
    return messages.ListPartitionReassignmentsResponse(error_message=None)
