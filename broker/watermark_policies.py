"""Policies of the simulated followers: when a partition's high watermark follows its log end.

A policy is `immediate`, `lag=50ms` or `lag=50ms±20ms`, `bytes=4096` (that many bytes at the end are never replicated),
or `held` (until it is stepped or released). It is set per topic or partition, by `ottla.high.watermark` or while the
broker runs. A policy without a topic applies to topics that are not internal. A policy of the topic `*` also applies to
internal topics, so that replies of coordinators are delayed;
the metadata log follows it if it is a lag, and is never held.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from ..coordinator.metadata.format import CLUSTER_METADATA

K = TypeVar("K")
V = TypeVar("V")
_LAG = re.compile(r"lag=(?P<lag>\d{1,12})ms(?:(?:±|\+-)(?P<jitter>\d{1,12})ms)?")
_BYTES = re.compile(r"bytes=(?P<bytes>\d{1,18})")


@dataclass(frozen=True, slots=True)
class Policy:
    """How the high watermark follows the log end."""

    kind: str = "immediate"
    lag_ms: int = 0
    jitter_ms: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        if self.kind == "lag":
            return f"lag={self.lag_ms}ms" + (f"±{self.jitter_ms}ms" if self.jitter_ms else "")
        return f"bytes={self.bytes}" if self.kind == "bytes" else self.kind


IMMEDIATE = Policy()
EVERY_TOPIC = "*"


def parse_policy(text: str) -> Policy:
    """Parses a policy. Raises ValueError."""
    if text in ("immediate", "held"):
        return Policy(text)
    if found := _LAG.fullmatch(text):
        return Policy("lag", lag_ms=int(found["lag"]), jitter_ms=int(found["jitter"] or 0))
    if found := _BYTES.fullmatch(text):
        return Policy("bytes", bytes=int(found["bytes"]))
    raise ValueError(f"{text!r} is not a policy; use immediate, held, lag=20ms, lag=20ms±5ms or bytes=4096")


def _places(topic: str, partition: int, internal: bool) -> Iterator[tuple[str | None, int | None]]:
    """Yields where a value for a partition may be set, the most specific place first."""
    yield topic, partition
    yield topic, None
    if not internal:
        yield None, None
    yield EVERY_TOPIC, None


class Policies:
    """The policies in force. The most specific one counts: of a partition, of a topic, of all topics that are not
    internal, of all topics.
    """

    def __init__(self) -> None:
        self.general: Policy | None = None
        self.everywhere = IMMEDIATE
        self.by_topic: dict[str, Policy] = {}
        self.by_partition: dict[tuple[str, int], Policy] = {}
        # policies of followers, by topic (None for all that are not internal), partition (None for all) and node
        self.by_follower: dict[tuple[str | None, int | None, int], Policy] = {}
        self.in_sync: dict[tuple[str | None, int | None], int] = {}  # how many replicas are in sync, by hand

    def configure(self, entries: list[str], in_sync: list[str]) -> None:
        """Parses `ottla.high.watermark`, a comma-separated list of `policy`, `topic:policy` or `*:policy`, and
        `ottla.isr.size`. Raises ValueError.
        """
        self.configure_in_sync(in_sync)
        for entry in entries:
            topic, colon, text = entry.rpartition(":")
            self.set(topic if colon else None, None, parse_policy(text))

    def clear(self) -> None:
        """Forgets every policy: high watermarks follow at once."""
        self.general, self.everywhere = None, IMMEDIATE
        for table in (self.by_topic, self.by_partition, self.by_follower, self.in_sync):
            table.clear()

    def set(self, topic: str | None, partition: int | None, policy: Policy) -> None:
        if topic == CLUSTER_METADATA and policy.kind == "held":
            raise ValueError("the high watermark of __cluster_metadata can lag but cannot be held")
        if topic is None:
            self.general = policy
        elif topic == EVERY_TOPIC:
            self.everywhere = policy
        elif partition is None:
            self.by_topic[topic] = policy
        else:
            self.by_partition[topic, partition] = policy

    def set_follower(self, topic: str | None, partition: int | None, node: int, policy: Policy | None) -> None:
        """Sets the policy of the followers on a node; None: they have those of their partitions."""
        self._set(self.by_follower, (topic, partition, node), policy)

    def of_follower(self, topic: str, partition: int, internal: bool, node: int) -> Policy | None:
        for name, index in _places(topic, partition, internal):
            found = self.by_follower.get((name, index, node))
            if found is not None:
                return found
        return None

    def configure_in_sync(self, entries: list[str]) -> None:
        """Parses `ottla.isr.size`: a comma-separated list of `size` or `topic:size`. Raises ValueError."""
        for entry in entries:
            topic, colon, size = entry.rpartition(":")
            if not size.isdecimal():
                raise ValueError(f"{entry!r} is not a number of replicas; use 1 or orders:1")
            self.set_in_sync(topic if colon else None, None, int(size))

    def set_in_sync(self, topic: str | None, partition: int | None, size: int | None) -> None:
        """Sets how many replicas are said to be in sync; None: as many as are."""
        self._set(self.in_sync, (topic, partition), size)

    def in_sync_of(self, topic: str, partition: int, internal: bool) -> int | None:
        for place in _places(topic, partition, internal) if self.in_sync else ():
            found = self.in_sync.get(place)
            if found is not None:
                return found
        return None

    @staticmethod
    def _set(table: dict[K, V], key: K, value: V | None) -> None:
        if value is None:
            table.pop(key, None)
        else:
            table[key] = value

    def of(self, topic: str, partition: int, internal: bool) -> Policy:
        found = self.by_partition.get((topic, partition)) or self.by_topic.get(topic)
        if found is not None:
            return found
        return self.everywhere if internal or self.general is None else self.general

    def metadata_lag_ms(self) -> int:
        """How long records of the metadata log take to commit."""
        policy = self.by_topic.get(CLUSTER_METADATA, self.everywhere)
        return policy.lag_ms if policy.kind == "lag" else 0
