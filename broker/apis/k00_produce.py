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
ERRORS_SHOWN = 3
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
            answer, partition, end = _one(context, topic, wanted, acks, request)
            out.partition_responses.append(answer)
            if answer.error_code:
                failed = True
            elif acks == -1 and partition is not None and partition.high_watermark < end:
                waits.append((partition, end, answer))
        response.responses.append(out)
    if acks == 0:
        return CLOSE if failed else NO_REPLY
    if failed and context.version >= 10:
        _name_leaders(context, response)
    if waits:
        return _wait(context, response, waits, request.timeout_ms)
    return response


def _one(context: Context, topic: Any, wanted: Any, acks: int, request: Any) -> tuple[Any, Partition | None, int]:
    answer = messages.ProduceResponse.PartitionProduceResponse(index=wanted.index, base_offset=-1)
    partition: Partition | None = None
    try:
        partition = _find(context, topic, wanted.index)
        data = wanted.records if wanted.records is not None else b""
        at = validation.single_batch(data, context.version)
        if acks not in (-1, 0, 1):
            raise ApiError(Errors.INVALID_REQUIRED_ACKS)
        end = _append(context, partition, data, at, acks, answer)
        return answer, partition, end
    except InvalidRecords as error:
        answer.error_code = error.code
        answer.error_message = error.text
        answer.record_errors = [
            messages.ProduceResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in error.errors
        ]
        if partition is not None:
            answer.log_start_offset = partition.start_offset
        if error.code == Errors.INVALID_RECORD and error.message is not None:
            shown = ", ".join(f"{index}: {text}" for index, text in error.errors[:ERRORS_SHOWN])
            answer.error_message = error.message + f"[{shown}]" if error.message.endswith(": ") else error.message
    except ApiError as error:
        answer.error_code = error.code
        answer.error_message = error.message
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
        raise ApiError(Errors.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {name}")
    return partition


def _append(context: Context, partition: Partition, data: Any, at: BatchAt, acks: int, answer: Any) -> int:
    """Checks a batch and appends it; returns the offset that acks=all waits for."""
    broker = context.broker
    log = partition.open_log()
    if acks == -1 and partition.isr_size < partition.min_insync_replicas:
        raise ApiError(
            Errors.NOT_ENOUGH_REPLICAS,
            f"The size of the current ISR : {partition.isr_size} is insufficient to satisfy the min.isr requirement of "
            f"{partition.min_insync_replicas} for partition {partition.name}",
        )
    settings, header = log.settings, at.header
    validation.check_header(at, data, partition.name, settings.max_message_bytes)
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
            answer.log_append_time_ms = duplicate.timestamp if settings.is_append_time else -1
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

    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == Errors.NOT_LEADER_OR_FOLLOWER:
                answer.current_leader.leader_id = context.node_id
                answer.current_leader.leader_epoch = 0
                response.node_endpoints = node_endpoints(context, messages.ProduceResponse.NodeEndpoint)
