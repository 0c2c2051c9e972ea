"""The coordinators' topics, which clients can read but not write."""

from __future__ import annotations

from ..coordinator.metadata.configs import INTERNAL_TOPICS


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS
