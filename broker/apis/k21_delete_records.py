"""DeleteRecords, versions 0 to 2: moves the start of partitions up to an offset, or to the high watermark (KIP-107). 2 is flexible."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..appending import cut
from ..context import Context

TO_HIGH_WATERMARK = -1


def handle(context: Context, request: Any) -> Any:
    r = messages.DeleteRecordsResponse
    response = r()
    for topic in request.topics:
        out = r.DeleteRecordsTopicResult(name=topic.name)
        for wanted in topic.partitions:
            answer = r.DeleteRecordsPartitionResult(partition_index=wanted.partition_index, low_watermark=-1)
            try:
                answer.low_watermark = _delete(context, topic.name, wanted.partition_index, wanted.offset)
            except ApiError as error:
                answer.error_code = error.code
            out.partitions.append(answer)
        response.topics.append(out)
    return response


def _delete(context: Context, topic: str, index: int, offset: int) -> int:
    broker = context.broker
    partition = broker.partition(topic, index)
    log = partition.open_log()
    if not log.settings.is_deleted and log.settings.cleanup_policy:
        raise ApiError(Errors.POLICY_VIOLATION)
    if offset == TO_HIGH_WATERMARK:
        offset = partition.high_watermark
    if offset < 0 or offset > partition.high_watermark:
        raise ApiError(Errors.OFFSET_OUT_OF_RANGE)
    cut(broker, partition, offset)
    return log.start_offset
