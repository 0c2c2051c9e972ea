"""Members of consumer groups (KIP-848)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Reply, Request
from ..rule import OfConnections, Recent, Rule, Unfinished, rule

LEAVES: Final = -1
LEAVES_FOR_NOW: Final = -2  # a static member
FENCED: Final = (Errors.FENCED_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID)
AGAIN_MAX: Final = 3
API: Final = ("ConsumerGroupHeartbeat",)
Member = tuple[str, str]
Partitions = frozenset[tuple[bytes, int]]


class Beat(Protocol):
    """What heartbeats of all kinds of groups have."""

    group_id: str
    member_id: str
    member_epoch: int


def beat_of(request: Request) -> Beat | None:
    found = request.message
    kinds = m.ConsumerGroupHeartbeatRequest | m.ShareGroupHeartbeatRequest
    return found if isinstance(found, kinds) else None


def answer_of(reply: Reply) -> m.ConsumerGroupHeartbeatResponse | m.ShareGroupHeartbeatResponse | None:
    found = reply.message
    kinds = m.ConsumerGroupHeartbeatResponse | m.ShareGroupHeartbeatResponse
    return found if isinstance(found, kinds) else None


def member_of(request: Request, reply: Reply) -> Member | None:
    """The group and the id of the member of a heartbeat: the reply has it where the broker has made it."""
    beat, found = beat_of(request), answer_of(reply)
    if beat is None or found is None:
        return None
    return beat.group_id, found.member_id or beat.member_id


class EpochEchoed(Rule):
    """A member sends the epoch of the last reply, 0 to join, or -1 to leave. A reply can be lost with its connection:
    over another one the epoch before is right, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self._epochs: Recent[Member, tuple[int, int, Request, Reply]] = Recent()  # that were given, and sent before

    def answered(self, request: Request, reply: Reply) -> None:
        at, beat, found = member_of(request, reply), beat_of(request), answer_of(reply)
        if at is None or beat is None or found is None:
            return
        if found.error_code or found.member_epoch <= 0:
            self._epochs.pop(at, None)
        else:
            self._epochs[at] = found.member_epoch, beat.member_epoch, request, reply

    def asked(self, request: Request) -> None:
        beat = beat_of(request)
        given = self._epochs.get((beat.group_id, beat.member_id)) if beat is not None else None
        if beat is None or given is None or beat.member_epoch <= 0:
            return
        epoch, before, asked, reply = given
        if beat.member_epoch == epoch:
            self.kept()
        elif not request.is_elsewhere(asked) or beat.member_epoch != before:
            self.fail(f"epoch {beat.member_epoch}, and the reply had {epoch}", asked, reply, request)


class OwnId(Rule):
    """A member makes its own id, and joins with it."""

    since = 0

    def asked(self, request: Request) -> None:
        beat = beat_of(request)
        if beat is None or beat.member_epoch != 0 or request.version < self.since:
            return
        if beat.member_id:
            self.kept()
        else:
            self.fail(f"joins group {beat.group_id} without a member id", request)


class RejoinsWhenFenced(Rule):
    """After FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID, a member joins again with epoch 0."""

    def __init__(self) -> None:
        super().__init__()
        self._fenced: Recent[Member, tuple[Request, Reply]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        beat, found = beat_of(request), answer_of(reply)
        if beat is not None and found is not None and found.error_code in FENCED and beat.member_epoch >= 0:
            self._fenced[beat.group_id, beat.member_id] = request, reply

    def asked(self, request: Request) -> None:
        beat = beat_of(request)
        fenced = self._fenced.pop((beat.group_id, beat.member_id), None) if beat is not None else None
        if beat is None or fenced is None:
            return
        if beat.member_epoch <= 0:
            self.kept()
        elif not request.is_elsewhere(fenced[0]):
            self.fail(f"a heartbeat with epoch {beat.member_epoch} after it was fenced", *fenced, request)


class Leaves(Rule):
    """A member that closes its connections has left its group with epoch -1, or -2 if it is static. A connection that
    is lost before the reply to a heartbeat says nothing: the client may know no coordinator when it is closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._members: Recent[Member, Request] = Recent()
        self._of: OfConnections[Member] = OfConnections()
        self._waits: Recent[Member, Request] = Recent()  # heartbeats whose replies are awaited
        self._gone: Recent[Member, tuple[Request, Closed]] = Recent()

    def asked(self, request: Request) -> None:
        beat = beat_of(request)
        if beat is None:
            return
        at = beat.group_id, beat.member_id
        self._gone.pop(at, None)
        if beat.member_epoch not in (LEAVES, LEAVES_FOR_NOW):
            self._waits[at] = request
        elif self._members.pop(at, None) is not None:
            self.kept()

    def answered(self, request: Request, reply: Reply) -> None:
        at, found = member_of(request, reply), answer_of(reply)
        if at is None or found is None:
            return
        self._waits.pop(at, None)
        if found.error_code:
            self._members.pop(at, None)
        elif found.member_epoch > 0:
            self._members[at] = request
            self._of.add(request.connection, at)

    def closed(self, closed: Closed) -> None:
        were_here = self._of.take(closed.connection)
        if closed.by == "broker":  # a client that goes then may know no coordinator, too
            return
        for at in were_here:
            request = self._members.get(at)
            if request is not None and request.connection == closed.connection and at not in self._waits:
                self._gone[at] = request, closed

    def pending(self) -> Iterator[Unfinished]:
        for at, (request, closed) in self._gone.items():
            if at in self._members:
                yield Unfinished(f"member {at[1]} of group {at[0]} is gone and has not left", (request, closed))


@rule(
    "KIP-848.epoch-echoed",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="The broker fences a member with another epoch.",
)
class ConsumerEpochEchoed(EpochEchoed):
    """A member of a consumer group sends the epoch of the last reply."""


@rule(
    "KIP-1082.member-id-own",
    "consumer-group",
    apis=API,
    source="KIP-1082",
    why="A member whose first reply is lost could not be found again.",
)
class ConsumerOwnId(OwnId):
    """A member of a consumer group makes its own id (ConsumerGroupHeartbeat since version 1)."""

    since = 1


@rule(
    "KIP-848.rejoins-when-fenced",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="The broker knows the member no more, or not with this epoch; it never will again.",
)
class ConsumerRejoins(RejoinsWhenFenced):
    """After FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID, a member of a consumer group joins with epoch 0."""


@rule(
    "KIP-848.leaves-at-close",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="Until its session ends no member reads its partitions.",
    severity="warning",
)
class ConsumerLeaves(Leaves):
    """A member that closes its connections has left its consumer group with epoch -1, or -2 if it is static."""


@rule(
    "KIP-848.first-heartbeat-complete",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="The broker knows nothing of the member, and refuses what is incomplete.",
)
class FirstHeartbeatComplete(Rule):
    """A heartbeat with epoch 0 has a rebalance timeout, a subscription, and no partitions that are owned."""

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        if beat is None or beat.member_epoch != 0:
            return
        missing = []
        if beat.rebalance_timeout_ms < 0:
            missing.append("no rebalance timeout")
        if beat.subscribed_topic_names is None and beat.subscribed_topic_regex is None:
            missing.append("no subscription")
        if beat.topic_partitions is None:
            missing.append("null for the owned partitions instead of an empty list")
        elif beat.topic_partitions:
            missing.append("partitions that are owned")
        if missing:
            self.fail(f"epoch 0 with {' and '.join(missing)}", request)
        else:
            self.kept()


@rule(
    "KIP-848.null-for-unchanged",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="A heartbeat is small and cheap only if it says what is new.",
    severity="warning",
)
class NullForUnchanged(Rule):
    """A heartbeat leaves out (null, -1) what the broker has: a member sends it again twice in a row at most."""

    def __init__(self) -> None:
        super().__init__()
        self._told: Recent[Member, dict[str, tuple[object, Request]]] = Recent()
        self._again: Recent[Member, int] = Recent()  # how often in a row: a client may not be sure what has arrived

    def answered(self, request: Request, reply: Reply) -> None:
        beat, at, found = request.of(m.ConsumerGroupHeartbeatRequest), member_of(request, reply), answer_of(reply)
        if beat is None or at is None or found is None:
            if beat is not None:
                self._told.pop((beat.group_id, beat.member_id), None)  # lost: it has to tell all again
            return
        if found.error_code or beat.member_epoch < 0:
            self._told.pop(at, None)
        else:
            told = self._told.setdefault(at, {})
            told |= {name: (value, request) for name, value in _told(beat).items()}

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        told = self._told.get((beat.group_id, beat.member_id)) if beat is not None else None
        if beat is None or told is None or beat.member_epoch <= 0:
            return
        same = {name: told[name][1] for name, value in _told(beat).items() if name in told and told[name][0] == value}
        at = beat.group_id, beat.member_id
        again = self._again[at] = self._again.get(at, 0) + 1 if same else 0
        if not same:
            self.kept()
        elif again == AGAIN_MAX:
            self.fail(f"{', '.join(same)} again without a change", next(iter(same.values())), request)


def _told(beat: m.ConsumerGroupHeartbeatRequest) -> dict[str, object]:
    """What a heartbeat says."""
    found: dict[str, object] = {
        "the subscription": None if beat.subscribed_topic_names is None else sorted(beat.subscribed_topic_names),
        "the regular expression": beat.subscribed_topic_regex,
        "the assignor": beat.server_assignor,
        "the rebalance timeout": None if beat.rebalance_timeout_ms < 0 else beat.rebalance_timeout_ms,
    }
    return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True)
class _Owed:
    """An assignment that takes partitions away, and until when the member has to say that it gave them up."""

    assigned: Partitions
    until_us: int
    request: Request
    reply: Reply


@rule(
    "KIP-848.revocation-told",
    "consumer-group",
    apis=API,
    source="KIP-848",
    why="The next owner waits for it; after the rebalance timeout the broker fences the member.",
)
class RevocationTold(Rule):
    """A member that loses partitions says within its rebalance timeout which ones it owns still."""

    def __init__(self) -> None:
        super().__init__()
        self._timeouts: Recent[Member, int] = Recent()
        self._assigned: Recent[Member, Partitions] = Recent()
        self._owed: Recent[Member, _Owed] = Recent()

    def asked(self, request: Request) -> None:
        beat = request.of(m.ConsumerGroupHeartbeatRequest)
        if beat is None:
            return
        at = beat.group_id, beat.member_id
        if beat.rebalance_timeout_ms >= 0:
            self._timeouts[at] = beat.rebalance_timeout_ms
        if beat.member_epoch <= 0:
            self._owed.pop(at, None)
            self._assigned.pop(at, None)
        owed = self._owed.get(at)
        if owed is None:
            return
        owned = None if beat.topic_partitions is None else partitions_of(beat.topic_partitions)
        if owned is not None and owned <= owed.assigned:
            self.kept()
            del self._owed[at]
        elif request.mono_us > owed.until_us:
            self.fail("partitions were taken away, and it did not say that it gave them up", owed.request, owed.reply)
            del self._owed[at]

    def answered(self, request: Request, reply: Reply) -> None:
        at, found = member_of(request, reply), reply.of(m.ConsumerGroupHeartbeatResponse)
        if at is None or found is None or found.assignment is None:
            return
        assigned = partitions_of(found.assignment.topic_partitions)
        before = self._assigned.get(at, frozenset())
        self._assigned[at] = assigned
        if not before <= assigned and at in self._timeouts:
            self._owed[at] = _Owed(assigned, reply.mono_us + self._timeouts[at] * 1000, request, reply)


def partitions_of(
    topics: list[m.ConsumerGroupHeartbeatRequest.TopicPartitions]
    | list[m.ConsumerGroupHeartbeatResponse.TopicPartitions],
) -> Partitions:
    return frozenset((bytes(topic.topic_id), one) for topic in topics for one in topic.partitions)
