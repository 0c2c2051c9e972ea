"""What all kinds of groups have in common for the shard, the offsets and the lists: the interface `Group`.

Kafka's counterpart is the interface `Group` of its group coordinator. What a request does to a group differs more, and
is in the tables of `routes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol

from ..format import CoordinatorRecord


class Group(Protocol):
    """A group of any kind."""

    id: str
    kind: ClassVar[str]
    """The type of the group in ListGroups, and the middle part of its configurations."""
    may_expire: ClassVar[bool]
    """Whether the group ends when it is empty and its last offset has expired."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type in ListGroups; None for a group that only has offsets."""

    @property
    def is_empty(self) -> bool:
        """Whether the group has no members."""

    def is_kept(self, config: Callable[[str], object]) -> bool:
        """Whether something of the group is stored elsewhere, so that it may not expire yet. `config`: returns the
        value of a broker key.
        """

    def state_name(self, as_of: int | None = None) -> str:
        """The state in ListGroups, as of a committed offset or now."""

    def is_subscribed_to(self, topic: str) -> bool: ...

    def check_delete(self) -> None:
        """Raises ApiError(NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND): the group may not be deleted."""

    def check_delete_offsets(self) -> None:
        """Raises ApiError(NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND): no offset of the group may be deleted."""

    def has_readable_offsets(self, member_id: str | None, epoch: int, as_of: int | None) -> bool:
        """Whether OffsetFetch reads offsets of the group. Raises ApiError(UNKNOWN_MEMBER_ID or STALE_MEMBER_EPOCH)."""

    def offset_ages_from(self, commit_ms: int) -> int | None:
        """The time from which the retention time of an offset counts that was committed at `commit_ms`; None while it
        may not expire (KIP-211).
        """

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that end the group."""
