"""Undoes the changes of a failed write that are not records, and holds effects back until the append.

A handler changes timers and soft state at once, because later handlers of the same batch have to see the changes. Each
change adds a note that undoes it. Of an object whose attributes change, one note holds all of them as they were before
its first change in a step, which is one write at most. What leaves the shard (replies to other members, work elsewhere)
is added as an effect. The runtime opens the journal with the first write of a batch. After the append it drops the
notes and runs the effects; if the append fails, or a handler raises, it undoes the changes, newest first, and drops the
effects. Replayed state does not need a journal, because its timeline reverts it.

A change of soft state outside of a write is permanent;
the runtime makes sure that no batch is open then (`Aftermath.when_settled`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Effect = Callable[[], None]
Mark = tuple[int, int]
START: Mark = (0, 0)


class Journal:
    """The changes since the last append, and the effects of the next one. Notes are functions with their arguments."""

    __slots__ = ("effects", "is_open", "notes", "step")

    def __init__(self) -> None:
        self.is_open = False
        self.step = 0  # raised when a write begins, and when notes are dropped or used
        self.notes: list[tuple[Any, ...]] = []
        self.effects: list[Effect] = []

    def end(self) -> Mark:
        """Returns the present end of the journal, for `back_to` and `release`."""
        return len(self.notes), len(self.effects)

    def note(self, undo: Callable[..., object], *arguments: object) -> None:
        """Notes a change that `undo(*arguments)` undoes."""
        if self.is_open:
            self.notes.append((undo, *arguments))

    def after(self, effect: Effect) -> None:
        """Runs `effect` after the append of the open batch; at once if no batch is open."""
        if self.is_open:
            self.effects.append(effect)
        else:
            effect()

    def back_to(self, mark: Mark) -> None:
        """Undoes the changes since `mark`, and drops their effects."""
        self.step += 1
        notes, length = self.notes, mark[0]
        while len(notes) > length:
            undo, *arguments = notes.pop()
            undo(*arguments)
        del self.effects[mark[1] :]

    def revert(self) -> None:
        """Undoes all changes and closes the journal."""
        self.is_open = False
        self.back_to(START)

    def close(self) -> list[Effect]:
        """Makes all changes permanent and closes the journal. Returns the effects, which the caller runs."""
        self.is_open = False
        self.step += 1
        self.notes.clear()
        if not self.effects:
            return self.effects
        found, self.effects = self.effects, []
        return found

    def release(self, mark: Mark) -> list[Effect]:
        """Makes the changes before `mark` permanent, and returns their effects: a batch is in the log, and the write
        that began at `mark` belongs to the next batch.
        """
        self.step += 1
        del self.notes[: mark[0]]
        found = self.effects[: mark[1]]
        del self.effects[: mark[1]]
        return found


NEVER = Journal()


class Answer(Generic[T]):
    """Answers a request that may wait. Calling it sends the reply after the append of the open batch; `now` sends one
    that was decided in a batch that is appended.
    """

    __slots__ = ("_journal", "now")

    def __init__(self, journal: Journal, now: Callable[[T], None]) -> None:
        self._journal = journal
        self.now = now

    def __call__(self, reply: T) -> None:
        self._journal.after(partial(self.now, reply))
