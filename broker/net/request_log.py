"""The request log: every request and reply as a line of JSON, for people and for `ottla pipeline diff` (format 1).

A line has `format`, `at_ms` (the broker's time, like the timestamps of records), `direction` (`request` or `reply`),
`peer`, `client_id`, `principal`, `api`, `key`, `version`, `correlation_id` and `message`: the fields of the message in
snake_case, bytes as hex, records as their size.
Secrets are masked: fields with credentials, and configuration values of passwords and of unknown keys, which Kafka
masks too.

A line is made on the loop, where the message cannot change meanwhile.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from ...protocol.codec import as_plain
from ...protocol.structs import Struct
from ...protocol.text import Json
from .. import line_log
from ..clock import Schedule
from ..config.secrets import masked
from ..line_log import LineLog, Values
from ..machine import MachineTime
from .context import Context

FORMAT = 1


class RequestLog:
    """Makes the lines. `apis`, `clients`: those that are logged; all if empty."""

    def __init__(self, lines: LineLog, schedule: Schedule, apis: list[str], clients: list[str]) -> None:
        self.lines = lines
        self.schedule = schedule
        self.apis = frozenset(apis)
        self.clients = clients

    def request(self, context: Context, message: Struct) -> None:
        self._note("request", context, message)

    def reply(self, context: Context, message: Struct) -> None:
        self._note("reply", context, message)

    def _wants(self, context: Context) -> bool:
        if self.apis and context.api.name not in self.apis:
            return False
        return not self.clients or any(fnmatchcase(context.client_id or "", pattern) for pattern in self.clients)

    def _note(self, direction: str, context: Context, message: Struct) -> None:
        if not self._wants(context) or not self.lines.has_room():
            return
        self.lines.add(line_of(direction, context, message, self.schedule.now_ms()))


def line_of(direction: str, context: Context, message: Struct, at_ms: int) -> dict[str, Json]:
    """Returns the line of a request or a reply."""
    return {
        "format": FORMAT,
        "at_ms": at_ms,
        "direction": direction,
        "peer": context.client_address,
        "client_id": context.client_id,
        "principal": context.principal,
        "api": context.api.name,
        "key": context.api.key,
        "version": context.version,
        "correlation_id": context.correlation_id,
        "message": masked(as_plain(message)),
    }


def opened(config: Values, schedule: Schedule, machine: MachineTime) -> RequestLog:
    """Opens the request log of a configuration. Raises OSError if its file cannot be opened."""
    prefix = "ottla.request.log"
    lines = line_log.opened("request log", prefix, config, machine)
    return RequestLog(lines, schedule, config(f"{prefix}.apis"), config(f"{prefix}.clients"))
