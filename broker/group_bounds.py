"""The keys of groups against each other: what Kafka refuses to start with (KIP-848, KIP-932, KIP-1071, KIP-1240)."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Protocol

KINDS = ("consumer", "share", "streams")
RELATIONS = {"less than": operator.lt, "less than or equal to": operator.le, "greater than or equal to": operator.ge}
BOUNDED = ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")


class Config(Protocol):
    values: dict[str, Any]


def refused(config: Config) -> tuple[str, str] | None:
    """The first key that does not go with another, and Kafka's words about it; None where all is well."""
    values = config.values
    for kind in KINDS:
        for name, relation, other in _relations(f"group.{kind}"):
            if not RELATIONS[relation](values[name], values[other]):
                return name, f"{name} must be {relation} {other}"
    name = "group.share.assignors"
    if len(values[name]) != 1:
        return name, f"{name} must contain exactly one assignor, but found {len(values[name])}"
    name = "group.coordinator.rebalance.protocols"
    if "classic" not in values[name]:
        return name, "Disabling the 'classic' protocol is not supported."
    return None


def _relations(prefix: str) -> Iterator[tuple[str, str, str]]:
    for what in BOUNDED:
        low, value, high = f"{prefix}.min.{what}", f"{prefix}.{what}", f"{prefix}.max.{what}"
        yield high, "greater than or equal to", low
        yield value, "greater than or equal to", low
        yield value, "less than or equal to", high
    yield f"{prefix}.heartbeat.interval.ms", "less than", f"{prefix}.session.timeout.ms"
    if prefix == "group.streams":
        yield f"{prefix}.num.standby.replicas", "less than or equal to", f"{prefix}.max.standby.replicas"
