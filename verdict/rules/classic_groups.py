"""Members of groups with the classic protocol."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Reply, Request
from ..replies import errors_of
from ..rule import Needs, OfConnections, Recent, Rule, Unfinished, rule

SETTLE_US: Final = 5_000_000  # in which requests that were on their way may still have an old generation
CANNOT_LEAVE: Final = frozenset(
    {
        Errors.NOT_COORDINATOR,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.REQUEST_TIMED_OUT,
        Errors.ILLEGAL_GENERATION,
        Errors.FENCED_INSTANCE_ID,
    }
)
Member = tuple[str, str]
"""Group and member id."""


@rule(
    "KIP-394.member-id-kept",
    "classic-group",
    apis=("JoinGroup",),
    source="KIP-394",
    why="Each join without it makes a new member, for which the others wait.",
)
class MemberIdKept(Rule):
    """A consumer joins with the member id that MEMBER_ID_REQUIRED gave it."""

    def __init__(self) -> None:
        super().__init__()
        self._given: Recent[tuple[int, str], tuple[str, Request, Reply]] = Recent()  # by connection and group

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if asked is not None and found is not None and found.error_code == Errors.MEMBER_ID_REQUIRED:
            self._given[request.connection, asked.group_id] = found.member_id, request, reply

    def asked(self, request: Request) -> None:
        asked = request.of(m.JoinGroupRequest)
        given = self._given.pop((request.connection, asked.group_id), None) if asked is not None else None
        if asked is None or given is None:
            return
        if asked.member_id == given[0]:
            self.kept()
        else:
            self.fail(f"joins as {asked.member_id!r}, and was given {given[0]!r}", given[1], given[2], request)


@rule(
    "KIP-345.static-id-sent",
    "classic-group",
    apis=("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"),
    needs=Needs(asks=("SyncGroup", "Heartbeat", "OffsetCommit"), answers=("JoinGroup",)),
    source="KIP-345",
    why="By it the broker finds out that another member with the same instance id has taken its place.",
)
class StaticIdSent(Rule):
    """A static member sends its instance id with SyncGroup, Heartbeat and OffsetCommit, too."""

    def __init__(self) -> None:
        super().__init__()
        self._instances: Recent[Member, tuple[str | None, Request]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if asked is not None and found is not None and not found.error_code and asked.group_instance_id is not None:
            self._instances[asked.group_id, found.member_id] = asked.group_instance_id, request

    def asked(self, request: Request) -> None:
        found = request.message
        if not isinstance(found, m.SyncGroupRequest | m.HeartbeatRequest | m.OffsetCommitRequest):
            return
        joined = self._instances.get((found.group_id, found.member_id))
        if joined is None:
            return
        if found.group_instance_id == joined[0]:
            self.kept()
        else:
            words = f"{request.api} with the instance id {found.group_instance_id!r} after a join as {joined[0]!r}"
            self.fail(words, joined[1], request)


@rule(
    "KIP-345.static-stays",
    "classic-group",
    apis=("JoinGroup", "LeaveGroup", "Heartbeat"),
    needs=Needs(asks=("Heartbeat", "LeaveGroup"), answers=("JoinGroup",)),
    source="KIP-345",
    why="Its partitions wait for it to come again; to leave is what makes others rebalance.",
    severity="warning",
)
class StaticStays(Rule):
    """A static member that goes does not leave the group."""

    def __init__(self) -> None:
        super().__init__()
        self._joined: Recent[Member, Request] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if asked is not None and found is not None and not found.error_code and asked.group_instance_id is not None:
            self._joined[asked.group_id, found.member_id] = request

    def asked(self, request: Request) -> None:
        beat, left = request.of(m.HeartbeatRequest), request.of(m.LeaveGroupRequest)
        if beat is not None and (beat.group_id, beat.member_id) in self._joined:
            self.kept()
        elif left is not None:
            for member_id in (left.member_id, *(one.member_id for one in left.members)):
                joined = self._joined.pop((left.group_id, member_id), None)
                if joined is not None:
                    self.fail(f"static member {member_id} leaves group {left.group_id}", joined, request)


@dataclass(slots=True)
class _Life:
    """When a member was answered last; None while it waits for a reply, which may take long, or be lost."""

    session_us: int
    last: Request
    at_us: int | None


@rule(
    "KIP-62.heartbeats-in-time",
    "classic-group",
    apis=("JoinGroup", "SyncGroup", "Heartbeat"),
    source="KIP-62",
    why="A member that is not heard of for a session is removed, and its partitions go to others.",
)
class HeartbeatsInTime(Rule):
    """A member sends heartbeats within its session timeout."""

    def __init__(self) -> None:
        super().__init__()
        self._lives: Recent[Member, _Life] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        joined, found = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if joined is not None and found is not None and not found.error_code:
            session_us = joined.session_timeout_ms * 1000
            self._lives[joined.group_id, found.member_id] = _Life(session_us, request, reply.mono_us)
            return
        life = self._life(request)
        if life is not None and reply.message is not None:
            life.at_us = reply.mono_us

    def asked(self, request: Request) -> None:
        life = self._life(request)
        if life is None:
            return
        if life.at_us is not None and not request.is_elsewhere(life.last):
            self._judge(life, request, request.mono_us - life.at_us)
        life.last, life.at_us = request, None

    def _judge(self, life: _Life, request: Request, silent_us: int) -> None:
        if silent_us <= life.session_us:
            self.kept()
        else:
            words = f"nothing for {silent_us // 1000} ms; the session timeout is {life.session_us // 1000} ms"
            self.fail(words, life.last, request)

    def _life(self, request: Request) -> _Life | None:
        found = request.message
        if not isinstance(found, m.HeartbeatRequest | m.JoinGroupRequest | m.SyncGroupRequest):
            return None
        return self._lives.get((found.group_id, found.member_id))


@rule(
    "classic-group.generation-sent",
    "classic-group",
    apis=("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"),
    needs=Needs(asks=("SyncGroup", "Heartbeat", "OffsetCommit"), answers=("JoinGroup",)),
    source="KIP-62",
    why="The generation keeps a member that was left behind from committing offsets of partitions that others have.",
)
class GenerationSent(Rule):
    """A member sends the generation that its last JoinGroup gave it."""

    def __init__(self) -> None:
        super().__init__()
        self._generations: Recent[Member, tuple[int, int, Request, Reply]] = Recent()  # and since when
        self._is_known: Recent[Member, None] = Recent()  # to members that have sent it

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if asked is not None and found is not None and not found.error_code:
            given = found.generation_id, reply.mono_us, request, reply
            self._generations[asked.group_id, found.member_id] = given
            self._is_known.pop((asked.group_id, found.member_id), None)

    def asked(self, request: Request) -> None:
        found = request.message
        if isinstance(found, m.SyncGroupRequest | m.HeartbeatRequest):
            generation = found.generation_id
        elif isinstance(found, m.OffsetCommitRequest):
            generation = found.generation_id_or_member_epoch
        else:
            return
        at = found.group_id, found.member_id
        given = self._generations.get(at)
        if given is None:
            return
        is_known = at in self._is_known or not request.is_elsewhere(given[2])
        if generation == given[0]:
            self.kept()
            self._is_known[at] = None
        elif generation > given[0] or (is_known and request.mono_us - given[1] > SETTLE_US):
            words = f"{request.api} with generation {generation}, and the member has {given[0]}"
            self.fail(words, given[2], given[3], request)


@rule(
    "KIP-62.leaves-at-close",
    "classic-group",
    apis=("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"),
    needs=Needs(
        asks=("JoinGroup", "Heartbeat", "LeaveGroup", "OffsetCommit"),
        answers=("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit"),
    ),
    source="KIP-62",
    why="Until the session ends no member reads its partitions.",
    severity="warning",
)
class LeavesAtClose(Rule):
    """A member that closes its connections has left its group, unless its coordinator was lost or refused it."""

    def __init__(self) -> None:
        super().__init__()
        self._members: Recent[Member, _Stay] = Recent()
        self._of: OfConnections[Member] = OfConnections()
        self._gone: Recent[Member, tuple[Request, Closed]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.SyncGroupRequest), reply.of(m.SyncGroupResponse)
        if asked is not None and found is not None and not found.error_code and asked.group_instance_id is None:
            self._stays((asked.group_id, asked.member_id), _Stay(request, can_leave=True))
        beat = request.message
        if (
            not isinstance(beat, m.JoinGroupRequest | m.HeartbeatRequest | m.OffsetCommitRequest)
            or reply.message is None
        ):
            return
        at = beat.group_id, beat.member_id
        stay, errors = self._members.get(at), errors_of(reply)
        if Errors.UNKNOWN_MEMBER_ID in errors:  # who it was is over: it comes again with another id
            self._members.pop(at, None)
        elif stay is not None and stay.last is request:
            stay.can_leave = not any(code in CANNOT_LEAVE for code in errors)

    def asked(self, request: Request) -> None:
        found = request.message
        if isinstance(found, m.LeaveGroupRequest):
            for member_id in (found.member_id, *(one.member_id for one in found.members)):
                if self._members.pop((found.group_id, member_id), None) is not None:
                    self.kept()
        elif isinstance(found, m.HeartbeatRequest | m.OffsetCommitRequest | m.JoinGroupRequest):
            at = found.group_id, found.member_id
            self._gone.pop(at, None)
            if at in self._members:
                self._stays(at, _Stay(request, can_leave=False))

    def _stays(self, at: Member, stay: _Stay) -> None:
        self._members[at] = stay
        self._of.add(stay.last.connection, at)

    def closed(self, closed: Closed) -> None:
        were_here = self._of.take(closed.connection)
        if closed.by == "broker":  # a client that goes then may know no coordinator
            return
        for at in were_here:
            stay = self._members.get(at)
            if stay is not None and stay.last.connection == closed.connection and stay.can_leave:
                self._gone[at] = stay.last, closed

    def pending(self) -> Iterator[Unfinished]:
        for at, (request, closed) in self._gone.items():
            if at in self._members:
                yield Unfinished(f"member {at[1]} of group {at[0]} is gone and has not left", (request, closed))


@dataclass
class _Stay:
    """`last`: what the member asked last. `can_leave`: not while the reply is awaited, which can be lost with the
    connection (nor does a broker read what follows a JoinGroup that waits for other members), and not after an error
    that says that the coordinator or the membership is another one. LeaveGroup is a best effort: a client that knows no
    coordinator, or that is no member by what it was told, sends none.
    """

    last: Request
    can_leave: bool
