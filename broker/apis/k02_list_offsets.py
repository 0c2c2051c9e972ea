"""ListOffsets, versions 1 to 11: offsets at a time, and the special ones.

2 isolation level; 4 leader epochs; 6 flexible; 7 the largest timestamp (KIP-734); 8 the earliest local offset (KIP-405);
9 the latest tiered one (KIP-1005); 10 a timeout for remote storage; 11 the earliest pending upload (KIP-1023).
There is no remote storage here: what asks for it gets no offset, as from a Kafka without it.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage.log import FoundOffset
from ..context import Context
from ..partition import Partition

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = range(-1, -7, -1)
SINCE = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
NOT_FOUND = FoundOffset(-1, -1, -1)
EPOCHS_SINCE = 4
DEBUGGER = -2


def handle(context: Context, request: Any) -> Any:
    r = messages.ListOffsetsResponse
    named = [(t.name, p.partition_index) for t in request.topics for p in t.partitions]
    repeated = {key for key in named if named.count(key) > 1} if len(set(named)) < len(named) else set()
    response = r()
    for topic in request.topics:
        out = r.ListOffsetsTopicResponse(name=topic.name)
        for wanted in {p.partition_index: p for p in topic.partitions}.values():
            answer = r.ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            try:
                if (topic.name, wanted.partition_index) in repeated:
                    raise ApiError(Errors.INVALID_REQUEST)
                found = _one(context, request, topic.name, wanted)
                answer.timestamp, answer.offset = found.timestamp, found.offset
                if context.version >= EPOCHS_SINCE:
                    answer.leader_epoch = found.leader_epoch
            except ApiError as error:
                answer.error_code = error.code
            out.partitions.append(answer)
        response.topics.append(out)
    return response


def _one(context: Context, request: Any, topic: str, wanted: Any) -> FoundOffset:
    timestamp = wanted.timestamp
    if timestamp < 0 and context.version < SINCE.get(timestamp, 1 if timestamp >= EARLIEST else 2**15):
        raise ApiError(Errors.UNSUPPORTED_VERSION)
    partition = context.broker.partition(topic, wanted.partition_index)
    partition.check_epoch(wanted.current_leader_epoch)
    log = partition.open_log()
    end = log.end_offset if request.replica_id == DEBUGGER else partition.read_limit(request.isolation_level)[0]
    if timestamp == LATEST:
        return FoundOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return FoundOffset(-1, log.start_offset, _epoch_at(partition, log.start_offset))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return NOT_FOUND
    found = log.largest_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    return NOT_FOUND if found is None or found.offset >= end else found


def _epoch_at(partition: Partition, offset: int) -> int:
    epochs = partition.open_log().epochs
    return epochs.epoch_at(offset) if epochs.entries and epochs.entries[0][1] <= offset else -1
