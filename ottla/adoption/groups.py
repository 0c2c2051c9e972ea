"""What consumers committed, as a partition of `__consumer_offsets` has it, in any format since Kafka 0.8.2.

At an adoption live commits are written again, with the time of the adoption and without the expiry that they may have:
their retention begins there. Otherwise a directory that was put away for a while would lose them ten minutes after its
first start. A commit of a transaction that is still open is left to it, and so is the one that it would replace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from ..broker.shards.loader import entries_of
from ..coordinator.format import CoordinatorRecord
from ..coordinator.group.format import Commit, GroupFormat, commit_of
from ..coordinator.hashing import partition_for
from ..coordinator.loading import Entry
from ..protocol import messages, records
from ..protocol.records import Record, Template
from ..protocol.schema import NO_UUID
from ..storage.files import HandlePool
from ..storage.log import Log
from .survey import ReadOnlyFiles, batches_from, segments_of

COMMITS_OF = ("OffsetCommitKey", "LegacyOffsetCommitKey")
RECORDS_PER_BATCH = 500
PARTITIONS_USUAL = 50
PARTITIONS_MAX = 100_000
_At = tuple[str, str, int]  # group, topic, partition


@dataclass(slots=True)
class Committed:
    """What one partition has: commits, and the metadata of groups by their ids. `pending`: commits of open
    transactions, by producer id; `imported`: those of `commits` that ZooKeeper had.
    """

    commits: dict[_At, Commit] = field(default_factory=dict)
    imported: dict[_At, Commit] = field(default_factory=dict)
    groups: dict[str, messages.GroupMetadataValue] = field(default_factory=dict)
    pending: dict[int, dict[_At, Commit]] = field(default_factory=dict)
    unread: int = 0
    _offsets: dict[_At, int] = field(default_factory=dict)

    @property
    def names(self) -> set[str]:
        """The ids of all groups."""
        return {at[0] for at in self.commits} | set(self.groups)

    def take(self, at: _At, offset: int) -> int | None:
        """Takes an offset that ZooKeeper had, unless this partition has the same or a larger one; returns the smaller
        one that it replaces.
        """
        known = self.commits.get(at)
        if known is not None and known.offset >= offset:
            return None
        self.commits[at] = self.imported[at] = Commit(*at, offset, -1, "", 0, NO_UUID)
        return None if known is None else known.offset

    def imported_only(self) -> Committed:
        return Committed(dict(self.imported), self.imported)

    def renewed(self, now_ms: int) -> Iterator[Record]:
        """Yields the records with which retention begins at `now_ms`."""
        kept = GroupFormat()
        open_ones = {at for found in self.pending.values() for at in found}
        for at, commit in self.commits.items():
            if at not in open_ones:
                yield replace_time(commit, now_ms)
        for group, value in self.groups.items():
            if value.current_state_timestamp >= 0 and not value.members:
                key = messages.GroupMetadataKey(group=group)
                value.current_state_timestamp = now_ms
                yield kept.encode((key, value))


def replace_time(commit: Commit, now_ms: int) -> Record:
    """Returns the record of a commit as if it had come at `now_ms`."""
    return commit._replace(commit_ms=now_ms, expire_ms=-1).encode()


def committed(path: str, end: int) -> Committed:
    """Reads a partition of `__consumer_offsets` up to an offset. Raises OSError."""
    pool, found, decode = HandlePool(ReadOnlyFiles()), Committed(), GroupFormat().decode

    def skip(offset: int, error: Exception) -> None:
        found.unread += 1

    try:
        for segment, batch in batches_from(segments_of(pool, path), 0, end):
            for entry in entries_of(segment, batch, skip):
                if entry is not None:
                    _take(found, entry, decode(entry.record) if entry.record is not None else None)
    finally:
        pool.close_all()
    return found


def _take(found: Committed, entry: Entry, decoded: CoordinatorRecord | None) -> None:
    if entry.marker is not None:
        for at, commit in found.pending.pop(entry.producer_id, {}).items():
            if entry.marker.committed and entry.offset > found._offsets.get(at, -1):
                found.commits[at] = commit
        return
    if decoded is None:
        return
    key, value = decoded
    if isinstance(key, Commit):
        _commit(found, entry, (key.group, key.topic, key.partition), key)
    elif type(key).__name__ in COMMITS_OF:
        made = None if value is None else commit_of(key, _modern(value))
        _commit(found, entry, (key.group, key.topic, key.partition), made)
    elif isinstance(key, messages.GroupMetadataKey):
        if value is None:
            found.groups.pop(key.group, None)
        else:
            found.groups[key.group] = value


def _modern(
    value: messages.OffsetCommitValue | messages.LegacyOffsetCommitValue,
) -> messages.OffsetCommitValue:
    if isinstance(value, messages.OffsetCommitValue):
        return value
    return messages.OffsetCommitValue(
        offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
    )


def _commit(found: Committed, entry: Entry, at: _At, commit: Commit | None) -> None:
    if commit is None:
        found.commits.pop(at, None)
        for pending in found.pending.values():
            pending.pop(at, None)
    elif entry.producer_id >= 0:
        found.pending.setdefault(entry.producer_id, {})[at] = commit
    else:
        found.commits[at] = commit
        found._offsets[at] = entry.offset


def append_renewed(log: Log, found: Committed, leader_epoch: int, now_ms: int) -> None:
    """Appends the records with which retention begins now. Raises OSError."""
    left = list(found.renewed(now_ms))
    for start in range(0, len(left), RECORDS_PER_BATCH):
        some = left[start : start + RECORDS_PER_BATCH]
        for one in some:
            one.timestamp = now_ms
        data = bytearray(records.encode(some, Template()))
        log.append(data, list(records.batches(data)), leader_epoch, now_ms)


def partitions_that_fit(groups: Iterable[tuple[int, str]], least: int) -> int | None:
    """Returns how many partitions `__consumer_offsets` had, given pairs of a partition and the id of a group in it:
    `least`, or 50 if that is more and fits, or the first number that fits; None if none does.
    """
    pairs = list(groups)
    for count in chain((max(least, PARTITIONS_USUAL),), range(least, PARTITIONS_MAX)):
        if all(partition_for(group, count) == index for index, group in pairs):
            return count
    return None
