"""DescribeTransactions, version 0: returns the state of transactional ids
and the partitions of their transactions (KIP-664).
"""

from __future__ import annotations

from operator import attrgetter

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.transaction.format import by_topic
from ...coordinator.transaction.state import NAMES
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, ITSELF, Place, array, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace

TRANSACTIONS = Check(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "transactional_ids", Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "transaction_states.topics.topic", Refusal.LEFT_OUT)
AUTHORIZATION = (TRANSACTIONS, TOPICS)
ERRORS = (
    Place(
        "each transactional id",
        COORDINATOR + codes("INVALID_REQUEST TRANSACTIONAL_ID_AUTHORIZATION_FAILED TRANSACTIONAL_ID_NOT_FOUND"),
        (array("transaction_states", "transactional_ids", transactional_id=("transactional_id", ITSELF)),),
    ),
)


async def handle(
    context: Context,
    request: messages.DescribeTransactionsRequest,
) -> messages.DescribeTransactionsResponse:
    answers, pace = Answers(context), Pace(context.turn)
    response = messages.DescribeTransactionsResponse(transaction_states=answers.array("transaction_states"))
    for transactional_id in request.transactional_ids:
        await answers.add("transaction_states", await _one(context, transactional_id, pace))
    return response


async def _one(
    context: Context, transactional_id: str, pace: Pace
) -> messages.DescribeTransactionsResponse.TransactionState:
    """Describes a transaction; `pace` counts the partitions, which are sorted, and the checks of the request."""
    r = messages.DescribeTransactionsResponse
    out = r.TransactionState(transactional_id=transactional_id)
    coordinators = context.broker.transactions
    try:
        TRANSACTIONS.require(context, transactional_id)
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
    topics = [r.TopicData(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()]
    if pace.is_over(len(partitions)):
        await pace.rest()
    out.topics, _ = await TOPICS.parted(context, topics, attrgetter("topic"), pace)
    return out
