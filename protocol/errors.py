"""Kafka's error codes, and the exceptions by which our own code speaks of them."""

from __future__ import annotations

import json
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING

_FACTS = json.loads((Path(__file__).resolve().parent.parent / "schemas" / "errors.json").read_text())

if TYPE_CHECKING:

    class ErrorCode(int):
        """An error code of the protocol; the members are Kafka's names (`ErrorCode.NOT_LEADER_OR_FOLLOWER`)."""

        name: str

        def __class_getitem__(cls, name: str) -> ErrorCode: ...

    class _Codes:
        def __call__(self, code: int) -> ErrorCode: ...
        def __getattr__(self, name: str) -> ErrorCode: ...

    Errors: _Codes
else:
    ErrorCode = IntEnum("ErrorCode", {fact["name"]: int(code) for code, fact in _FACTS.items()})
    Errors = ErrorCode

_MESSAGES: dict[int, str] = {int(code): fact["message"] for code, fact in _FACTS.items() if int(code) != 0}


def default_message(code: int) -> str | None:
    """What Kafka says of a code where a reply has room for a message; None for NONE."""
    return _MESSAGES.get(code)


class MalformedMessage(ValueError):
    """Bytes that are not the message they claim to be, or a message that its version cannot hold.

    `path` names the field (`topics[3].partitions[0].offset`); the peer's connection is closed.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class UnsupportedVersion(ValueError):
    """A schema has no such version."""


class ApiError(Exception):
    """An error that a peer is told: its code, and a message where the reply has room for one."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message or default_message(code))
        self.code = code
        self.message = message

    @property
    def text(self) -> str | None:
        """The message for the reply: ours, or Kafka's for the code."""
        return self.message if self.message is not None else default_message(self.code)
