"""Who assigns partitions in classic groups, and what members say that they own (KIP-429, KIP-814)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...protocol import codec, schema
from ...protocol import messages as m
from ...protocol.errors import MalformedMessage
from ..events import Reply, Request
from ..rule import Needs, Recent, Rule, rule
from .classic_groups import Member

CONSUMER: Final = "consumer"
JOIN: Final = ("JoinGroup", "SyncGroup")
TOLD_SINCE: Final = 5  # version of SyncGroup that has the protocol
Partitions = frozenset[tuple[str, int]]


def embedded(name: str, data: bytes) -> Any:
    """A message of the protocol of consumers, as JoinGroup and SyncGroup carry it; None if it is none."""
    version = int.from_bytes(data[:2], "big", signed=True)
    if len(data) < 2 or version < 0:
        return None
    try:
        return codec.parse(name, min(version, schema.load(name).valid.high), data, 2)
    except MalformedMessage:
        return None


def assigned(synced: m.SyncGroupResponse) -> Partitions | None:
    """The partitions that a SyncGroup gave; None if they cannot be read."""
    found: m.ConsumerProtocolAssignment | None = embedded("ConsumerProtocolAssignment", bytes(synced.assignment))
    if found is None:
        return None if synced.assignment else frozenset()
    return frozenset((one.topic, partition) for one in found.assigned_partitions for partition in one.partitions)


def owned(joining: m.JoinGroupRequest) -> Partitions:
    """The partitions that a member says that it owns; none for an eager one."""
    for protocol in joining.protocols:
        found: m.ConsumerProtocolSubscription | None = embedded(
            "ConsumerProtocolSubscription", bytes(protocol.metadata)
        )
        if found is not None and found.owned_partitions:
            return frozenset((one.topic, number) for one in found.owned_partitions for number in one.partitions)
    return frozenset()


@dataclass(slots=True)
class _Assigned:
    """What a member has. `before`: what it had, and may still commit; with what was assigned by replies that may have
    been lost.
    """

    partitions: Partitions
    before: Partitions
    request: Request
    reply: Reply

    def may_have(self, request: Request) -> Partitions:
        """What the member can have when it sends a request: over another connection than that of the last assignment
        also what was before, because the reply can be lost with its connection.
        """
        return self.partitions | self.before if request.is_elsewhere(self.request) else self.partitions


class Assigned(Rule):
    """Knows what each member of a group of consumers was assigned."""

    def __init__(self) -> None:
        super().__init__()
        self.assigned: Recent[Member, _Assigned] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.SyncGroupRequest), reply.of(m.SyncGroupResponse)
        if asked is None or found is None or found.error_code:
            return
        at = asked.group_id, asked.member_id
        partitions, before = assigned(found), self.assigned.get(at)
        if partitions is None or (found.protocol_type not in (None, CONSUMER)):
            self.assigned.pop(at, None)
        else:
            had = before.may_have(request) if before is not None else frozenset()
            self.assigned[at] = _Assigned(partitions, had, request, reply)


@rule(
    "KIP-429.claims-own",
    "classic-group",
    apis=JOIN,
    source="KIP-429",
    why="The leader leaves partitions with who claims them: with a wrong claim two members read the same partition.",
)
class ClaimsOwn(Assigned):
    """A member that joins again claims only partitions that it was assigned."""

    def asked(self, request: Request) -> None:
        joining = request.of(m.JoinGroupRequest)
        has = self.assigned.get((joining.group_id, joining.member_id)) if joining is not None else None
        if joining is None or has is None or joining.protocol_type != CONSUMER:
            return
        other = owned(joining) - has.may_have(request)
        if not other:
            self.kept()
        else:
            words = ", ".join(f"{topic}-{one}" for topic, one in sorted(other)[:5])
            self.fail(f"claims {words}, which it was not assigned", has.request, has.reply, request)


@dataclass(slots=True)
class _Owes:
    """A member that has to give up partitions, and until when it has to join again."""

    until_us: int
    request: Request
    reply: Reply


@rule(
    "KIP-429.rejoins-after-revocation",
    "classic-group",
    apis=(*JOIN, "Heartbeat", "LeaveGroup"),
    needs=Needs(answers=("JoinGroup", "SyncGroup")),
    source="KIP-429",
    why="What it gave up is assigned to another member only in the rebalance that follows.",
)
class RejoinsAfterRevocation(Rule):
    """A member that a cooperative rebalance takes partitions from joins again within its rebalance timeout."""

    def __init__(self) -> None:
        super().__init__()
        self._claims: Recent[Member, tuple[Partitions, int]] = Recent()  # and the rebalance timeout
        self._owes: Recent[Member, _Owes] = Recent()

    def asked(self, request: Request) -> None:
        found = request.message
        if isinstance(found, m.JoinGroupRequest | m.LeaveGroupRequest):
            ids = (found.member_id,) if isinstance(found, m.JoinGroupRequest) else _leaving(found)
            for one in ids:
                if self._owes.pop((found.group_id, one), None) is not None:
                    self.kept()
        elif isinstance(found, m.HeartbeatRequest):
            owes = self._owes.get((found.group_id, found.member_id))
            if owes is not None and request.mono_us > owes.until_us:
                self.fail("partitions were taken away, and it did not join again", owes.request, owes.reply, request)
                del self._owes[found.group_id, found.member_id]

    def answered(self, request: Request, reply: Reply) -> None:
        joined, synced = reply.of(m.JoinGroupResponse), reply.of(m.SyncGroupResponse)
        joining, syncing = request.of(m.JoinGroupRequest), request.of(m.SyncGroupRequest)
        if joined is not None and joining is not None and not joined.error_code:
            self._claims[joining.group_id, joined.member_id] = owned(joining), joining.rebalance_timeout_ms
        elif synced is not None and syncing is not None and not synced.error_code:
            at = syncing.group_id, syncing.member_id
            claimed = self._claims.pop(at, None)
            has = assigned(synced)
            if claimed is not None and has is not None and not claimed[0] <= has:
                self._owes[at] = _Owes(reply.mono_us + claimed[1] * 1000, request, reply)


@dataclass(slots=True)
class _Held:
    """What a member has in hand, of that what it has committed, and what its last JoinGroup gave up."""

    partitions: Partitions
    committed: Partitions = frozenset()
    given_up: Partitions = frozenset()
    joined: Request | None = None


@rule(
    "KIP-429.commits-before-revoke",
    "classic-group",
    apis=(*JOIN, "OffsetCommit"),
    needs=Needs(answers=("SyncGroup",)),
    source="KIP-429",
    why="Who has the partition next begins where it was committed then: what is committed later is read twice.",
    severity="warning",
)
class CommitsBeforeRevoke(Rule):
    """A member commits offsets of partitions before the JoinGroup that gives them up, not after it."""

    def __init__(self) -> None:
        super().__init__()
        self._held: Recent[Member, _Held] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.SyncGroupRequest), reply.of(m.SyncGroupResponse)
        has = assigned(found) if found is not None and not found.error_code else None
        if asked is None or has is None:
            return
        before = self._held.setdefault((asked.group_id, asked.member_id), _Held(frozenset()))
        before.partitions |= has
        before.given_up -= has

    def asked(self, request: Request) -> None:
        found = request.message
        if not isinstance(found, m.JoinGroupRequest | m.OffsetCommitRequest):
            return
        held = self._held.get((found.group_id, found.member_id))
        if held is None:
            return
        if isinstance(found, m.OffsetCommitRequest):
            self._commits(held, found, request)
            return
        claimed = owned(found)
        given_up = held.partitions - claimed
        if given_up & held.committed:
            self.kept()
        held.partitions, held.committed = claimed, held.committed & claimed
        held.given_up, held.joined = held.given_up | given_up, request

    def _commits(self, held: _Held, found: m.OffsetCommitRequest, request: Request) -> None:
        named = {(topic.name, one.partition_index) for topic in found.topics for one in topic.partitions if topic.name}
        late = sorted(named & held.given_up)
        held.committed |= named & held.partitions
        if late:
            words = ", ".join(f"{topic}-{one}" for topic, one in late[:5])
            self.fail(f"commits {words}, which it gave up", held.joined, request)


def _leaving(found: m.LeaveGroupRequest) -> list[str]:
    return [found.member_id, *(one.member_id for one in found.members)]


@dataclass(slots=True)
class _Joined:
    """What the reply to a JoinGroup said. `protocol`: its type and name."""

    generation: int
    is_leader: bool
    is_skipped: bool
    members: frozenset[str]
    protocol: tuple[str | None, str | None]
    request: Request
    reply: Reply


class Joined(Rule):
    """Knows the last JoinGroup of each member."""

    def __init__(self) -> None:
        super().__init__()
        self.joined: Recent[Member, _Joined] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if asked is None or found is None or found.error_code:
            return
        self.joined[asked.group_id, found.member_id] = _Joined(
            found.generation_id,
            found.leader == found.member_id,
            found.skip_assignment,
            frozenset(one.member_id for one in found.members),
            (found.protocol_type, found.protocol_name),
            request,
            reply,
        )

    def of(self, request: Request) -> tuple[m.SyncGroupRequest, _Joined] | None:
        """A SyncGroup of the generation that its member joined last, with what the reply to that said."""
        found = request.of(m.SyncGroupRequest)
        joined = self.joined.get((found.group_id, found.member_id)) if found is not None else None
        if found is None or joined is None or found.generation_id != joined.generation:
            return None
        return found, joined


@rule(
    "classic-group.each-member-assigned",
    "classic-group",
    apis=JOIN,
    source="Kafka protocol",
    why="A member that the leader leaves out waits for nothing, and one that is gone keeps its partitions.",
)
class EachMemberAssigned(Joined):
    """The leader of a group sends an assignment for each member of its generation, and for no other."""

    def asked(self, request: Request) -> None:
        known = self.of(request)
        if known is None:
            return
        synced, joined = known
        if not joined.is_leader or joined.is_skipped:
            return
        given = {one.member_id for one in synced.assignments}
        if joined.members == given:
            self.kept()
        else:
            words = ", ".join(sorted(joined.members ^ given)[:5])
            self.fail(f"assignments and members differ in {words}", joined.request, joined.reply, request)


@rule(
    "classic-group.leader-assigns",
    "classic-group",
    apis=JOIN,
    source="Kafka protocol",
    why="Only the leader knows the members; what others send is ignored.",
)
class LeaderAssigns(Joined):
    """A member that does not lead its group sends SyncGroup without assignments."""

    def asked(self, request: Request) -> None:
        known = self.of(request)
        if known is None or known[1].is_leader:
            return
        synced, joined = known
        if synced.assignments:
            words = f"assignments of {synced.member_id}, which is not the leader"
            self.fail(words, joined.request, joined.reply, request)
        else:
            self.kept()


@rule(
    "KIP-814.assignment-skipped",
    "classic-group",
    apis=JOIN,
    source="KIP-814",
    why="The members have their partitions still; another assignment would be ignored, or move them.",
)
class AssignmentSkipped(Joined):
    """A static leader that comes again sends no assignment if the reply to its JoinGroup says so."""

    def asked(self, request: Request) -> None:
        known = self.of(request)
        if known is None or not known[1].is_skipped:
            return
        if known[0].assignments:
            self.fail("assignments after skip_assignment", known[1].request, known[1].reply, request)
        else:
            self.kept()


@rule(
    "KIP-559.protocol-sent",
    "classic-group",
    apis=JOIN,
    source="KIP-559",
    why="The coordinator refuses a member that means another protocol (INCONSISTENT_GROUP_PROTOCOL).",
)
class ProtocolSent(Joined):
    """SyncGroup names the protocol that JoinGroup has chosen (since version 5)."""

    def asked(self, request: Request) -> None:
        known = self.of(request)
        if known is None or request.version < TOLD_SINCE:
            return
        synced, joined = known
        kind, name = joined.protocol  # JoinGroup has a type since version 7
        if synced.protocol_name == name and kind in (None, synced.protocol_type):
            self.kept()
        else:
            words = (
                f"{synced.protocol_type} {synced.protocol_name}, and {' '.join(map(str, joined.protocol))} was chosen"
            )
            self.fail(f"protocol {words}", joined.request, joined.reply, request)


@rule(
    "classic-group.protocols-complete",
    "classic-group",
    apis=("JoinGroup",),
    source="Kafka protocol",
    why="The coordinator chooses one that all members have, and refuses a member without any.",
)
class ProtocolsComplete(Rule):
    """JoinGroup has a protocol type, and at least one protocol, each once."""

    def asked(self, request: Request) -> None:
        found = request.of(m.JoinGroupRequest)
        if found is None:
            return
        names = [one.name for one in found.protocols]
        if found.protocol_type and names and len(set(names)) == len(names):
            self.kept()
        else:
            self.fail(f"protocol type {found.protocol_type!r} with protocols {names}", request)


@rule(
    "classic-group.commits-own",
    "classic-group",
    apis=("SyncGroup", "OffsetCommit"),
    needs=Needs(asks=("OffsetCommit",), answers=("SyncGroup",)),
    source="Kafka protocol",
    why="Whoever has the partition now commits, too: its offset goes back, and records are read twice.",
    severity="warning",
)
class CommitsOwn(Assigned):
    """A member commits offsets of partitions that it has, or had before the last rebalance."""

    def asked(self, request: Request) -> None:
        found = request.of(m.OffsetCommitRequest)
        has = self.assigned.get((found.group_id, found.member_id)) if found is not None else None
        if found is None or has is None:
            return
        named = {(topic.name, one.partition_index) for topic in found.topics for one in topic.partitions if topic.name}
        other = sorted(named - has.partitions - has.before)
        if not other:
            self.kept()
        else:
            words = ", ".join(f"{topic}-{one}" for topic, one in other[:5])
            self.fail(f"commits {words}, which it was not assigned", has.request, has.reply, request)
