"""OffsetForLeaderEpoch, versions 2 to 4: where a leader epoch ends in our log (KIP-101, KIP-320). 3 a replica id; 4 flexible."""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError
from ..context import Context


def handle(context: Context, request: Any) -> Any:
    r = messages.OffsetForLeaderEpochResponse
    response = r()
    for topic in request.topics:
        out = r.OffsetForLeaderTopicResult(topic=topic.topic)
        for wanted in topic.partitions:
            answer = r.EpochEndOffset(partition=wanted.partition)
            try:
                partition = context.broker.partition(topic.topic, wanted.partition)
                partition.check_epoch(wanted.current_leader_epoch)
                log = partition.open_log()
                answer.leader_epoch, answer.end_offset = log.epochs.end_offset_for(wanted.leader_epoch, log.end_offset)
            except ApiError as error:
                answer.error_code = error.code
            out.partitions.append(answer)
        response.topics.append(out)
    return response
