"""The records of batches, as the pipeline reads them and as the protocol's own codec does."""

from __future__ import annotations

from typing import Any

from ottla.pipeline.batches import scan
from ottla.pipeline.opened import Opened, open_batches
from ottla.protocol import records


def by_columns(data: bytes) -> list[tuple[Any, ...]]:
    found = []
    for group in open_batches(data, scan(data, 0, len(data)).table, with_headers=True):
        assert isinstance(group, Opened), group
        view, h = bytes(group.data), group.headers
        assert h is not None

        def field(at: Any, size: Any, n: int, view: bytes = view) -> bytes | None:
            assert size[n] >= -1, "only -1 is null in the columns"
            return None if size[n] < 0 else view[at[n] : at[n] + size[n]]

        for n in range(len(group.offset)):
            pairs = [
                ((field(h.key_at, h.key_size, i) or b"").decode(), field(h.value_at, h.value_size, i))
                for i in range(h.first[n], h.first[n + 1])
            ]
            key, value = field(group.key_at, group.key_size, n), field(group.value_at, group.value_size, n)
            found.append((int(group.offset[n]), int(group.timestamp[n]), key, value, pairs))
    return found


def by_codec(data: bytes) -> list[tuple[Any, ...]]:
    return [
        (one.offset, one.timestamp, one.key, one.value, [tuple(pair) for pair in one.headers])
        for at in records.batches(data)
        for one in records.decode(data, at)
    ]
