"""What a coordinator shard is to the runtime, and how its records become bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..protocol import records
from ..protocol.errors import ApiError
from ..protocol.records import Record, Template
from .timers import Timer


@dataclass(slots=True)
class Result:
    """What a write handler decides.

    `records` go into one batch unless `atomic` is False; `reply` waits for them, and timers are set once they are appended.
    `on_appended` is called when they are committed, with None, or with why they are not. `replay` False: the handler has changed
    the state itself, which only the soft state of classic groups allows.
    """

    records: list[Any] = field(default_factory=list)
    reply: Any = None
    timers: list[Timer] = field(default_factory=list)
    on_appended: Callable[[ApiError | None], None] | None = None
    replay: bool = True
    atomic: bool = True


class Shard(Protocol):
    """A replayed state machine. Handlers decide and return a `Result`; only `replay` and `replay_marker` change state."""

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: Any, value: Any) -> None:
        """Applies one record, the same at load and live."""

    def replay_marker(self, offset: int, producer_id: int, producer_epoch: int, coordinator_epoch: int, committed: bool) -> None:
        """Applies the end of a transaction."""

    def on_loaded(self, now_ms: int) -> list[Timer]:
        """The log has been replayed: the timers to begin with."""

    def on_unloaded(self) -> None:
        """The shard is no longer in charge; waiting requests have been answered."""


class Packed:
    """Several records that a handler decides, writes and replays as one: for those who write many."""

    __slots__ = ()

    def __len__(self) -> int:
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The most bytes they take in a batch."""
        raise NotImplementedError

    def pack(self, index: int) -> bytes:
        """What they are in a batch of one time, where the first of them is its record number `index`."""
        raise NotImplementedError


Encoded = Record | Packed


class RecordFormat(Protocol):
    """How a shard's records become the records of a log and come back."""

    def encode(self, record: Any) -> Record: ...

    def replayed(self, record: Any) -> tuple[Any, Any]:
        """Key and value of what a handler decided, as `decode` gives them of its bytes."""

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        """Key and value, or None for a record that this version does not know and skips."""


def encode_batch(encoded: list[Encoded], now_ms: int, template: Template) -> bytearray:
    """A batch of records that bear the time `now_ms`."""
    body, count = bytearray(), 0
    for one in encoded:
        if isinstance(one, Packed):
            body += one.pack(count)
            count += len(one)
        else:
            records.put_record(body, one, 0, count)
            count += 1
    return records.batch_of(body, template, count, count - 1, now_ms, now_ms)
