"""Replicas that catch up: new ones of a reassignment, and those that were away.

A new replica is empty. It gets the log after the lag of the partition's policy, and nothing while the policy is `held`;
with throttles, piece by piece.
"""

from __future__ import annotations

from ..clock import Cancellable
from ..settings import Settings
from ..turn import Turn
from .followers import Behind, Replicas
from .partition import Partition
from .throttles import Throttles

PIECES_AT_ONCE = 16  # that a replica gets in one turn of the loop


class CatchingUp:
    """Moves the replicas of all partitions that catch up."""

    def __init__(self, turn: Turn, settings: Settings) -> None:
        self.turn = turn
        self._piece_bytes = int(settings.config["replica.fetch.max.bytes"])
        self._throttles = Throttles(settings)
        self._timers: dict[Partition, Cancellable] = {}

    def go_on(self, partition: Partition) -> None:
        """Moves the replicas of a partition as far as they may be now; comes again when they may go on."""
        replicas, timer = partition.replica_set, self._timers.pop(partition, None)
        if timer is not None:
            timer.cancel()
        if replicas is None or partition.log is None or partition.follower.policy.kind == "held":
            return
        now_ms = self.turn.schedule.monotonic_ms()
        waits = [
            self._move(partition, replicas, node, behind, now_ms)
            for node, behind in replicas.catching_up()
            if partition.has_leader
        ]
        if waits:
            partition.followed()
        again_ms = min((one for one in waits if one is not None), default=float("inf"))
        if again_ms < float("inf"):
            self._timers[partition] = self.turn.later(max(again_ms, 1), lambda: self._again(partition))

    def _again(self, partition: Partition) -> None:
        self._timers.pop(partition, None)
        self.turn.moved(partition)

    def _move(self, partition: Partition, replicas: Replicas, node: int, behind: Behind, now_ms: int) -> float | None:
        """Moves one replica; returns after how many milliseconds it goes on, or None if it is as far as the others."""
        if behind.from_ms > now_ms:
            return behind.from_ms - now_ms
        throttles = self._throttles.of(partition, node, now_ms)
        end = min(partition.end_offset, partition.follower.replicated)
        at, wait_ms = behind.end, 0.0
        for _ in range(PIECES_AT_ONCE if throttles else 0):
            wait_ms = max(one.wait_ms(now_ms) for one in throttles)
            if at >= end or wait_ms > 0:
                break
            at, size = partition.piece(at, self._piece_bytes)
            for one in throttles:
                one.take(size)
        if not throttles or at >= end:
            replicas.advance(node, None)
            return None
        replicas.advance(node, Behind(at, behind.from_ms))
        return wait_ms
