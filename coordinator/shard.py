"""The interface between a coordinator shard and the runtime, and the encoding of its records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

from ..protocol import records
from ..protocol.control import Marker
from ..protocol.errors import ApiError
from ..protocol.records import Record, Template
from .timers import Timer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", default=None)
else:
    from typing import TypeVar

    R = TypeVar("R")
# `R`: the reply of a write; `Result` alone is the decision of a write without a reply
T = TypeVar("T")
RECORD_OVERHEAD = 21  # the most bytes of a record besides its key and value


@dataclass(slots=True)
class Result(Generic[R]):
    """The decision of a write handler.

    `records` go into one batch unless `atomic` is False; `reply` waits for them. Timers, soft state and effects are in
    the shard's journal and hold, or happen, once they are appended. `on_committed` is called when they are committed,
    with None, or when that took too long, with the error. `on_failed` is called with the error where they could not be
    appended, once everything is taken back. `replay` False: the handler has changed the state itself, which only the
    soft state of classic groups allows.
    """

    records: Sequence[object] = field(default_factory=list)
    reply: R = None  # type: ignore[assignment]
    on_committed: Callable[[ApiError | None], None] | None = None
    replay: bool = True
    atomic: bool = True
    on_failed: Callable[[ApiError], None] | None = None

    def with_reply(self, reply: T) -> Result[T]:
        """Returns the same decision with another reply."""
        return cast(Result[T], replace(self, reply=reply))  # type: ignore[arg-type]


Decision = Generator[None, None, Result[T]]
"""Decides in steps, about an element of a request each, against a state that does not change meanwhile."""
Decided = Result[T] | Decision[T]
"""The return value of a write handler: its decision, or the steps to it, which make the write a long one."""


def begun(decision: Decision[T]) -> Decided[T]:
    """Takes the first step of a decision; returns its result if it is the only one, and otherwise the other steps."""
    try:
        next(decision)
    except StopIteration as end:
        result: Result[T] = end.value
        return result
    return decision


class Shard(Protocol):
    """A replayed state machine. Handlers decide and return a `Result`; only `replay` and `replay_marker` change state
    that is in the log.

    Handlers may change soft state, which is not in the log, if the journal can undo the change. A handler that raises
    has changed nothing.
    """

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        """Applies one record, the same at load and live."""

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, marker: Marker) -> Iterable[None]:
        """Applies the end of a transaction in steps, between which no other record is replayed."""

    def on_loaded(self, now_ms: int) -> Iterable[Timer | None]:
        """Returns the first timers, after the log was replayed. None is a pause, in which other events are handled."""

    def on_unloaded(self) -> None:
        """The shard was closed; its waiting requests have been answered."""


class Packed:
    """Several records that a handler decides, writes and replays as one, because they are many."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The most bytes that the records take in a batch."""
        raise NotImplementedError

    def pack(self, index: int) -> bytes:
        """Returns the encoded records. The first is record number `index` of its batch,
        whose records all have the same timestamp.
        """
        raise NotImplementedError

    def told(self) -> Iterable[Record]:
        """Returns the records if they tell what happens to a group."""
        return ()


class Built(Packed):
    """A record that its handler has encoded, in steps, because it is large."""

    __slots__ = ("record",)

    def __init__(self, record: Record) -> None:
        self.record = record

    def __len__(self) -> int:
        return 1

    @property
    def size(self) -> int:
        return len(self.record.key or b"") + len(self.record.value or b"") + RECORD_OVERHEAD

    def pack(self, index: int) -> bytes:
        out = bytearray()
        records.put_record(out, self.record, 0, index)
        return bytes(out)

    def told(self) -> Iterable[Record]:
        return (self.record,)


Encoded = Record | Packed


class RecordFormat(Protocol):
    """Converts a shard's records to records of a log and back."""

    def encode(self, record: Any) -> Record: ...

    def replayed(self, record: Any) -> tuple[Any, Any]:
        """Returns the key and value of a record from a handler, equal to those that `decode` returns for its bytes."""

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        """Returns key and value; None for an unknown record, which is skipped."""


class Body:
    """Encoded records of a batch. `taken`: how many of the batch's records, or packs of them, it has; `count`: how many
    records these are.
    """

    __slots__ = ("count", "data", "taken")

    def __init__(self) -> None:
        self.data = bytearray()
        self.taken = self.count = 0

    def take(self, encoded: Sequence[Encoded], until: int) -> None:
        """Takes records of the batch until it has `until` of them, or all."""
        while self.taken < len(encoded) and self.count < until:
            one = encoded[self.taken]
            if isinstance(one, Packed):
                self.data += one.pack(self.count)
                self.count += len(one)
            else:
                records.put_record(self.data, one, 0, self.count)
                self.count += 1
            self.taken += 1


def encode_batch(encoded: Sequence[Encoded], now_ms: int, template: Template, body: Body | None = None) -> bytearray:
    """Returns a batch of the records, all with the timestamp `now_ms`. `body`: has those that are encoded already."""
    body = body or Body()
    body.take(encoded, sys.maxsize)
    return records.batch_of(body.data, template, body.count, body.count - 1, now_ms, now_ms)
