"""Subscriptions to metrics of clients (KIP-714): to whom they apply, and what a client is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.checksum import crc32c
from ..hashing import java_order
from ..metadata.client_metrics import STORED, patterns_of

if TYPE_CHECKING:
    from ..group.regex import Pattern

ALL_METRICS = "*"
INTERVAL_MS_DEFAULT = int(STORED["interval.ms"].default or 0)
Attributes = Mapping[str, str | None]
"""What patterns are compared with, by the names in `client_metrics.MATCHED`."""


class Wanted(NamedTuple):
    """What a client is asked for. `metrics`: prefixes of names, `*` for all; none if no subscription applies."""

    metrics: tuple[str, ...]
    interval_ms: int
    subscription_id: int


@dataclass(frozen=True, slots=True)
class Subscription:
    """A configuration resource of client metrics."""

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, Pattern]

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Subscription:
        """Returns the subscription with these values. Raises ApiError(INVALID_CONFIG): a data directory of Kafka can
        have patterns that RE2 does not know.
        """
        parsed = {
            name: STORED[name].parse(values.get(name, STORED[name].default)) for name in ("metrics", "interval.ms")
        }
        return cls(tuple(java_order(dict.fromkeys(parsed["metrics"]))), parsed["interval.ms"], patterns_of(values))

    def applies_to(self, attributes: Attributes) -> bool:
        """Whether a client with these attributes is asked for the metrics."""
        for attribute, pattern in self.patterns.items():
            value = attributes[attribute]
            if value is None or not pattern.fullmatch(value):
                return False
        return True


def wanted_of(subscriptions: Mapping[str, Subscription], attributes: Attributes, instance_id: bytes) -> Wanted:
    """Returns what a client is asked for: the metrics of all subscriptions that apply, at the shortest interval. The
    order of the metrics, from which the subscription id is made, is that of Java's sets.
    """
    interval_ms = INTERVAL_MS_DEFAULT
    metrics: dict[str, None] = {}
    for name in java_order(subscriptions):
        one = subscriptions[name]
        if one.applies_to(attributes):
            metrics.update(dict.fromkeys(one.metrics))
            interval_ms = min(interval_ms, one.interval_ms)
    ordered = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(java_order(metrics))
    return Wanted(ordered, interval_ms, _subscription_id(ordered, interval_ms, instance_id))


def _subscription_id(metrics: tuple[str, ...], interval_ms: int, instance_id: bytes) -> int:
    """Returns the checksum of what is asked for, combined with the hash of the client's id (ClientMetricsManager)."""
    both = int.from_bytes(instance_id[:8], "big") ^ int.from_bytes(instance_id[8:], "big")
    checksum: int = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    value = (checksum ^ both >> 32 ^ both) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value
