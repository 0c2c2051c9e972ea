"""What the groups that the broker assigns have in common: members, their targets, and the epochs of both (KIP-848, KIP-932)."""

from __future__ import annotations

from typing import Generic, TypeVar

from ...protocol.errors import ApiError, Errors
from ..timeline import Timeline, TimelineDict
from .environment import Target

FIRST_EPOCH = 1
M = TypeVar("M")


class ModernGroup(Generic[M]):
    """Changed by replay only."""

    __slots__ = ("_scalars", "id", "members", "refresh_at_ms", "targets")

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        self.id = group_id
        self.members: TimelineDict[str, M] = TimelineDict(timeline)
        self.targets: TimelineDict[str, Target] = TimelineDict(timeline)
        self._scalars: TimelineDict[str, int] = TimelineDict(timeline)
        self.refresh_at_ms: tuple[int, int] = (0, 0)  # when the metadata hash is to be computed anew, and the epoch it is for

    @property
    def epoch(self) -> int:
        return int(self._scalars.get("epoch", FIRST_EPOCH))

    @property
    def metadata_hash(self) -> int:
        return int(self._scalars.get("hash", 0))

    @property
    def assignment_epoch(self) -> int:
        return int(self._scalars.get("assignment_epoch", 0))

    @property
    def assignment_timestamp_ms(self) -> int:
        return int(self._scalars.get("assignment_timestamp", 0))

    def epochs(self, as_of: int | None = None) -> tuple[int, int]:
        """Of the group, and of its assignment."""
        return self._scalars.get("epoch", FIRST_EPOCH, as_of), self._scalars.get("assignment_epoch", 0, as_of)

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self._scalars["epoch"] = epoch
        self._scalars["hash"] = metadata_hash

    def set_assignment(self, epoch: int, timestamp_ms: int) -> None:
        self._scalars["assignment_epoch"] = epoch
        self._scalars["assignment_timestamp"] = timestamp_ms

    def may_be_assigned(self, now_ms: int, interval_ms: int) -> bool:
        """Assignments of one group are an interval apart (KIP-1263); 0 is a group whose members all left."""
        last = self.assignment_timestamp_ms
        return last == 0 or interval_ms == 0 or now_ms >= last + interval_ms

    @property
    def is_empty(self) -> bool:
        return not len(self.members)

    def member(self, member_id: str) -> M:
        """ApiError(UNKNOWN_MEMBER_ID)."""
        found: M | None = self.members.get(member_id)
        if found is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return found
