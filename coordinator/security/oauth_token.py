"""What validators of OAUTHBEARER tokens return and raise, and the JSON of tokens."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from typing import NamedTuple

Claims = dict[str, object]
_ENCODED = re.compile(r"[A-Za-z0-9_-]*")


class Token(NamedTuple):
    """A valid token. `expires_at_ms`: wall time."""

    principal: str
    expires_at_ms: int


class InvalidToken(Exception):
    """A token is refused. The argument is the reason, for the log; the client gets `status` and `scope` (RFC 7628)."""

    def __init__(self, reason: str, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = "invalid_token" if scope is None else "insufficient_scope"
        self.scope = scope

    @property
    def json(self) -> str:
        """The answer for the client, by Kafka's format."""
        scope = "" if self.scope is None else f', "scope":"{self.scope}"'
        return f'{{"status":"{self.status}"{scope}}}'


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def decoded(part: str) -> bytes:
    """Decodes a part of a token, base64 for URLs without padding. Raises InvalidToken."""
    if len(part) % 4 == 1 or not _ENCODED.fullmatch(part):
        raise InvalidToken("malformed Base64 URL encoded value")
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def parse_json(data: bytes) -> object:
    """Parses the value that JSON begins with, as Jackson does; None for nothing. Raises InvalidToken."""
    try:
        text = data.decode().lstrip(" \t\r\n")
        return _DECODER.raw_decode(text)[0] if text else None
    except (ValueError, RecursionError):
        raise InvalidToken("malformed JSON") from None
