"""Validates produced batches before they are appended: Kafka's checks, with Kafka's error codes and messages.

Header checks read the 61 bytes of the header and verify the CRC; the records stay compressed. The records are checked
while they are decompressed if the topic or the header gives a reason (a compacted topic needs keys, a timestamp is out
of bounds or after the append, a compressed batch claims more records than it has bytes),
and always with `full` validation.

Headers of unchecked batches are accepted within bounds: no more records than could fit, no timestamp later than
`CLOCK_SKEW_MS` from now. If the records are checked, their largest timestamp replaces the header's, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from ..protocol import opening, records
from ..protocol.buffers import Data, WritableData
from ..protocol.compression import NONE, ZSTD, DecompressedTooLarge, Undecodable, openable_bytes
from ..protocol.errors import ApiError, Errors, MalformedMessage
from ..protocol.opening import Shapes
from ..protocol.records import (
    CODEC_MASK,
    CONTROL_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_EPOCH,
    NO_TIMESTAMP,
    RECORD_BYTES_MIN,
    TIMESTAMP_TYPE_MASK,
    BatchAt,
    BatchHeader,
    header_at,
)
from .settings import LogSettings

ZSTD_SINCE = 7
ERRORS_SHOWN = 3
ERRORS_KEPT = 1000  # Kafka returns all of them, in a reply that may be much larger than the request
BODY_AT = HEADER_SIZE - LOG_OVERHEAD  # the bytes that a header's length counts
CLOCK_SKEW_MS = 60_000  # how far a producer's clock may be ahead without a check of its records
SMALLEST_ENTRY = 26  # offset, size, and the smallest message of any version


class InvalidRecords(ApiError):
    """A batch with invalid records: their indexes and errors."""

    def __init__(self, code: int, message: str | None, errors: list[tuple[int, str]]) -> None:
        super().__init__(code, message)
        self.errors = errors


def single_batch(data: Data, produce_version: int) -> BatchAt:
    """Returns the one batch that a Produce request has for a partition. Raises ApiError if the data is anything else,
    but for a part of another batch behind it, which the caller drops.

    Kafka gives a message only if the bytes cannot be a batch at all.
    """
    if len(data) >= HEADER_SIZE:
        header = header_at(data)
        if (
            header.magic == MAGIC
            and header.length + LOG_OVERHEAD == len(data)
            and header.attributes & CODEC_MASK != ZSTD
        ):
            return tuple.__new__(BatchAt, (0, header))  # as `header_at`
    return _unusual_batch(data, produce_version)


def _unusual_batch(data: Data, produce_version: int) -> BatchAt:
    """Like `single_batch`, for what is refused, or for the codec that not every version has."""
    if len(data) < MAGIC_AT + 1:
        raise ApiError(Errors.INVALID_RECORD)
    error = unreadable(data)
    if error is not None:
        raise error
    size = int.from_bytes(data[8:12], "big", signed=True) + records.LOG_OVERHEAD
    if size > len(data) or data[MAGIC_AT] != MAGIC:
        raise ApiError(Errors.INVALID_RECORD)
    if size < HEADER_SIZE:
        raise ApiError(Errors.CORRUPT_MESSAGE)
    header = header_at(data)
    if header.codec == ZSTD and produce_version < ZSTD_SINCE:
        raise ApiError(Errors.UNSUPPORTED_COMPRESSION_TYPE)
    _check_rest(data[size:])
    return BatchAt(0, header)


def _check_rest(data: Data) -> None:
    """Raises ApiError if there is another batch behind the first, or what cannot be one. What is too short to tell, or
    to be whole, is no batch: Kafka drops it.
    """
    error = unreadable(data)
    if error is not None:
        raise ApiError(error.code)
    if len(data) > MAGIC_AT and int.from_bytes(data[8:12], "big") + records.LOG_OVERHEAD <= len(data):
        raise ApiError(Errors.INVALID_RECORD)


def unreadable(data: Data) -> ApiError | None:
    """Returns the error of bytes that cannot be a batch of any version; None for others, and for too few of them."""
    if len(data) < MAGIC_AT + 1:
        return None
    size = int.from_bytes(data[8:12], "big", signed=True)
    magic = int.from_bytes(data[MAGIC_AT : MAGIC_AT + 1], "big", signed=True)
    if size + records.LOG_OVERHEAD < SMALLEST_ENTRY:
        return ApiError(Errors.CORRUPT_MESSAGE, f"Record size {size} is less than the minimum record overhead (14)")
    if not 0 <= magic <= MAGIC:
        return ApiError(Errors.CORRUPT_MESSAGE, f"Invalid magic found in record: {magic}")
    return None


def check_header(at: BatchAt, data: Data, max_message_bytes: int) -> None:
    """The checks that every batch must pass, in Kafka's order. Raises ApiError without a message, as Kafka does."""
    header = at.header
    if header.base_offset != 0:
        raise ApiError(Errors.INVALID_RECORD)
    if header.size > max_message_bytes:
        raise ApiError(Errors.MESSAGE_TOO_LARGE)
    if records.computed_crc(data, at.position, header.size) != header.crc:
        raise ApiError(Errors.CORRUPT_MESSAGE)
    if header.attributes & CODEC_MASK > ZSTD:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    _check_contents(header)


def _check_contents(header: BatchHeader) -> None:
    """Checks the fields of the header against each other."""
    attributes, count = header.attributes, header.record_count
    consistent = 0 < count == header.last_offset_delta + 1
    impossible = count * RECORD_BYTES_MIN > header.length - BODY_AT and not attributes & CODEC_MASK
    if not consistent or impossible or attributes & CONTROL_MASK:
        raise ApiError(Errors.INVALID_RECORD)
    if header.producer_id >= 0:
        if header.base_sequence < 0:
            raise ApiError(Errors.INVALID_RECORD)
        if header.producer_epoch < NO_EPOCH:
            raise ApiError(Errors.INVALID_PRODUCER_EPOCH)


def must_open(header: BatchHeader, settings: LogSettings, now_ms: int, before_ms: int, after_ms: int) -> bool:
    """Whether the header gives a reason to check the records. `before_ms`, `after_ms`: how far their timestamps may be
    from now.
    """
    if settings.is_compacted or header.attributes & TIMESTAMP_TYPE_MASK:
        return True
    if header.record_count > header.length and header.codec != NONE:
        return True
    if settings.is_append_time:
        return False
    base_timestamp, max_timestamp = header.base_timestamp, header.max_timestamp
    return (
        max_timestamp - now_ms > min(after_ms, CLOCK_SKEW_MS)
        or now_ms - base_timestamp > before_ms
        or max_timestamp < base_timestamp
    )


def check_records(
    at: BatchAt,
    data: Data,
    partition: str,
    settings: LogSettings,
    bounds: tuple[int, int],
    limit: int,
    is_kept: bool = True,
) -> Generator[None, None, int]:
    """Decompresses the batch and checks every record, a step per chunk; returns the largest timestamp. Raises
    InvalidRecords or ApiError.

    `bounds`: the allowed timestamps. `limit`: how many bytes a compressed batch may hold; a disproportionate batch is
    refused earlier. `is_kept`: the batch is stored as it is, so that the offset deltas of compressed records must count
    from 0.
    """
    limit = at.header.size if at.header.codec == NONE else min(limit, openable_bytes(at.header.size))
    found = _Findings(at, partition, settings, bounds)
    try:
        for some in opening.shapes(data, at, limit):
            found.note(some)
            yield
    except DecompressedTooLarge:
        raise ApiError(
            Errors.INVALID_RECORD,
            f"Decompressed batch size exceeds the maximum allowed size of {limit} bytes in topic partition "
            f"{partition}.",
            limit="decompressed-bytes",
        ) from None
    except Undecodable:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR) from None
    except MalformedMessage:
        raise ApiError(Errors.INVALID_RECORD) from None
    found.refuse()
    if is_kept and not found.in_order and at.header.codec != NONE:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    return found.max_timestamp


class _Findings:
    """The errors found in a batch so far."""

    def __init__(self, at: BatchAt, partition: str, settings: LogSettings, bounds: tuple[int, int]) -> None:
        self.max_timestamp = NO_TIMESTAMP
        self.in_order = True  # the offset deltas count from 0
        self._at = at
        self._partition = partition
        self._settings = settings
        self._bounds = bounds
        self._code = Errors.INVALID_RECORD
        self._wrong: list[tuple[int, str]] = []  # the first errors
        self._count = 0

    def note(self, some: Shapes) -> None:
        timestamps = some.timestamps
        if not timestamps:
            return
        self.max_timestamp = max(self.max_timestamp, *timestamps)
        self.in_order = self.in_order and some.offset_deltas == list(range(some.first, some.first + len(timestamps)))
        keyless = dict.fromkeys(some.keyless if self._settings.is_compacted else ())
        for index in keyless:
            self._add(index, f"Compacted topic cannot accept message without key in topic partition {self._partition}")
        for index, problem in self._badly_timed(some):
            if index not in keyless:
                self._code = Errors.INVALID_TIMESTAMP
                self._add(index, problem)

    def _badly_timed(self, some: Shapes) -> Iterator[tuple[int, str]]:
        timestamps, (earliest, latest) = some.timestamps, self._bounds
        if self._settings.is_append_time:
            if self._at.header.is_append_time:
                for index in range(some.first, some.first + len(timestamps)):
                    yield (
                        index,
                        f"Invalid timestamp type in message with offset {index}. Producer should not set timestamp "
                        "type to LogAppendTime.",
                    )
        elif min(timestamps) < earliest or max(timestamps) > latest:
            for index, timestamp in enumerate(timestamps, some.first):
                if not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP:
                    offset = self._at.header.base_offset + some.offset_deltas[index - some.first]
                    yield (
                        index,
                        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
                        f"The timestamp should be within [{earliest}, {latest}]",
                    )

    def _add(self, index: int, problem: str) -> None:
        self._count += 1
        if len(self._wrong) < ERRORS_KEPT:
            self._wrong.append((index, problem))

    def refuse(self) -> None:
        """Raises InvalidRecords if a record was invalid."""
        if not self._count:
            return
        wrong = sorted(self._wrong)
        if self._code == Errors.INVALID_TIMESTAMP:
            raise InvalidRecords(self._code, "One or more records have been rejected due to invalid timestamp", wrong)
        raise InvalidRecords(
            self._code,
            f"One or more records have been rejected due to {self._count} record errors in total, "
            "and only showing the first three errors at most: " + _shown(wrong),
            wrong,
        )


def corrected(at: BatchAt, data: WritableData, max_timestamp: int) -> BatchAt:
    """Writes the largest timestamp of a batch's records into its header, if it differs. `data` is writable."""
    header = at.header
    if header.max_timestamp == max_timestamp and not header.is_append_time:
        return at
    records.set_max_timestamp(data, at.position, header, False, max_timestamp)
    return BatchAt(at.position, header_at(data, at.position))


def _shown(wrong: list[tuple[int, str]]) -> str:
    """Formats the first errors of records as Kafka does."""
    return (
        "["
        + ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in wrong[:ERRORS_SHOWN])
        + "]"
    )
