"""Many changes of the metadata that become visible at once.

A request or a commit may have ten thousand records, which are too many to be applied between two turns of the loop.
`Staged` applies records to tables over those of a `MetadataState`, which does not change meanwhile. `show` then puts
all changes into the state's own tables, which takes much less time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from itertools import repeat
from typing import Generic, TypeVar

from ...protocol.records import put_record
from ..packing import Packed
from ..shard import RecordFormat, Result
from ..timeline import TimelineDict
from .format import MetadataFormat
from .state import MetadataState, Table

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
R = TypeVar("R")


class Overlay(Generic[K, V]):
    """Changes of a table, which is read where there is none."""

    __slots__ = ("_base", "_put", "_removed")

    def __init__(self, base: Table[K, V]) -> None:
        self._base = base
        self._removed: dict[K, None] = {}  # from the table, before the others are put
        self._put: dict[K, V] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._put or (key in self._base and key not in self._removed)

    def __getitem__(self, key: K) -> V:
        if key in self._put:
            return self._put[key]
        if key in self._removed:
            raise KeyError(key)
        return self._base[key]

    def get(self, key: K, default: D | None = None) -> V | D | None:
        if key in self._put:
            return self._put[key]
        return default if key in self._removed else self._base.get(key, default)

    def values(self) -> Iterator[V]:
        """Yields the values, those of changes last."""
        for key, value in self._base.items():
            if key not in self._put and key not in self._removed:
                yield value
        yield from self._put.values()

    def __setitem__(self, key: K, value: V) -> None:
        self._put[key] = value

    def update(self, values: dict[K, V]) -> None:
        self._put.update(values)

    def pop(self, key: K, default: D | None = None) -> V | D | None:
        found = self.get(key, default)
        self._put.pop(key, None)
        if key in self._base:
            self._removed[key] = None
        return found

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self.pop(key)

    def remove_all(self, keys: list[K]) -> None:
        """Removes those of very many keys that are there."""
        if self._put:
            for key in keys:
                self._put.pop(key, None)
        known = self._base.keys()
        self._removed.update(dict.fromkeys([key for key in keys if key in known]))

    def __bool__(self) -> bool:
        return bool(self._put or self._base)  # what is removed counts, too: then it is looked for in vain

    def own(self, key: K) -> V | None:
        """Returns the value if it was put here, where nothing else has it."""
        return self._put.get(key)

    def show(self) -> None:
        """Makes the changes in the table."""
        base = self._base
        if self._removed:
            if isinstance(base, TimelineDict):
                base.remove_all(self._removed)
            else:
                for key in self._removed:
                    del base[key]
        if self._put:
            base.update(self._put)


class Staged(MetadataState):
    """A state that differs from another one by the records that were applied to it."""

    def __init__(self, state: MetadataState) -> None:
        self._overlays = [Overlay(table) for table in state.tables()]
        super().__init__(iter(self._overlays).__next__)

    def _to_change(self, table: Table[K, dict[str, V]] | Overlay[K, dict[str, V]], key: K) -> dict[str, V]:
        own = table.own(key) if isinstance(table, Overlay) else None
        return dict(table.get(key) or {}) if own is None else own

    def _remove_all(self, table: Table[K, V] | Overlay[K, V], keys: list[K]) -> None:
        if isinstance(table, Overlay):
            table.remove_all(keys)
        else:
            super()._remove_all(table, keys)

    def show(self) -> None:
        """Applies all records to the other state. The last use of this one."""
        for overlay in self._overlays:
            overlay.show()


class ManyRecords(Packed):
    """The records of one decision, encoded and applied to `staged`, and then written and shown as one."""

    __slots__ = ("_body", "_count", "_format", "staged")

    def __init__(self, state: MetadataState) -> None:
        self.staged = Staged(state)
        self._format: RecordFormat = MetadataFormat()
        self._body = bytearray()
        self._count = 0

    def add(self, record: object) -> None:
        if isinstance(record, Packed):
            self._body += record.pack(self._count)
            self._count += len(record)
        else:
            put_record(self._body, self._format.encode(record), 0, self._count)
            self._count += 1
        self.staged.apply(record)

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        return len(self._body)

    def pack(self, index: int) -> bytes:
        assert index == 0, "the records are a batch of their own"
        return bytes(self._body)


def prepared(state: MetadataState, result: Result[R]) -> Generator[None, None, Result[R]]:
    """Returns the same decision with its records as one, which `state` can replay; yields once for each of them."""
    many = ManyRecords(state)
    for record in result.records:
        many.add(record)
        yield from repeat(None, len(record) if isinstance(record, Packed) else 1)
    return replace(result, records=[many])
