"""What of a partition is committed: its last stable offset, and its aborted transactions.

A broker writes the marker of an aborted transaction into the log, and then its entry into the transaction index.
Between the two, a directory has the marker without the entry. Therefore the log itself shows which transactions were
aborted since the last snapshot of producers; the indexes show those before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..coordinator.described import ABORT
from ..protocol.records import CONTROL_MASK, NO_PRODUCER_ID, TRANSACTIONAL_MASK
from ..storage import layout
from ..storage.producers import CorruptSnapshot, Producers
from .batches import Array
from .directory import FIRST, TXN_INDEX, Directory, Window
from .reading import control_types

_PRODUCERS = re.compile(rf"\d{{20}}{re.escape(layout.SNAPSHOT)}", re.ASCII)
_VERSION, _NOT_KNOWN = 0, -1


class Committed(NamedTuple):
    """The first offset of the oldest transaction that is open at the log end, else the log end; -1 if there is no
    segment. `aborted`: at least the aborted transactions before it, as entries of the transaction index.
    """

    last_stable_offset: int
    aborted: Array


def committed(directory: Directory, topic: str, partition: int) -> Committed:
    """Returns what of a partition is committed. Uses producer snapshots to read less of the log. Raises OSError if a
    transaction index exists and cannot be read.
    """
    segments = directory.segments(topic, partition)
    if not segments:
        return Committed(-1, np.empty(0, TXN_INDEX))
    producers, since = _snapshot(directory, topic, partition)
    open_since = {} if producers is None else dict(producers.open_transactions)
    end, aborted = segments[-1].base_offset, []
    for segment in segments:
        if segment.next_base_offset <= since:
            continue
        for window in directory.tail(segment, max(since, segment.base_offset)):
            end = int(window.table["last_offset"][-1]) + 1
            for producer_id, offset, is_marker, kind in _transactional(window, since):
                if not is_marker:
                    open_since.setdefault(producer_id, offset)
                    continue
                first = open_since.pop(producer_id, None)
                if kind == ABORT and first is not None:
                    aborted.append((_VERSION, producer_id, first, offset, _NOT_KNOWN))
    noted = directory.aborted(segments)  # after the log: it has an entry for each marker that was there, but the last
    stable = min([end, *open_since.values()])
    return Committed(stable, np.concatenate([noted, np.array(aborted, TXN_INDEX)]))


def _transactional(window: Window, since: int) -> Iterator[tuple[int, int, bool, str | None]]:
    """Yields producer, base offset, whether it is a marker, and of which type, for each batch of a transaction."""
    table = window.table
    rows = table[
        (table["attributes"] & TRANSACTIONAL_MASK != 0)
        & (table["producer_id"] != NO_PRODUCER_ID)
        & (table["base_offset"] >= since)
    ]
    is_marker = (rows["attributes"] & CONTROL_MASK) != 0
    kinds = control_types(window.data, rows)
    yield from zip(rows["producer_id"].tolist(), rows["base_offset"].tolist(), is_marker.tolist(), kinds, strict=True)


def _snapshot(directory: Directory, topic: str, partition: int) -> tuple[Producers | None, int]:
    path = layout.partition_directory(topic, partition)
    for name in reversed([one for one in directory.files.of_kind(path, "file") if _PRODUCERS.fullmatch(one)]):
        producers = Producers(path)
        try:
            producers.load_snapshot(directory.files.whole(f"{path}/{name}"), layout.offset_of(name))
        except (CorruptSnapshot, ValueError):  # an earlier one, and more of the log, is read in its place
            continue
        return producers, layout.offset_of(name)
    return None, FIRST
