"""State that can be read as of an earlier offset, and rolled back to one.

A `Timeline` holds a snapshot for every offset that was written and is not committed yet. A snapshot is an undo journal: what
each structure held before it was first changed after that snapshot. So a write costs one dict entry, a snapshot and a commit
cost what changed and not what exists, and a revert undoes the journals newest first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import repeat
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")
_ABSENT: Any = object()


class _Snapshot:
    __slots__ = ("before", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.before: dict[TimelineDict[Any, Any], dict[Any, Any]] = {}


class Timeline:
    """The offsets at which snapshots were taken, ascending, and what changed after each."""

    def __init__(self) -> None:
        self._snapshots: deque[_Snapshot] = deque()

    @property
    def offsets(self) -> list[int]:
        return [s.offset for s in self._snapshots]

    def snapshot(self, offset: int) -> None:
        """The state as it is now is the state at `offset`."""
        assert not self._snapshots or offset > self._snapshots[-1].offset, "snapshots ascend"
        self._snapshots.append(_Snapshot(offset))

    def revert(self, offset: int) -> None:
        """Makes the state what it was at the snapshot of `offset`, and forgets later ones."""
        assert any(s.offset == offset for s in self._snapshots), f"no snapshot at {offset}"
        while self._snapshots:
            snapshot = self._snapshots[-1]
            for structure, before in snapshot.before.items():
                structure._restore(before)
            snapshot.before = {}
            if snapshot.offset == offset:
                return
            self._snapshots.pop()

    def commit(self, offset: int) -> None:
        """Nobody will read or revert to anything before `offset` any more."""
        while len(self._snapshots) > 1 and self._snapshots[1].offset <= offset:
            self._snapshots.popleft()


class TimelineDict(Generic[K, V]):
    """A dict of values that are replaced and never changed."""

    __slots__ = ("_now", "_timeline")
    __hash__ = object.__hash__

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

    def update(self, values: dict[K, V]) -> None:
        """As `__setitem__` for each."""
        snapshots = self._timeline._snapshots
        if snapshots:
            before = snapshots[-1].before.get(self)
            if before is None:
                before = snapshots[-1].before[self] = {}
            if before.keys().isdisjoint(values):
                before.update(zip(values, map(self._now.get, values, repeat(_ABSENT)), strict=False))
            else:
                for key in values:
                    self._remember(key)
        self._now.update(values)

    def put_untracked(self, key: K, value: V) -> None:
        """Puts something that is no state: no revert takes it out again, and every reader sees it at once."""
        self._now[key] = value

    def __getitem__(self, key: K) -> V:
        return self._now[key]

    def __delitem__(self, key: K) -> None:
        if key not in self._now:
            raise KeyError(key)
        self._remember(key)
        del self._now[key]

    def pop(self, key: K, default: Any = None) -> Any:
        if key not in self._now:
            return default
        self._remember(key)
        return self._now.pop(key)

    def get(self, key: K, default: Any = None, as_of: int | None = None) -> Any:
        """The value now, or as it was at the snapshot of `as_of`."""
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

    def keys(self) -> Any:
        return self._now.keys()

    def values(self) -> Any:
        return self._now.values()

    def items(self, as_of: int | None = None) -> Any:
        """The pairs now, or as they were at the snapshot of `as_of`."""
        if as_of is None:
            return self._now.items()
        changed: dict[K, Any] = {}
        for snapshot in self._timeline._snapshots:
            if snapshot.offset >= as_of:
                for key, old in snapshot.before.get(self, {}).items():
                    changed.setdefault(key, old)
        if not changed:
            return self._now.items()
        merged = {**self._now, **changed}
        return {key: value for key, value in merged.items() if value is not _ABSENT}.items()
