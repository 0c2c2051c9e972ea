"""The committed offsets of a shard, and those of transactions that are not over yet.

Offsets are kept for each group by topic name and partition. A commit in a transaction is pending until its marker
comes; then the commit with the highest offset in the log wins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Any, TypeVar

from ....protocol import messages
from ...format import CoordinatorRecord
from ...timeline import Timeline, TimelineDict
from ..format import Commit, Commits, Key, Stored, commit_of
from .of_group import OffsetsOfGroup

K = TypeVar("K")
PendingOf = TimelineDict[str, TimelineDict[Key, Stored]]  # of a producer, by group
ProducersOf = TimelineDict[Key, tuple[int, ...]]  # of a group: the producers by topic and partition
STEP_ENDED = 1024  # pending offsets of a transaction that end in one step
GROUP_WEIGHT = 7  # offsets of a group that take as long as what is done for each group of a transaction
_NOTHING: TimelineDict[Any, Any] = TimelineDict(Timeline())


class Offsets:
    """All committed offsets of a shard."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.by_group: dict[str, OffsetsOfGroup] = {}
        self.pending: TimelineDict[int, PendingOf] = TimelineDict(timeline)  # by producer id
        # by group: the pending offsets of transactions
        self.pending_producers: TimelineDict[str, ProducersOf] = TimelineDict(timeline)
        self.count = 0

    def of(self, group_id: str) -> OffsetsOfGroup:
        found = self.by_group.get(group_id)
        if found is None:
            found = self.by_group[group_id] = OffsetsOfGroup(self.timeline)
        return found

    def has_pending(self, group_id: str) -> bool:
        return group_id in self.pending_producers

    def is_pending(self, group_id: str, key: Key) -> bool:
        found = self.pending_producers.get(group_id)
        return found is not None and key in found

    def pending_keys(self, group_id: str) -> Collection[Key]:
        """Returns the topics and partitions for which offsets of a group are pending."""
        found = self.pending_producers.get(group_id)
        return () if found is None else found.keys()

    def pending_of(self, group_id: str) -> Iterator[tuple[Key, Stored]]:
        """Yields the pending commits of open transactions for a group; a key is repeated for each of them."""
        for key, producers in self.pending_producers.get(group_id, _NOTHING).items():
            for producer_id in producers:
                yield key, self.pending[producer_id][group_id][key]

    # replay

    def replay(
        self,
        offset: int,
        producer_id: int,
        key: messages.OffsetCommitKey,
        value: messages.OffsetCommitValue | None,
    ) -> None:
        at = (key.topic, key.partition)
        if value is None:
            self.of(key.group).pop(at)
            if self.is_pending(key.group, at):
                for writer in self.pending_producers[key.group][at]:
                    self.pending[writer][key.group].pop(at)
                    self._forget_producer(writer, key.group, (at,))
            return
        self.put(offset, producer_id, commit_of(key, value))

    def put(self, offset: int, producer_id: int, commit: Commit) -> None:
        group_id, at = commit.group, (commit.topic, commit.partition)
        if producer_id < 0:
            found = self.by_group.get(group_id)
            if found is None:
                found = self.of(group_id)
            # a log's plain commits are replayed last, see `live_entries`
            return found.put(at, commit.stored(offset))
        self._put_pending(producer_id, group_id, at, commit.stored(offset))

    def _put_pending(self, producer_id: int, group_id: str, at: Key, stored: Stored) -> None:
        pending = self._within(self._within(self.pending, producer_id), group_id)
        if at not in pending:
            producers = self._within(self.pending_producers, group_id)
            producers[at] = (*producers.get(at, ()), producer_id)
        pending[at] = stored

    def _within(self, outer: TimelineDict[K, TimelineDict[Any, Any]], key: K) -> TimelineDict[Any, Any]:
        found: TimelineDict[Any, Any] | None = outer.get(key)
        if found is None:
            found = outer[key] = TimelineDict(self.timeline)
        return found

    def _forget_producer(self, producer_id: int, group_id: str, keys: Collection[Key]) -> None:
        """Removes a producer from those with pending offsets of some partitions."""
        of_group = self.pending_producers[group_id]
        before = of_group.at()
        alone = (producer_id,)
        gone = [at for at in keys if before[at] == alone]
        if len(gone) == len(of_group):
            self.pending_producers.pop(group_id)
            return
        if len(gone) < len(keys):
            others = ((at, tuple(one for one in before[at] if one != producer_id)) for at in keys)
            of_group.update({at: left for at, left in others if left})
        of_group.remove_all(gone)

    def put_all(self, offset: int, producer_id: int, commits: Commits) -> None:
        """Like `put`, for new commits instead of loaded ones, which cannot be older than the existing ones."""
        group_id = commits.group
        if producer_id < 0:
            return self.of(group_id).put_all(offset, commits)
        stored = commits.stored(offset)
        pending = self._within(self._within(self.pending, producer_id), group_id)
        known, producers = pending.at(), self._within(self.pending_producers, group_id)
        before, alone = producers.at(), (producer_id,)
        producers.update({at: before.get(at, ()) + alone for at in stored if at not in known})
        pending.update(stored)

    def replay_marker(self, producer_id: int, committed: bool) -> Iterator[None]:
        """Ends the transaction of a producer. Yields between steps; until the last one no other record is replayed."""
        left, of_producer = STEP_ENDED, self.pending.get(producer_id, _NOTHING)
        for group_id in list(of_producer):
            items = iter(of_producer[group_id].items())
            while ended := dict(islice(items, STEP_ENDED)):
                self._forget_producer(producer_id, group_id, ended)
                if committed:
                    self.of(group_id).put_each(ended)
                left -= GROUP_WEIGHT + len(ended)
                if left <= 0:
                    left = STEP_ENDED
                    yield
            of_producer.pop(group_id)  # now, because `pending_of` finds in it what has not ended yet
        self.pending.pop(producer_id)


def tombstone(group_id: str, key: Key) -> CoordinatorRecord:
    return messages.OffsetCommitKey(group=group_id, topic=key[0], partition=key[1]), None
