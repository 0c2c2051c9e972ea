"""What replies to members of a streams group say besides their tasks (KIP-1071)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Code(IntEnum):
    """The status codes of StreamsGroupHeartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class Status(NamedTuple):
    """A status with the words for the application's log."""

    code: Code
    detail: str
