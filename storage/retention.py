"""Chooses the segments that retention removes. Pure decisions; the log carries them out."""

from __future__ import annotations

import math

from .log import Log
from .segment import Segment


def due(log: Log, high_watermark: int, now_ms: int) -> list[Segment]:
    """Returns the segments at the front of the log that retention by time, by size or by log start offset removes; none
    above the high watermark.

    Compacted logs without `delete` lose only segments before their log start offset.
    """
    gone = _below_start(log, high_watermark)
    if not log.settings.is_deleted:
        return gone
    for rule in (_too_old(log, now_ms), _too_large(log)):
        found = _from_front(log, high_watermark, rule)
        if len(found) > len(gone):
            gone = found
    return gone


def next_ms(log: Log, high_watermark: int, now_ms: int) -> float:
    """Returns a time before which `due` returns nothing, unless the log changes."""
    if due(log, high_watermark, now_ms):
        return now_ms
    first, settings = log.segments[0], log.settings
    upper = log.bases[1] if len(log.bases) > 1 else log.end_offset
    if not settings.is_deleted or settings.retention_ms < 0 or high_watermark < upper or not log.size:
        return math.inf
    return _time(first) + settings.retention_ms + 1


def _time(segment: Segment) -> int:
    return segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms


def _below_start(log: Log, high_watermark: int) -> list[Segment]:
    starts = log.bases[1:]
    return [
        s
        for s, after in zip(log.segments, starts, strict=False)
        if after <= log.start_offset and after <= high_watermark
    ]


def _too_old(log: Log, now_ms: int) -> dict[int, bool]:
    if log.settings.retention_ms < 0:
        return {}
    limit = now_ms - log.settings.retention_ms
    return {s.base_offset: _time(s) < limit for s in log.segments}


def _too_large(log: Log) -> dict[int, bool]:
    limit, over = log.settings.retention_bytes, {}
    if limit < 0 or log.size < limit:
        return {}
    excess = log.size - limit
    for segment in log.segments:
        over[segment.base_offset] = excess - segment.size >= 0
        if not over[segment.base_offset]:
            break
        excess -= segment.size
    return over


def _from_front(log: Log, high_watermark: int, rule: dict[int, bool]) -> list[Segment]:
    gone = []
    for slot, segment in enumerate(log.segments):
        last = slot == len(log.segments) - 1
        upper = log.end_offset if last else log.segments[slot + 1].base_offset
        if high_watermark < upper or not rule.get(segment.base_offset) or (last and not segment.size):
            break
        gone.append(segment)
    return gone
