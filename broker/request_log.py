"""The request log: every request and reply as a line of JSON, for people and later tools (format 1).

A line has `format`, `at_ms`, `direction` (`request` or `reply`), `peer`, `client_id`, `api`, `key`, `version`, `correlation_id` and
`message`: the fields of the message in snake_case, bytes as hex, records as their size. Fields that carry secrets are masked.
"""

from __future__ import annotations

import json
from typing import IO, Any

from ..protocol.codec import as_plain
from .context import Context

FORMAT = 1
SENSITIVE = frozenset(("auth_bytes", "hmac", "salt", "salted_password", "password"))
MASK = "***"


class RequestLog:
    """Writes lines to a file, buffered by line."""

    def __init__(self, path: str) -> None:
        self._file: IO[str] = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115  # open as long as the broker runs

    def request(self, context: Context, message: Any) -> None:
        self._write("request", context, message)

    def reply(self, context: Context, message: Any) -> None:
        self._write("reply", context, message)

    def _write(self, direction: str, context: Context, message: Any) -> None:
        line = {
            "format": FORMAT,
            "at_ms": context.broker.schedule.now_ms(),
            "direction": direction,
            "peer": context.client_address,
            "client_id": context.client_id,
            "api": context.api.name,
            "key": context.api.key,
            "version": context.version,
            "correlation_id": context.correlation_id,
            "message": masked(as_plain(message)),
        }
        self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def close(self) -> None:
        self._file.close()


def masked(plain: Any) -> Any:
    """The same without the contents of sensitive fields."""
    if isinstance(plain, dict):
        return {name: MASK if name in SENSITIVE and value else masked(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [masked(item) for item in plain]
    return plain
