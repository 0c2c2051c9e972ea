"""InitProducerId, versions 0 to 5: returns a producer id for an idempotent or a transactional producer (KIP-98).

**Behaviour**
- Version 6 (two-phase commit, KIP-939) is not stable in Kafka 4.4: it is served if `unstable.api.versions.enable` is
  true.
- A producer with two-phase commit also needs `transaction.two.phase.commit.enable`. Keeping a prepared transaction
  returns UNSUPPORTED_VERSION, as in Kafka.

**Versions**
- 2 flexible
- 3 a known producer id gets its next epoch (KIP-360)
- 4 PRODUCER_FENCED (KIP-588)
- 5 transactions version 2 (KIP-890)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, Place, codes
from ..net.context import Context
from ..security.authorization import Check, Refusal

if TYPE_CHECKING:
    from ...coordinator.shard import Result
    from ...coordinator.transaction.shard import Initialized, Producer, TransactionShard

TRANSACTIONS = Check(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "transactional_id", Refusal.IN_HANDLER)
TWO_PHASES = Check(Operation.TWO_PHASE_COMMIT, ResourceType.TRANSACTIONAL_ID, "transactional_id", Refusal.IN_HANDLER)
IDEMPOTENT = Check(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
ANY_TOPIC = Check(Operation.WRITE, ResourceType.TOPIC, "any topic", Refusal.IN_HANDLER)
AUTHORIZATION = (TRANSACTIONS, TWO_PHASES, IDEMPOTENT, ANY_TOPIC)
FENCED_SINCE = 4
ERRORS = (
    Place(
        "the whole",
        COORDINATOR
        + codes(
            "CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST INVALID_PRODUCER_EPOCH "
            "INVALID_PRODUCER_ID_MAPPING INVALID_TRANSACTION_TIMEOUT CONCURRENT_TRANSACTIONS "
            "TRANSACTIONAL_ID_AUTHORIZATION_FAILED PRODUCER_FENCED REQUEST_TIMED_OUT "
            "POLICY_VIOLATION TRANSACTION_ABORTABLE"
        ),
        others=(("producer_epoch", -1),),
    ),
)


async def handle(context: Context, request: messages.InitProducerIdRequest) -> messages.InitProducerIdResponse:
    try:
        producer = await _initialized(context, request)
    except ApiError as error:
        if error.code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            raise ApiError(Errors.INVALID_PRODUCER_EPOCH) from None
        raise
    return messages.InitProducerIdResponse(producer_id=producer.id, producer_epoch=producer.epoch)


async def _initialized(context: Context, request: messages.InitProducerIdRequest) -> Producer:
    """Raises ApiError."""
    from ...coordinator.transaction.shard import Producer
    from ...coordinator.transaction.state import NO_TIMEOUT

    broker, transactional_id = context.broker, request.transactional_id
    if transactional_id is not None:
        TRANSACTIONS.require(context, transactional_id)
        if request.enable2_pc:
            TWO_PHASES.require(context, transactional_id)
    elif not IDEMPOTENT.allows(context) and not ANY_TOPIC.allows_any(context):
        raise ApiError(IDEMPOTENT.code)
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        raise ApiError(Errors.INVALID_REQUEST)
    if transactional_id is None:
        await broker.producer_ids.ensure()
        return Producer(broker.producer_ids.take(), 0)
    if not transactional_id:
        raise ApiError(Errors.INVALID_REQUEST)
    two_phases = request.enable2_pc
    if two_phases and not broker.config["transaction.two.phase.commit.enable"]:
        raise ApiError(Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.keep_prepared_txn:
        raise ApiError(Errors.UNSUPPORTED_VERSION)
    timeout_ms = NO_TIMEOUT if two_phases else request.transaction_timeout_ms
    if not two_phases and not 0 < timeout_ms <= broker.settings.value("transaction.max.timeout.ms"):
        raise ApiError(Errors.INVALID_TRANSACTION_TIMEOUT)
    expected = None if request.producer_id == -1 else Producer(request.producer_id, request.producer_epoch)
    broker.transactions.host(transactional_id)
    await broker.transactions.producer_ids.ensure()

    def initialize(shard: TransactionShard) -> Result[Initialized]:
        broker.transactions.check_room(shard, transactional_id)
        return shard.initialize(transactional_id, timeout_ms, expected)

    found = await broker.transactions.write(transactional_id, "initialize-producer", initialize, timeout_ms)
    if found.error:
        raise ApiError(found.error)
    initialized: Producer = found.producer
    return initialized
