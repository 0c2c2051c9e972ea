"""A member of a classic group, and its requests that wait."""

from __future__ import annotations

from dataclasses import dataclass

from ....protocol import messages
from ...journal import Answer, Journaled

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata."""

JoinAnswer = Answer[messages.JoinGroupResponse]
SyncAnswer = Answer[messages.SyncGroupResponse]


@dataclass(slots=True)
class ClassicMember(Journaled):
    """A member, and its parked JoinGroup and SyncGroup."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    join: JoinAnswer | None = None
    sync: SyncAnswer | None = None
    is_new: bool = False

    def metadata(self, protocol: str | None) -> bytes:
        for name, data in self.protocols:
            if name == protocol:
                return data
        return b""

    def has_satisfied_heartbeat(self) -> bool:
        """A member that waits for a reply needs no heartbeat, except for a new member,
        whose JoinGroup may wait for long.
        """
        if self.is_new:
            return False
        return self.join is not None or self.sync is not None
