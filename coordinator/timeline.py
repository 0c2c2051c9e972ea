"""State that can be read as of an earlier offset, and rolled back to one.

A `Timeline` holds a snapshot for every offset that was written and is not committed yet. A snapshot is an undo journal:
for each structure, the values from before their first change after that snapshot. So a write costs one dict entry, and
the cost of a snapshot or a commit depends on the number of changes, not on the size of the state. A revert undoes the
snapshots, newest first. Soft state and timers, which are not in the log, are undone by `journal`; its notes begin with
the open batch, not with the last snapshot.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, ItemsView, Iterator, KeysView, Mapping, ValuesView
from itertools import repeat
from typing import Any, Generic, TypeVar, overload

from .journal import Journal

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
FREED_AT_ONCE = 2048  # changes, in one step
_ABSENT: Any = object()


class _Snapshot:
    __slots__ = ("before", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.before: Before = {}


class Timeline:
    """The offsets at which snapshots were taken, ascending, and the changes after each."""

    def __init__(self) -> None:
        self._snapshots: deque[_Snapshot] = deque()
        self.journal = Journal()
        self.reverts = 0  # how often the state went back to a snapshot
        self.free: Callable[[Before], None] | None = None  # frees very many changes (`freed`)

    @property
    def offsets(self) -> list[int]:
        return [s.offset for s in self._snapshots]

    def snapshot(self, offset: int) -> None:
        """Marks the present state as the state at `offset`."""
        assert not self._snapshots or offset > self._snapshots[-1].offset, "snapshots ascend"
        self._snapshots.append(_Snapshot(offset))

    def revert(self, offset: int) -> None:
        """Restores the state of the snapshot at `offset`, and drops later snapshots."""
        assert any(s.offset == offset for s in self._snapshots), f"no snapshot at {offset}"
        self.reverts += 1
        while self._snapshots:
            snapshot = self._snapshots[-1]
            for structure, before in snapshot.before.items():
                structure._restore(before)
            snapshot.before = {}
            if snapshot.offset == offset:
                return
            self._snapshots.pop()

    def commit(self, offset: int) -> None:
        """Drops snapshots before `offset`: no read or revert will need them."""
        while len(self._snapshots) > 1 and self._snapshots[1].offset <= offset:
            before = self._snapshots.popleft().before
            if self.free is not None and _is_large(before):
                self.free(before)


def _is_large(changes: Before) -> bool:
    return len(changes) > FREED_AT_ONCE or sum(map(len, changes.values())) > FREED_AT_ONCE


def freed(changes: Before) -> Iterator[None]:
    """Frees changes that no read or revert needs, and what only they reference. Yields before each step."""
    left = 0
    while changes:
        _, before = changes.popitem()
        while before:
            if left <= 0:
                left = FREED_AT_ONCE
                yield
            before.popitem()
            left -= 1


class TimelineDict(Generic[K, V]):
    """A dict whose values are replaced and never changed."""

    __slots__ = ("_now", "_timeline")

    def __init__(self, timeline: Timeline) -> None:
        self._now: dict[K, V] = {}
        self._timeline = timeline

    def _remember(self, key: K) -> None:
        snapshots = self._timeline._snapshots
        if snapshots:
            before = snapshots[-1].before.get(self)
            if before is None:
                before = snapshots[-1].before[self] = {}
            if key not in before:
                before[key] = self._now.get(key, _ABSENT)

    def _restore(self, before: dict[K, V]) -> None:
        for key, value in before.items():
            if value is _ABSENT:
                self._now.pop(key, None)
            else:
                self._now[key] = value

    def __setitem__(self, key: K, value: V) -> None:
        if self._timeline._snapshots:
            self._remember(key)
        self._now[key] = value

    def _remember_all(self, keys: Collection[K]) -> None:
        """Like `_remember` for each key, for callers that change many."""
        snapshots = self._timeline._snapshots
        if snapshots:
            before = snapshots[-1].before.get(self)
            if before is None:
                snapshots[-1].before[self] = dict(zip(keys, map(self._now.get, keys, repeat(_ABSENT)), strict=False))
            elif all(map(before.__contains__, keys)):  # as where one group commits several times between two snapshots
                return
            elif before.keys().isdisjoint(keys):
                before.update(zip(keys, map(self._now.get, keys, repeat(_ABSENT)), strict=False))
            else:
                for key in keys:
                    self._remember(key)

    def update(self, values: Mapping[K, V]) -> None:
        """Like `__setitem__` for each pair."""
        self._remember_all(values)
        self._now.update(values)

    def remove_all(self, keys: Collection[K]) -> None:
        """Like `__delitem__` for each key, all of which are there."""
        self._remember_all(keys)
        now = self._now
        for key in keys:
            del now[key]

    def put_untracked(self, key: K, value: V) -> None:
        """Puts a value that is not in the log: every reader sees it at once, and only the journal removes it again."""
        self._now[key] = value
        self._timeline.journal.note(self._drop, key, value)

    def _drop(self, key: K, value: V) -> None:
        if self._now.get(key) is value:
            del self._now[key]

    def decide(self, key: K, value: V | None) -> None:
        """Puts a value, or with None removes it, in a handler and not in a replay: the journal undoes that too."""
        self._timeline.journal.note(self._undecide, key, self._now.get(key))
        self._undecide(key, value)

    def _undecide(self, key: K, value: V | None) -> None:
        if value is None:
            self.pop(key)
        else:
            self[key] = value

    def __getitem__(self, key: K) -> V:
        return self._now[key]

    def __delitem__(self, key: K) -> None:
        if key not in self._now:
            raise KeyError(key)
        self._remember(key)
        del self._now[key]

    @overload
    def pop(self, key: K) -> V | None: ...
    @overload
    def pop(self, key: K, default: D) -> V | D: ...
    def pop(self, key: K, default: Any = None) -> Any:
        if key not in self._now:
            return default
        self._remember(key)
        return self._now.pop(key)

    @overload
    def get(self, key: K, default: None = None, as_of: int | None = None) -> V | None: ...
    @overload
    def get(self, key: K, default: V, as_of: int | None = None) -> V: ...
    @overload
    def get(self, key: K, default: D, as_of: int | None = None) -> V | D: ...
    def get(self, key: K, default: Any = None, as_of: int | None = None) -> Any:
        """Returns the present value, or the value at the snapshot of `as_of`."""
        if as_of is not None:
            for snapshot in self._timeline._snapshots:
                if snapshot.offset >= as_of:
                    before = snapshot.before.get(self)
                    if before is not None and key in before:
                        old = before[key]
                        return default if old is _ABSENT else old
        return self._now.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._now

    def __len__(self) -> int:
        return len(self._now)

    def __iter__(self) -> Iterator[K]:
        return iter(self._now)

    def keys(self) -> KeysView[K]:
        return self._now.keys()

    def values(self) -> ValuesView[V]:
        return self._now.values()

    def items(self, as_of: int | None = None) -> ItemsView[K, V]:
        """Returns the present pairs, or those at the snapshot of `as_of`."""
        return self.at(as_of).items()

    def at(self, as_of: int | None = None) -> Mapping[K, V]:
        """Returns the present state, or that at the snapshot of `as_of`, to be read before anything changes."""
        if as_of is None:
            return self._now
        changed: dict[K, V] = {}
        for snapshot in self._timeline._snapshots:
            if snapshot.offset >= as_of:
                for key, old in snapshot.before.get(self, {}).items():
                    changed.setdefault(key, old)
        if not changed:
            return self._now
        merged = {**self._now, **changed}
        return {key: value for key, value in merged.items() if value is not _ABSENT}


Before = dict[TimelineDict[Any, Any], dict[Any, Any]]
"""The values before changes, by structure."""
