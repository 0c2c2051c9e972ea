"""The interface between a coordinator shard and the runtime."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

from ..protocol.control import Marker
from ..protocol.errors import ApiError
from ..protocol.records import Record
from .timers import Timer

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R = TypeVar("R", default=None)
else:
    from typing import TypeVar

    R = TypeVar("R")
# `R`: the reply of a write; `Result` alone is the decision of a write without a reply
T = TypeVar("T")


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


class RecordFormat(Protocol):
    """Converts a shard's records to records of a log and back."""

    def encode(self, record: Any) -> Record: ...

    def replayed(self, record: Any) -> tuple[Any, Any]:
        """Returns the key and value of a record from a handler, equal to those that `decode` returns for its bytes."""

    def decode(self, record: Record) -> tuple[Any, Any] | None:
        """Returns key and value; None for an unknown record, which is skipped."""
