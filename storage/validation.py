"""What a produced batch must be before it is appended: Kafka's checks, with Kafka's codes and words.

`header` checks read the 61 bytes of the header and the CRC; the records stay closed. Where the topic or the header gives a
reason to doubt (a compacted topic needs keys, a timestamp lies beyond its bounds), and always with `full` validation,
the records are opened.
"""

from __future__ import annotations

from typing import Any

from ..protocol import records
from ..protocol.compression import ZSTD, DecompressedTooLarge
from ..protocol.errors import ApiError, Errors, MalformedMessage
from ..protocol.records import HEADER_SIZE, MAGIC, NO_SEQUENCE, BatchAt, BatchHeader, header_at
from .settings import LogSettings

ZSTD_SINCE = 7


class InvalidRecords(ApiError):
    """A batch with records that cannot be accepted: which ones, and why."""

    def __init__(self, code: int, message: str | None, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.errors = errors


def single_batch(data: Any, produce_version: int) -> BatchAt:
    """The one batch that a Produce request has for a partition. ApiError where it is something else."""
    prefix = f"Produce requests with version {produce_version} "
    if len(data) < 17:
        raise ApiError(Errors.INVALID_RECORD, prefix + "must have at least one record batch per partition")
    size = int.from_bytes(data[8:12], "big", signed=True) + records.LOG_OVERHEAD
    magic = data[16]
    if size < 26:
        raise ApiError(Errors.CORRUPT_MESSAGE, f"Record size {size - 12} is less than the minimum record overhead (14)")
    if size > len(data):
        raise ApiError(Errors.INVALID_RECORD, prefix + "must have at least one record batch per partition")
    if magic != MAGIC:
        raise ApiError(Errors.INVALID_RECORD, prefix + "are only allowed to contain record batches with magic version 2")
    if size < HEADER_SIZE:
        raise ApiError(Errors.CORRUPT_MESSAGE, f"Batch size {size} is less than the minimum of {HEADER_SIZE}")
    header = header_at(data)
    if header.codec == ZSTD and produce_version < ZSTD_SINCE:
        raise ApiError(Errors.UNSUPPORTED_COMPRESSION_TYPE, prefix + "are not allowed to use ZStandard compression")
    if size < len(data):
        raise ApiError(Errors.INVALID_RECORD, prefix + "are only allowed to contain exactly one record batch per partition")
    return BatchAt(0, header)


def check_header(at: BatchAt, data: Any, partition: str, max_message_bytes: int) -> None:
    """The checks that every batch passes, in Kafka's order. ApiError."""
    header = at.header
    if header.base_offset != 0:
        raise ApiError(
            Errors.INVALID_RECORD,
            f"The baseOffset of the record batch in the append to {partition} should be 0, but it is {header.base_offset}",
        )
    if header.size > max_message_bytes:
        raise ApiError(
            Errors.MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {partition} is {header.size} bytes "
            f"which exceeds the maximum configured value of {max_message_bytes}.",
        )
    computed = records.computed_crc(data, at.position, header.size)
    if computed != header.crc:
        raise ApiError(
            Errors.CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {header.crc}, computed crc = {computed}) in topic partition {partition}.",
        )
    if header.codec > ZSTD:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    _check_contents(header, partition)


def _check_contents(header: BatchHeader, partition: str) -> None:
    count_by_offsets = header.last_offset_delta + 1
    if count_by_offsets <= 0:
        raise ApiError(
            Errors.INVALID_RECORD,
            f"Batch has an invalid offset range: [{header.base_offset}, {header.last_offset}] in partition {partition}",
        )
    if header.record_count <= 0:
        raise ApiError(
            Errors.INVALID_RECORD,
            f"Invalid reported count for record batch: {header.record_count} in topic partition {partition}.",
        )
    if count_by_offsets != header.record_count:
        raise ApiError(
            Errors.INVALID_RECORD,
            f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count of records {header.record_count} "
            f"in topic partition {partition}.",
        )
    if header.is_control:
        raise ApiError(Errors.INVALID_RECORD, f"Clients are not allowed to write control records in topic partition {partition}.")
    if header.producer_id >= 0:
        if header.base_sequence == NO_SEQUENCE:
            raise ApiError(
                Errors.INVALID_RECORD,
                f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}",
            )


def must_open(header: BatchHeader, settings: LogSettings, bounds: tuple[int, int]) -> bool:
    """Whether the header gives a reason to look at the records."""
    if settings.is_compacted:
        return True
    if settings.is_append_time:
        return False
    earliest, latest = bounds
    return header.max_timestamp > latest or min(header.base_timestamp, header.max_timestamp) < earliest


def check_records(at: BatchAt, data: Any, partition: str, settings: LogSettings, bounds: tuple[int, int], limit: int) -> None:
    """Opens the batch and checks every record; `bounds` are the timestamps allowed. InvalidRecords, ApiError."""
    try:
        opened = records.decode(data, at, limit)
    except DecompressedTooLarge:
        raise ApiError(
            Errors.MESSAGE_TOO_LARGE,
            f"Decompressed batch size exceeds the maximum allowed size of {limit} bytes in topic partition {partition}.",
        ) from None
    except MalformedMessage as error:
        raise ApiError(Errors.CORRUPT_MESSAGE, f"{error.reason} in topic partition {partition}.") from None
    wrong: list[tuple[int, str]] = []
    code = Errors.INVALID_RECORD
    earliest, latest = bounds
    for index, record in enumerate(opened):
        if settings.is_compacted and record.key is None:
            wrong.append((index, f"Compacted topic cannot accept message without key in topic partition {partition}."))
        elif not settings.is_append_time and not earliest <= record.timestamp <= latest and record.timestamp != -1:
            code = Errors.INVALID_TIMESTAMP
            wrong.append(
                (
                    index,
                    f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]",
                )
            )
    if wrong:
        if code == Errors.INVALID_TIMESTAMP:
            raise InvalidRecords(code, "One or more records have been rejected due to invalid timestamp", wrong)
        raise InvalidRecords(
            code,
            f"One or more records have been rejected due to {len(wrong)} record errors in total, "
            "and only showing the first three errors at most: ",
            wrong,
        )
