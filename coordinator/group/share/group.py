"""Share groups: members, targets, epochs, and the share-partitions that are initialized for them (KIP-932).

Like consumer groups they are replayed state only. Unlike them, members do not own partitions exclusively, so no member
waits for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...hashing import timeline_order
from ...timeline import Timeline, TimelineDict
from ..environment import Target
from ..modern import ORDERED_MAX, ModernGroup, with_changed


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member of a share group, as in its records."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Target = field(default_factory=dict)

    def subscription(self) -> tuple[object, ...]:
        """The fields of a member metadata record."""
        return self.rack_id, self.client_id, self.client_host, self.topic_names


class TopicState(NamedTuple):
    """Partitions of a topic that are being initialized, or have been, for a share group."""

    name: str
    partitions: frozenset[int]
    since_ms: int


class Initialization(NamedTuple):
    """The fields of a ShareGroupStatePartitionMetadataValue. Times are those of the replay, as in Kafka."""

    initializing: Mapping[bytes, TopicState]
    initialized: Mapping[bytes, TopicState]
    deleting: frozenset[bytes]


NOTHING = Initialization({}, {}, frozenset())


def combined(first: Mapping[bytes, TopicState], second: Mapping[bytes, TopicState]) -> dict[bytes, TopicState]:
    """Returns the partitions of both. Name and time are those of `second` if it has the topic."""
    found = dict(first)
    for topic_id, state in second.items():
        before = found.get(topic_id)
        found[topic_id] = state if before is None else state._replace(partitions=before.partitions | state.partitions)
    return found


def without(states: Mapping[bytes, TopicState], gone: Mapping[bytes, Iterable[int]]) -> dict[bytes, TopicState]:
    """Returns the partitions of `states` that are not in `gone`, and topics without partitions that are not either."""
    found = {}
    for topic_id, state in states.items():
        left = state.partitions - frozenset(gone.get(topic_id, ()))
        if left or topic_id not in gone:
            found[topic_id] = state._replace(partitions=left)
    return found


def _alike(counts: Iterable[int], members: int) -> bool:
    return all(count == members for count in counts)


class ShareGroup(ModernGroup[ShareMember, Target]):
    """Members, target assignments and epochs of one group. Changed by replay only."""

    kind: ClassVar[str] = "share"
    may_expire: ClassVar[bool] = False
    __slots__ = ("covered", "initialized", "initialized_as", "topics")

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        # an assignment epoch whose targets have every partition that was initialized
        self.covered: tuple[int, Initialization] | None = None
        # the group's epoch, the metadata version and what was initialized when no share-partition had to be any more
        self.initialized: tuple[int, int] | None = None
        self.initialized_as: Initialization | None = None
        self.topics: TimelineDict[str, int] = TimelineDict(timeline)  # how many members are subscribed to each

    def in_order_with(self, changed: ShareMember) -> list[ShareMember]:
        """Returns the members with one that has changed, or that comes, in Kafka's order: its table has a new member of
        a share group before the target is computed, at once in its place.
        """
        members = self.members.at(None)
        if changed.id in members or len(members) >= ORDERED_MAX:
            return with_changed(self.in_order(), changed)
        with_it = {**members, changed.id: changed}
        return [with_it[one] for one in timeline_order(with_it, max(self.members_room, len(with_it)))]

    def set_member(self, member: ShareMember) -> None:
        before: ShareMember | None = self.members.get(member.id)
        self._count(before.topic_names if before else frozenset(), member.topic_names)
        self.put_member(member.id, member)

    def remove_member(self, member_id: str) -> None:
        before = self.members.pop(member_id)
        if before is not None:
            self._count(before.topic_names, frozenset())

    def _count(self, before: frozenset[str], after: frozenset[str]) -> None:
        for names, change in ((before - after, -1), (after - before, 1)):
            for name in sorted(names):
                count = self.topics.get(name, 0) + change
                if count:
                    self.topics[name] = count
                else:
                    self.topics.pop(name)

    def are_alike(self) -> bool:
        """Whether all members are subscribed to the same (Kafka's SubscriptionType)."""
        return _alike((count for _, count in self.topics.items()), len(self.members))

    def are_alike_after(self, come: ShareMember, topics: Mapping[str, int]) -> bool:
        """The same after `come` has joined or changed, with `topics_after` that."""
        return _alike(topics.values(), len(self.members) + (come.id not in self.members))

    def topics_after(self, gone: ShareMember | None, come: ShareMember | None) -> dict[str, int]:
        """Returns the subscribed topics after `come` has replaced `gone`, each of which may be None, and by how many
        members.
        """
        counts: dict[str, int] = dict(self.topics.items())
        for member, change in ((gone, -1), (come, 1)):
            for name in member.topic_names if member else ():
                counts[name] = counts.get(name, 0) + change
        return {name: count for name, count in counts.items() if count > 0}

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def has_readable_offsets(self, member_id: str | None, epoch: int, as_of: int | None) -> bool:
        return False

    def check_delete_offsets(self) -> None:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {self.id} is not a consumer group.")

    def state_name(self, as_of: int | None = None) -> str:
        return "Stable" if self.members.items(as_of) else "Empty"

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that end the group."""
        m = messages
        records: list[CoordinatorRecord] = []
        records += [(m.ShareGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=i), None) for i in self.members]
        records += [(m.ShareGroupTargetAssignmentMemberKey(group_id=self.id, member_id=i), None) for i in self.members]
        records.append((m.ShareGroupTargetAssignmentMetadataKey(group_id=self.id), None))
        records += [(m.ShareGroupMemberMetadataKey(group_id=self.id, member_id=i), None) for i in self.members]
        records.append((m.ShareGroupStatePartitionMetadataKey(group_id=self.id), None))
        records.append((m.ShareGroupMetadataKey(group_id=self.id), None))
        return records
