"""The epoch of a consumer group."""

from __future__ import annotations

from ... import epochs
from ...format import CoordinatorRecord
from ..state import ShardState
from .group import ConsumerGroup
from .records import epoch_record

METADATA_REFRESH_MS = 3_600_000  # the hash is computed again this often even if no topic changed


def raise_epoch(
    shard: ShardState, group: ConsumerGroup, hash_of_metadata: int, records: list[CoordinatorRecord]
) -> int:
    """Adds the record of the group's next epoch, for which members get another assignment. Returns the epoch."""
    epoch = epochs.after(group.epoch)
    records.append(epoch_record(group.id, epoch, hash_of_metadata))
    shard.counts["consumer_rebalances"] += 1
    shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
    return epoch
