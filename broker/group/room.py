"""Whether there is room for another group, and for another member.

Kafka bounds the size of each group only. The members of all groups are counted again every ten seconds at most, and
those who join are added meanwhile; so those who leave make room after that time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from ...protocol.errors import ApiError, Errors
from ..limits import GROUPS, MEMBERS, Limits
from ..steps import in_steps
from ..turn import Turn

if TYPE_CHECKING:
    from ...coordinator.group.group import Group
    from ...coordinator.group.shard import GroupShard
    from ..shards.host import ShardHost

RECOUNT_MS = 10_000
STEP_GROUPS = 2000  # counted before other events are handled


class NoRoom(ApiError):
    """GROUP_MAX_SIZE_REACHED because of a limit over all groups."""

    def __init__(self, limit: str) -> None:
        super().__init__(Errors.GROUP_MAX_SIZE_REACHED, f"The broker has as many {limit} as it may have.")


class Room:
    """The room in all groups of a broker. `hosts`: the shards that hold them, by partition."""

    def __init__(
        self,
        hosts: Mapping[int, ShardHost[GroupShard]],
        limits: Limits,
        config: Callable[[str], int],
        now_ms: Callable[[], int],
        turn: Turn,
    ) -> None:
        self._hosts = hosts
        self._limits = limits
        self._config = config
        self._now_ms = now_ms
        self._turn = turn
        self._members = 0
        self._joined = 0  # of them, since they were last counted
        self._counted_ms: int | None = None

    @property
    def groups(self) -> int:
        return sum(len(host.shard.groups) for host in self._hosts.values())

    @property
    def members(self) -> int:
        return sum(len(_members(group)) for host in self._hosts.values() for group in host.shard.groups.values())

    def check_group(self, shard: GroupShard, group_id: str) -> None:
        """Raises NoRoom: for a group that does not exist, if there are too many."""
        if group_id in shard.groups:
            return
        most = self._config("ottla.groups.max")
        if self.groups >= most:
            self._limits.reached(GROUPS, f"group {group_id}")
            raise NoRoom("groups (ottla.groups.max)")

    def check_member(self, shard: GroupShard, group_id: str, member_id: str) -> None:
        """Raises NoRoom: for a member that joins, if there are too many groups or members."""
        self.check_group(shard, group_id)
        group = shard.groups.get(group_id)
        if group is not None and member_id in _members(group):
            return
        now, most = self._now_ms(), self._config("ottla.group.members.max")
        if self._counted_ms is None or now - self._counted_ms >= RECOUNT_MS:
            self._counted_ms = now
            self._turn.background(in_steps(self._turn, self._count(), STEP_GROUPS))
        if self._members >= most:
            self._limits.reached(MEMBERS, f"group {group_id}")
            raise NoRoom("members of groups (ottla.group.members.max)")
        self._members += 1
        self._joined += 1

    def _count(self) -> Iterator[None]:
        """Counts the members of all groups; those who join meanwhile are added, as if they were not seen."""
        self._joined = found = 0
        for host in list(self._hosts.values()):
            for group in list(host.shard.groups.values()):
                found += len(_members(group))
                yield
        self._members = found + self._joined


def _members(group: Group) -> Collection[str]:
    """The ids of a group's members; every kind has them under this name."""
    members: Collection[str] = getattr(group, "members")  # noqa: B009
    return members
