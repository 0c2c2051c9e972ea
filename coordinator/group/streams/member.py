"""A member of a streams group (KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .tasks import NOTHING_HELD, HeldTasks

STABLE, UNREVOKED_TASKS, UNRELEASED_TASKS = 1, 2, 3  # any other state is unknown
LEAVE_STATIC_EPOCH = -2  # in a heartbeat: a static member leaves and will come back


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """A member of a streams group, as in its records. -1 of `rebalance_timeout_ms` or `topology_epoch` is unknown."""

    id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: int = STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: tuple[str, int] | None = None  # host and port for interactive queries
    client_tags: Mapping[str, str] = field(default_factory=dict)
    assigned: HeldTasks = NOTHING_HELD
    revoking: HeldTasks = NOTHING_HELD

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state == STABLE and self.epoch == target_epoch

    def weighs(self) -> tuple[object, ...]:
        """What calls for another assignment when it changes for a static member."""
        return self.topology_epoch, self.rack_id, self.client_tags, self.process_id
