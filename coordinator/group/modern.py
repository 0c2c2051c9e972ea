"""Modern groups, which the broker assigns: members, their targets, and the epochs of both. They are those of consumers
(KIP-848), of share consumers (KIP-932), and of Kafka Streams (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..hashing import timeline_order
from ..journaled import Journaled
from ..timeline import Timeline, TimelineDict

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FIRST_EPOCH = 1
ORDERED_MAX = 1024  # members of one group
LEAVE_EPOCH = -1  # in a heartbeat: the member leaves
STABLE = 0  # in a record of a member's current assignment: the member has its target
M = TypeVar("M")
T = TypeVar("T")
D = TypeVar("D", bound="DataclassInstance")


class Identified(Protocol):
    """A member of a group."""

    @property
    def id(self) -> str: ...


N = TypeVar("N", bound=Identified)


def with_changed(members: list[N], changed: N, replaced: Container[str | None] = ()) -> list[N]:
    """Returns members with one that has changed, in its place, or that comes, at the end. It takes the place of those
    `replaced`.
    """
    found = [
        changed if one.id == changed.id else one for one in members if one.id == changed.id or one.id not in replaced
    ]
    return found if any(one is changed for one in found) else [*found, changed]


class ModernGroup(Journaled, Generic[M, T]):
    """Changed by replay only, except for values that are computed again when they are missing. A new group has an empty
    assignment at its first epoch.
    """

    kind: ClassVar[str]
    may_expire: ClassVar[bool] = True
    __slots__ = ("_scalars", "id", "members", "members_room", "refresh_at_ms", "targets")

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        self.journal = timeline.journal
        self.id = group_id
        self.members: TimelineDict[str, M] = TimelineDict(timeline)
        self.members_room = 0  # how many members Kafka's table of them has made room for, by which it orders them
        self.targets: TimelineDict[str, T] = TimelineDict(timeline)
        self._scalars: TimelineDict[str, int] = TimelineDict(timeline)
        # when the metadata hash must be computed again, and for which epoch
        self.refresh_at_ms: tuple[int, int] = (0, 0)

    @property
    def epoch(self) -> int:
        return int(self._scalars.get("epoch", FIRST_EPOCH))

    def put_member(self, member_id: str, member: M) -> None:
        self.members_room = max(self.members_room, len(self.members) + 1)  # also if it replaces one
        self.members[member_id] = member

    def in_order(self, as_of: int | None = None) -> list[M]:
        """Returns the members in Kafka's order, which is that of its table; very many members in the order in which
        they came, because to sort them takes too long for one step.
        """
        members = self.members.at(as_of)
        if len(members) > ORDERED_MAX:
            return list(members.values())
        return [members[member_id] for member_id in timeline_order(members, self.members_room)]

    def is_kept(self, config: Callable[[str], object]) -> bool:
        return False

    @property
    def metadata_hash(self) -> int:
        return int(self._scalars.get("hash", 0))

    @property
    def assignment_epoch(self) -> int:
        return int(self._scalars.get("assignment_epoch", FIRST_EPOCH))

    @property
    def assignment_timestamp_ms(self) -> int:
        return int(self._scalars.get("assignment_timestamp", 0))

    def epochs(self, as_of: int | None = None) -> tuple[int, int]:
        """Returns the epochs of the group and of its assignment."""
        return self._scalars.get("epoch", FIRST_EPOCH, as_of), self._scalars.get("assignment_epoch", FIRST_EPOCH, as_of)

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self._scalars["epoch"] = epoch
        self._scalars["hash"] = metadata_hash

    def set_assignment(self, epoch: int, timestamp_ms: int) -> None:
        self._scalars["assignment_epoch"] = epoch
        self._scalars["assignment_timestamp"] = timestamp_ms

    def may_be_assigned(self, now_ms: int, interval_ms: int) -> bool:
        """Whether the interval between two assignments of the group has passed (KIP-1263), or all members left since
        the last.
        """
        last = self.assignment_timestamp_ms
        return last == 0 or interval_ms == 0 or now_ms >= last + interval_ms

    @property
    def protocol_type(self) -> str:
        return self.kind

    @property
    def is_empty(self) -> bool:
        return not len(self.members)

    def state_name(self, as_of: int | None = None) -> str:
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        raise NotImplementedError

    def needs(self, topic: str) -> bool:
        """Whether the group's metadata hash has the topic."""
        return self.is_subscribed_to(topic)

    def check_delete(self) -> None:
        if not self.is_empty:
            raise ApiError(Errors.NON_EMPTY_GROUP)

    def check_delete_offsets(self) -> None:
        """Raises ApiError(NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND): no offset of the group may be deleted."""

    def has_readable_offsets(self, member_id: str | None, epoch: int, as_of: int | None) -> bool:
        raise NotImplementedError

    def offset_ages_from(self, commit_ms: int) -> int | None:
        return commit_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        raise NotImplementedError

    # members

    def member(self, member_id: str, as_of: int | None = None) -> M:
        """Raises ApiError(UNKNOWN_MEMBER_ID)."""
        found: M | None = self.members.get(member_id, None, as_of)
        if found is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.id}.")
        return found

    def remove_member(self, member_id: str) -> None:
        raise NotImplementedError

    def current_id(self, member_id: str, instance_id: str | None) -> str | None:
        """Returns the id of a member that had `member_id` before, which a static member may have changed;
        None if it left.
        """
        return member_id if member_id in self.members else None


def replaced(member: D, changes: Mapping[str, object]) -> D:
    """Returns a frozen dataclass object with other fields; the same object if it has them already, as that of most
    heartbeats has.
    """
    for name, value in changes.items():
        if getattr(member, name) != value:
            return replace(member, **changes)
    return member


AnyModernGroup = ModernGroup[Any, Any]
"""A modern group, where the class of its members does not matter."""
