"""Replays the log of a coordinator into its shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ..protocol.control import Marker
from ..protocol.records import Record
from .shard import RecordFormat, Shard

STEP_ENTRIES = 256


@dataclass(slots=True)
class Entry:
    """A record of a log with its producer, or, in place of a record, the end of a transaction."""

    offset: int
    producer_id: int
    producer_epoch: int
    record: Record | None
    marker: Marker | None = None


class Replay:
    """Replays entries of a log. A record that cannot be replayed is skipped: otherwise whoever may write to the topic
    could end the coordinator with one record.
    """

    def __init__(self, shard: Shard, format: RecordFormat) -> None:
        self._shard = shard
        self._format = format
        self.skipped = 0
        self.on_skipped: Callable[[int, Exception], None] | None = None  # called with the offset of each skipped record

    def steps(self, entries: Iterable[Entry | None]) -> Iterator[None]:
        """Replays `entries` in steps, which end at a None among them and after every 256th. Raises OSError."""
        for number, entry in enumerate(entries):
            if entry is None:
                yield
                continue
            try:
                if entry.marker is not None:
                    yield from self._ended(entry, entry.marker)
                elif entry.record is not None:
                    self._replay(entry, entry.record)
            except OSError:
                raise
            except Exception as error:
                self.skip(entry.offset, error)
            if number % STEP_ENTRIES == STEP_ENTRIES - 1:
                yield

    def _ended(self, entry: Entry, marker: Marker) -> Iterable[None]:
        return self._shard.replay_marker(entry.offset, entry.producer_id, entry.producer_epoch, marker)

    def _replay(self, entry: Entry, record: Record) -> None:
        decoded = self._format.decode(record)
        if decoded is not None:
            self._shard.replay(entry.offset, entry.producer_id, entry.producer_epoch, *decoded)

    def skip(self, offset: int, error: Exception) -> None:
        """Counts and reports a record, or a batch, that cannot be replayed."""
        self.skipped += 1
        if self.on_skipped is not None:
            self.on_skipped(offset, error)
