"""A member of a classic group."""

from __future__ import annotations

from dataclasses import dataclass

from ....protocol import messages
from ...journal import Answer
from ...journaled import Journaled

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata."""

JoinAnswer = Answer[messages.JoinGroupResponse]
SyncAnswer = Answer[messages.SyncGroupResponse]


def metadata_of(protocols: Protocols, protocol: str | None) -> bytes:
    """What a member says with a protocol; nothing if it does not support it."""
    for name, data in protocols:
        if name == protocol:
            return data
    return b""


@dataclass(slots=True)
class ClassicMember(Journaled):
    """A member. Its requests that wait, and its assignment, are in the group."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols

    def supports(self, protocol: str | None) -> bool:
        return any(name == protocol for name, _ in self.protocols)

    def metadata(self, protocol: str | None) -> bytes:
        return metadata_of(self.protocols, protocol)
