"""AddPartitionsToTxn, versions 0 to 5: partitions join a transaction before they are written to (KIP-98).

2 the producer may be fenced; 3 flexible; 4 several transactions at once, and asking only (KIP-890), which Kafka keeps for brokers;
5 TRANSACTION_ABORTABLE. One unknown partition stops all of its transaction.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context

FENCED_SINCE = 2
SEVERAL_SINCE = 4
TWO_SINCE = 4  # from where on a client speaks version 2 of transactions


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
        return r(results_by_topic_v3_and_below=await _results(context, only))
    asked = {one.transactional_id: one for one in reversed(request.transactions)}  # of several for one id the first counts
    response = r()
    for transactional_id, transaction in reversed(asked.items()):
        results = await _results(context, transaction)
        response.results_by_transaction.append(r.AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=results))
    return response


async def _results(context: Context, transaction: Any) -> list[Any]:
    """The answers by topic for one transaction."""
    named = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    there = context.broker.partitions.by_name
    if any(one not in there for one in named):
        unknown, unattempted = int(Errors.UNKNOWN_TOPIC_OR_PARTITION), int(Errors.OPERATION_NOT_ATTEMPTED)
        codes = {one: unattempted if one in there else unknown for one in named}
    else:
        try:
            codes = await _codes(context, transaction, named)
        except ApiError as error:
            fenced_early = error.code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE
            codes = dict.fromkeys(named, int(Errors.INVALID_PRODUCER_EPOCH) if fenced_early else error.code)
    r = messages.AddPartitionsToTxnResponse
    return [
        r.AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                r.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in transaction.topics
    ]


async def _codes(context: Context, transaction: Any, named: list[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """ApiError for all of them."""
    transactional_id, coordinators = transaction.transactional_id, context.broker.transactions
    if not transactional_id:
        raise ApiError(Errors.INVALID_REQUEST)
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    if context.version >= SEVERAL_SINCE and transaction.verify_only:
        verified: dict[tuple[str, int], int] = coordinators.read(
            transactional_id, lambda shard, as_of: shard.verify(transactional_id, producer, named, as_of)
        )
        return verified
    version = 2 if context.version >= TWO_SINCE else 0
    await coordinators.write(transactional_id, lambda shard: shard.add_partitions(transactional_id, producer, named, version))
    return dict.fromkeys(named, 0)
