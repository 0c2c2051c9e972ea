"""A consumer group (KIP-848): its replayed state on a timeline, and the values that follow from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar, NamedTuple

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...hashing import java_order
from ...timeline import Timeline, TimelineDict
from ..consumer_protocol import PROTOCOL_TYPE
from ..environment import Target
from ..modern import ModernGroup
from .member import UNRELEASED_PARTITIONS, Member


class Resolved(NamedTuple):
    """The topics that a regular expression matched, the metadata version it was matched against, and when."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


class Count(NamedTuple):
    """How many subscriptions lead to a topic: members that name it, and regular expressions that match it."""

    by_name: int = 0
    by_regex: int = 0


def _alike(regexes: Mapping[str, int], topics: Iterable[Count], members: int) -> bool:
    """Whether so many members name the same topics, or have the same regular expression and nothing else, as Kafka
    tells from counts: two expressions are not alike where they match the same.
    """
    if not regexes:
        return all(one.by_name == members for one in topics)
    return all(count == members for count in regexes.values()) and all(one == (0, 1) for one in topics)


class ConsumerGroup(ModernGroup[Member, Target]):
    """Members, target assignments and epochs of one group. Changed by replay only."""

    kind: ClassVar[str] = "consumer"
    __slots__ = ("assignor_votes", "owner_epochs", "regex_counts", "regexes", "static_members", "topics")

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        self.static_members: TimelineDict[str, str] = TimelineDict(timeline)
        self.owner_epochs: TimelineDict[tuple[bytes, int], int] = TimelineDict(timeline)
        self.regexes: TimelineDict[str, Resolved] = TimelineDict(timeline)
        self.regex_counts: TimelineDict[str, int] = TimelineDict(timeline)  # how many members are subscribed by each
        self.topics: TimelineDict[str, Count] = TimelineDict(timeline)
        self.assignor_votes: TimelineDict[str, int] = TimelineDict(timeline)

    @property
    def has_partition_metadata(self) -> bool:
        """Whether the log holds a record of the kind that Kafka wrote before 4.1."""
        return bool(self._scalars.get("partition_metadata", 0))

    def set_partition_metadata(self, present: bool) -> None:
        self._scalars["partition_metadata"] = int(present)

    # members

    def static_member(self, instance_id: str | None) -> Member | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return None if member_id is None else self.members.get(member_id)

    def current_id(self, member_id: str, instance_id: str | None) -> str | None:
        if member_id in self.members or instance_id is None:
            return super().current_id(member_id, instance_id)
        return self.static_members.get(instance_id)

    def set_member(self, member: Member) -> None:
        before: Member | None = self.members.get(member.id)
        if before is not None and before.instance_id is not None and before.instance_id != member.instance_id:
            self._drop_static(before)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.id
        self._count(before, member)
        self._own(before, member)
        self.put_member(member.id, member)

    def remove_member(self, member_id: str) -> None:
        before = self.members.pop(member_id)
        if before is not None:
            self._drop_static(before)
            self._count(before, None)
            self._own(before, None)

    def remove_members(self, member_ids: Iterable[str]) -> None:
        """Like `remove_member` for each, and their targets."""
        members, targets = self.members.at(), self.targets.at()
        gone = {member_id: members[member_id] for member_id in member_ids if member_id in members}
        self.targets.remove_all([member_id for member_id in gone if member_id in targets])
        self.members.remove_all(gone.keys())
        for member in gone.values():
            self._drop_static(member)
            self._own(member, None)
        for names, times in Counter(one.topic_names for one in gone.values()).items():
            for name in sorted(names):
                self._change_count(name, -times, 0)
        _tally_gone(self.regex_counts, Counter(one.topic_regex for one in gone.values()))
        _tally_gone(self.assignor_votes, Counter(one.server_assignor for one in gone.values()))

    def _drop_static(self, member: Member) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.id:
            self.static_members.pop(member.instance_id)

    def _count(self, before: Member | None, after: Member | None) -> None:
        old = before.topic_names if before else frozenset()
        new = after.topic_names if after else frozenset()
        for name in sorted(old - new):
            self._change_count(name, -1, 0)
        for name in sorted(new - old):
            self._change_count(name, 1, 0)
        _tally(self.regex_counts, before.topic_regex if before else None, after.topic_regex if after else None)
        _tally(
            self.assignor_votes, before.server_assignor if before else None, after.server_assignor if after else None
        )

    def _change_count(self, name: str, by_name: int, by_regex: int) -> None:
        found = self.topics.get(name, Count())
        changed = Count(found.by_name + by_name, found.by_regex + by_regex)
        if changed == (0, 0):
            self.topics.pop(name)
        else:
            self.topics[name] = changed

    def _own(self, before: Member | None, after: Member | None) -> None:
        owned, epochs = (_owned(after), after.epoch) if after else (set(), -1)
        if before is not None:
            for key in _owned(before) - owned:
                if self.owner_epochs.get(key) == before.epoch:
                    self.owner_epochs.pop(key)
        for key in owned:
            if self.owner_epochs.get(key) != epochs:
                self.owner_epochs[key] = epochs

    def owner_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that owns a partition or has to revoke it yet; -1 for none."""
        return int(self.owner_epochs.get((topic_id, partition), -1))

    def target_of(self, member: Member) -> Target:
        """Returns a member's target; for a static member that replaces another one, the target of that."""
        member_id = (
            self.static_members.get(member.instance_id, member.id) if member.instance_id is not None else member.id
        )
        found: Target = self.targets.get(member_id, {})
        return found

    def waits_for_others(self, member: Member) -> bool:
        """Whether other members still own partitions of a member's target assignment."""
        if member.state != UNRELEASED_PARTITIONS:
            return False
        target: Target = self.targets.get(member.id, {})
        return any(
            partition not in member.assigned.get(topic, ()) and self.owner_epoch(topic, partition) != -1
            for topic, partitions in target.items()
            for partition in partitions
        )

    # subscriptions

    def set_regex(self, regex: str, resolved: Resolved | None) -> None:
        before: Resolved | None = self.regexes.get(regex)
        old = before.topics if before else frozenset()
        new = resolved.topics if resolved else frozenset()
        for name in sorted(old - new):
            self._change_count(name, 0, -1)
        for name in sorted(new - old):
            self._change_count(name, 0, 1)
        if resolved is None:
            self.regexes.pop(regex)
        else:
            self.regexes[regex] = resolved

    def are_alike(self) -> bool:
        """Whether all members are subscribed to the same (Kafka's SubscriptionType)."""
        return _alike(dict(self.regex_counts.items()), (one for _, one in self.topics.items()), len(self.members))

    def are_alike_after(self, gone: Member, come: Member, topics: Mapping[str, Count]) -> bool:
        """The same after `come` has replaced `gone`, with `topics_after` that."""
        is_new = come.id not in self.members and come.instance_id not in self.static_members
        return _alike(self._users_after([gone], [come]), topics.values(), len(self.members) + is_new)

    def _users_after(self, gone: Iterable[Member], come: Iterable[Member]) -> dict[str, int]:
        """Returns how many members are subscribed by each expression, after `come` have replaced `gone`."""
        users = Counter(dict(self.regex_counts.items()))
        users.update(one.topic_regex for one in come if one.topic_regex)
        users.subtract(one.topic_regex for one in gone if one.topic_regex)
        return {regex: count for regex, count in users.items() if count > 0}

    def topics_after(self, gone: Iterable[Member], come: Iterable[Member]) -> dict[str, Count]:
        """Returns the subscription counts after the members `come` have replaced the members `gone`."""
        counts: dict[str, Count] = dict(self.topics.items())
        gone, come = list(gone), list(come)
        users = self._users_after(gone, come)

        def add(names: Iterable[str], by_name: int, by_regex: int) -> None:
            for name in names:
                found = counts.get(name, Count())
                counts[name] = Count(found.by_name + by_name, found.by_regex + by_regex)

        for member in gone:
            add(member.topic_names, -1, 0)
        for member in come:
            add(member.topic_names, 1, 0)
        for expression, resolved in self.regexes.items():
            if expression not in users:
                add(resolved.topics, 0, -1)
        return {name: count for name, count in counts.items() if count.by_name > 0 or count.by_regex > 0}

    def subscription_of(self, member: Member) -> frozenset[str]:
        """Returns the names of the topics that a member is subscribed to, by name or by regular expression."""
        if member.topic_regex:
            resolved: Resolved | None = self.regexes.get(member.topic_regex)
            if resolved is not None:
                return member.topic_names | resolved.topics if member.topic_names else resolved.topics
        return member.topic_names

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.topics

    def preferred_assignor(self, default: str, before: Member | None = None, after: Member | None = None) -> str:
        """Returns the assignor that most members name, after `after` has replaced `before`.

        Of two with as many votes, it is the first one in Kafka's map. A name that nobody else has goes to the front of
        it when its member is counted again: Kafka's assignors fall into one bucket of a HashMap, and are moved so.
        """
        known = dict(self.assignor_votes.items())
        votes = {name: known[name] for name in java_order(known)}
        left, came = (one.server_assignor if one is not None else None for one in (before, after))
        if left and left in votes:
            votes[left] -= 1
            if not votes[left]:
                del votes[left]
        if came in votes:
            votes[came] += 1
        elif came:
            votes = {came: 1, **votes}
        return max(votes, key=votes.__getitem__) if votes else default

    # members that speak the classic protocol

    def supports_classic(self, protocol_type: str, protocols: set[str]) -> bool:
        """Whether a classic member with these protocols may join the present classic members."""
        if protocol_type != PROTOCOL_TYPE:
            return False
        if not len(self.members):
            return bool(protocols)
        supported = [{name for name, _ in m.classic.protocols} for m in self.members.values() if m.classic is not None]
        return any(all(name in one for one in supported) for name in protocols)

    def would_be_classic_without(self, leaving: set[str]) -> bool:
        """Whether all members but those that leave speak the classic protocol."""
        return all(m.is_classic for m in self.members.values() if m.id not in leaving)

    # state

    def state_name(self, as_of: int | None = None) -> str:
        """Derived from members and epochs, and never stored. A group that does not exist is called Dead."""
        members = self.members.items(as_of)
        if not members:
            return "Empty"
        epoch, assignment_epoch = self.epochs(as_of)
        if epoch > assignment_epoch:
            return "Assigning"
        if all(m.is_reconciled_to(assignment_epoch) for _, m in members):
            return "Stable"
        return "Reconciling"

    # checks

    def check_commit(self, member_id: str, epoch: int, version: int | None = None) -> Member | None:
        """Returns None if the member may commit all offsets,
        or the member if that depends on the partition. Raises ApiError.

        `version`: of OffsetCommit; None for a commit in a transaction.
        """
        if epoch < 0 and self.is_empty:
            return None
        member = self.member(member_id)
        if not member.is_classic and version is not None and version < 9:
            raise ApiError(
                Errors.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the consumer group protocol",
            )
        if epoch == member.epoch:
            return None
        if epoch > member.epoch:
            raise ApiError(Errors.ILLEGAL_GENERATION if member.is_classic else Errors.STALE_MEMBER_EPOCH)
        return member

    def check_commit_of(self, member: Member, epoch: int, topic_id: bytes, partition: int) -> None:
        """A commit with an older epoch is valid for a partition
        that the member has had since then (KIP-1251). Raises ApiError.
        """
        assigned_at = member.assigned.get(topic_id, {}).get(partition)
        if assigned_at is None:
            assigned_at = member.revoking.get(topic_id, {}).get(partition)
        if assigned_at is None or epoch < assigned_at:
            raise ApiError(Errors.ILLEGAL_GENERATION if member.is_classic else Errors.STALE_MEMBER_EPOCH)

    def has_readable_offsets(self, member_id: str | None, epoch: int, as_of: int | None) -> bool:
        if member_id is None:
            if epoch < 0:
                return True
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)  # as in Kafka
        member = self.members.get(member_id, None, as_of)
        if member is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        if epoch != member.epoch:
            raise ApiError(Errors.ILLEGAL_GENERATION if member.is_classic else Errors.STALE_MEMBER_EPOCH)
        return True

    def tombstones(self, replaced: tuple[str, str] | None = None) -> list[CoordinatorRecord]:
        """The records that end the group. `replaced`: a member's id, and the id under which it is known by now."""
        m = messages
        ids = [replaced[1] if replaced and member_id == replaced[0] else member_id for member_id in self.members]
        records: list[CoordinatorRecord] = []
        records += [(m.ConsumerGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=i), None) for i in ids]
        records += [(m.ConsumerGroupTargetAssignmentMemberKey(group_id=self.id, member_id=i), None) for i in ids]
        records.append((m.ConsumerGroupTargetAssignmentMetadataKey(group_id=self.id), None))
        records += [(m.ConsumerGroupMemberMetadataKey(group_id=self.id, member_id=i), None) for i in ids]
        records += [
            (m.ConsumerGroupRegularExpressionKey(group_id=self.id, regular_expression=r), None) for r in self.regexes
        ]
        records.append((m.ConsumerGroupPartitionMetadataKey(group_id=self.id), None))
        records.append((m.ConsumerGroupMetadataKey(group_id=self.id), None))
        return records


def _owned(member: Member) -> set[tuple[bytes, int]]:
    owned = {(topic, p) for topic, of in member.assigned.items() for p in of}
    return owned | {(topic, p) for topic, of in member.revoking.items() for p in of}


def _tally_gone(counts: TimelineDict[str, int], gone: Counter[str] | Counter[str | None]) -> None:
    for name, times in gone.items():
        _count(counts, name, -times)


def _tally(counts: TimelineDict[str, int], before: str | None, after: str | None) -> None:
    if before == after:
        return
    _count(counts, before, -1)
    _count(counts, after, 1)


def _count(counts: TimelineDict[str, int], name: str | None, change: int) -> None:
    """Counts members by what they name; one that names nothing is not counted."""
    if not name:
        return
    count = counts.get(name, 0) + change
    if count:
        counts[name] = count
    else:
        counts.pop(name)
