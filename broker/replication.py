"""The simulated followers: when a partition's high watermark follows its log's end.

A policy is `immediate`, `lag=50ms` or `lag=50ms±20ms`, `bytes=4096` (that much of the end is never replicated), or `held` (until it
is stepped or released). It is set per topic or partition, from `ottla.high.watermark` or while the broker runs. A policy without
a topic is for user topics; an internal one must be named.
"""

from __future__ import annotations

import random
import re
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..coordinator.metadata.format import CLUSTER_METADATA

if TYPE_CHECKING:
    from .partition import Partition

_LAG = re.compile(r"lag=(?P<lag>\d+)ms(?:(?:±|\+-)(?P<jitter>\d+)ms)?")
_BYTES = re.compile(r"bytes=(?P<bytes>\d+)")


@dataclass(frozen=True, slots=True)
class Policy:
    """How the high watermark moves."""

    kind: str = "immediate"
    lag_ms: int = 0
    jitter_ms: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        if self.kind == "lag":
            return f"lag={self.lag_ms}ms" + (f"±{self.jitter_ms}ms" if self.jitter_ms else "")
        return f"bytes={self.bytes}" if self.kind == "bytes" else self.kind


IMMEDIATE = Policy()


def parse_policy(text: str) -> Policy:
    """ValueError for text that is no policy."""
    if text in ("immediate", "held"):
        return Policy(text)
    if found := _LAG.fullmatch(text):
        return Policy("lag", lag_ms=int(found["lag"]), jitter_ms=int(found["jitter"] or 0))
    if found := _BYTES.fullmatch(text):
        return Policy("bytes", bytes=int(found["bytes"]))
    raise ValueError(f"not a policy: {text!r} (immediate, held, lag=20ms, lag=20ms±5ms, bytes=4096)")


class Policies:
    """The policies in force, the most particular first: of a partition, of a topic, of all user topics."""

    def __init__(self, seed: int = 0) -> None:
        self.general = IMMEDIATE
        self.by_topic: dict[str, Policy] = {}
        self.by_partition: dict[tuple[str, int], Policy] = {}
        self.chance = random.Random(seed)

    def configure(self, entries: list[str]) -> None:
        """From `ottla.high.watermark`: `policy` or `topic:policy`, a comma between them. ValueError."""
        for entry in entries:
            topic, colon, text = entry.rpartition(":")
            self.set(topic if colon else None, None, parse_policy(text))

    def set(self, topic: str | None, partition: int | None, policy: Policy) -> None:
        if topic == CLUSTER_METADATA and policy.kind == "held":
            raise ValueError("__cluster_metadata may lag but not be held")
        if topic is None:
            self.general = policy
        elif partition is None:
            self.by_topic[topic] = policy
        else:
            self.by_partition[topic, partition] = policy

    def of(self, topic: str, partition: int, internal: bool) -> Policy:
        found = self.by_partition.get((topic, partition)) or self.by_topic.get(topic)
        if found is not None:
            return found
        return IMMEDIATE if internal else self.general


class Follower:
    """What the policy of one partition remembers: appends that are on their way to the followers."""

    __slots__ = ("policy", "replicated", "waiting")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.replicated = 0  # the followers have everything below, whatever the policy says of the rest
        self.waiting: deque[tuple[int, int]] = deque()  # ends of appends, and when they will have arrived


def replicated_offset(follower: Follower, partition: Partition, now_ms: int) -> tuple[int, int | None]:
    """Up to where the followers have the log, and when to ask again."""
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
    """Notes an append that ends at `end`."""
    policy = follower.policy
    if policy.kind == "lag":
        jitter = chance.randint(-policy.jitter_ms, policy.jitter_ms) if policy.jitter_ms else 0
        arrives = now_ms + max(0, policy.lag_ms + jitter)
        if follower.waiting:
            arrives = max(arrives, follower.waiting[-1][1])
        follower.waiting.append((end, arrives))
