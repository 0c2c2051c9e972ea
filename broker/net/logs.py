"""The logs of requests and of denied rights, if the configuration names their files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ..clock import Schedule
from ..config.config import Config, ConfigError
from ..line_log import Values
from ..machine import MachineTime

if TYPE_CHECKING:
    from .audit_log import AuditLog
    from .request_log import RequestLog

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

    def dropped_lines(self) -> int:
        """How many lines the log of requests dropped."""
        return self.requests.lines.dropped if self.requests is not None else 0

    def close(self) -> None:
        """Call it when no thread writes any more."""
        for log in (self.requests, self.audit):
            if log is not None:
                log.lines.close()
