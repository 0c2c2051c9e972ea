"""A member of a consumer group (KIP-848)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..environment import Partitions
from ..modern import STABLE

UNREVOKED_PARTITIONS, UNRELEASED_PARTITIONS, UNKNOWN = 1, 2, 127  # other states than STABLE
LEAVE_STATIC_EPOCH = -2  # in a heartbeat: a static member leaves and will come back


@dataclass(frozen=True, slots=True)
class ClassicMetadata:
    """The subscription and assignment of a classic member in a consumer group."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a consumer group, as in its records. `rebalance_timeout_ms` -1 is unknown."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: int = STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    server_assignor: str | None = None
    classic: ClassicMetadata | None = None
    assigned: Partitions = field(default_factory=dict)
    revoking: Partitions = field(default_factory=dict)

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state == STABLE and self.epoch == target_epoch

    def subscription(self) -> tuple[object, ...]:
        """The fields of a member metadata record."""
        return (
            self.instance_id,
            self.rack_id,
            self.rebalance_timeout_ms,
            self.client_id,
            self.client_host,
            self.topic_names,
            self.topic_regex,
            self.server_assignor,
            self.classic,
        )

    def current(self) -> tuple[object, ...]:
        """The fields of a current assignment record."""
        return self.epoch, self.previous_epoch, self.state, self.assigned, self.revoking
