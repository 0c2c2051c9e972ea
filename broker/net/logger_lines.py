"""The lines of the loggers `kafka.request.logger` and `kafka.authorizer.logger`, which kafka-configs turns on.

- `kafka.request.logger` at DEBUG: the lines of the request log (`request_log`), for all requests.
- `kafka.authorizer.logger` at INFO: denied rights, in Kafka's words; at DEBUG also those that were granted.
"""

from __future__ import annotations

import json
import logging

from ...protocol.structs import Struct
from ..clock import Schedule
from ..loggers import TRACE, Loggers, requests, rights
from ..peer import Peer
from ..security.authorization import Audit, Caller, Check, Refusal
from .context import Context
from .request_log import line_of
from .watching import NotesRequests


class RequestLogger:
    """Logs requests and replies. `file`: the request log, if there is one too."""

    def __init__(self, schedule: Schedule, file: NotesRequests | None) -> None:
        self.schedule = schedule
        self.file = file

    def request(self, context: Context, message: Struct) -> None:
        if self.file is not None:
            self.file.request(context, message)
        self._log("request", context, message)

    def reply(self, context: Context, message: Struct) -> None:
        if self.file is not None:
            self.file.reply(context, message)
        self._log("reply", context, message)

    def _log(self, direction: str, context: Context, message: Struct) -> None:
        line = line_of(direction, context, message, self.schedule.now_ms())
        requests.debug("%s", json.dumps(line, separators=(",", ":")))


class AuthorizerLogger:
    """Logs the authorizer's decisions at a node. `file`: the audit log, if there is one too."""

    def __init__(self, levels: Loggers, file: Audit | None) -> None:
        self.levels = levels
        self.file = file

    def right(self, caller: Caller, check: Check, name: str | None, is_allowed: bool) -> None:
        """Logs a decision. `name`: of the resource; None for any resource of the type."""
        if self.file is not None:
            self.file.right(caller, check, name, is_allowed)
        level = logging.DEBUG if is_allowed else TRACE if check.refusal is Refusal.LEFT_OUT else logging.INFO
        if not self.levels.lets_pass(rights, level):
            return
        resource = check.resource_type.name.title().replace("_", "")
        rights.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s",
            caller.principal,
            "Allowed" if is_allowed else "Denied",
            check.operation.name,
            caller.client_host,
            resource,
            "*" if name is None else name,
            caller.api_name,
        )

    def login(self, peer: Peer, mechanism: str, reason: str | None) -> None:
        """Notes a log-in in the audit log; Kafka's authorizer logs none."""
        if self.file is not None:
            self.file.login(peer, mechanism, reason)
