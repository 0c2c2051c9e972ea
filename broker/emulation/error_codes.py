"""Error codes that an emulated release did not have yet, and what it answered instead."""

from __future__ import annotations

from typing import Protocol, cast

from ...protocol.errors import CODES
from ..net.error_counts import Plan
from .releases import Release

INSTEAD = {
    "INVALID_TIMESTAMP": "CORRUPT_MESSAGE",
    "INVALID_RECORD": "CORRUPT_MESSAGE",
    "UNSUPPORTED_COMPRESSION_TYPE": "CORRUPT_MESSAGE",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": "CORRUPT_MESSAGE",
    "KAFKA_STORAGE_ERROR": "NOT_LEADER_OR_FOLLOWER",
    "FENCED_LEADER_EPOCH": "NOT_LEADER_OR_FOLLOWER",
    "UNKNOWN_LEADER_EPOCH": "NOT_LEADER_OR_FOLLOWER",
    "OFFSET_NOT_AVAILABLE": "LEADER_NOT_AVAILABLE",
    "LISTENER_NOT_FOUND": "LEADER_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_ID": "UNKNOWN_TOPIC_OR_PARTITION",
    "INVALID_GROUP_ID": "COORDINATOR_NOT_AVAILABLE",
    "GROUP_MAX_SIZE_REACHED": "COORDINATOR_NOT_AVAILABLE",
    "PRODUCER_FENCED": "INVALID_PRODUCER_EPOCH",
    "INVALID_COMMIT_OFFSET_SIZE": "OFFSET_METADATA_TOO_LARGE",
    "POLICY_VIOLATION": "INVALID_REQUEST",
    "THROTTLING_QUOTA_EXCEEDED": "REQUEST_TIMED_OUT",
}
"""By name. What is not here becomes UNKNOWN_SERVER_ERROR."""
_INSTEAD = {CODES[name]: CODES[other] for name, other in INSTEAD.items()}


class HasCode(Protocol):
    """A part of a reply that has an error code."""

    error_code: int


class ErrorCodes:
    """The error codes of a release."""

    def __init__(self, release: Release) -> None:
        self._known = release.errors

    def of(self, code: int) -> int:
        """Returns the code that the release answers in place of another."""
        while code not in self._known:
            code = _INSTEAD.get(code, CODES["UNKNOWN_SERVER_ERROR"])
        return code

    def replace_in(self, message: object, plan: Plan) -> None:
        """Replaces the codes of a reply. Elements that are encoded already keep theirs."""
        if plan.has_code:
            coded = cast("HasCode", message)
            if coded.error_code:
                coded.error_code = self.of(int(coded.error_code))
        for name, inner in plan.lists:
            items = getattr(message, name)
            for item in items if isinstance(items, list) else ():
                self.replace_in(item, inner)
