"""How a partition's log grows and is cut: what was produced is checked, and a failing disk takes its directory offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..protocol import compression, records
from ..protocol.errors import ApiError, Errors
from ..protocol.records import BatchAt
from ..storage import validation
from ..storage.log import Appended
from ..storage.producers import Marker, Verification
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


def append(broker: Broker, partition: Partition, data: Any, at: BatchAt, acks: int, answer: Any, verification: Verification | None = None) -> int:
    """Checks a batch and appends it; returns the offset that acks=all waits for. `answer` takes what a producer is told. ApiError, InvalidRecords.

    `verification`: what a transactional batch needs, unless its transaction is open.
    """
    log = partition.open_log()
    if acks == -1:
        check_replicas(partition)
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
        if header.is_transactional and verifies(broker):
            log.producers.check_verified(header.producer_id, header.producer_epoch, verification)
        log.producers.check(header, log.end_offset)
    if config["compression.type"] != "producer" and CODECS[config["compression.type"]] != header.codec:
        data, at = _recompress(data, at, config)
    done = store(broker, partition, data, [at], now)
    answer.base_offset = done.base_offset
    answer.log_append_time_ms = done.append_time
    answer.log_start_offset = log.start_offset
    return done.next_offset


def verifies(broker: Broker) -> bool:
    """Whether a transactional batch must be known to its coordinator (`transaction.partition.verification.enable`)."""
    return bool(broker.value("transaction.partition.verification.enable"))


def check_replicas(partition: Partition) -> None:
    """ApiError(NOT_ENOUGH_REPLICAS)."""
    if partition.isr_size < min(partition.min_insync_replicas, partition.replica_count):
        raise ApiError(Errors.NOT_ENOUGH_REPLICAS)


def store(broker: Broker, partition: Partition, data: Any, batches: list[BatchAt], now_ms: int, marker: Marker | None = None) -> Appended:
    """Appends batches that have been checked. `marker`: what a control batch among them says. ApiError(KAFKA_STORAGE_ERROR)."""
    try:
        done = partition.append(data, batches, now_ms, marker)
    except OSError as error:
        raise _storage_error(broker, partition, error) from None
    broker.note_append(partition)
    return done


def cut(broker: Broker, partition: Partition, offset: int) -> None:
    """Takes what lies before an offset out of the log. ApiError(KAFKA_STORAGE_ERROR)."""
    try:
        if partition.open_log().advance_start(offset):
            partition.disturb()
    except OSError as error:
        raise _storage_error(broker, partition, error) from None


def _storage_error(broker: Broker, partition: Partition, error: OSError) -> ApiError:
    broker.directory_failed(broker.partitions.directory_of[partition], error)
    return ApiError(Errors.KAFKA_STORAGE_ERROR)


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
