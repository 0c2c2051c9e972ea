"""Kafka's error codes, and the exceptions that carry them."""

from __future__ import annotations

import json
import re
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from . import schema_files


class WithError(Protocol):
    """A reply, or a part of one, that has room for an error's code and message."""

    error_code: int
    error_message: str | None


R = TypeVar("R", bound=WithError)
_CONSTRUCTS_PATH = re.compile(r"^\((?:parsing|building|\?{3})\)(?: -> |\.)?")  # how a path begins that construct made
_FACTS = json.loads(schema_files.read("errors.json"))

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

CODES: dict[str, int] = {fact["name"]: int(code) for code, fact in _FACTS.items()}
_MESSAGES: dict[int, str] = {int(code): fact["message"] for code, fact in _FACTS.items() if int(code) != 0}


def default_message(code: int) -> str | None:
    """Returns Kafka's default message for a code, for replies with a message field; None for NONE."""
    return _MESSAGES.get(code)


class MalformedMessage(ValueError):
    """Bytes that are not a valid message, or a message that its version cannot hold.

    `path` names the field (`topics[3].partitions[0].offset`); the peer's connection is closed.
    """

    def __init__(self, path: str, reason: str) -> None:
        path = _CONSTRUCTS_PATH.sub("", path).replace(" -> ", ".")
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class StringTooLong(MalformedMessage):
    """A string of a message that is to be encoded has more bytes than a string may have."""


class TooManyElements(MalformedMessage):
    """A message with more array elements and tagged fields than its reader allows."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "more elements than a message of its kind may have")


class UnsupportedVersion(ValueError):
    """The schema does not have the version."""


class ApiError(Exception):
    """An error that is sent to a client.

    `own_message`: the message for this case, or None. `message_or_default`: that message, or else Kafka's text for the
    code. `limit`: the name of the limit that was reached, if the error comes from one.
    """

    def __init__(self, code: int, message: str | None = None, *, limit: str = "") -> None:
        super().__init__(message or default_message(code))
        self.code = code
        self.own_message = message
        self.limit = limit

    @property
    def message_or_default(self) -> str | None:
        """The message for the reply: the given one, or Kafka's default for the code."""
        return self.own_message if self.own_message is not None else default_message(self.code)

    def put_into(self, reply: R, with_default: bool = True) -> R:
        """Puts the code and the message into a reply, or a part of one, that has room for both; returns it.

        `with_default`: whether Kafka gives its own message for the code in this API where there is none for the case.
        """
        reply.error_code = self.code
        reply.error_message = self.message_or_default if with_default else self.own_message
        return reply
