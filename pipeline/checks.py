"""The checks of the audit over whole partitions: the order of batches, sequences of producers, leader epochs, and
transactions against their index. Runs in tasks; does not use Spark.

The rows of `evidence` come sorted by topic, partition, segment and position, some thousands at a time. What is kept of
a partition between them is bounded by its producers and its aborted transactions, not by its batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..protocol.records import CODEC_MASK, CONTROL_MASK, MAGIC, TRANSACTIONAL_MASK
from . import findings
from .batches import Array
from .directory import LAST
from .evidence import ABORTED, BATCH, BATCHES, BATCHES_PER_ROW, MARKS, NOTED, Marks, as_batches, size_bytes

SEQUENCE_MASK = 0x7FFFFFFF
PRODUCER_EXPIRY_MS = 86_400_000  # the broker's default
FINDING = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "segment": pa.string(),
        "position": pa.int64(),
        "offset": pa.int64(),
        "kind": pa.string(),
        "detail": pa.string(),
    }
)
_LOOKED = pa.struct(
    [(name, pa.int64()) for name in ("logStartOffset", "endOffset", "segments", "batches", "records", "bytes")]
)
_OPEN = pa.struct([("producerId", pa.int64()), ("records", pa.int64())])
TOLD = pa.schema([*FINDING, pa.field("looked", _LOOKED), pa.field("open", _OPEN)])
_NOTHING_KNOWN = Marks(LAST, LAST, (), 0, 0, 0)  # the partition was deleted meanwhile
_BATCHES_AT_ONCE = 1 << 16


class Told(NamedTuple):
    """A row of the result: a finding, what was read of a partition, or a transaction that is open at its end."""

    topic: str | None
    partition: int | None
    segment: str | None = None
    position: int | None = None
    offset: int | None = None
    kind: str | None = None
    detail: str | None = None
    looked: dict[str, int] | None = None
    open: dict[str, int] | None = None


class Key(NamedTuple):
    """What consecutive rows have in common. `kind`: of rows that are packed; None for findings."""

    topic: str | None
    partition: int | None
    segment: str | None
    kind: str | None

    def of_packed(self) -> Key:
        return self if self.kind in (MARKS, ABORTED, BATCHES) else self._replace(kind=None)


class Last(NamedTuple):
    """The last batch of a producer."""

    sequence: int
    epoch: int
    offset: int
    timestamp: int


class Span(NamedTuple):
    """The part of a transaction that was read."""

    first: int
    records: int


@dataclass
class Aborted:
    """An aborted transaction, of the log (`segment` is that of its marker, `first` is None if it is empty) and of the
    index (`noted` is its first offset there).
    """

    segment: str
    first: int | None = None
    noted: int | None = None
    marked: bool = False


@dataclass
class Partition:
    """What is known of a partition after the rows so far."""

    topic: str
    partition: int
    expiry_ms: int
    marks: Marks = _NOTHING_KNOWN
    end: int | None = None  # the last offset of the batch before, if that is whole
    producers: dict[int, Last] = field(default_factory=dict)
    open: dict[int, Span] = field(default_factory=dict)
    aborted: dict[tuple[int, int], Aborted] = field(default_factory=dict)
    read: list[int] = field(default_factory=lambda: [0, 0, 0])  # batches, records and bytes
    written_until: dict[str, int] = field(default_factory=dict)  # the largest timestamp of each segment

    def add_index(self, segment: str, data: bytes) -> None:
        for producer_id, first, last in np.frombuffer(data, NOTED).tolist():
            one = self.aborted.setdefault((producer_id, last), Aborted(segment))
            one.noted = first if one.noted is None else min(one.noted, first)

    def add(self, segment: str, table: Array) -> Iterator[Told]:
        """Checks batches of a segment, in order."""
        real = table[table["magic"] >= 0]
        if len(real):
            self.read[0] += len(real)
            self.read[1] += int(real["count"].sum(dtype=np.int64))
            self.read[2] += size_bytes(real)
            written = int(real["max_timestamp"].max())
            self.written_until[segment] = max(written, self.written_until.get(segment, written))
        place = (self.topic, self.partition, segment)
        for at, offset, kind, detail in [*self._order(segment, table), *self._sequences(table)]:
            yield Told(*place, at, offset, kind, detail)
        self._transactions(segment, table)

    def _order(self, segment: str, table: Array) -> Iterator[tuple[int, int, str, str]]:
        whole = table["valid"] & (table["magic"] >= 0)
        # a compressed message set has no base offset in its header
        single = whole & ((table["magic"] == MAGIC) | ((table["attributes"] & CODEC_MASK) == 0))
        due = np.empty(len(table), np.int64)
        due[1:] = table["last_offset"][:-1] + 1
        follows = single.copy()
        follows[1:] &= whole[:-1]
        due[0], follows[0] = (0, False) if self.end is None else (self.end + 1, single[0])
        self.end = int(table["last_offset"][-1]) if whole[-1] else None
        offset, marks, named = table["base_offset"], self.marks, int(segment[:20])
        missing = follows & (offset > due) & (offset > marks.cleaned)
        named_wrong = single & ~missing & (table["position"] == 0)
        named_wrong &= (offset < named) | ((offset > named) & (offset > marks.cleaned))
        epoch, is_known = epochs_of(marks, offset)
        for row in np.flatnonzero(follows & (offset < due)).tolist():
            yield (*_at(table, row), *findings.ORDER.of(due[row] - 1))
        for row in np.flatnonzero(missing).tolist():
            yield (*_at(table, row), *findings.CONTINUITY.of(due[row], offset[row] - 1))
        for row in np.flatnonzero(named_wrong).tolist():
            yield (*_at(table, row), *findings.SEGMENT.of(named, offset[row]))
        for row in np.flatnonzero(whole & is_known & (table["leader_epoch"] != epoch)).tolist():
            yield (*_at(table, row), *findings.LEADER_EPOCH.of(table["leader_epoch"][row], epoch[row]))

    def _sequences(self, table: Array) -> Iterator[tuple[int, int, str, str]]:
        """Finds gaps and repetitions in each producer's sequences."""
        numbered = (table["producer_id"] >= 0) & ((table["attributes"] & CONTROL_MASK) == 0)
        rows = np.flatnonzero(numbered & (table["magic"] == MAGIC) & table["valid"])
        if not rows.size:
            return
        mine = table[rows[np.argsort(table["producer_id"][rows], kind="stable")]]
        sequence, producer, epoch = mine["base_sequence"].astype(np.int64), mine["producer_id"], mine["producer_epoch"]
        now = np.empty(len(mine), _LAST)
        now["sequence"] = (sequence + mine["last_offset"] - mine["base_offset"]) & SEQUENCE_MASK
        now["epoch"], now["offset"] = epoch, mine["last_offset"]
        now["timestamp"] = np.clip(mine["max_timestamp"], -_TIME_MAX, _TIME_MAX)
        last, has = np.roll(now, 1), np.ones(len(mine), bool)
        heads = np.flatnonzero(np.diff(mine["producer_id"], prepend=-1))
        tails = np.append(heads[1:], len(mine)) - 1
        for head, tail, producer_id in zip(
            heads.tolist(), tails.tolist(), mine["producer_id"][heads].tolist(), strict=True
        ):
            known = self.producers.get(producer_id)
            has[head] = known is not None
            if known is not None:
                last[head] = known
            self.producers[producer_id] = Last._make(now[tail].tolist())
        same = has & (epoch == last["epoch"])
        expected = np.where(same, (last["sequence"] + 1) & SEQUENCE_MASK, 0)
        wrong = has & (sequence != expected)
        again = same & wrong & (sequence <= last["sequence"])
        remembered = (last["offset"] >= self.marks.known_from) & (
            now["timestamp"] - last["timestamp"] <= self.expiry_ms
        )
        for row in np.flatnonzero(wrong & ~again & remembered & (epoch >= last["epoch"])).tolist():
            values = producer[row], epoch[row], sequence[row], expected[row]
            yield (*_at(mine, row), *findings.SEQUENCE_GAP.of(*values))
        for row in np.flatnonzero(again).tolist():
            values = producer[row], epoch[row], sequence[row], last["sequence"][row]
            yield (*_at(mine, row), *findings.SEQUENCE_DUPLICATE.of(*values))
        for row in np.flatnonzero(has & (epoch < last["epoch"])).tolist():
            yield (*_at(mine, row), *findings.PRODUCER_EPOCH.of(producer[row], epoch[row], last["epoch"][row]))

    def _transactions(self, segment: str, table: Array) -> None:
        """Follows transactions to their markers."""
        transactional = (table["attributes"] & TRANSACTIONAL_MASK) != 0
        rows = np.flatnonzero(transactional & (table["magic"] == MAGIC) & (table["producer_id"] >= 0))
        if not rows.size:
            return
        mine = table[rows[np.argsort(table["producer_id"][rows], kind="stable")]]
        control = (mine["attributes"] & CONTROL_MASK) != 0
        heads = np.diff(mine["producer_id"], prepend=-1) != 0
        begins = np.flatnonzero(heads | np.append(True, control[:-1]))
        ends = np.append(begins[1:], len(mine)) - 1
        firsts = np.minimum.reduceat(np.where(control, LAST, mine["base_offset"]), begins)
        counts = np.add.reduceat(np.where(control, 0, mine["count"].astype(np.int64)), begins)
        # most transactions begin and end here, and are committed
        matters = heads[begins] | ~control[ends] | mine["aborts"][ends]
        for i in np.flatnonzero(matters).tolist():
            end = int(ends[i])
            producer_id = int(mine["producer_id"][end])
            before = self.open.pop(producer_id, Span(LAST, 0))
            span = Span(min(before.first, int(firsts[i])), before.records + int(counts[i]))
            if not control[end]:
                self.open[producer_id] = span
            elif mine["aborts"][end]:
                self._abort(segment, (producer_id, int(mine["base_offset"][end])), span)

    def _abort(self, segment: str, key: tuple[int, int], span: Span) -> None:
        one = self.aborted.setdefault(key, Aborted(segment))
        one.segment = max(segment, one.segment) if one.marked else segment
        one.marked = True
        if span.first < LAST:
            one.first = span.first if one.first is None else max(one.first, span.first)

    def finish(self) -> Iterator[Told]:
        """Compares the transaction indexes with the markers, because read_committed consumers rely on the indexes;
        then yields what is open, and what was read.
        """
        for (producer_id, offset), one in self.aborted.items():
            if offset < self.marks.cleaned:
                continue
            found = None
            if one.noted is None:
                if one.first is not None:
                    found = findings.ABORT_NOT_NOTED.of(producer_id)
            elif not one.marked:
                found = findings.ABORT_NOT_MARKED.of(producer_id)
            elif one.first is not None and one.first != one.noted and one.noted >= self.marks.known_from:
                found = findings.ABORT_BEGINS.of(producer_id, one.first, one.noted)
            if found is not None:
                yield Told(self.topic, self.partition, one.segment, None, offset, *found)
        for producer_id, span in self.open.items():
            is_open = {"producerId": producer_id, "records": span.records}
            yield Told(self.topic, self.partition, offset=span.first, open=is_open)
        if self.marks is not _NOTHING_KNOWN:
            looked = dict(zip(_LOOKED.names, [*self.marks[-3:], *self.read], strict=True))
            yield Told(self.topic, self.partition, looked=looked)


_LAST = np.dtype([("sequence", "i8"), ("epoch", "i8"), ("offset", "i8"), ("timestamp", "i8")])
_TIME_MAX = 1 << 61


def _at(table: Array, row: int) -> tuple[int, int]:
    return int(table["position"][row]), int(table["base_offset"][row])


def epochs_of(marks: Marks, offset: Array) -> tuple[Array, Array]:
    """Returns the leader epochs of offsets by the checkpoint, and which of them it knows."""
    if not marks.epochs:
        return np.zeros(len(offset), np.int64), np.zeros(len(offset), bool)
    epochs, starts = np.array(marks.epochs, np.int64).T
    # the last entry that begins at or before the offset, even if a damaged checkpoint is not sorted
    least = np.minimum.accumulate(starts[::-1])[::-1]
    slot = np.searchsorted(least, offset, side="right") - 1
    return epochs[slot], slot >= 0


@dataclass
class Checker:
    """Checks the partitions of one task, one after another.

    `since_ms`: findings in segments that were not written since then are left out. Therefore those of a segment are
    held until the following one begins.
    """

    since_ms: int | None
    expiry_ms: int
    at: Partition | None = None
    held: list[Told] = field(default_factory=list)
    segment: str = ""

    def add(self, batch: pa.RecordBatch) -> Iterator[Told]:
        columns = [batch.column(name).to_pylist() for name in Key._fields]
        keys = [Key._make(row).of_packed() for row in zip(*columns, strict=True)]
        for (topic, partition, segment, kind), rows in groupby(range(len(batch)), keys.__getitem__):
            yield from self._move(topic, partition, segment)
            first, *others = rows
            these = batch.slice(first, 1 + len(others))
            if kind is None:
                told = [Told(*one.values()) for one in these.select(FINDING.names).to_pylist()]
            else:
                told = self._unpack(self.segment, kind, these)
            if segment:
                self.held += told
            else:
                yield from told
            if self.since_ms is None:
                yield from self._release()

    def _move(self, topic: str | None, partition: int | None, segment: str | None) -> Iterator[Told]:
        before = self.at
        if before is None or (before.topic, before.partition) != (topic, partition):
            yield from self.finish()
            if topic is not None and partition is not None:
                self.at = Partition(topic, partition, self.expiry_ms)
        elif segment != self.segment:
            yield from self._release()
        self.segment = segment or ""

    def _unpack(self, segment: str, kind: str, rows: pa.RecordBatch) -> list[Told]:
        assert self.at is not None
        data = rows.column("data").to_pylist()
        if kind == MARKS:
            self.at.marks = Marks(*json.loads(data[0]))
        elif kind == ABORTED:
            for of, packed in zip(rows.column("detail").to_pylist(), data, strict=True):
                self.at.add_index(of, packed)
        else:
            each = _BATCHES_AT_ONCE // BATCHES_PER_ROW
            tables = (np.frombuffer(b"".join(data[at : at + each]), BATCH) for at in range(0, len(data), each))
            return [one for table in tables for one in self.at.add(segment, table)]
        return []

    def finish(self) -> Iterator[Told]:
        """Yields what the end of a partition shows."""
        yield from self._release()
        if self.at is not None:
            for one in self.at.finish():
                if one.segment is None or not self._is_old(one.segment):
                    yield one
        self.at = None

    def _release(self) -> Iterator[Told]:
        if self.held and not self._is_old(self.segment):
            yield from self.held
        self.held = []

    def _is_old(self, segment: str) -> bool:
        if self.since_ms is None or self.at is None:
            return False
        written = self.at.written_until.get(segment)
        return written is not None and written < self.since_ms


def checked(
    batches: Iterable[pa.RecordBatch], since_ms: int | None = None, expiry_ms: int = PRODUCER_EXPIRY_MS
) -> Iterator[pa.RecordBatch]:
    """Yields the findings in sorted rows of the view `evidence`, as rows of TOLD."""
    checker = Checker(since_ms, expiry_ms)
    for batch in batches:
        yield from as_batches(checker.add(batch), TOLD)
    yield from as_batches(checker.finish(), TOLD)
