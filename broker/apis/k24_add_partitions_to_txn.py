"""AddPartitionsToTxn, versions 0 to 5: partitions join a transaction before they are written to (KIP-98).

2 the producer may be fenced; 3 flexible; 4 several transactions at once, and asking only (KIP-890), which Kafka keeps for brokers;
5 TRANSACTION_ABORTABLE. One unknown partition stops all of its transaction.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

FENCED_SINCE = 2
SEVERAL_SINCE = 4
TWO_SINCE = 4  # from where on a client speaks version 2 of transactions
Named = list[tuple[str, int]]


async def handle(context: Context, request: Any) -> Any:
    r = messages.AddPartitionsToTxnResponse
    if context.version < SEVERAL_SINCE:
        t = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        only = t(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return r(results_by_topic_v3_and_below=_results(await _one(context, only)))
    asked = {one.transactional_id: one for one in reversed(request.transactions)}  # of several for one id the first counts
    response = r()
    for transaction in reversed(asked.values()):
        found = await _one(context, transaction)
        response.results_by_transaction.append(
            r.AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=_results(found))
        )
    return response


async def _one(context: Context, transaction: Any) -> list[tuple[str, int, int]]:
    """Topic, partition and error code of everything that was named."""
    from ...coordinator.transaction.shard import Producer

    named: Named = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    there = context.broker.partitions.by_name
    if any(one not in there for one in named):
        unknown, unattempted = int(Errors.UNKNOWN_TOPIC_OR_PARTITION), int(Errors.OPERATION_NOT_ATTEMPTED)
        return [(*one, unattempted if one in there else unknown) for one in named]
    transactional_id = transaction.transactional_id
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinators = context.broker.transactions
    code = 0
    try:
        if not transactional_id:
            raise ApiError(Errors.INVALID_REQUEST)
        if context.version >= SEVERAL_SINCE and transaction.verify_only:
            codes = coordinators.read(transactional_id, lambda shard, as_of: shard.verify(transactional_id, producer, named, as_of))
            return [(*one, codes[one]) for one in named]
        version = 2 if context.version >= TWO_SINCE else 0
        await coordinators.write(transactional_id, lambda shard: shard.add_partitions(transactional_id, producer, named, version))
    except ApiError as error:
        code = error.code
        if code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE:
            code = int(Errors.INVALID_PRODUCER_EPOCH)
    return [(*one, code) for one in named]


def _results(found: list[tuple[str, int, int]]) -> list[Any]:
    r = messages.AddPartitionsToTxnResponse
    by_topic: dict[str, Any] = {}
    for topic, index, code in found:
        out = by_topic.get(topic)
        if out is None:
            out = by_topic[topic] = r.AddPartitionsToTxnTopicResult(name=topic)
        out.results_by_partition.append(r.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code))
    return list(by_topic.values())
