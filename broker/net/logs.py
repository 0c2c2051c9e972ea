"""The logs of requests and of rights: files that the configuration names, and the loggers of these names."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .. import loggers
from ..clock import Schedule
from ..config.config import Config, ConfigError
from ..line_log import Values
from ..loggers import Loggers
from ..machine import MachineTime

if TYPE_CHECKING:
    from ..security.authorization import Audit
    from .audit_log import AuditLog
    from .request_log import RequestLog
    from .watching import NotesRequests

L = TypeVar("L")


class Logs:
    """Opens the logs. Raises ConfigError if a file cannot be opened."""

    def __init__(self, config: Config, schedule: Schedule, machine: MachineTime) -> None:
        self._config, self._schedule, self._machine = config, schedule, machine
        self.requests = self._requests()
        self.audit = self._audit()

    def _requests(self) -> RequestLog | None:
        key = "ottla.request.log"
        if not self._config[key]:
            return None
        from . import request_log

        return self._log(key, request_log.opened)

    def _audit(self) -> AuditLog | None:
        key = "ottla.audit.log"
        if not self._config[key]:
            return None
        from . import audit_log

        return self._log(key, audit_log.opened)

    def _log(self, key: str, opened: Callable[[Values, Schedule, MachineTime], L]) -> L:
        path = self._config[key]
        try:
            return opened(self._config.__getitem__, self._schedule, self._machine)
        except OSError as error:
            where = self._config.where.get(key, key)
            raise ConfigError(where, f"{key}: cannot write the file {path}: {error.strerror}") from None

    def notes_of_requests(self, levels: Loggers) -> NotesRequests | None:
        """Returns what notes the requests of a node: the file, the logger, or both; None if nothing does."""
        if not levels.lets_pass(loggers.requests, logging.DEBUG):
            return self.requests
        from .logger_lines import RequestLogger

        return RequestLogger(self._schedule, self.requests)

    def notes_of_rights(self, levels: Loggers) -> Audit | None:
        """Returns what notes the rights at a node: the file, the logger, or both; None if nothing does."""
        if not levels.lets_pass(loggers.rights, logging.INFO):
            return self.audit
        from .logger_lines import AuthorizerLogger

        return AuthorizerLogger(levels, self.audit)

    def dropped_lines(self) -> int:
        """How many lines the log of requests dropped."""
        return self.requests.lines.dropped if self.requests is not None else 0

    def close(self) -> None:
        """Call it when no thread writes any more."""
        for log in (self.requests, self.audit):
            if log is not None:
                log.lines.close()
