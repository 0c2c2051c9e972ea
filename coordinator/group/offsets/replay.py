"""Replay of committed offsets, as far as they are not read as `Commit` (see `format`): tombstones, and old versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....protocol import messages
from ..state import ShardState

OffsetReplay = Callable[[ShardState, int, int, Any, Any], None]
"""Applies a record, given by its offset, its producer id, its key and its value."""


def replay_offset(
    shard: ShardState,
    offset: int,
    producer_id: int,
    key: messages.OffsetCommitKey,
    value: messages.OffsetCommitValue | None,
) -> None:
    if value is not None and key.group not in shard.groups:
        shard.put_simple(key.group)
    shard.offsets.replay(offset, producer_id, key, value)


def replay_legacy_offset(
    shard: ShardState,
    offset: int,
    producer_id: int,
    key: messages.LegacyOffsetCommitKey,
    value: messages.LegacyOffsetCommitValue | None,
) -> None:
    """A commit that an old broker wrote, without the number of its record type."""
    new_key = messages.OffsetCommitKey(group=key.group, topic=key.topic, partition=key.partition)
    new_value = None
    if value is not None:
        new_value = messages.OffsetCommitValue(
            offset=value.offset, metadata=value.metadata, commit_timestamp=value.commit_timestamp
        )
    replay_offset(shard, offset, producer_id, new_key, new_value)


REPLAYS: dict[str, OffsetReplay] = {
    "OffsetCommitKey": replay_offset,
    "LegacyOffsetCommitKey": replay_legacy_offset,
}
