"""The interface that a log notifies of what it needs, so that nothing looks at all logs again and again."""

from __future__ import annotations

from typing import Protocol


class Watch(Protocol):
    """Looks after the logs of partitions. No method may change the log, or raise."""

    def damaged(self, topic: str, partition: int) -> None:
        """An index was found damaged: `Log.damaged` has one more."""

    def unflushed(self, topic: str, partition: int) -> None:
        """A log has a record that is not durable, and had none before: `Log.unflushed_since_ms` is set."""

    def removed(self, topic: str, partition: int) -> None:
        """Segments were taken out, whose files are to be removed later: `Log.removed` has more."""


class Unwatched:
    """Does nothing: a log that no partition uses is not watched."""

    def damaged(self, topic: str, partition: int) -> None:
        """Nothing is repaired."""

    def unflushed(self, topic: str, partition: int) -> None:
        """Nothing is flushed by time."""

    def removed(self, topic: str, partition: int) -> None:
        """The files stay until the log is opened again."""


UNWATCHED: Watch = Unwatched()
