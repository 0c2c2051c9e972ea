"""Writes of a shard that wait to be appended together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from ..protocol.errors import ApiError, Errors
from ..protocol.records import HEADER_SIZE, Template
from .journal import Mark
from .packing import RECORD_OVERHEAD, Body, Encoded, Packed
from .shard import Decision, Result

T = TypeVar("T")
Reply = Callable[[Any, ApiError | None], None]
"""Called once with the reply, or with the error."""
Written = tuple[Encoded, object]
"""A record in the form that is appended, and in the form that the handler returned."""

STEP_RECORDS = 1024  # of a large batch that are encoded in one step

# errors of an append, and the errors that clients of the coordinator get for them
APPEND_ERRORS: dict[int, int] = {
    Errors.UNKNOWN_TOPIC_OR_PARTITION: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_ENOUGH_REPLICAS: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.REQUEST_TIMED_OUT: Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_LEADER_OR_FOLLOWER: Errors.NOT_COORDINATOR,
    Errors.KAFKA_STORAGE_ERROR: Errors.NOT_COORDINATOR,
    Errors.MESSAGE_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.RECORD_LIST_TOO_LARGE: Errors.UNKNOWN_SERVER_ERROR,
    Errors.INVALID_FETCH_SIZE: Errors.UNKNOWN_SERVER_ERROR,
}


class Writer(Protocol):
    """A partition to which the batches of a shard are appended."""

    def now_ms(self) -> int:
        """Returns the wall time, which batches have; the runtime's own times are monotonic."""

    def append(self, batch: bytearray, now_ms: int) -> tuple[int, int]:
        """Appends one batch; returns its first offset and the offset after it. Raises ApiError."""

    def max_batch_bytes(self) -> int: ...


def size_of(record: Encoded) -> int:
    """Returns the most bytes that a record takes in a batch."""
    if isinstance(record, Packed):
        return record.size
    return len(record.key or b"") + len(record.value or b"") + RECORD_OVERHEAD


def parts_of(written: list[Written], limit: int) -> Iterator[list[Written]]:
    """Yields records in parts of at most `limit` bytes. A larger record is a part of its own."""
    part: list[Written] = []
    size = 0
    for one in written:
        bytes_of_one = size_of(one[0])
        if part and size + bytes_of_one > limit:
            yield part
            part, size = [], 0
        part.append(one)
        size += bytes_of_one
    yield part


def told(error: ApiError) -> ApiError:
    """Returns what clients of the coordinator are told of an error of an append."""
    return ApiError(APPEND_ERRORS.get(error.code, error.code))


class Parked:
    """A write whose reply waits: at first for the decision, and then for the high watermark. `template`: of a
    transactional write.
    """

    __slots__ = (
        "deadline_ms",
        "name",
        "offset",
        "on_committed",
        "on_done",
        "on_failed",
        "reply",
        "since_ms",
        "template",
    )

    def __init__(
        self, name: str, on_done: Reply, since_ms: int, deadline_ms: int | None, template: Template | None = None
    ) -> None:
        self.name = name
        self.on_done: Reply | None = on_done
        self.since_ms = since_ms
        self.deadline_ms = deadline_ms
        self.template = template
        self.reply: object = None
        self.on_committed: Callable[[ApiError | None], None] | None = None
        self.on_failed: Callable[[ApiError], None] | None = None
        self.offset = -1

    def decided(self, result: Result[T]) -> None:
        """Its records will be appended, or it waits for those of other writes."""
        self.reply, self.on_committed, self.on_failed = result.reply, result.on_committed, result.on_failed


class Long(NamedTuple):
    """A long write. What the journal has since `mark` belongs to it. `decision`: None for a marker, which is in the log
    and is being replayed.
    """

    decision: Decision[object] | None
    parked: Parked
    mark: Mark


class Batch:
    """Writes that wait to be appended together."""

    __slots__ = ("body", "count", "parked", "records", "size", "template")

    def __init__(self, template: Template | None) -> None:
        self.records: list[Encoded] = []
        self.count = 0
        self.size = HEADER_SIZE
        self.parked: list[Parked] = []
        self.template = template
        self.body = Body()

    @property
    def is_large(self) -> bool:
        """Whether encoding the records that are left takes more than one step."""
        return self.count - self.body.count > STEP_RECORDS

    def encode_some(self) -> bool:
        """Encodes some records of a large batch. Returns whether it is one, and is encoded further in a later step."""
        if not self.is_large:
            return False
        try:
            self.body.take(self.records, self.body.count + STEP_RECORDS)
        except Exception:  # raised again, and answered, when the batch is appended
            return False
        return True
