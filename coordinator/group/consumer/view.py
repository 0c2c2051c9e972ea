"""What is shown of a consumer group (KIP-848): targets beside assignments, owed revocations, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..environment import Partitions, Target
from ..modern import STABLE
from ..state import ShardState
from ..view import (
    Action,
    AwaitedView,
    GroupMemberView,
    KindView,
    RegexView,
    Steps,
    TimerView,
    WaitView,
    in_steps,
    named,
    remaining_ms,
    timers,
    topic_of,
    wait,
)
from .group import ConsumerGroup
from .member import LEAVE_STATIC_EPOCH, UNRELEASED_PARTITIONS, UNREVOKED_PARTITIONS, Member

Place = tuple[bytes, int]
STATES = {STABLE: "stable", UNREVOKED_PARTITIONS: "must revoke", UNRELEASED_PARTITIONS: "waits for partitions"}
TIMERS = {"session": "session", "revocation": "rebalance", "join": "classic-join", "sync": "classic-sync"}
"""Of a member: the names that are shown, and those in the keys of the shard's timers."""


class Snapshot:
    """A group at a moment. Its members and targets are values that are replaced and never changed."""

    def __init__(self, shard: ShardState, group: ConsumerGroup) -> None:
        self.shard = shard
        self.group_id = group.id
        self.epoch, self.assignment_epoch = group.epochs()
        self.members: list[Member] = list(group.members.values())
        self._raw = [(group.target_of(member), group.subscription_of(member)) for member in self.members]
        self.targets: list[Target] = []
        self.owners: dict[Place, str] = {}
        self.wanted: dict[Place, list[str]] = {}
        self.waits: list[WaitView] = []

    def steps(self) -> Steps[None]:
        """Looks who owns what, who lacks what of its target, and what each member must do."""
        yield from in_steps(self._raw, self._note_target)
        yield from in_steps(self.members, self._note_owner)
        yield from in_steps(zip(self.members, self.targets, strict=True), self._note_wanted)
        yield from in_steps(zip(self.members, self.targets, strict=True), self._note_wait)

    def _note_target(self, raw: tuple[Target, frozenset[str]]) -> None:
        """Leaves out topics to which the member is not subscribed any more."""
        target, names = raw
        image = self.shard.env.image
        self.targets.append({topic: of for topic, of in target.items() if image.topic_name(topic) in names})

    def _timers(self, member: Member) -> list[TimerView]:
        return timers(self.shard, ((name, (key, self.group_id, member.id)) for name, key in TIMERS.items()))

    def _note_owner(self, member: Member) -> None:
        for held in (member.assigned, member.revoking):
            for topic, of in held.items():
                for partition in of:
                    self.owners[topic, partition] = member.id

    def _note_wanted(self, found: tuple[Member, Target]) -> None:
        for place in lacking(*found):
            self.wanted.setdefault(place, []).append(found[0].id)

    # what is waited for

    def _note_wait(self, found: tuple[Member, Target]) -> None:
        """Notes what a member must do. One that only waits for others is not named."""
        one = self._wait(*found)
        if one is not None:
            self.waits.append(one)

    def _wait(self, member: Member, target: Target) -> WaitView | None:
        left = {one["timer"]: one["remaining_ms"] for one in self._timers(member)}
        session = left.get("session")
        if member.epoch == LEAVE_STATIC_EPOCH:
            return self._owing(member, "rejoin", session, member.assigned)
        if member.state == UNREVOKED_PARTITIONS:
            if member.is_classic:
                return self._owing(member, "join", left.get("join", session), member.revoking)
            return self._owing(member, "revoke", left.get("revocation"), member.revoking)
        if self._is_settled(member, target):
            return wait(member.id, "sync", left["sync"]) if "sync" in left else None
        owed = {t: {p: e for p, e in of.items() if p not in target.get(t, ())} for t, of in member.assigned.items()}
        if member.is_classic:
            return self._owing(member, "join", left.get("join", session), owed)
        return self._owing(member, "heartbeat", session, owed)

    def _is_settled(self, member: Member, target: Target) -> bool:
        """Whether no request of this member takes it any further."""
        if member.epoch != self.assignment_epoch:
            return False
        if member.state == STABLE:
            return True
        if member.state != UNRELEASED_PARTITIONS:
            return False
        held = [place in self.owners for place in lacking(member, target)]
        # a member of the classic protocol joins again when all of them are free
        return any(held) if member.is_classic else bool(held) and all(held)

    def _owing(self, member: Member, action: Action, left: int | None, owed: Partitions) -> WaitView:
        names = {name: None for t, of in owed.items() for p in of for name in self.wanted.get((t, p), ())}
        names.pop(member.id, None)
        shown = named(self.shard.env.image, owed.items())
        return wait(member.id, action, left, shown, names)

    # members

    def described(self) -> Iterator[GroupMemberView]:
        for member, target in zip(self.members, self.targets, strict=True):
            yield self._member(member, target)

    def _member(self, member: Member, target: Target) -> GroupMemberView:
        image = self.shard.env.image
        return GroupMemberView(
            member=member.id,
            protocol="classic" if member.is_classic else "consumer",
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            state=self._state(member),
            epoch=member.epoch,
            previous_epoch=member.previous_epoch,
            topics=sorted(member.topic_names),
            regex=member.topic_regex or None,
            assignors=[member.server_assignor] if member.server_assignor else [],
            assigned=named(image, member.assigned.items()),
            target=named(image, target.items()),
            revoking=named(image, member.revoking.items()),
            awaited=[
                AwaitedView(topic=topic_of(image, topic), partition=partition, held_by=self.owners.get(place))
                for place in lacking(member, target)
                for topic, partition in [place]
            ],
            timers=self._timers(member),
        )

    def _state(self, member: Member) -> str:
        if member.epoch == LEAVE_STATIC_EPOCH:
            return "away"
        if member.state == STABLE and member.epoch != self.assignment_epoch:
            return "behind"
        return STATES.get(member.state, "unknown")


def lacking(member: Member, target: Target) -> Iterator[Place]:
    """Yields the partitions of a member's target that it does not have."""
    for topic, of in target.items():
        have = member.assigned.get(topic, ())
        for partition in sorted(of):
            if partition not in have:
                yield topic, partition


def summary(group: ConsumerGroup) -> tuple[str, int]:
    """State and epoch."""
    return group.state_name(), group.epoch


def view(shard: ShardState, group: ConsumerGroup) -> Steps[KindView]:
    """Returns the group as it is now."""
    found = Snapshot(shard, group)
    first = _unassigned(shard, group)
    shown = KindView(
        group=group.id,
        kind=group.kind,
        state=group.state_name(),
        protocol_type=group.protocol_type,
        epoch=found.epoch,
        assignment_epoch=found.assignment_epoch,
        assignor=group.preferred_assignor(shard.assignors.default),
        leader=None,
        pending=[],
        regexes=_regexes(group),
        timers=timers(shard, [("assignment", ("assign", group.id))]),
        waits=(),
        members=(),
    )
    yield from found.steps()
    shown["waits"] = chain(first, found.waits)
    shown["members"] = found.described()
    return shown


def _unassigned(shard: ShardState, group: ConsumerGroup) -> list[WaitView]:
    """A new assignment is due: the next heartbeat of any member begins it, or it is being computed."""
    if group.is_empty or group.epoch <= group.assignment_epoch:
        return []
    interval_ms = shard.env.group_config(group.id, f"{group.kind}.assignment.interval.ms")
    left = group.assignment_timestamp_ms + interval_ms - shard.env.now_ms() if group.assignment_timestamp_ms else 0
    return [wait(None, "assign", remaining_ms(shard, ("assign", group.id)) or max(0, left))]


def _regexes(group: ConsumerGroup) -> list[RegexView]:
    found = []
    for regex, members in sorted(group.regex_counts.items()):
        resolved = group.regexes.get(regex)
        found.append(
            RegexView(
                regex=regex,
                members=members,
                topics=[] if resolved is None else sorted(resolved.topics),
                resolved_ms=None if resolved is None else resolved.timestamp_ms,
            )
        )
    return found
