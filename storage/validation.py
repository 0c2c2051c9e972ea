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
MAGIC_AT = 16
ERRORS_SHOWN = 3
SMALLEST_ENTRY = 26  # offset, size, and the smallest message of any version


class InvalidRecords(ApiError):
    """A batch with records that cannot be accepted: which ones, and why."""

    def __init__(self, code: int, message: str | None, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.errors = errors


def single_batch(data: Any, produce_version: int) -> BatchAt:
    """The one batch that a Produce request has for a partition. ApiError where it is something else.

    Kafka gives a reason only where the bytes cannot be a batch at all.
    """
    if len(data) < MAGIC_AT + 1:
        raise ApiError(Errors.INVALID_RECORD)
    size = int.from_bytes(data[8:12], "big", signed=True) + records.LOG_OVERHEAD
    magic = int.from_bytes(data[MAGIC_AT : MAGIC_AT + 1], "big", signed=True)
    if size < SMALLEST_ENTRY:
        raise ApiError(Errors.CORRUPT_MESSAGE, f"Record size {size - 12} is less than the minimum record overhead (14)")
    if not 0 <= magic <= MAGIC:
        raise ApiError(Errors.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    if size > len(data) or magic != MAGIC:
        raise ApiError(Errors.INVALID_RECORD)
    if size < HEADER_SIZE:
        raise ApiError(Errors.CORRUPT_MESSAGE)
    header = header_at(data)
    if header.codec == ZSTD and produce_version < ZSTD_SINCE:
        raise ApiError(Errors.UNSUPPORTED_COMPRESSION_TYPE)
    if size < len(data):
        raise ApiError(Errors.INVALID_RECORD)
    return BatchAt(0, header)


def check_header(at: BatchAt, data: Any, max_message_bytes: int) -> None:
    """The checks that every batch passes, in Kafka's order. ApiError; Kafka tells no reason either."""
    header = at.header
    if header.base_offset != 0:
        raise ApiError(Errors.INVALID_RECORD)
    if header.size > max_message_bytes:
        raise ApiError(Errors.MESSAGE_TOO_LARGE)
    if records.computed_crc(data, at.position, header.size) != header.crc:
        raise ApiError(Errors.CORRUPT_MESSAGE)
    if header.codec > ZSTD:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    _check_contents(header)


def _check_contents(header: BatchHeader) -> None:
    """What the fields say of each other."""
    consistent = 0 < header.record_count == header.last_offset_delta + 1
    sequence_missing = header.producer_id >= 0 and header.base_sequence == NO_SEQUENCE
    if not consistent or header.is_control or sequence_missing:
        raise ApiError(Errors.INVALID_RECORD)


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
            Errors.INVALID_RECORD,
            f"Decompressed batch size exceeds the maximum allowed size of {limit} bytes in topic partition {partition}.",
        ) from None
    except MalformedMessage as error:
        raise ApiError(Errors.CORRUPT_MESSAGE, f"{error.reason} in topic partition {partition}.") from None
    wrong: list[tuple[int, str]] = []
    code = Errors.INVALID_RECORD
    earliest, latest = bounds
    for index, record in enumerate(opened):
        if settings.is_compacted and record.key is None:
            wrong.append((index, f"Compacted topic cannot accept message without key in topic partition {partition}"))
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
            "and only showing the first three errors at most: " + _shown(wrong),
            wrong,
        )


def _shown(wrong: list[tuple[int, str]]) -> str:
    """The first records and their errors, as Kafka prints them."""
    return "[" + ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in wrong[:ERRORS_SHOWN]) + "]"
