"""What a coordinator shard is to the runtime, and how its records become bytes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from ..protocol import records
from ..protocol.compression import NONE
from ..protocol.records import Record, Template
from .timers import Timer


@dataclass(slots=True)
class Result:
    """What a write handler decides: records to append, always in one batch, the reply that waits for them, timers to set once they are appended."""

    records: list[Any] = field(default_factory=list)
    reply: Any = None
    timers: list[Timer] = field(default_factory=list)


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


class RecordFormat(Protocol):
    """How a shard's records become the records of a log and come back."""

    def encode(self, record: Any) -> Record: ...

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        """Key and value, or None for a record that this version does not know and skips."""


def encode_batch(encoded: list[Record], now_ms: int, template: Template | None = None) -> bytearray:
    """A batch of records that bear the time `now_ms`."""
    for record in encoded:
        record.timestamp = now_ms
    return records.encode(encoded, template or Template(codec=NONE))
