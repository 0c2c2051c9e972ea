"""Policies of the simulated followers: when a partition's high watermark follows its log end.

A policy is `immediate`, `lag=50ms` or `lag=50ms±20ms`, `bytes=4096` (that many bytes at the end are never replicated),
or `held` (until it is stepped or released). It is set per topic or partition, by `ottla.high.watermark` or while the
broker runs. A policy without a topic applies to topics that are not internal. A policy of the topic `*` also applies to
internal topics, so that replies of coordinators are delayed;
the metadata log follows it if it is a lag, and is never held.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..coordinator.metadata.format import CLUSTER_METADATA

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


class Policies:
    """The policies in force. The most specific one counts: of a partition, of a topic, of all topics that are not
    internal, of all topics.
    """

    def __init__(self) -> None:
        self.general: Policy | None = None
        self.everywhere = IMMEDIATE
        self.by_topic: dict[str, Policy] = {}
        self.by_partition: dict[tuple[str, int], Policy] = {}

    def configure(self, entries: list[str]) -> None:
        """Parses `ottla.high.watermark`: a comma-separated list of `policy`,
        `topic:policy` or `*:policy`. Raises ValueError.
        """
        for entry in entries:
            topic, colon, text = entry.rpartition(":")
            self.set(topic if colon else None, None, parse_policy(text))

    def clear(self) -> None:
        """Forgets every policy: high watermarks follow at once."""
        self.general, self.everywhere = None, IMMEDIATE
        self.by_topic.clear()
        self.by_partition.clear()

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

    def of(self, topic: str, partition: int, internal: bool) -> Policy:
        found = self.by_partition.get((topic, partition)) or self.by_topic.get(topic)
        if found is not None:
            return found
        return self.everywhere if internal or self.general is None else self.general

    def metadata_lag_ms(self) -> int:
        """How long records of the metadata log take to commit."""
        policy = self.by_topic.get(CLUSTER_METADATA, self.everywhere)
        return policy.lag_ms if policy.kind == "lag" else 0
