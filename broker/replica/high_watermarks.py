"""Computes high watermarks from the replicated offsets of the simulated followers, by the policy of the partition."""

from __future__ import annotations

import random

from ..turn import Turn
from ..watermark_policies import IMMEDIATE
from .flusher import Flusher
from .partition import Follower, Partition


class HighWatermarks:
    """Advances the high watermarks of partitions at the end of an event (`Turn.move`).
    `chance` generates the jitter of policies.
    """

    def __init__(self, turn: Turn, flusher: Flusher, chance: random.Random) -> None:
        self.turn = turn
        self.schedule = turn.schedule
        self.flusher = flusher
        self.chance = chance

    def appended(self, partition: Partition) -> None:
        """Notes that a partition's log grew."""
        follower = partition.follower
        if follower.policy is not IMMEDIATE:
            on_append(follower, partition.end_offset, self.schedule.monotonic_ms(), self.chance)
        self.turn.moved(partition)
        log = partition.log
        if log is not None and log.wants_flush_to > log.recovery_point and not partition.flushing:
            self.flusher.flush(partition)

    def move(self, partition: Partition) -> None:
        """Advances a high watermark to the smaller of the replicated and the flushed offset."""
        log, follower = partition.log, partition.follower
        if log is None:
            return
        bound = partition.leader_bound()
        unflushed = bound < log.end_offset
        if follower.policy is IMMEDIATE:
            follower.replicated = log.end_offset
            partition.advance(bound)
        else:
            end, again_ms = replicated_offset(follower, partition, self.schedule.monotonic_ms())
            partition.advance(min(end, bound))
            if again_ms is not None:
                self.turn.later(again_ms, lambda: self.turn.moved(partition))
        if unflushed:
            self.flusher.flush(partition)


def replicated_offset(follower: Follower, partition: Partition, now_ms: int) -> tuple[int, int | None]:
    """Returns (replicated offset, milliseconds until it can change)."""
    policy, end = follower.policy, partition.end_offset
    if policy.kind == "immediate":
        follower.replicated = end
        return end, None
    if policy.kind == "held":
        return follower.replicated, None
    if policy.kind == "bytes":
        follower.replicated = max(follower.replicated, partition.offset_before_last_bytes(policy.bytes))
        return follower.replicated, None
    waiting = follower.waiting
    while waiting and waiting[0][1] <= now_ms:
        follower.replicated = max(follower.replicated, waiting.popleft()[0])
    return follower.replicated, (waiting[0][1] - now_ms if waiting else None)


def on_append(follower: Follower, end: int, now_ms: int, chance: random.Random) -> None:
    """Records an append that ends at `end`."""
    policy = follower.policy
    if policy.kind == "lag":
        jitter = chance.randint(-policy.jitter_ms, policy.jitter_ms) if policy.jitter_ms else 0
        arrives = now_ms + max(0, policy.lag_ms + jitter)
        if follower.waiting:
            arrives = max(arrives, follower.waiting[-1][1])
        follower.waiting.append((end, arrives))
