"""How a batch that somebody produced comes into a partition's log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol import compression, records
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt
from ..storage import validation
from .partition import Partition

if TYPE_CHECKING:
    from .broker import Broker

CODECS = {
    "uncompressed": compression.NONE,
    "gzip": compression.GZIP,
    "snappy": compression.SNAPPY,
    "lz4": compression.LZ4,
    "zstd": compression.ZSTD,
}


def append(broker: Broker, partition: Partition, data: Any, at: BatchAt, acks: int, answer: Any) -> int:
    """Checks a batch and appends it; returns the offset that acks=all waits for. `answer` takes what a producer is told. ApiError, InvalidRecords."""
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
