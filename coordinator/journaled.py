"""Objects and dicts whose changes the journal can undo.

Of an object whose attributes change, one note holds all of them as they were before its first change in a step, which
is one write at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar

from .journal import NEVER, Journal

K = TypeVar("K")
V = TypeVar("V")
_ABSENT: Any = object()
_set = object.__setattr__

Attributes = tuple[tuple[str, ...], Callable[[object], tuple[object, ...]]]
"""The names of the attributes of a class, all of which are slots, and a function that gets the values of all."""
_ATTRIBUTES: dict[type, Attributes] = {}


def _attributes(kind: type) -> Attributes:
    names = [name for one in kind.__mro__ for name in getattr(one, "__slots__", ()) if name not in Journaled.__slots__]
    found = _ATTRIBUTES[kind] = tuple(names), attrgetter(*names)
    return found


def _keep(journal: Journal, one: Journaled) -> None:
    """Notes the state of an object before it changes for the first time in this step."""
    names, state_of = _ATTRIBUTES.get(type(one)) or _attributes(type(one))
    journal.notes.append((_put_back, one, names, state_of(one)))
    _set(one, "kept_in", journal.step)


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
                _keep(journal, self)
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
