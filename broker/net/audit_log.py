"""The audit log: who was denied what, and on request who was allowed what, as lines of JSON (format 1).

`KINDS` has the fields of each kind of line; the documentation is computed from it, and tests compare it with what is
written. What a reply leaves out because its client may not see it is not denied: Kafka does not log it either.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import line_log
from ..clock import Schedule
from ..line_log import LineLog, Values
from ..machine import MachineTime
from ..peer import Peer
from ..security.authorization import Caller, Check, Refusal

FORMAT = 1


class Field(NamedTuple):
    """A field of a line: its type in JSON, and what it says."""

    name: str
    type: str
    meaning: str


_BEGUN = (
    Field("format", "number", f"{FORMAT}; a field that is added does not change it"),
    Field("at_ms", "number", "when it was decided, in milliseconds since 1970"),
    Field("outcome", "text", "`denied` or `allowed`"),
    Field("principal", "text", "who asked, such as `User:alice`; `User:ANONYMOUS` before a log-in"),
    Field("peer", "text", "the address and the port of the client"),
    Field("listener", "text", "the listener of the connection"),
)
_MECHANISM = Field("mechanism", "text", "the SASL mechanism; empty if the client has not named one")
_API = Field("api", "text", "the API that was asked for")
_LOGIN = Field("api", "text", "`SaslAuthenticate`")
KINDS: dict[str, tuple[Field, ...]] = {
    "a right": (
        *_BEGUN,
        Field("client_id", "text or null", "the client's name for itself"),
        _API,
        Field("operation", "text", "what is needed, by Kafka's name, such as `WRITE`"),
        Field("resource_type", "text", "on what, by Kafka's name, such as `TOPIC`"),
        Field("resource", "text or null", "the name of the resource; null where any one of the type would do"),
    ),
    "a log-in": (*_BEGUN, _LOGIN, _MECHANISM),
    "a failed log-in": (
        *_BEGUN,
        _LOGIN,
        _MECHANISM,
        Field("reason", "text", "why it failed, at most 200 characters; the client does not get it"),
    ),
}
"""The fields of each kind of line, in their order."""


class AuditLog:
    """Makes the lines. `grants`: whether what was allowed is logged too."""

    def __init__(self, lines: LineLog, schedule: Schedule, grants: bool) -> None:
        self.lines = lines
        self.schedule = schedule
        self.grants = grants

    def right(self, caller: Caller, check: Check, name: str | None, is_allowed: bool) -> None:
        """Notes a decision. `name`: of the resource; None for any resource of the type."""
        if (self.grants if is_allowed else check.refusal is not Refusal.LEFT_OUT) and self.lines.has_room():
            self.lines.add(
                {
                    **self._begun(caller.peer, is_allowed),
                    "client_id": caller.client_id,
                    "api": caller.api_name,
                    "operation": check.operation.name,
                    "resource_type": check.resource_type.name,
                    "resource": name,
                }
            )

    def login(self, peer: Peer, mechanism: str, reason: str | None) -> None:
        """Notes a log-in, with the reason if it failed."""
        if (reason is not None or self.grants) and self.lines.has_room():
            failure = {} if reason is None else {"reason": reason}
            self.lines.add(
                {**self._begun(peer, reason is None), "api": "SaslAuthenticate", "mechanism": mechanism, **failure}
            )

    def _begun(self, peer: Peer, is_allowed: bool) -> dict[str, str | int]:
        return {
            "format": FORMAT,
            "at_ms": self.schedule.now_ms(),
            "outcome": "allowed" if is_allowed else "denied",
            "principal": peer.principal,
            "peer": peer.address,
            "listener": peer.listener,
        }


def opened(config: Values, schedule: Schedule, machine: MachineTime) -> AuditLog:
    """Opens the audit log of a configuration. Raises OSError if its file cannot be opened."""
    prefix = "ottla.audit.log"
    lines = line_log.opened("audit log", prefix, config, machine)
    return AuditLog(lines, schedule, config(f"{prefix}.grants"))
