"""What happens after an append: effects outside of the shard, and changes that may not be taken back with a batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .journal import Effect, Journal
from .parked import Bugs


class Aftermath:
    """The effects of appended batches, and the changes of soft state that wait until no batch is open, in order."""

    __slots__ = ("_bugs", "_is_under_way", "_journal", "changes", "effects")

    def __init__(self, journal: Journal, bugs: Bugs) -> None:
        self._journal = journal
        self._bugs = bugs
        self._is_under_way = False
        self.effects: deque[Effect] = deque()
        self.changes: deque[Callable[[], None]] = deque()

    def when_settled(self, change: Callable[[], None]) -> None:
        """Runs a change of soft state outside of a write: at once, or after the open batch, which would take the change
        back if it failed.
        """
        if self._journal.is_open:
            self.changes.append(change)
        else:
            change()

    def carry_out(self) -> None:
        """Runs the effects, and the changes if no batch is open. What one of them causes by a write of its own comes
        after the others, and not within it: there may be thousands.
        """
        if self._is_under_way:
            return
        self._is_under_way = True
        try:
            while True:
                if self.effects:
                    self._bugs.run(self.effects.popleft())
                elif self.changes and not self._journal.is_open:
                    self._bugs.run(self.changes.popleft())
                else:
                    return
        finally:
            self._is_under_way = False
