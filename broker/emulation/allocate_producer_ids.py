"""AllocateProducerIds, version 0: the controller gives a block of producer ids to a broker of Kafka beside this one in
ZooKeeper (KIP-730). Kafka 3.0 to 3.9 serves it to all who may act as a broker, and it is served like that, and listed,
where this broker is registered in a ZooKeeper.

**Behaviour**
- Without the right ClusterAction: CLUSTER_AUTHORIZATION_FAILED.
- NOT_CONTROLLER while another broker is the controller; BROKER_ID_NOT_REGISTERED for ids that no broker of Kafka has in
  ZooKeeper, those of this broker among them; STALE_BROKER_EPOCH unless the epoch is that of its registration, which is
  the transaction that made its node.
- UNKNOWN_SERVER_ERROR if ZooKeeper cannot be told of the block: another controller would give it away again.
"""

from __future__ import annotations

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..apis.k27_write_txn_markers import BROKERS
from ..error_places import Place, codes
from ..net.context import Context

AUTHORIZATION = (BROKERS,)
ERRORS = (
    Place(
        "the whole",
        codes("CLUSTER_AUTHORIZATION_FAILED NOT_CONTROLLER BROKER_ID_NOT_REGISTERED STALE_BROKER_EPOCH"),
    ),
)


async def handle(
    context: Context, request: messages.AllocateProducerIdsRequest
) -> messages.AllocateProducerIdsResponse:
    if not BROKERS.allows(context):
        raise ApiError(BROKERS.code)
    zookeeper = context.broker.zookeeper
    if zookeeper is None:
        raise ApiError(Errors.NOT_CONTROLLER)
    first, count = await zookeeper.allocate_producer_ids(request.broker_id, request.broker_epoch)
    return messages.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)
