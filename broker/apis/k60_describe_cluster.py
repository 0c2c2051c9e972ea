"""DescribeCluster, versions 0 to 2: the brokers and the cluster's id.

1 brokers or controllers (KIP-919); 2 fenced brokers may be asked for (KIP-1073).
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..partition_info import ALTER, ALTER_CONFIGS, CLUSTER_ACTION, CREATE, DESCRIBE, DESCRIBE_CONFIGS, IDEMPOTENT_WRITE, bits

BROKERS, CONTROLLERS = 1, 2
CLUSTER_OPERATIONS = bits(CREATE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE)


def handle(context: Context, request: Any) -> Any:
    r = messages.DescribeClusterResponse
    if request.endpoint_type == CONTROLLERS:
        return r(
            error_code=Errors.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != BROKERS:
        raise ApiError(Errors.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    config = context.broker.config
    at = config.advertised[context.listener]
    response = r(
        endpoint_type=BROKERS,
        cluster_id=context.broker.cluster_id,
        controller_id=context.node_id,
        brokers=[r.DescribeClusterBroker(broker_id=context.node_id, host=at.host, port=at.port, rack=config["broker.rack"])],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
