"""InitProducerId, versions 0 to 5: a producer id for an idempotent or a transactional producer (KIP-98).

2 flexible; 3 a known id may ask for the next epoch (KIP-360); 4 the producer may be fenced; 5 transaction version 2 (KIP-890). Version 6,
two-phase commit (KIP-939), is not stable in Kafka 4.4: it is served where `unstable.api.versions.enable` is on. It can begin such a
producer where `transaction.two.phase.commit.enable` allows it; going on with a transaction that was prepared is UNSUPPORTED_VERSION, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

if TYPE_CHECKING:
    from ...coordinator.transaction.shard import Producer

FENCED_SINCE = 4


async def handle(context: Context, request: Any) -> Any:
    r = messages.InitProducerIdResponse
    try:
        producer = await _initialized(context, request)
    except ApiError as error:
        code = error.code
        if code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = int(Errors.INVALID_PRODUCER_EPOCH)
        return r(error_code=code, producer_id=-1, producer_epoch=-1)
    return r(producer_id=producer.id, producer_epoch=producer.epoch)


async def _initialized(context: Context, request: Any) -> Producer:
    """ApiError."""
    from ...coordinator.transaction.shard import Producer
    from ...coordinator.transaction.state import NO_TIMEOUT

    broker, transactional_id = context.broker, request.transactional_id
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
    if not two_phases and not 0 < timeout_ms <= broker.value("transaction.max.timeout.ms"):
        raise ApiError(Errors.INVALID_TRANSACTION_TIMEOUT)
    expected = None if request.producer_id == -1 else Producer(request.producer_id, request.producer_epoch)
    broker.transactions.host(transactional_id)
    await broker.producer_ids.ensure()
    found = await broker.transactions.write(transactional_id, lambda shard: shard.initialize(transactional_id, timeout_ms, expected), timeout_ms)
    if found.error:
        raise ApiError(found.error)
    initialized: Producer = found.producer
    return initialized
