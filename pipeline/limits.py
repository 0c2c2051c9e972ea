"""How far a part of a stream goes."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows

Offsets = dict[str, int]


def read_limit(offsets_per_trigger: int) -> ReadLimit:
    return ReadMaxRows(offsets_per_trigger) if offsets_per_trigger else ReadAllAvailable()


def within(start: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
    """From `start` towards `ends` as far as the limit lets it: what a partition has not got, others may use."""
    ends = {**start, **ends}
    if not isinstance(limit, ReadMaxRows):
        return ends
    left, found = limit.max_rows, dict(ends)
    waiting = sorted(ends, key=lambda name: ends[name] - start.get(name, 0))
    for number, name in enumerate(waiting):
        begin = start.get(name, 0)
        taken = max(0, min(ends[name] - begin, -(-left // (len(waiting) - number))))
        found[name] = begin + taken
        left -= taken
    return found
