"""OffsetCommits that are like an earlier one but for their offsets and leader epochs: a decision without a message that
has been read. `commit.commit` says what the decision is.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....protocol import messages
from ....protocol.structs import copied
from ...shard import Result
from ..format import CommitKeys, Commits, commit_keys
from ..state import ShardState
from .commit import NO_METADATA, NO_RETENTION, Check

LEADER_EPOCHS_SINCE = 6
NO_LEADER_EPOCH = -1
PARTITIONS_MAX = 128
CORRELATION_ID, OFFSET, OFFSET_AND_EPOCH = "i", "q", "qi"  # numbers that lie together in a frame


def is_repeatable(request: messages.OffsetCommitRequest) -> bool:
    """Whether all of a request's commits have neither metadata nor an expiry, and are not too many."""
    return (
        request.retention_time_ms == NO_RETENTION
        and sum(len(topic.partitions) for topic in request.topics) <= PARTITIONS_MAX
        and all(p.committed_metadata in NO_METADATA for topic in request.topics for p in topic.partitions)
    )


class RepeatedCommit:
    """A request whose topics and partitions exist, and which others are like. `request` has names and ids of topics."""

    __slots__ = ("_has_epochs", "_topics", "request", "version")

    def __init__(self, request: messages.OffsetCommitRequest, version: int) -> None:
        self.request = request
        self.version = version
        self._has_epochs = version >= LEADER_EPOCHS_SINCE
        self._topics: list[tuple[CommitKeys, slice, slice | None]] = []
        width, at = 1 + self._has_epochs, 1  # after the correlation id
        for topic in request.topics:
            indexes = [p.partition_index for p in topic.partitions]
            keys = commit_keys(request.group_id, topic.name, topic.topic_id, indexes)
            end = at + width * len(keys)
            epochs = slice(at + 1, end, width) if self._has_epochs else None
            self._topics.append((keys, slice(at, end, width), epochs))
            at = end

    def kinds(self) -> list[str]:
        """Returns the kinds of the numbers in a frame with the request (`protocol.layouts`)."""
        count = sum(len(keys) for keys, _, _ in self._topics)
        return [CORRELATION_ID, *[OFFSET_AND_EPOCH if self._has_epochs else OFFSET] * count]

    def with_numbers(self, value: int) -> messages.OffsetCommitRequest:
        """Returns the request as it is sent, with `value` for all of its numbers."""
        made = copied(self.request)
        for topic in made.topics:
            for p in topic.partitions:
                p.committed_offset = p.committed_leader_epoch = value
        return made

    def commit(self, shard: ShardState, numbers: Sequence[int], check: Check | None) -> Result:
        """Commits the offsets that a frame has after its correlation id. Raises what `check` raises."""
        now = shard.env.now_ms()
        records: list[object] = []
        for keys, offsets, epochs in self._topics:
            if check is not None:
                for index in keys.partitions:
                    check(keys.topic_id, index)
            leader_epochs = [NO_LEADER_EPOCH] * len(keys) if epochs is None else numbers[epochs]
            records.append(Commits(keys, now, numbers[offsets], leader_epochs))
            shard.counts["offset_commits"] += len(keys)
        return Result(records)
