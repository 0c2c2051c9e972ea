"""How often the members of modern groups send heartbeats."""

from __future__ import annotations

from .modern import AnyModernGroup
from .state import ShardState

SETTLE_MIN_MS = 100
SETTLE_RATE = 2  # members for each millisecond of the interval while a group settles
SETTLE_WINDOW_MS = 1000


def heartbeat_interval_ms(shard: ShardState, group: AnyModernGroup, is_settled: bool) -> int:
    """Returns Kafka's heartbeat interval; a shorter one while the group rebalances, because local clients should not
    wait (`ottla.group.settle`). `is_settled`: the member has all that the group's assignment gives it.
    """
    usual = int(shard.env.group_config(group.id, f"{group.kind}.heartbeat.interval.ms"))
    if not shard.env.config("ottla.group.settle"):
        return usual
    since_ms = shard.env.monotonic_ms() - shard.moved_at_ms.get(group.id, -SETTLE_WINDOW_MS)
    if is_settled and since_ms >= SETTLE_WINDOW_MS and group.id not in shard.assigning:
        return usual
    return min(usual, max(SETTLE_MIN_MS, len(group.members) // SETTLE_RATE))
