"""Limits of the micro-batches of a stream, for both data sources."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

Offsets = dict[str, int]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of partitions. Its offset is the next offset of each partition, by `topic-number`."""

    def __init__(self, offsets_per_trigger: int) -> None:
        self.offsets_per_trigger = offsets_per_trigger
        self.until: Offsets | None = None

    def ends(self) -> Offsets:
        """Returns the end offsets of the partitions."""
        raise NotImplementedError

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.offsets_per_trigger) if self.offsets_per_trigger else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.until = self.ends()

    def reportLatestOffset(self) -> Offsets:
        return self.ends()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        return within(start, self.ends() if self.until is None else self.until, limit)


def within(start: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
    """Advances from `start` towards `ends` within the limit; partitions share what others leave unused. A partition
    whose log ends before its start stays there: it is not at that offset yet, or its end was cut off since, and what is
    before was read or is not wanted.
    """
    ends = {name: max(ends.get(name, 0), start.get(name, 0)) for name in {**start, **ends}}
    if not isinstance(limit, ReadMaxRows):
        return ends
    left, found = limit.max_rows, dict(ends)
    waiting = sorted(ends, key=lambda name: ends[name] - start.get(name, 0))
    for number, name in enumerate(waiting):
        begin = start.get(name, 0)
        taken = min(ends[name] - begin, -(-left // (len(waiting) - number)))
        found[name] = begin + taken
        left -= taken
    return found
