"""The offsets of streams, and the limits of their micro-batches, for both data sources.

The offset of a stream is the next offset of each partition, by `topic-number`, and the ids of their topics under
TOPIC_IDS, as far as these are known: a topic that is deleted and made again has the same name, and other records.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

TOPIC_IDS: Final = "topicIds"  # is not the name of a partition, which ends with a number
Offsets = dict[str, int]
Ids = dict[str, str]
StreamOffset = dict[str, int | Ids]  # as Spark writes it into a checkpoint


class Progress(NamedTuple):
    """A parsed offset of a stream. `firsts`: the first offsets that there are, where it says how logs are now."""

    offsets: Offsets
    ids: Ids
    firsts: Offsets

    @classmethod
    def of(cls, offset: StreamOffset) -> Progress:
        ids = offset.get(TOPIC_IDS, {})
        assert isinstance(ids, dict)
        return cls({name: one for name, one in offset.items() if isinstance(one, int)}, ids, {})

    def offset(self) -> StreamOffset:
        return {**self.offsets, TOPIC_IDS: self.ids} if self.ids else {**self.offsets}

    def is_other(self, before: Progress, name: str) -> bool:
        """Whether a partition is of another topic than before."""
        mine, its = self.ids.get(name), before.ids.get(name)
        return mine is not None and its is not None and mine != its

    def first(self, before: Progress, name: str) -> int | None:
        """Returns where a partition is read from, up to this progress: None for its beginning, if it was made again."""
        at = before.offsets.get(name, 0)
        return None if self.is_other(before, name) or self.offsets.get(name, at) < at else at


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream of partitions."""

    def __init__(self, offsets_per_trigger: int, fail_on_data_loss: bool) -> None:
        self.offsets_per_trigger, self.fail_on_data_loss = offsets_per_trigger, fail_on_data_loss
        self.until: Progress | None = None

    def now(self) -> Progress:
        """Returns the first and the end offsets of the partitions."""
        raise NotImplementedError

    def starting_offset(self, name: str) -> int:
        """Returns where a partition was to be read from, by the options; negative if they name no offset."""
        raise NotImplementedError

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self.offsets_per_trigger) if self.offsets_per_trigger else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self.until = self.now()

    def reportLatestOffset(self) -> StreamOffset:
        return self.now().offset()

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        """Returns where the next micro-batch ends. Raises ValueError if records may be lost and that is an error."""
        began, now = Progress.of(start), self.until or self.now()
        if self.lost(began, now):  # or files have changed while they were read
            now = self.now()
        lost = self.lost(began, now)
        if lost and self.fail_on_data_loss:
            raise ValueError(
                f"records may be lost: {', '.join(lost.values())}. With the option failOnDataLoss=false, a stream goes "
                "on without what was deleted, and from the beginning with what was made again"
            )
        again = {name: now.firsts.get(name, 0) for name in lost if name in now.offsets}
        reached = within({**began.offsets, **again}, now.offsets, limit)
        return Progress(reached, {**began.ids, **now.ids}, {}).offset()

    def lost(self, began: Progress, now: Progress) -> dict[str, str]:
        """Returns the partitions that do not have any more what was read of them, or what comes next, and words about
        each.
        """
        found = {}
        for name, at in began.offsets.items():
            end = now.offsets.get(name)
            if end is None:
                found[name] = f"{name} was deleted"
            elif now.is_other(began, name):
                found[name] = f"{name} was made again, with the topic id {now.ids[name]} in place of {began.ids[name]}"
            elif end < at != self.starting_offset(name):  # a stream may begin after the end, and wait there
                found[name] = f"{name} ends at offset {end}, and was read up to {at}"
            elif now.firsts.get(name, at) > at:
                found[name] = f"{name} begins at offset {now.firsts[name]}, and was read up to {at}"
        for name, first in now.firsts.items():
            if first and name not in began.offsets:
                found[name] = f"{name} is new, and begins at offset {first}"
        return found


def within(start: Offsets, ends: Offsets, limit: ReadLimit) -> Offsets:
    """Advances from `start` towards `ends` within the limit; partitions share what others leave unused. A partition
    whose log ends before its start stays there: it is not at that offset yet.
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
