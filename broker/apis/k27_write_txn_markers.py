"""WriteTxnMarkers, versions 1 and 2: ends transactions in partitions. Brokers send it, and administrators to abort a
hanging transaction (KIP-664).

**Behaviour**
- A marker without a producer id or epoch cannot be written. As in Kafka, where it raises an exception, it fails the
  whole request, after the markers before it were written. It fails nothing if none of its partitions is here.

**Versions**
- 1 flexible
- 2 the transaction version, which decides how the epoch of the marker is checked (KIP-1228)
"""

from __future__ import annotations

from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.records import NO_EPOCH, NO_PRODUCER_ID
from ..error_places import ITSELF, Place, array, codes
from ..later import Later
from ..later import failed as failed_later
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace
from ..transaction.markers import TransactionEnd

ALTERS = Check(Operation.ALTER, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
BROKERS = Check(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, refusal=Refusal.IN_HANDLER)
AUTHORIZATION = (ALTERS, BROKERS)
VERSION_SINCE = 2
STEP_MARKERS = 32  # an append each, and the first opens a log
ERRORS = (
    Place(
        "each partition",
        codes(
            "CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT "
            "MESSAGE_TOO_LARGE INVALID_TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS "
            "NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS CLUSTER_AUTHORIZATION_FAILED "
            "UNSUPPORTED_FOR_MESSAGE_FORMAT INVALID_PRODUCER_EPOCH TRANSACTION_COORDINATOR_FENCED "
            "INVALID_TXN_STATE KAFKA_STORAGE_ERROR POLICY_VIOLATION"
        ),
        (
            array("markers", "markers", producer="producer_id"),
            array("topics", "topics", topic="name"),
            array("partitions", "partition_indexes", partition=("partition_index", ITSELF)),
        ),
    ),
)


async def handle(context: Context, request: messages.WriteTxnMarkersRequest) -> messages.WriteTxnMarkersResponse:
    broker = context.broker
    if not ALTERS.allows(context) and not BROKERS.allows(context):
        raise ApiError(BROKERS.code)
    waiting: list[tuple[int, str, int, Later[None]]] = []
    pace = Pace(broker.turn, STEP_MARKERS)
    for marker in request.markers:
        version = marker.transaction_version if context.version >= VERSION_SINCE else 0
        end = TransactionEnd(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            bool(marker.transaction_result),
            version,
        )
        can_be_written = marker.producer_id != NO_PRODUCER_ID and marker.producer_epoch != NO_EPOCH
        batch = end.batch(broker.schedule.now_ms())
        for topic in marker.topics:
            for index in topic.partition_indexes:
                partition = broker.partitions.by_name.get((topic.name, index))
                if partition is None or partition.offline:
                    later: Later[None] = failed_later(ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION))
                elif not can_be_written:
                    return _refused(request)
                elif not broker.partitions.leads(partition):
                    later = failed_later(ApiError(Errors.NOT_LEADER_OR_FOLLOWER))
                else:
                    later = broker.turn.within(
                        broker.config["request.timeout.ms"], broker.transactions.markers.write(partition, batch)
                    )
                waiting.append((marker.producer_id, topic.name, index, later))
                if pace.is_over():
                    await pace.rest()
    found: dict[int, dict[tuple[str, int], int]] = {}
    written = Later.all(later for *_, later in waiting)
    for (producer_id, name, index, _), outcome in zip(waiting, await written, strict=True):
        found.setdefault(producer_id, {})[name, index] = 0 if outcome is None else outcome.code
    return messages.WriteTxnMarkersResponse(
        markers=[_result(producer_id, codes) for producer_id, codes in found.items()]
    )


def _refused(request: messages.WriteTxnMarkersRequest) -> messages.WriteTxnMarkersResponse:
    """Returns the reply to a request that an exception has ended. Of a producer that has several markers it tells the
    last one's partitions, as Kafka does, which keeps them by producer.
    """
    code = int(Errors.UNKNOWN_SERVER_ERROR)
    found = {
        marker.producer_id: {(topic.name, index): code for topic in marker.topics for index in topic.partition_indexes}
        for marker in request.markers
    }
    return messages.WriteTxnMarkersResponse(markers=[_result(one, codes) for one, codes in found.items()])


def _result(
    producer_id: int,
    codes: dict[tuple[str, int], int],
) -> messages.WriteTxnMarkersResponse.WritableTxnMarkerResult:
    r = messages.WriteTxnMarkersResponse
    result = r.WritableTxnMarkerResult(producer_id=producer_id)
    by_topic: dict[str, messages.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult] = {}
    for (topic, index), code in codes.items():
        out = by_topic.get(topic)
        if out is None:
            out = by_topic[topic] = r.WritableTxnMarkerTopicResult(name=topic)
            result.topics.append(out)
        out.partitions.append(r.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return result
