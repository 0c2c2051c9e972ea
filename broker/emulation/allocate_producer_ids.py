"""AllocateProducerIds, version 0: the controller gives a block of producer ids to a broker (KIP-730). Brokers of Kafka
3.0 to 3.9 with ZooKeeper serve it to all who may act as a broker; here those ask that are beside this one in ZooKeeper.

**Behaviour**, as 3.9.1 was seen to answer
- Without the right ClusterAction: CLUSTER_AUTHORIZATION_FAILED.
- NOT_CONTROLLER while another broker is the controller; BROKER_ID_NOT_REGISTERED for ids that no broker has;
  STALE_BROKER_EPOCH unless the epoch is that of its registration, which is the transaction that made its node.
- Without a ZooKeeper no one can know an epoch: the broker's own id has STALE_BROKER_EPOCH, too.
- `/latest_producer_id_block` names this broker, whoever has asked; Kafka's names that one.
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
        is_known = request.broker_id in context.broker.image.brokers
        raise ApiError(Errors.STALE_BROKER_EPOCH if is_known else Errors.BROKER_ID_NOT_REGISTERED)
    first, count = await zookeeper.allocate_producer_ids(request.broker_id, request.broker_epoch)
    return messages.AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=count)
