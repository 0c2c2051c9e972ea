"""Examines traces in Spark's tasks. The rules are those of `ottla verdict`; what is different is that lines are decoded
by msgspec (`trace_decoding.py`), and that a task may examine a share of a trace's clients.

A row is a rule on a client, or, without a rule, a trace. `shares`: how many tasks examine the trace.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ..verdict.from_trace import FilteredTrace, Line, TraceExaminer
from ..verdict.report import ClientReport, EvidenceReport
from ..verdict.rule import Examination
from ..verdict.skimming import Skimmer
from ..verdict.trace_lines import Blocks, TraceError, damaged, event_of
from .files import Files
from .trace_decoding import REFUSED, Decoding
from .traces import Unit

_TEXT, _LONG, _INT = pa.string(), pa.int64(), pa.int32()
_EVIDENCE = pa.struct(
    [("connection", _LONG), ("exchange", _LONG), ("at_ms", _LONG), ("what", _TEXT), ("message", _TEXT)]
)
_FAILURE = pa.struct([("words", _TEXT), ("evidence", pa.list_(_EVIDENCE))])
SCHEMA: Final = pa.schema(
    [
        *[("trace", _TEXT), ("startedMs", _LONG), ("broker", _TEXT), ("clusterId", _TEXT), ("nodeId", _LONG)],
        *[("shares", _INT), ("files", _INT), ("lines", _LONG), ("damagedLines", _LONG), ("droppedEvents", _LONG)],
        *[("unexaminedRequests", _LONG), ("refused", _TEXT)],
        *[("client", _INT), ("clientId", _TEXT), ("software", _TEXT), ("softwareVersion", _TEXT), ("host", _TEXT)],
        *[("rule", _TEXT), ("examination", _TEXT), ("severity", _TEXT), ("outcome", _TEXT)],
        *[("kept", _LONG), ("failed", _LONG), ("failures", pa.list_(_FAILURE))],
    ]
)
COLLECTED_AFTER: Final = (50_000, 20, 100)
"""Of the garbage collector: what rules keep has no circles, and looking for them takes time."""
_LONGS: Final = range(-(1 << 63), 1 << 63)
Row = dict[str, object]


class Asked(NamedTuple):
    """`examination`: only its rules; `since_ms`: only traces that began then or later."""

    examination: Examination | None = None
    since_ms: int = 0


class Reading:
    """A unit, read from its first line to its last. `head`: that first line."""

    def __init__(self, unit: Unit, asked: Asked) -> None:
        self.of = TraceExaminer(asked.examination, unit.share)
        self.head: Line = {}
        self.lines = self.damaged = self.dropped = 0
        self._files, self._since_ms = unit.trace.files, asked.since_ms
        self._decoding = Decoding(self.of.examiner.keys, self.of.examiner.message_keys)
        self._skimmer = Skimmer(self.of.examiner) if unit.share.of > 1 else None

    def is_wanted(self) -> bool:
        """Reads it; returns whether it began late enough. Raises TraceError, FilteredTrace or OSError."""
        for path in self._files:
            with Files(path).open("") as file:
                blocks = Blocks(path, file)
                count = 0
                for lines in blocks:
                    self._take(path, lines, count)
                    count += len(lines)
                    if self.started_ms < self._since_ms:
                        return False
            self.lines += count
            if blocks.is_cut and path != self._files[-1]:
                self._examine(damaged(path))
        if not self.lines:
            raise TraceError(f"{self._files[-1]}: no complete line")
        return True

    @property
    def started_ms(self) -> int:
        """The machine's time when the trace began."""
        return _number(self.head.get("clock_ms"))

    def _take(self, path: str, lines: Sequence[bytes], count: int) -> None:
        skimmer, feed, event_of_line = self._skimmer, self.of.examiner.feed, self._decoding.event
        for number, line in enumerate(lines, count + 1):
            if skimmer is not None and skimmer.may_skip(line):
                continue
            try:
                event = event_of_line(line)
            except REFUSED:
                self._take_other(event_of(line, path, number), line, f"{path}:{number}")
                continue
            if not self.head:
                raise TraceError(f"{path}:{number}: not the first line of a trace")
            if event is not None:
                feed(event)
                if skimmer is not None:
                    skimmer.took(line, "", event)

    def _take_other(self, found: Line, line: bytes, where: str) -> None:
        """Takes a line that is rare, or that was changed."""
        if not self.head:
            if found["event"] != "trace":
                raise TraceError(f"{where}: not the first line of a trace")
            self.head = found
        self._examine(found, line)

    def _examine(self, found: Line, line: bytes = b"") -> None:
        event, kind = self.of.take(found), found["event"]
        if self._skimmer is not None:
            self._skimmer.took(line, kind, event)
        if event is None:
            self.damaged += kind == "damaged"
            self.dropped += _number(found.get("count")) if kind == "dropped" else 0


def rows(unit: Unit, asked: Asked) -> Iterator[Row]:
    """Yields the rows of a unit: one for the trace, and those of its clients. A trace that cannot be examined has the
    reason in its row.
    """
    reading = Reading(unit, asked)
    refused = None
    try:
        if not reading.is_wanted():
            return
    except (TraceError, OSError) as error:
        refused = str(error)
    except FilteredTrace as error:
        refused = f"{unit.trace.name}: {error}"
    head = reading.head
    place = {"trace": _text(unit.trace.name), "startedMs": reading.started_ms, "shares": unit.share.of}
    yield {
        **place,
        "broker": _text(head.get("broker")),
        "clusterId": _text(head.get("cluster_id")),
        "nodeId": _number(head.get("node_id")),
        "files": len(unit.trace.files),
        "lines": reading.lines,
        "damagedLines": reading.damaged,
        "droppedEvents": reading.dropped,
        "unexaminedRequests": reading.of.examiner.unexamined,
        "refused": _text(refused),
    }
    if refused is None:
        for number, report in reading.of.examiner.numbered():
            yield from _rows_of_client({**place, "client": number}, report)


def _rows_of_client(place: Row, report: ClientReport) -> Iterator[Row]:
    who = {"clientId": _text(report["client_id"]), "software": _text(report["software"])}
    who |= {"softwareVersion": _text(report["software_version"]), "host": _text(report["host"])}
    for one in report["rules"]:
        failures = [
            {"words": _text(failure["words"]), "evidence": [_evidence(seen) for seen in failure["evidence"]]}
            for failure in one["failures"]
        ]
        yield {
            **place,
            **who,
            "rule": one["id"],
            "examination": one["examination"],
            "severity": one["severity"],
            "outcome": one["outcome"],
            "kept": one["kept"],
            "failed": one["failed"],
            "failures": failures,
        }


def _evidence(seen: EvidenceReport) -> Row:
    exchange = None if seen["exchange"] is None else _number(seen["exchange"])
    numbers: Row = {"connection": _number(seen["connection"]), "exchange": exchange, "at_ms": _number(seen["at_ms"])}
    return {**numbers, "what": _text(seen["what"]), "message": _text(seen["message"])}


def _number(found: object) -> int:
    """A number of a trace, which may have been changed; 0 if no column can hold it."""
    return found if isinstance(found, int) and found in _LONGS else 0


def _text(found: object) -> str | None:
    """A text of a trace; halves of characters, which JSON may have, are replaced."""
    return found.encode(errors="replace").decode() if isinstance(found, str) else None


def judged(bins: Sequence[Sequence[Unit]], asked: Asked, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For `mapInArrow`: the first column has the numbers of bins."""
    gc.set_threshold(*COLLECTED_AFTER)
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for unit in bins[number]:
                yield pa.RecordBatch.from_pylist(list(rows(unit, asked)), schema=SCHEMA)
