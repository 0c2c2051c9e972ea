"""DescribeCluster, versions 0 to 2: returns the brokers and the cluster id (KIP-700).

**Versions**
- 1 brokers or controllers (KIP-919)
- 2 fenced brokers on request (KIP-1073)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import Place, Text, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal, authorized_operations
from ._nodes import controller_id, neighbours, reachable

OPERATIONS = Check(Operation.DESCRIBE, ResourceType.CLUSTER, refusal=Refusal.LEFT_OUT)
AUTHORIZATION = (OPERATIONS,)


BROKERS, CONTROLLERS = 1, 2
ERRORS = (
    Place(
        "the whole",
        codes("CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE"),
        text=Text.OWN,
    ),
)


def cluster_operations(context: Context) -> int:
    """Returns the bits of the operations on the cluster that the client may do; none if it may not describe it."""
    return authorized_operations(context, ResourceType.CLUSTER) if OPERATIONS.allows(context) else 0


def handle(context: Context, request: messages.DescribeClusterRequest) -> messages.DescribeClusterResponse:
    r = messages.DescribeClusterResponse
    if request.endpoint_type == CONTROLLERS:
        return r(
            error_code=Errors.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
            "CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(Errors.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    nodes = {node.id: (node.rack, at.host, at.port, False) for node, at in reachable(context)}
    nodes |= {one.id: (one.rack, one.host, one.port, False) for one in neighbours(context)}
    if request.include_fenced_brokers:
        for one in context.broker.image.brokers.values():
            known = next((at for at in one.endpoints if at.name == context.listener), None)
            if one.id not in nodes and known is not None:
                nodes[one.id] = (one.rack, known.host, known.port, True)
    response = r(
        endpoint_type=BROKERS,
        cluster_id=context.broker.cluster_id,
        controller_id=controller_id(context),
        brokers=[
            r.DescribeClusterBroker(broker_id=node, host=host, port=port, rack=rack, is_fenced=is_fenced)
            for node, (rack, host, port, is_fenced) in sorted(nodes.items(), key=lambda item: item[0])
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response
