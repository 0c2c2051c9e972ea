"""Policies of the simulated followers: when a partition's high watermark follows its log end.

A policy is `immediate`, `lag=50ms` or `lag=50ms±20ms`, `bytes=4096` (that many bytes at the end are never replicated),
or `held` (until it is stepped or released). It is set per topic or partition, by `ottla.high.watermark` or while the
broker runs. A policy without a topic applies to topics that are not internal. A policy of the topic `*` also applies to
internal topics, so that replies of coordinators are delayed;
the metadata log follows it if it is a lag, and is never held.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from ..coordinator.metadata.format import CLUSTER_METADATA
from .internal_topics import is_internal

V = TypeVar("V")
Place = tuple[str | None, int | None]
"""A topic, None for all that are not internal, or `*`; and a partition, or None for all of the topic."""
_LAG = re.compile(r"lag=(?P<lag>\d{1,12})ms(?:(?:±|\+-)(?P<jitter>\d{1,12})ms)?")
_BYTES = re.compile(r"bytes=(?P<bytes>\d{1,18})")


class Policy(NamedTuple):
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


def _most_specific(table: Mapping[Place, V], topic: str, partition: int, internal: bool) -> V | None:
    """The value of a partition, from where it is set, the most specific place first."""
    places: Sequence[Place] = (
        (topic, partition),
        (topic, None),
        *(() if internal else ((None, None),)),
        (EVERY_TOPIC, None),
    )
    return next((table[place] for place in places if place in table), None) if table else None


def _is_inside(place: Place, outer: Place) -> bool:
    """Whether what is said of the outer place is said of every partition of the other, too."""
    if outer[0] in (None, EVERY_TOPIC):
        return outer[0] == EVERY_TOPIC or place[0] is None or not (place[0] == EVERY_TOPIC or is_internal(place[0]))
    return place[0] == outer[0] and outer[1] in (None, place[1])


def _forget(table: dict[Place, V], outer: Place) -> None:
    for place in [one for one in table if _is_inside(one, outer)]:
        del table[place]


class Policies:
    """The policies in force. The most specific one counts: of a partition, of a topic, of all topics that are not
    internal, of all topics. A release also takes away what is more specific.
    """

    def __init__(self) -> None:
        self.general: Policy | None = None
        self.everywhere = IMMEDIATE
        self.by_topic: dict[str, Policy] = {}
        self.by_partition: dict[Place, Policy] = {}
        self.by_follower: dict[int, dict[Place, Policy]] = {}  # policies of followers, by node
        self.in_sync: dict[Place, int] = {}  # how many replicas are in sync, by hand

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

    def release(self, topic: str | None, partition: int | None) -> None:
        """Lets these high watermarks follow at once, whatever was said of some of them alone."""
        for name in [one for one in self.by_topic if _is_inside((one, None), (topic, partition))]:
            del self.by_topic[name]
        _forget(self.by_partition, (topic, partition))
        self.set(topic, partition, IMMEDIATE)

    def set_follower(self, topic: str | None, partition: int | None, node: int, policy: Policy) -> None:
        """Sets the policy of the followers on a node."""
        self.by_follower.setdefault(node, {})[topic, partition] = policy

    def release_follower(self, topic: str | None, partition: int | None, node: int) -> None:
        """Lets the followers on a node have the policies of their partitions again."""
        _forget(self.by_follower.get(node, {}), (topic, partition))

    def of_follower(self, topic: str, partition: int, internal: bool, node: int) -> Policy | None:
        return _most_specific(self.by_follower.get(node, {}), topic, partition, internal)

    def configure_in_sync(self, entries: list[str]) -> None:
        """Parses `ottla.isr.size`: a comma-separated list of `size` or `topic:size`. Raises ValueError."""
        for entry in entries:
            topic, colon, size = entry.rpartition(":")
            if not size.isdecimal():
                raise ValueError(f"{entry!r} is not a number of replicas; use 1 or orders:1")
            self.set_in_sync(topic if colon else None, None, int(size))

    def set_in_sync(self, topic: str | None, partition: int | None, size: int | None) -> None:
        """Sets how many replicas are said to be in sync; None: as many as are."""
        if size is None:
            _forget(self.in_sync, (topic, partition))
        else:
            self.in_sync[topic, partition] = size

    def in_sync_of(self, topic: str, partition: int, internal: bool) -> int | None:
        return _most_specific(self.in_sync, topic, partition, internal)

    def of(self, topic: str, partition: int, internal: bool) -> Policy:
        found = self.by_partition.get((topic, partition)) or self.by_topic.get(topic)
        if found is not None:
            return found
        return self.everywhere if internal or self.general is None else self.general

    def metadata_lag_ms(self) -> int:
        """How long records of the metadata log take to commit."""
        policy = self.by_topic.get(CLUSTER_METADATA, self.everywhere)
        return policy.lag_ms if policy.kind == "lag" else 0
