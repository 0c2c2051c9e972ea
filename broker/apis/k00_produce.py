"""Produce, versions 3 to 13: appends one record batch per partition.

3 record batches (KIP-98); 5 log start offset; 7 zstd (KIP-110); 8 record errors (KIP-467); 9 flexible; 10 the new leader
(KIP-951); 11 and 12 transactions of KIP-890; 13 topic ids (KIP-516). 0 to 2 are listed and refused.
acks=0 gets no reply; an error then ends the connection. acks=all waits for the high watermark, at most `timeout.ms`.
"""

from __future__ import annotations

from typing import Any

from ...protocol import compression, messages, records
from ...protocol.errors import ApiError, Errors
from ...protocol.records import BatchAt
from ...storage import validation
from ...storage.validation import InvalidRecords
from ..context import Context
from ..dispatch import CLOSE, NO_REPLY
from ..later import Later
from ..partition import Partition

TOPIC_IDS_SINCE = 13
LEADERS_SINCE = 10
WITHOUT_START_OFFSET = frozenset((Errors.NOT_LEADER_OR_FOLLOWER, Errors.MESSAGE_TOO_LARGE, Errors.CORRUPT_MESSAGE, Errors.KAFKA_STORAGE_ERROR))
CODECS = {
    "uncompressed": compression.NONE,
    "gzip": compression.GZIP,
    "snappy": compression.SNAPPY,
    "lz4": compression.LZ4,
    "zstd": compression.ZSTD,
}
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
        return answer, partition, _append(context, partition, wanted.records, at, acks, answer)
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


def _append(context: Context, partition: Partition, data: Any, at: BatchAt, acks: int, answer: Any) -> int:
    """Checks a batch and appends it; returns the offset that acks=all waits for."""
    broker = context.broker
    log = partition.open_log()
    if acks == -1 and partition.isr_size < min(partition.min_insync_replicas, partition.replica_count):
        raise ApiError(Errors.NOT_ENOUGH_REPLICAS)
    settings, header = log.settings, at.header
    validation.check_header(at, data, settings.max_message_bytes)
    now = broker.schedule.now_ms()
    config = broker.topic_config(partition.topic)
    bounds = (now - config["message.timestamp.before.max.ms"], now + config["message.timestamp.after.max.ms"])
    if broker.config["ottla.record.validation"] == "full" or validation.must_open(header, settings, bounds):
        limit = config["max.decompressed.message.bytes"]
        validation.check_records(at, data, partition.name, settings, bounds, limit)
    if header.producer_id >= 0:
        duplicate = log.producers.find_duplicate(header)
        if duplicate is not None:
            answer.base_offset = duplicate.first_offset
            answer.log_append_time_ms = duplicate.timestamp
            answer.log_start_offset = log.start_offset
            return duplicate.last_offset + 1
        log.producers.check(header, log.end_offset)
    if config["compression.type"] != "producer" and CODECS[config["compression.type"]] != header.codec:
        data, at = _recompress(data, at, config)
    try:
        done = partition.append(data, [at], now)
    except OSError as error:
        broker.directory_failed(broker.partitions.directory_of[partition], error)
        raise ApiError(Errors.KAFKA_STORAGE_ERROR) from None
    broker.note_append(partition)
    answer.base_offset = done.base_offset
    answer.log_append_time_ms = done.append_time
    answer.log_start_offset = log.start_offset
    return done.next_offset


def _recompress(data: Any, at: BatchAt, config: dict[str, Any]) -> tuple[bytearray, BatchAt]:
    """The batch as the topic's `compression.type` wants it."""
    name = config["compression.type"]
    header = at.header
    opened = records.decode(data, at, config["max.decompressed.message.bytes"])
    template = records.Template(
        codec=CODECS[name],
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        level=config.get(f"compression.{name}.level"),
    )
    if name == "gzip" and template.level == -1:
        template.level = None
    made = records.encode(opened, template)
    return made, BatchAt(0, records.header_at(made))


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
