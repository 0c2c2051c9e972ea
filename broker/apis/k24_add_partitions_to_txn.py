"""AddPartitionsToTxn, versions 0 to 5: adds partitions to a transaction before records are written to them (KIP-98).

**Behaviour**
- One unknown partition fails all partitions of its transaction.
- Where partitions are answered one by one, topics without partitions are left out, and what is named again is answered
  once.

**Versions**
- 2 PRODUCER_FENCED (KIP-588)
- 3 flexible
- 4 several transactions, and verification only; Kafka reserves this version for brokers (KIP-890)
- 5 TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.transaction.shard import Producer
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..error_places import COORDINATOR, ITSELF, Place, array, codes
from ..internal_topics import is_internal
from ..net.context import Context
from ..security.authorization import Check, Refusal

if TYPE_CHECKING:
    Transaction = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction

BROKERS = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
TRANSACTIONS = Check(
    Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "v3_and_below_transactional_id", Refusal.IN_HANDLER
)
TOPICS = Check(Operation.WRITE, ResourceType.TOPIC, "v3_and_below_topics.name", Refusal.ELEMENT)
AUTHORIZATION = (BROKERS, TRANSACTIONS, TOPICS)
FENCED_SINCE = 2
SEVERAL_SINCE = 4
TWO_SINCE = 4  # first API version of clients that use transactions version 2
_INDEXES = array("results_by_partition", "partitions", partition=("partition_index", ITSELF))
PARTITIONS = Place(
    "each partition",
    COORDINATOR
    + codes(
        "UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED INVALID_REQUEST INVALID_PRODUCER_EPOCH "
        "INVALID_TXN_STATE INVALID_PRODUCER_ID_MAPPING CONCURRENT_TRANSACTIONS "
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED OPERATION_NOT_ATTEMPTED PRODUCER_FENCED "
        "TRANSACTION_ABORTABLE"
    ),
    (
        array("results_by_topic_v3_and_below", "v3_and_below_topics", topic="name"),
        _INDEXES,
    ),
    code="partition_error_code",
)
ERRORS = (
    replace(PARTITIONS, until=SEVERAL_SINCE - 1),
    Place("the whole", codes("CLUSTER_AUTHORIZATION_FAILED"), since=SEVERAL_SINCE),
    replace(
        PARTITIONS,
        levels=(
            array("results_by_transaction", "transactions", transactional_id="transactional_id"),
            array("topic_results", "topics", topic="name"),
            _INDEXES,
        ),
        since=SEVERAL_SINCE,
        of_whole=False,
    ),
)


async def handle(context: Context, request: messages.AddPartitionsToTxnRequest) -> messages.AddPartitionsToTxnResponse:
    r = messages.AddPartitionsToTxnResponse
    if context.version >= SEVERAL_SINCE:
        BROKERS.require(context)
    else:
        t = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        only = t(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        return r(results_by_topic_v3_and_below=await _results(context, only))
    # the first one counts if an id is repeated
    asked = {one.transactional_id: one for one in reversed(request.transactions)}
    response = r()
    for transactional_id, transaction in reversed(asked.items()):
        results = await _results(context, transaction)
        response.results_by_transaction.append(
            r.AddPartitionsToTxnResult(transactional_id=transactional_id, topic_results=results)
        )
    return response


async def _results(
    context: Context,
    transaction: Transaction,
) -> list[messages.AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]:
    """Returns the results by topic for one transaction."""
    named = [(topic.name, index) for topic in transaction.topics for index in topic.partitions]
    codes = await _refused(context, transaction, named)
    topics: Iterable[tuple[str, Iterable[int]]] = [(topic.name, topic.partitions) for topic in transaction.topics]
    if codes is not None or transaction.verify_only:
        topics = _by_topic(named).items()
    if codes is None:
        try:
            codes = await _codes(context, transaction, named)
        except ApiError as error:
            fenced_early = error.code == Errors.PRODUCER_FENCED and context.version < FENCED_SINCE
            codes = dict.fromkeys(named, int(Errors.INVALID_PRODUCER_EPOCH) if fenced_early else error.code)
    r = messages.AddPartitionsToTxnResponse
    return [
        r.AddPartitionsToTxnTopicResult(
            name=name,
            results_by_partition=[
                r.AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[name, index])
                for index in indexes
            ],
        )
        for name, indexes in topics
    ]


def _by_topic(named: list[tuple[str, int]]) -> dict[str, dict[int, None]]:
    found: dict[str, dict[int, None]] = {}
    for name, index in named:
        found.setdefault(name, {})[index] = None
    return found


async def _refused(
    context: Context, transaction: Transaction, named: list[tuple[str, int]]
) -> dict[tuple[str, int], int] | None:
    """Returns the error codes of all partitions if any of them cannot be added; None if all can."""
    by_client = context.version < SEVERAL_SINCE
    if by_client and not TRANSACTIONS.allows(context, transaction.transactional_id):
        return dict.fromkeys(named, TRANSACTIONS.code)
    denied = frozenset[str]()
    if by_client:  # clients may add no internal topics
        denied |= {*await TOPICS.denied(context, (name for name, _ in named))}
        denied |= {name for name, _ in named if is_internal(name)}
    unknown, unattempted = int(Errors.UNKNOWN_TOPIC_OR_PARTITION), int(Errors.OPERATION_NOT_ATTEMPTED)
    there = context.broker.partitions.by_name
    codes = {one: unattempted if one in there else unknown for one in named}
    if denied:
        codes |= {one: TOPICS.code for one in named if one[0] in denied}
    return None if all(code == unattempted for code in codes.values()) else codes


async def _codes(
    context: Context,
    transaction: Transaction,
    named: list[tuple[str, int]],
) -> dict[tuple[str, int], int]:
    """Returns the error codes of the partitions. Raises ApiError for an error of the whole transaction."""
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
    await coordinators.write(
        transactional_id,
        "add-partitions",
        lambda shard: shard.add_partitions(transactional_id, producer, named, version),
    )
    return dict.fromkeys(named, 0)
