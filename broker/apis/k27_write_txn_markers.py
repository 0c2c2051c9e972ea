"""WriteTxnMarkers, versions 1 and 2: ends transactions in partitions; what brokers send, and an administrator to end one that hangs (KIP-664).

1 flexible; 2 the version of the transaction (KIP-1228), which says how the marker's epoch is checked.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.records import NO_EPOCH, NO_PRODUCER_ID
from ..context import Context
from ..later import Later
from ..markers import TransactionEnd, write_marker

VERSION_SINCE = 2


async def handle(context: Context, request: Any) -> Any:
    broker = context.broker
    if any(marker.producer_id == NO_PRODUCER_ID or marker.producer_epoch == NO_EPOCH for marker in request.markers):
        return _refused(request)
    waiting: list[tuple[int, str, int, Later[None] | None]] = []
    for marker in request.markers:
        version = marker.transaction_version if context.version >= VERSION_SINCE else 0
        end = TransactionEnd(marker.producer_id, marker.producer_epoch, marker.coordinator_epoch, bool(marker.transaction_result), version)
        batch = end.batch(broker.schedule.now_ms())
        for topic in marker.topics:
            for index in topic.partition_indexes:
                partition = broker.partitions.by_name.get((topic.name, index))
                later = None
                if partition is not None and not partition.offline:
                    later = broker.within(broker.config["request.timeout.ms"], write_marker(broker, partition, batch))
                waiting.append((marker.producer_id, topic.name, index, later))
    found: dict[int, dict[tuple[str, int], int]] = {}
    for producer_id, topic, index, later in waiting:
        code = int(Errors.UNKNOWN_TOPIC_OR_PARTITION) if later is None else await _code(later)
        found.setdefault(producer_id, {})[topic, index] = code
    return messages.WriteTxnMarkersResponse(markers=[_result(producer_id, codes) for producer_id, codes in found.items()])


def _refused(request: Any) -> Any:
    """No batch can be made for nobody; Kafka's exception ends the whole request."""
    code = int(Errors.UNKNOWN_SERVER_ERROR)
    return messages.WriteTxnMarkersResponse(
        markers=[_result(one.producer_id, {(t.name, i): code for t in one.topics for i in t.partition_indexes}) for one in request.markers]
    )


async def _code(later: Later[None]) -> int:
    try:
        await later
    except ApiError as error:
        return error.code
    return 0


def _result(producer_id: int, codes: dict[tuple[str, int], int]) -> Any:
    r = messages.WriteTxnMarkersResponse
    result = r.WritableTxnMarkerResult(producer_id=producer_id)
    by_topic: dict[str, Any] = {}
    for (topic, index), code in codes.items():
        out = by_topic.get(topic)
        if out is None:
            out = by_topic[topic] = r.WritableTxnMarkerTopicResult(name=topic)
            result.topics.append(out)
        out.partitions.append(r.WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
    return result
