"""What members of classic groups do when their group, or they themselves, are not what they were."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Reply, Request
from ..replies import errors_of
from ..rule import Needs, Recent, Rule, rule
from .classic_groups import SETTLE_US, Member

REQUESTS: Final = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit")
Asked = m.JoinGroupRequest | m.SyncGroupRequest | m.HeartbeatRequest | m.OffsetCommitRequest


def member_of(request: Request) -> Member | None:
    """The group and the member id of a request; None without one."""
    found = request.message
    return (found.group_id, found.member_id) if isinstance(found, Asked) and found.member_id else None


@rule(
    "classic-group.rejoins-in-time",
    "classic-group",
    apis=("JoinGroup", "Heartbeat", "LeaveGroup"),
    source="KIP-62",
    why="All members wait for the last one, and after its rebalance timeout it is removed.",
)
class RejoinsInTime(Rule):
    """A member whose heartbeat says REBALANCE_IN_PROGRESS joins again within its rebalance timeout."""

    def __init__(self) -> None:
        super().__init__()
        self._timeouts: Recent[Member, int] = Recent()
        self._asked: Recent[Member, tuple[int, Request, Reply]] = Recent()  # until when

    def asked(self, request: Request) -> None:
        found = request.message
        if isinstance(found, m.JoinGroupRequest):
            if self._asked.pop((found.group_id, found.member_id), None) is not None:
                self.kept()
        elif isinstance(found, m.LeaveGroupRequest):
            for one in (found.member_id, *(one.member_id for one in found.members)):
                self._asked.pop((found.group_id, one), None)
        elif isinstance(found, m.HeartbeatRequest):
            waits = self._asked.get((found.group_id, found.member_id))
            if waits is None or request.mono_us <= waits[0]:
                return
            if not request.is_elsewhere(waits[1]):
                self.fail("the group rebalances, and the member does not join", waits[1], waits[2], request)
            del self._asked[found.group_id, found.member_id]

    def answered(self, request: Request, reply: Reply) -> None:
        joining, joined = request.of(m.JoinGroupRequest), reply.of(m.JoinGroupResponse)
        if joining is not None and joined is not None and not joined.error_code:
            self._timeouts[joining.group_id, joined.member_id] = joining.rebalance_timeout_ms
        beat, found = request.of(m.HeartbeatRequest), reply.of(m.HeartbeatResponse)
        if beat is None or found is None or found.error_code != Errors.REBALANCE_IN_PROGRESS:
            return
        at = beat.group_id, beat.member_id
        if at in self._timeouts and at not in self._asked:
            self._asked[at] = reply.mono_us + self._timeouts[at] * 1000 + SETTLE_US, request, reply


@rule(
    "classic-group.new-id-when-unknown",
    "classic-group",
    apis=REQUESTS,
    needs=Needs(errors=True),
    source="Kafka protocol",
    why="The coordinator has removed the member, and never knows its id again.",
)
class NewIdWhenUnknown(Rule):
    """After UNKNOWN_MEMBER_ID, a consumer joins without its old member id."""

    def __init__(self) -> None:
        super().__init__()
        self._unknown: Recent[str, tuple[str, Request, Reply]] = Recent()  # ids by group, the latest of each

    def answered(self, request: Request, reply: Reply) -> None:
        at = member_of(request)
        if at is not None and Errors.UNKNOWN_MEMBER_ID in errors_of(reply):
            self._unknown[at[0]] = at[1], request, reply

    def asked(self, request: Request) -> None:
        joining = request.of(m.JoinGroupRequest)
        unknown = self._unknown.get(joining.group_id) if joining is not None else None
        if joining is None or unknown is None:
            return
        if not joining.member_id:
            self.kept()
            del self._unknown[joining.group_id]
        elif joining.member_id == unknown[0] and request.mono_us - unknown[2].mono_us > SETTLE_US:
            self.fail(f"joins as {unknown[0]}, which is not known", unknown[1], unknown[2], request)
            del self._unknown[joining.group_id]


@rule(
    "KIP-345.fenced-stops",
    "classic-group",
    apis=REQUESTS,
    needs=Needs(errors=True),
    source="KIP-345",
    why="Another member has its instance id. If both went on they would take the partitions from each other for ever.",
)
class FencedInstanceStops(Rule):
    """A static member that is fenced (FENCED_INSTANCE_ID) sends nothing more as that member, unless a JoinGroup lets it
    in again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._fenced: Recent[Member, tuple[Request, Reply]] = Recent()
        self._joins: Recent[Member, None] = Recent()  # have asked since

    def answered(self, request: Request, reply: Reply) -> None:
        at = member_of(request)
        if at is not None and at not in self._fenced and Errors.FENCED_INSTANCE_ID in errors_of(reply):
            self.kept()
            self._fenced[at] = request, reply
            self._joins.pop(at, None)

    def asked(self, request: Request) -> None:
        at = member_of(request) if self._fenced else None
        fenced = self._fenced.get(at) if at is not None else None
        if at is None or fenced is None:
            return
        if request.api == "SyncGroup" and at in self._joins:  # only after a JoinGroup without an error
            del self._fenced[at]
            return
        if request.api == "JoinGroup":
            self._joins[at] = None
        if request.mono_us - fenced[1].mono_us > SETTLE_US:
            self.fail(f"{request.api} of a member that is fenced", *fenced, request)
