"""The life of a member of a consumer group (KIP-848): how often it is heard of, what it owns, when it stops."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Reply, Request
from ..rule import Needs, Recent, Rule, rule
from .consumer_groups import (
    API,
    FENCED,
    LEAVES,
    LEAVES_FOR_NOW,
    Member,
    Partitions,
    answer_of,
    beat_of,
    member_of,
    partitions_of,
)

INTERVALS_MAX: Final = 3
SILENT_US_MIN: Final = 10_000_000
REFUSALS_MAX: Final = 3
SETTLE_US: Final = 5_000_000  # in which requests that were on their way may still have an old epoch
REFUSED: Final = (
    Errors.INVALID_REQUEST,
    Errors.UNSUPPORTED_ASSIGNOR,
    Errors.UNRELEASED_INSTANCE_ID,
    Errors.INVALID_REGULAR_EXPRESSION,
)


class HeartbeatsInTime(Rule):
    """A member is not silent for more than three of the intervals that the reply has."""

    def __init__(self) -> None:
        super().__init__()
        self._beats: Recent[Member, tuple[int, Request, Reply]] = Recent()
        """The interval that a reply had, until the next heartbeat: whose reply can be lost, and is awaited for long."""

    def answered(self, request: Request, reply: Reply) -> None:
        at, found = member_of(request, reply), answer_of(reply)
        if at is not None and found is not None and not found.error_code and found.member_epoch > 0:
            self._beats[at] = found.heartbeat_interval_ms, request, reply

    def asked(self, request: Request) -> None:
        beat = beat_of(request)
        last = self._beats.pop((beat.group_id, beat.member_id), None) if beat is not None else None
        if beat is None or last is None or beat.member_epoch < 0 or request.is_elsewhere(last[1]):
            return
        silent_us = request.mono_us - last[2].mono_us
        if silent_us <= max(INTERVALS_MAX * last[0] * 1000, SILENT_US_MIN):
            self.kept()
        else:
            words = f"nothing for {silent_us // 1000} ms; the heartbeat interval is {last[0]} ms"
            self.fail(words, last[1], last[2], request)


@rule(
    "KIP-848.heartbeats-in-time",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="A member that is silent for a session is removed; assignments reach it by heartbeats, and others wait for it.",
)
class ConsumerHeartbeatsInTime(HeartbeatsInTime):
    """A member of a consumer group is not silent for more than three heartbeat intervals."""


@rule(
    "KIP-848.owns-assigned",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="The broker gives a partition to another member once no member owns it, and relies on what members report.",
)
class OwnsAssigned(Rule):
    """A member says that it owns only partitions that it was assigned."""

    def __init__(self) -> None:
        super().__init__()
        self._assigned: Recent[Member, tuple[Partitions, Partitions, Request, Reply]] = Recent()
        """The last assignment, and the one before."""
        self._owned: Recent[Member, Partitions] = Recent()  # as it said last: replies with assignments can be lost

    def answered(self, request: Request, reply: Reply) -> None:
        at, found = member_of(request, reply), reply.of(m.ConsumerGroupHeartbeatResponse)
        if at is None or found is None:
            return
        if found.error_code or found.member_epoch <= 0:
            self._assigned.pop(at, None)
            self._owned.pop(at, None)
        elif found.assignment is not None:
            before = self._assigned.get(at)
            partitions = partitions_of(found.assignment.topic_partitions)
            self._assigned[at] = partitions, before[0] if before is not None else frozenset(), request, reply

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        if beat is None or not beat.topic_partitions or beat.member_epoch <= 0:
            return
        at = beat.group_id, beat.member_id
        has = self._assigned.get(at)
        if has is None:
            return
        owned, may_own = partitions_of(beat.topic_partitions), has[0] | has[1] | self._owned.get(at, frozenset())
        self._owned[at] = owned & may_own
        if owned <= may_own:
            self.kept()
        else:
            self.fail("it owns partitions that it was not assigned", has[2], has[3], request)


@rule(
    "KIP-848.assignment-told",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="The broker looks at what a member owns when it comes with its last epoch, because a reply was lost.",
)
class AssignmentTold(Rule):
    """A member that is assigned more partitions says within its rebalance timeout that it has taken them."""

    def __init__(self) -> None:
        super().__init__()
        self._timeouts: Recent[Member, int] = Recent()
        self._owes: Recent[Member, tuple[Partitions, int, Request, Reply]] = Recent()  # until when
        self._had: Recent[Member, Partitions] = Recent()

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        if beat is None:
            return
        at = beat.group_id, beat.member_id
        if beat.rebalance_timeout_ms >= 0:
            self._timeouts[at] = beat.rebalance_timeout_ms
        if beat.member_epoch <= 0:
            self._owes.pop(at, None)
            self._had.pop(at, None)
        owes = self._owes.get(at)
        if owes is None:
            return
        if beat.topic_partitions is not None and partitions_of(beat.topic_partitions) & owes[0]:
            self.kept()
            del self._owes[at]
        elif request.mono_us > owes[1]:
            self.fail("partitions were assigned, and it did not say that it has them", owes[2], owes[3], request)
            del self._owes[at]

    def answered(self, request: Request, reply: Reply) -> None:
        at, found = member_of(request, reply), reply.of(m.ConsumerGroupHeartbeatResponse)
        if at is None or found is None or found.assignment is None:
            return
        partitions = partitions_of(found.assignment.topic_partitions)
        new = partitions - self._had.get(at, frozenset())
        self._had[at] = partitions
        self._owes.pop(at, None)  # another assignment is in the place of the one before
        if new and at in self._timeouts:
            self._owes[at] = new, reply.mono_us + self._timeouts[at] * 1000, request, reply


@rule(
    "KIP-848.static-leaves-for-now",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="With -1 its partitions go to others at once; with -2 they wait for it to come again. Without its instance id "
    "the broker refuses the request, and keeps the instance id from others until a session is over.",
    severity="warning",
)
class StaticLeavesForNow(Rule):
    """A static member that goes leaves with epoch -2 and its instance id."""

    def __init__(self) -> None:
        super().__init__()
        self._static: Recent[Member, Request] = Recent()

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        if beat is None:
            return
        at = beat.group_id, beat.member_id
        if beat.member_epoch >= 0:
            if beat.instance_id is not None:
                self._static[at] = request
            return
        joined = self._static.pop(at, None)
        if joined is None:
            return
        if beat.member_epoch == LEAVES_FOR_NOW and beat.instance_id is not None:
            self.kept()
        elif beat.member_epoch == LEAVES_FOR_NOW:
            self.fail(
                f"static member {beat.member_id} leaves with epoch -2 and without its instance id", joined, request
            )
        elif beat.member_epoch == LEAVES:
            self.fail(f"static member {beat.member_id} leaves with epoch -1", joined, request)


@rule(
    "KIP-848.refused-stops",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="What the broker refuses is wrong in itself; the application has to hear of it.",
)
class RefusedStops(Rule):
    """A member does not send on what the broker refuses (INVALID_REQUEST, UNSUPPORTED_ASSIGNOR, ...)."""

    def __init__(self) -> None:
        super().__init__()
        self._refused: Recent[Member, tuple[int, int, Request, Reply]] = Recent()  # the error, and how often

    def answered(self, request: Request, reply: Reply) -> None:
        beat, found = request.of(m.ConsumerGroupHeartbeatRequest), reply.of(m.ConsumerGroupHeartbeatResponse)
        if beat is None or found is None or beat.member_epoch < 0:
            return
        at = beat.group_id, beat.member_id
        if found.error_code not in REFUSED:
            self._refused.pop(at, None)
            return
        before = self._refused.get(at)
        if before is None or before[0] != found.error_code:
            self.kept()
            self._refused[at] = found.error_code, 1, request, reply
        elif before[1] + 1 < REFUSALS_MAX:
            self._refused[at] = found.error_code, before[1] + 1, before[2], before[3]
        else:
            name = Errors(found.error_code).name
            self.fail(f"{before[1] + 1} heartbeats with {name} in a row", before[2], before[3], request, reply)
            del self._refused[at]


@rule(
    "KIP-848.commit-epoch",
    "consumer-group",
    apis=(*API, "OffsetCommit"),
    needs=Needs(answers=("ConsumerGroupHeartbeat",)),
    source="KIP-848",
    why="The epoch keeps a member that was left behind from committing offsets of partitions that others have.",
)
class CommitEpoch(Rule):
    """A member commits with the epoch that its heartbeats have."""

    def __init__(self) -> None:
        super().__init__()
        self._epochs: Recent[Member, tuple[int, int, Request, Reply]] = Recent()  # and since when
        self._is_known: Recent[Member, None] = Recent()  # to members that have sent it

    def answered(self, request: Request, reply: Reply) -> None:
        at, found = member_of(request, reply), reply.of(m.ConsumerGroupHeartbeatResponse)
        if at is None or found is None:
            return
        before = self._epochs.get(at)
        if found.error_code or found.member_epoch <= 0:
            self._epochs.pop(at, None)
        elif before is None or before[0] != found.member_epoch:
            self._epochs[at] = found.member_epoch, reply.mono_us, request, reply
            self._is_known.pop(at, None)

    def asked(self, request: Request) -> None:
        found = request.message
        if isinstance(found, m.ConsumerGroupHeartbeatRequest):
            at, epoch = (found.group_id, found.member_id), found.member_epoch
        elif isinstance(found, m.OffsetCommitRequest):
            at, epoch = (found.group_id, found.member_id), found.generation_id_or_member_epoch
        else:
            return
        given = self._epochs.get(at)
        if given is None:
            return
        if isinstance(found, m.OffsetCommitRequest):
            self._judge(at, epoch, given, request)
        elif epoch == given[0]:
            self._is_known[at] = None

    def _judge(self, at: Member, epoch: int, given: tuple[int, int, Request, Reply], request: Request) -> None:
        is_known = at in self._is_known or not request.is_elsewhere(given[2])
        if epoch == given[0]:
            self.kept()
        elif epoch > given[0] or (is_known and request.mono_us - given[1] > SETTLE_US):
            self.fail(f"commits with epoch {epoch}, and the member has {given[0]}", given[2], given[3], request)


@rule(
    "KIP-1082.member-id-kept",
    "consumer-group",
    apis=API,
    source="KIP-1082",
    why="Its id is that of the process: with another one the group has a member too many until a session is over.",
)
class MemberIdKept(Rule):
    """A member that was fenced joins again with the id that it had (ConsumerGroupHeartbeat since version 1)."""

    def __init__(self) -> None:
        super().__init__()
        self._fenced: Recent[tuple[int, str], tuple[str, Request, Reply]] = Recent()  # by connection and group

    def answered(self, request: Request, reply: Reply) -> None:
        beat, found = request.of(m.ConsumerGroupHeartbeatRequest), reply.of(m.ConsumerGroupHeartbeatResponse)
        if beat is not None and found is not None and found.error_code in FENCED and beat.member_epoch >= 0:
            self._fenced[request.connection, beat.group_id] = beat.member_id, request, reply

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        if beat is None or beat.member_epoch != 0 or request.version < 1:
            return
        fenced = self._fenced.pop((request.connection, beat.group_id), None)
        if fenced is None:
            return
        if beat.member_id == fenced[0]:
            self.kept()
        else:
            self.fail(f"joins as {beat.member_id}, and was {fenced[0]}", fenced[1], fenced[2], request)
