"""Share groups: their members, targets and epochs, and which share-partitions have been initialised for them (KIP-932).

Like consumer groups they are replayed state throughout; unlike them their members own nothing exclusively, so nobody waits for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...protocol import messages
from ..format import CoordinatorRecord
from ..timeline import Timeline, TimelineDict
from .environment import Target
from .modern import ModernGroup

TYPE = PROTOCOL_TYPE = "share"
UNKNOWN_NAME = "<UNKNOWN>"


@dataclass(frozen=True, slots=True)
class ShareMember:
    """A member of a share group, as the records tell it."""

    id: str
    epoch: int = 0
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Target = field(default_factory=dict)

    def subscription(self) -> tuple[Any, ...]:
        """What a member metadata record holds."""
        return self.rack_id, self.client_id, self.client_host, self.topic_names

    def with_metadata(self, value: Any) -> ShareMember:
        names = frozenset(value.subscribed_topic_names)
        return replace(self, rack_id=value.rack_id, client_id=value.client_id, client_host=value.client_host, topic_names=names)

    def with_current(self, value: Any) -> ShareMember:
        assigned = {bytes(t.topic_id): frozenset(t.partitions) for t in value.assigned_partitions}
        return replace(self, epoch=value.member_epoch, previous_epoch=value.previous_member_epoch, assigned=assigned)


class TopicState(NamedTuple):
    """Partitions of a topic that are being initialised, or have been, for a share group."""

    name: str
    partitions: frozenset[int]
    since_ms: int


class Initialization(NamedTuple):
    """What a ShareGroupStatePartitionMetadataValue holds. Times are those of the replay, as in Kafka."""

    initializing: Mapping[bytes, TopicState]
    initialized: Mapping[bytes, TopicState]
    deleting: frozenset[bytes]


NOTHING = Initialization({}, {}, frozenset())


def combined(first: Mapping[bytes, TopicState], second: Mapping[bytes, TopicState]) -> dict[bytes, TopicState]:
    """The partitions of both, with the names and times of the second where it has the topic."""
    found = dict(first)
    for topic_id, state in second.items():
        before = found.get(topic_id)
        found[topic_id] = state if before is None else state._replace(partitions=before.partitions | state.partitions)
    return found


def without(states: Mapping[bytes, TopicState], gone: Mapping[bytes, Iterable[int]]) -> dict[bytes, TopicState]:
    """What is left of some partitions."""
    found = {}
    for topic_id, state in states.items():
        left = state.partitions - frozenset(gone.get(topic_id, ()))
        if left:
            found[topic_id] = state._replace(partitions=left)
    return found


def initialization_of(value: Any, now_ms: int) -> Initialization:
    def states(topics: Any) -> dict[bytes, TopicState]:
        return {bytes(t.topic_id): TopicState(t.topic_name, frozenset(t.partitions), now_ms) for t in topics}

    deleting = frozenset(bytes(t.topic_id) for t in value.deleting_topics)
    return Initialization(states(value.initializing_topics), states(value.initialized_topics), deleting)


def initialization_record(group_id: str, found: Initialization, image: Any) -> CoordinatorRecord:
    v = messages.ShareGroupStatePartitionMetadataValue

    def topics(states: Mapping[bytes, TopicState]) -> list[Any]:
        return [v.TopicPartitionsInfo(topic_id=i, topic_name=s.name, partitions=sorted(s.partitions)) for i, s in states.items()]

    value = v(
        initializing_topics=topics(found.initializing),
        initialized_topics=topics(found.initialized),
        deleting_topics=[v.TopicInfo(topic_id=i, topic_name=image.topic_name(i) or UNKNOWN_NAME) for i in sorted(found.deleting)],
    )
    return messages.ShareGroupStatePartitionMetadataKey(group_id=group_id), value


class ShareGroup(ModernGroup[ShareMember]):
    """Members, target assignments and epochs of one group. Changed by replay only."""

    __slots__ = ("topics",)

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        self.topics: TimelineDict[str, int] = TimelineDict(timeline)  # how many members are subscribed to each

    def set_member(self, member: ShareMember) -> None:
        before: ShareMember | None = self.members.get(member.id)
        self._count(before.topic_names if before else frozenset(), member.topic_names)
        self.members[member.id] = member

    def remove_member(self, member_id: str) -> None:
        before = self.members.pop(member_id)
        if before is not None:
            self._count(before.topic_names, frozenset())

    def _count(self, before: frozenset[str], after: frozenset[str]) -> None:
        for names, change in ((before - after, -1), (after - before, 1)):
            for name in names:
                count = self.topics.get(name, 0) + change
                if count:
                    self.topics[name] = count
                else:
                    self.topics.pop(name)

    def topics_after(self, gone: ShareMember | None, come: ShareMember | None) -> set[str]:
        """The topics that the group is subscribed to once a member has become another, or has come or gone."""
        counts: dict[str, int] = dict(self.topics.items())
        for member, change in ((gone, -1), (come, 1)):
            for name in member.topic_names if member else ():
                counts[name] = counts.get(name, 0) + change
        return {name for name, count in counts.items() if count > 0}

    def state(self, as_of: int | None = None) -> str:
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
