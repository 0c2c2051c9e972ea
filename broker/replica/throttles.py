"""Throttles of replication: how fast replicas that are not in sync may catch up (KIP-73).

The topic names the replicas, by leaders and by followers. Each node has a rate for what it sends as a leader, and one
for what it gets as a follower.
"""

from __future__ import annotations

from ...coordinator.metadata.state import BROKER
from ..settings import Settings
from .partition import Partition

UNLIMITED = 2**63 - 1  # Kafka's default
LEADER = "leader.replication.throttled.replicas", "leader.replication.throttled.rate"
FOLLOWER = "follower.replication.throttled.replicas", "follower.replication.throttled.rate"
ALL_REPLICAS = "*"


class Throttle:
    """What one node sends or gets. `rate`: in bytes per second; `window_ms`: after which what was sent is forgotten, as
    in Kafka, so that something passes however low the rate is.
    """

    __slots__ = ("_at_ms", "_forgotten_ms", "_owed", "_window_ms", "rate")

    def __init__(self, rate: int, window_ms: int, now_ms: float) -> None:
        self.rate = rate
        self._window_ms = window_ms
        self._owed = 0.0  # bytes that were sent, and for which the rate has had no time yet
        self._at_ms = self._forgotten_ms = now_ms

    def wait_ms(self, now_ms: float) -> float:
        """Returns after how many milliseconds more may be sent."""
        self._owed = max(0.0, self._owed - (now_ms - self._at_ms) * self.rate / 1000)
        self._at_ms = now_ms
        if now_ms >= self._forgotten_ms:
            self._owed = 0.0
        if not self._owed:
            return 0.0
        left_ms = self._forgotten_ms - now_ms
        return min(left_ms, self._owed * 1000 / self.rate) if self.rate else left_ms

    def take(self, size: int) -> None:
        """Notes that bytes were sent."""
        self._owed += size
        self._forgotten_ms = self._at_ms + self._window_ms


class Throttles:
    """The throttles of all nodes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[tuple[str, int], Throttle] = {}
        self._named: dict[tuple[str, str], tuple[list[str], frozenset[str]]] = {}  # by topic and key

    def of(self, partition: Partition, follower: int, now_ms: float) -> list[Throttle]:
        """Returns the throttles of a replica that catches up."""
        found = []
        for (replicas, rate), node in ((LEADER, partition.leader), (FOLLOWER, follower)):
            if node is None or not self._names(partition, replicas, node):
                continue
            bytes_per_second = self._rate(rate, node)
            if bytes_per_second < UNLIMITED:
                found.append(self._throttle(rate, node, bytes_per_second, now_ms))
        return found

    def _names(self, partition: Partition, key: str, node: int) -> bool:
        """Whether the topic names a replica, or all."""
        value = self._settings.of_topic(partition.topic)[key]
        if not value:
            return False
        known = self._named.get((partition.topic, key))
        if known is None or known[0] is not value:
            known = self._named[partition.topic, key] = value, frozenset(value)
        return ALL_REPLICAS in known[1] or f"{partition.index}:{node}" in known[1]

    def _throttle(self, key: str, node: int, rate: int, now_ms: float) -> Throttle:
        found = self._known.get((key, node))
        if found is None:
            config = self._settings.config
            window_s = config["replication.quota.window.num"] * config["replication.quota.window.size.seconds"]
            found = self._known[key, node] = Throttle(rate, window_s * 1000, now_ms)
        found.rate = rate
        return found

    def _rate(self, key: str, node: int) -> int:
        image = self._settings.image
        text = image.config_of(BROKER, str(node)).get(key, image.config_of(BROKER, "").get(key))
        return UNLIMITED if text is None else int(text)
