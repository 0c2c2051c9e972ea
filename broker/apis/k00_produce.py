"""Produce, versions 3 to 13: appends one record batch per partition.

3 record batches (KIP-98); 5 log start offset; 7 zstd (KIP-110); 8 record errors (KIP-467); 9 flexible; 10 the new leader
(KIP-951); 11 and 12 transactions of KIP-890; 13 topic ids (KIP-516). 0 to 2 are listed and refused.
acks=0 gets no reply; an error then ends the connection. acks=all waits for the high watermark, at most `timeout.ms`.
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...storage import validation
from ...storage.validation import InvalidRecords
from ..appending import append
from ..context import Context
from ..dispatch import CLOSE, NO_REPLY
from ..later import Later
from ..partition import Partition

TOPIC_IDS_SINCE = 13
LEADERS_SINCE = 10
WITHOUT_START_OFFSET = frozenset((Errors.NOT_LEADER_OR_FOLLOWER, Errors.MESSAGE_TOO_LARGE, Errors.CORRUPT_MESSAGE, Errors.KAFKA_STORAGE_ERROR))
ADMIN_CLIENT = "__admin_client"


def handle(context: Context, request: Any) -> Any:
    acks = request.acks
    response = messages.ProduceResponse()
    waits: list[tuple[Partition, int, Any]] = []
    failed = False
    for topic in request.topic_data:
        out = messages.ProduceResponse.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        for wanted in topic.partition_data:
            answer, partition, end = _one(context, topic, wanted, acks)
            out.partition_responses.append(answer)
            if answer.error_code:
                failed = True
            elif acks == -1 and partition is not None and partition.high_watermark < end:
                waits.append((partition, end, answer))
        response.responses.append(out)
    if acks == 0:
        return CLOSE if failed else NO_REPLY
    if failed and context.version >= LEADERS_SINCE:
        _name_leaders(context, response)
    if waits:
        return _wait(context, response, waits, request.timeout_ms)
    return response


def _one(context: Context, topic: Any, wanted: Any, acks: int) -> tuple[Any, Partition | None, int]:
    """The answer for one partition, and up to where acks=all has to wait. Kafka gives reasons for records, not for batches."""
    answer = messages.ProduceResponse.PartitionProduceResponse(index=wanted.index, base_offset=-1)
    try:
        partition = _find(context, topic, wanted.index)
        at = validation.single_batch(wanted.records if wanted.records is not None else b"", context.version)
        if acks not in (-1, 0, 1):
            raise ApiError(Errors.INVALID_REQUIRED_ACKS)
    except ApiError as error:
        answer.error_code, answer.error_message = error.code, error.message
        return answer, None, 0
    try:
        return answer, partition, append(context.broker, partition, wanted.records, at, acks, answer)
    except InvalidRecords as error:
        answer.error_code, answer.error_message = error.code, error.text
        answer.log_start_offset = partition.start_offset
        answer.record_errors = [
            messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in error.errors
        ]
    except ApiError as error:
        answer.error_code = error.code
        if error.code == Errors.NOT_LEADER_OR_FOLLOWER and context.version >= LEADERS_SINCE:
            answer.current_leader.leader_id, answer.current_leader.leader_epoch = context.node_id, partition.leader_epoch
        if error.code not in WITHOUT_START_OFFSET:
            answer.log_start_offset = partition.start_offset
    return answer, partition, 0


def _find(context: Context, topic: Any, index: int) -> Partition:
    broker = context.broker
    if context.version >= TOPIC_IDS_SINCE:
        name = broker.image.topic_names.get(topic.topic_id)
        if name is None:
            raise ApiError(Errors.UNKNOWN_TOPIC_ID)
    else:
        name = topic.name
    partition = broker.partitions.by_name.get((name, index))
    if partition is None:
        raise ApiError(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    if broker.is_internal(name) and context.client_id != ADMIN_CLIENT:
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION)
    return partition


def _wait(context: Context, response: Any, waits: list[tuple[Partition, int, Any]], timeout_ms: int) -> Later[Any]:
    """Finished when every partition's high watermark is there, or the time is over; the records stay either way."""
    outcome: Later[Any] = Later()
    left = len(waits)
    timer: list[Any] = []

    def reached(later: Later[None], answer: Any) -> None:
        nonlocal left
        left -= 1
        if isinstance(later.error, ApiError):
            answer.error_code = later.error.code
            answer.error_message = later.error.message
        if left == 0:
            for one in timer:
                one.cancel()
            outcome.finish(response)

    parked: list[tuple[Later[None], Any]] = []
    for partition, end, answer in waits:
        later = partition.wait_for(end)
        parked.append((later, answer))
        later.when_done(lambda done, answer=answer: reached(done, answer))  # type: ignore[misc]

    def over() -> None:
        for later, answer in parked:
            if not later.done:
                answer.error_code = int(Errors.REQUEST_TIMED_OUT)
                later.cancel()
        outcome.finish(response)

    if not outcome.done and any(p.follower.policy.kind != "immediate" or p.end_offset > p.leader_bound() for p, _, _ in waits):
        timer.append(context.broker.schedule.later(max(0, timeout_ms), lambda: context.broker.event(over)))

    def cancel() -> None:
        for later, _ in parked:
            later.cancel()
        for one in timer:
            one.cancel()

    outcome.on_cancel = cancel
    return outcome


def _name_leaders(context: Context, response: Any) -> None:
    """Tells clients that came to the wrong place where the leader is (KIP-951)."""
    from .k01_fetch import node_endpoints

    told = any(p.current_leader.leader_id >= 0 for t in response.responses for p in t.partition_responses)
    if told:
        response.node_endpoints = node_endpoints(context, messages.ProduceResponse.NodeEndpoint)
