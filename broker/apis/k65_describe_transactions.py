"""DescribeTransactions, version 0: the state of transactional ids, and the partitions of their transactions (KIP-664)."""

from __future__ import annotations

from typing import Any

from ...coordinator.transaction.format import by_topic
from ...coordinator.transaction.state import NAMES
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    return messages.DescribeTransactionsResponse(transaction_states=[_one(context, one) for one in request.transactional_ids])


def _one(context: Context, transactional_id: str) -> Any:
    r = messages.DescribeTransactionsResponse
    out = r.TransactionState(transactional_id=transactional_id)
    coordinators = context.broker.transactions
    try:
        if not transactional_id:
            raise ApiError(Errors.INVALID_REQUEST)
        found = coordinators.read(transactional_id, lambda shard, as_of: shard.describe(transactional_id, as_of))
    except ApiError as error:
        out.error_code = error.code
        return out
    out.producer_id, out.producer_epoch = found.producer_id, found.epoch
    out.transaction_state = NAMES[found.state]
    out.transaction_timeout_ms, out.transaction_start_time_ms = found.timeout_ms, found.start_ms
    partitions = coordinators.remaining(transactional_id, found)
    out.topics = [r.TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()]
    return out
