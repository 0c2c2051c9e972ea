"""Finds what happened to groups in the records of `__consumer_offsets`, batch by batch. Pure.

The live timeline of a broker and the one of a data directory are made here, so that they are the same. A classic group
writes a record when a generation is complete; a modern group writes each step. A group that changes its kind ends as
one and begins as the other in one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ...protocol.errors import MalformedMessage
from ...protocol.records import Record
from ..format import COMMIT_KEYS
from ..packing import Packed
from .consumer.member import LEAVE_STATIC_EPOCH, UNRELEASED_PARTITIONS
from .consumer_protocol import assignment
from .events import Event, Place
from .format import GroupFormat
from .streams.member import UNRELEASED_TASKS
from .streams.tasks import NamedTasks, flat

if TYPE_CHECKING:
    from ...protocol import messages as m

    CurrentValue = m.ConsumerGroupCurrentMemberAssignmentValue | m.ShareGroupCurrentMemberAssignmentValue
    MetadataValue = m.ConsumerGroupMemberMetadataValue | m.ShareGroupMemberMetadataValue
    TargetValue = m.ConsumerGroupTargetAssignmentMemberValue | m.ShareGroupTargetAssignmentMemberValue
    StreamsCurrentValue = m.StreamsGroupCurrentMemberAssignmentValue
    StreamsTargetValue = m.StreamsGroupTargetAssignmentMemberValue

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
NameOf = Callable[[bytes], str | None]
"""The name of a topic by its id."""


class Change(NamedTuple):
    """A record about a group. `step`: the type of the record without the kind of the group. `value`: None for a
    tombstone.
    """

    kind: str
    step: str
    key: object
    value: object


@dataclass
class Held:
    """What is known of a member."""

    says: tuple[object, ...] = ()
    epoch: int = -1
    state: int = -1
    assigned: frozenset[Place] = frozenset()
    revoking: frozenset[Place] = frozenset()


@dataclass
class Story:
    """One group."""

    name_of: NameOf
    kind: str = ""
    epoch: int = -1
    assigned_epoch: int = -1
    members: dict[str, Held] = field(default_factory=dict)
    targets: dict[str, frozenset[Place]] = field(default_factory=dict)
    has_ended: bool = False

    def feed(self, changes: list[Change]) -> Iterator[Event]:
        """Yields what the records of a batch tell."""
        becomes = next((one.kind for one in changes if one.value is not None and one.kind != self.kind), None)
        if becomes is not None:
            yield Event("converted", becomes, why=self.kind) if self.kind else Event("created", becomes)
            before, self.kind = self.kind, becomes
            changes = [one for one in changes if one.kind != before]
        for one in changes:
            if one.kind == self.kind:
                steps = STREAMS_STEPS if self.kind == STREAMS else STEPS
                yield from steps[one.step](self, one.key, one.value)

    def _event(self, what: str, member: str | None = None, places: Iterable[Place] = (), why: str = "") -> Event:
        epoch = self.epoch if member is None or member not in self.members else self.members[member].epoch
        return Event(what, self.kind, epoch, member, why, tuple(sorted(places)))

    def _places(self, topics: Iterable[tuple[bytes, Iterable[int]]]) -> frozenset[Place]:
        return frozenset((self.name_of(topic) or topic.hex(), index) for topic, of in topics for index in of)

    # classic groups

    def _classic(self, key: m.GroupMetadataKey, value: m.GroupMetadataValue | None) -> Iterator[Event]:
        if value is None:
            yield from self._end()
            return
        is_next, self.epoch = value.generation != self.epoch, value.generation
        given = {one.member_id: one for one in value.members}
        for gone in [name for name in self.members if name not in given]:
            del self.members[gone]
            yield self._event("member-removed", gone)
        if is_next and given:
            yield Event("generation", CLASSIC, self.epoch, None, value.protocol or "", (), tuple(given))
        elif is_next and value.generation > 0:
            yield self._event("emptied")
        for name, one in given.items():
            is_new, held = name not in self.members, self.members.setdefault(name, Held())
            held.epoch = self.epoch
            if is_new:
                yield self._event("member-added", name, why=_client(one.client_id, one.group_instance_id))
            before, held.assigned = held.assigned, _embedded(bytes(one.assignment))
            yield from self._moved(name, before - held.assigned, held.assigned - before)

    def _moved(self, name: str, lost: frozenset[Place], got: frozenset[Place]) -> Iterator[Event]:
        if lost:
            yield self._event("revoked", name, lost)
        if got:
            yield self._event("assigned", name, got)

    # modern groups

    def _group(
        self, key: object, value: m.ConsumerGroupMetadataValue | m.ShareGroupMetadataValue | None
    ) -> Iterator[Event]:
        if value is None:
            yield from self._end()
        elif value.epoch != self.epoch:
            self.epoch = value.epoch
            yield self._event("epoch")

    def _member(
        self, key: m.ConsumerGroupMemberMetadataKey | m.ShareGroupMemberMetadataKey, value: MetadataValue | None
    ) -> Iterator[Event]:
        if value is None:
            yield from self._removed(key.member_id)
            return
        regex = getattr(value, "subscribed_topic_regex", None)
        topics = ", ".join([*value.subscribed_topic_names, *([regex] if regex else [])])
        says = (value.client_id, value.client_host, topics, getattr(value, "instance_id", None))
        yield from self._said(key.member_id, says, f"topics {topics}")

    def _removed(self, name: str) -> Iterator[Event]:
        if self.members.pop(name, None) is not None:
            yield self._event("member-removed", name)

    def _said(self, name: str, says: tuple[str, str, str, str | None], words: str) -> Iterator[Event]:
        held = self.members.get(name)
        why = f"{_client(says[0], says[3])}, {words}"
        if held is None:
            self.members[name] = Held(says)
            yield self._event("member-added", name, why=why)
        elif held.says != says:
            is_first, held.says = not held.says, says
            if not is_first:
                yield self._event("subscribed", name, why=why)

    def _assignment(
        self,
        key: object,
        value: m.ConsumerGroupTargetAssignmentMetadataValue | m.ShareGroupTargetAssignmentMetadataValue | None,
    ) -> Iterator[Event]:
        if value is not None and value.assignment_epoch != self.assigned_epoch:
            self.assigned_epoch = value.assignment_epoch
            yield Event("assignment", self.kind, value.assignment_epoch)

    def _target(
        self,
        key: m.ConsumerGroupTargetAssignmentMemberKey | m.ShareGroupTargetAssignmentMemberKey,
        value: TargetValue | None,
    ) -> Iterator[Event]:
        if value is None:
            self.targets.pop(key.member_id, None)
            return
        yield from self._is_to_have(
            key.member_id, self._places((one.topic_id, one.partitions) for one in value.topic_partitions)
        )

    def _is_to_have(self, name: str, target: frozenset[Place]) -> Iterator[Event]:
        if self.targets.get(name) != target:
            self.targets[name] = target
            yield Event("target", self.kind, self.epoch, name, "", tuple(sorted(target)))

    def _current(
        self,
        key: m.ConsumerGroupCurrentMemberAssignmentKey | m.ShareGroupCurrentMemberAssignmentKey,
        value: CurrentValue | None,
    ) -> Iterator[Event]:
        if value is None:
            yield from self._lost(key.member_id)
            return
        pending = getattr(value, "partitions_pending_revocation", ())
        assigned = self._places((one.topic_id, one.partitions) for one in value.assigned_partitions)
        revoking = self._places((one.topic_id, one.partitions) for one in pending)
        yield from self._stands(key.member_id, value, assigned, revoking)

    def _lost(self, name: str) -> Iterator[Event]:
        held = self.members.get(name)
        if held is not None and held.assigned | held.revoking:
            yield self._event("revoked", name, held.assigned | held.revoking)
            held.assigned = held.revoking = frozenset()

    def _stands(
        self,
        name: str,
        value: CurrentValue | StreamsCurrentValue,
        assigned: frozenset[Place],
        revoking: frozenset[Place],
    ) -> Iterator[Event]:
        held = self.members.setdefault(name, Held())
        before = Held(held.says, held.epoch, held.state, held.assigned, held.revoking)
        held.epoch, held.state = value.member_epoch, value.state
        held.assigned, held.revoking = assigned, revoking
        yield from self._became(name, before, held)

    def _became(self, name: str, before: Held, held: Held) -> Iterator[Event]:
        had = before.assigned | before.revoking
        if held.revoking - before.revoking:
            yield self._event("must-revoke", name, held.revoking - before.revoking)
        yield from self._moved(name, had - held.assigned - held.revoking, held.assigned - had)
        if held.epoch == LEAVE_STATIC_EPOCH:
            yield self._event("away", name)
        elif held.state == self._waiting() != before.state:
            yield self._event("waits", name)
        elif held.epoch != before.epoch:
            yield self._event("acknowledged", name)

    def _waiting(self) -> int:
        """The state of a member that waits for others."""
        return UNRELEASED_TASKS if self.kind == STREAMS else UNRELEASED_PARTITIONS

    # streams groups, whose tasks are told as partitions of their subtopologies

    def _streams_member(
        self, key: m.StreamsGroupMemberMetadataKey, value: m.StreamsGroupMemberMetadataValue | None
    ) -> Iterator[Event]:
        if value is None:
            yield from self._removed(key.member_id)
            return
        process = f"process {value.process_id}, topology {value.topology_epoch}"
        yield from self._said(key.member_id, (value.client_id, value.client_host, process, value.instance_id), process)

    def _streams_target(
        self, key: m.StreamsGroupTargetAssignmentMemberKey, value: StreamsTargetValue | None
    ) -> Iterator[Event]:
        if value is None:
            self.targets.pop(key.member_id, None)
            return
        yield from self._is_to_have(key.member_id, _tasks(value.active_tasks, value.standby_tasks, value.warmup_tasks))

    def _streams_current(
        self, key: m.StreamsGroupCurrentMemberAssignmentKey, value: StreamsCurrentValue | None
    ) -> Iterator[Event]:
        if value is None:
            yield from self._lost(key.member_id)
            return
        revoking = _tasks(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
        )
        assigned = _tasks(value.active_tasks, value.standby_tasks, value.warmup_tasks)
        yield from self._stands(key.member_id, value, assigned, revoking)

    def _topology(self, key: object, value: m.StreamsGroupTopologyValue | None) -> Iterator[Event]:
        if value is not None:
            names = ", ".join(sorted(one.subtopology_id for one in value.subtopologies)) or "none"
            yield self._event("topology", why=f"epoch {value.epoch}, subtopologies {names}")

    def _regex(
        self, key: m.ConsumerGroupRegularExpressionKey, value: m.ConsumerGroupRegularExpressionValue | None
    ) -> Iterator[Event]:
        if value is not None:
            topics = ", ".join(sorted(value.topics)) or "no topics"
            yield self._event("regex", why=f"{key.regular_expression} matches {topics}")

    def _nothing(self, key: object, value: object) -> Iterator[Event]:
        return iter(())

    def _end(self) -> Iterator[Event]:
        self.has_ended = True
        yield self._event("ended")


STEPS: dict[str, Callable[..., Iterator[Event]]] = {
    "GroupMetadata": Story._classic,
    "Metadata": Story._group,
    "MemberMetadata": Story._member,
    "TargetAssignmentMetadata": Story._assignment,
    "TargetAssignmentMember": Story._target,
    "CurrentMemberAssignment": Story._current,
    "RegularExpression": Story._regex,
    "PartitionMetadata": Story._nothing,
    "StatePartitionMetadata": Story._nothing,
    "Topology": Story._topology,
}
"""What follows from each type of record: takes the story, the key and the value."""
STREAMS_STEPS: dict[str, Callable[..., Iterator[Event]]] = {
    **STEPS,
    "MemberMetadata": Story._streams_member,
    "TargetAssignmentMember": Story._streams_target,
    "CurrentMemberAssignment": Story._streams_current,
}


class Stories:
    """The groups of one partition of `__consumer_offsets`. `name_of`: the names of topics by their ids."""

    def __init__(self, name_of: NameOf) -> None:
        self.by_group: dict[str, Story] = {}
        self._name_of = name_of
        self._format = GroupFormat()

    def feed(self, batch: Iterable[Record | Packed]) -> Iterator[tuple[str, Event]]:
        """Yields the events of a batch, each with its group. A record that cannot be read has none."""
        changes: dict[str, list[Change]] = {}
        removed: dict[str, list[Place]] = {}
        for record in batch:
            if isinstance(record, Packed) or record.key is None:
                continue
            if record.key[:2] in COMMIT_KEYS:
                self._note_removed(record, removed)
                continue
            found = self._change(record)
            if found is not None:
                changes.setdefault(found[0], []).append(found[1])
        for group, of_group in changes.items():
            story = self.by_group.get(group) or self.by_group.setdefault(group, Story(self._name_of))
            yield from ((group, event) for event in story.feed(of_group))
            if story.has_ended:
                del self.by_group[group]
        for group, places in removed.items():
            known = self.by_group.get(group)
            yield group, Event("offsets-removed", known.kind if known else CLASSIC, partitions=tuple(sorted(places)))

    def _note_removed(self, record: Record, removed: dict[str, list[Place]]) -> None:
        if record.value is None:
            decoded = self._decoded(record)
            if decoded is not None:
                key: m.OffsetCommitKey = decoded[0]  # type: ignore[assignment]
                removed.setdefault(key.group, []).append((key.topic, key.partition))

    def _change(self, record: Record) -> tuple[str, Change] | None:
        decoded = self._decoded(record)
        if decoded is None:
            return None
        key, value = decoded
        name = type(key).__name__.removesuffix("Key")
        if name == "GroupMetadata":
            return key.group, Change(CLASSIC, name, key, value)  # type: ignore[attr-defined]
        for prefix, kind in (("ConsumerGroup", CONSUMER), ("ShareGroup", SHARE), ("StreamsGroup", STREAMS)):
            if name.startswith(prefix) and name.removeprefix(prefix) in STEPS:
                return key.group_id, Change(kind, name.removeprefix(prefix), key, value)  # type: ignore[attr-defined]
        return None

    def _decoded(self, record: Record) -> tuple[object, object] | None:
        try:
            return self._format.decode(record)
        except (MalformedMessage, ValueError):
            return None


def _client(client_id: str, instance_id: object) -> str:
    return f"client {client_id or '-'}" + (f", instance {instance_id}" if instance_id else "")


def _tasks(
    active: Iterable[NamedTasks], standby: Iterable[NamedTasks], warmup: Iterable[NamedTasks]
) -> frozenset[Place]:
    """Tasks as places; the name of a copy says that it is one."""
    kinds = (("", active), (" standby", standby), (" warmup", warmup))
    return frozenset((name + kind, number) for kind, named in kinds for name, number in sorted(flat(named)))


def _embedded(data: bytes) -> frozenset[Place]:
    """The partitions of an assignment of the protocol `consumer`; nothing for another one."""
    try:
        found = assignment(data).assigned_partitions if data else []
    except MalformedMessage:
        return frozenset()
    return frozenset((one.topic, index) for one in found for index in one.partitions)
