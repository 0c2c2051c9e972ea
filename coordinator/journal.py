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

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
Effect = Callable[[], None]
Mark = tuple[int, int]
START: Mark = (0, 0)
_ABSENT: Any = object()
_set = object.__setattr__


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

    def keep(self, one: Journaled) -> None:
        """Notes the state of an object before it changes for the first time in this step."""
        names, state_of = _ATTRIBUTES.get(type(one)) or _attributes(type(one))
        self.notes.append((_put_back, one, names, state_of(one)))
        _set(one, "kept_in", self.step)

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


Attributes = tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]
"""The names of the attributes of a class, all of which are slots, and a function that gets the values of all."""
_ATTRIBUTES: dict[type, Attributes] = {}


def _attributes(kind: type) -> Attributes:
    names = [name for one in kind.__mro__ for name in getattr(one, "__slots__", ()) if name not in Journaled.__slots__]
    found = _ATTRIBUTES[kind] = tuple(names), attrgetter(*names)
    return found


def _put_back(one: Journaled, names: tuple[str, ...], state: tuple[object, ...]) -> None:
    for name, value in zip(names, state, strict=True):
        _set(one, name, value)


@dataclass(slots=True, kw_only=True, eq=False)
class Journaled:
    """An object whose changed attributes the journal can undo: two or more, which are slots. Before the object is part
    of a shard's state its journal is one that is never opened.
    """

    journal: Journal = field(default=NEVER, repr=False, compare=False)
    kept_in: int = field(init=False, repr=False, compare=False)  # the step in which its state was noted

    def __setattr__(self, name: str, value: object) -> None:
        try:
            journal = self.journal
            if journal.is_open and self.kept_in != journal.step:
                journal.keep(self)
        except AttributeError:  # the object is being made, and gets its journal first: there is nothing to undo
            assert isinstance(value, Journal)
            _set(self, "kept_in", value.step)
        _set(self, name, value)


class JournaledDict(dict[K, V]):
    """A dict whose changes the journal can undo. Undoing may change the order of its keys."""

    __slots__ = ("journal",)

    def __init__(self, journal: Journal = NEVER, pairs: Iterable[tuple[K, V]] = ()) -> None:
        super().__init__(pairs)
        self.journal = journal

    def _put_back(self, key: K, value: V) -> None:
        if value is _ABSENT:
            super().pop(key, None)
        else:
            super().__setitem__(key, value)

    def __setitem__(self, key: K, value: V) -> None:
        if self.journal.is_open:
            self.journal.notes.append((self._put_back, key, self.get(key, _ABSENT)))
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        before = self[key]
        super().__delitem__(key)
        self.journal.note(self._put_back, key, before)

    def pop(self, key: K, *default: Any) -> Any:
        if key not in self:
            return super().pop(key, *default)
        found = super().pop(key)
        if self.journal.is_open:
            self.journal.notes.append((self._put_back, key, found))
        return found

    def remove_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Removes those of the keys that are there; returns them with their values."""
        found = {key: self[key] for key in keys if key in self}
        for key in found:
            super().__delitem__(key)
        if found:
            self.journal.note(super().update, found)
        return found

    def clear(self) -> None:
        if self:
            self.journal.note(super().update, dict(self))
            super().clear()

    update = setdefault = popitem = __ior__ = None  # type: ignore[assignment]  # not needed, so not journaled
