"""Members of share groups (KIP-932)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ..events import Closed, Reply, Request
from ..rule import OfConnections, Recent, Rule, rule
from .consumer_groups import AGAIN_MAX, EpochEchoed, Leaves, Member, OwnId, RejoinsWhenFenced
from .consumer_states import HeartbeatsInTime
from .fetching import FINAL_EPOCH, after, has_gone

API: Final = ("ShareGroupHeartbeat",)
SESSION: Final = ("ShareFetch", "ShareAcknowledge")
Session = tuple[int, str, str]
"""Connection, group and member: a connection is to one broker."""


@rule(
    "KIP-932.epoch-echoed",
    "share-group",
    apis=API,
    source="KIP-932",
    why="The broker fences a member with another epoch.",
)
class ShareEpochEchoed(EpochEchoed):
    """A member of a share group sends the epoch of the last reply."""


@rule(
    "KIP-932.member-id-own",
    "share-group",
    apis=API,
    source="KIP-932",
    why="A member whose first reply is lost could not be found again.",
)
class ShareOwnId(OwnId):
    """A member of a share group makes its own id, and joins with it."""


@rule(
    "KIP-932.rejoins-when-fenced",
    "share-group",
    apis=API,
    source="KIP-932",
    why="The broker knows the member no more, or not with this epoch; it never will again.",
)
class ShareRejoins(RejoinsWhenFenced):
    """After FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID, a member of a share group joins with epoch 0."""


@rule(
    "KIP-932.leaves-at-close",
    "share-group",
    apis=API,
    source="KIP-932",
    why="Until its session ends the group counts on it, and its share of the partitions is not read.",
    severity="warning",
)
class ShareLeaves(Leaves):
    """A member that closes its connections has left its share group with epoch -1."""


@rule(
    "KIP-932.heartbeats-in-time",
    "share-group",
    apis=API,
    source="KIP-932",
    why="A member that is silent for a session is removed, and what it has acquired goes to others.",
)
class ShareHeartbeatsInTime(HeartbeatsInTime):
    """A member of a share group is not silent for more than three heartbeat intervals."""


@rule(
    "KIP-932.first-heartbeat-complete",
    "share-group",
    apis=API,
    source="KIP-932",
    why="The broker knows nothing of the member, and refuses it without a subscription.",
)
class ShareFirstHeartbeat(Rule):
    """A heartbeat with epoch 0 has a subscription."""

    def asked(self, request: Request) -> None:
        beat = request.of(m.ShareGroupHeartbeatRequest)
        if beat is None or beat.member_epoch != 0:
            return
        if beat.subscribed_topic_names is not None:
            self.kept()
        else:
            self.fail(f"joins group {beat.group_id} without a subscription", request)


@rule(
    "KIP-932.null-for-unchanged",
    "share-group",
    apis=API,
    source="KIP-932",
    why="A heartbeat is small and cheap only if it says what is new.",
    severity="warning",
)
class ShareNullForUnchanged(Rule):
    """A heartbeat leaves out (null) the subscription that the broker has: it is sent again twice in a row at most."""

    def __init__(self) -> None:
        super().__init__()
        self._told: Recent[Member, tuple[list[str], Request]] = Recent()
        self._again: Recent[Member, int] = Recent()  # how often in a row

    def answered(self, request: Request, reply: Reply) -> None:
        beat, found = request.of(m.ShareGroupHeartbeatRequest), reply.of(m.ShareGroupHeartbeatResponse)
        if beat is None:
            return
        at = beat.group_id, beat.member_id
        if found is None or found.error_code or beat.member_epoch < 0:
            self._told.pop(at, None)  # it has to tell all again
        elif beat.subscribed_topic_names is not None:
            self._told[at] = sorted(beat.subscribed_topic_names), request

    def asked(self, request: Request) -> None:
        beat = request.of(m.ShareGroupHeartbeatRequest)
        told = self._told.get((beat.group_id, beat.member_id)) if beat is not None else None
        if beat is None or told is None or beat.member_epoch <= 0:
            return
        at, names = (beat.group_id, beat.member_id), beat.subscribed_topic_names
        is_same = names is not None and sorted(names) == told[0]
        again = self._again[at] = self._again.get(at, 0) + 1 if is_same else 0
        if not is_same:
            self.kept()
        elif again == AGAIN_MAX:
            self.fail("the subscription again without a change", told[1], request)


class InSession(Rule):
    """Knows the sessions of shares."""

    def __init__(self) -> None:
        super().__init__()
        self.last: Recent[Session, tuple[int, Request]] = Recent()

    def answered(self, request: Request, reply: Reply) -> None:
        session = session_of(request)
        found = reply.message
        if session is None or not isinstance(found, m.ShareFetchResponse | m.ShareAcknowledgeResponse):
            return
        if found.error_code or session[1] == FINAL_EPOCH:
            self.last.pop(session[0], None)
        else:
            self.last[session[0]] = session[1], request


def session_of(request: Request) -> tuple[Session, int] | None:
    """The session of a request, and its epoch."""
    found = request.message
    if not isinstance(found, m.ShareFetchRequest | m.ShareAcknowledgeRequest):
        return None
    return (request.connection, found.group_id or "", found.member_id or ""), found.share_session_epoch


@rule(
    "KIP-932.session-epochs",
    "share-group",
    apis=SESSION,
    source="KIP-932",
    why="The broker refuses another epoch, and releases what the member has acquired.",
)
class SessionEpochs(InSession):
    """The requests of a share session have the epochs 0, 1, 2, ..., and -1 at the end."""

    def asked(self, request: Request) -> None:
        session = session_of(request)
        before = self.last.get(session[0]) if session is not None else None
        if session is None or session[1] in (0, FINAL_EPOCH):
            return
        if before is None:
            return
        if session[1] == after(before[0]):
            self.kept()
        else:
            self.fail(f"{request.api} with epoch {session[1]} after {before[0]}", before[1], request)


@rule(
    "KIP-932.session-closed",
    "share-group",
    apis=SESSION,
    source="KIP-932",
    why="What it has acquired goes to others only when the session ends.",
    severity="warning",
)
class SessionClosed(InSession):
    """A member that goes ends its share sessions with the epoch -1."""

    def __init__(self) -> None:
        super().__init__()
        self._open: OfConnections[Session] = OfConnections()

    def asked(self, request: Request) -> None:
        session = session_of(request)
        if session is not None and session[1] == FINAL_EPOCH and session[0] in self.last:
            self.kept()

    def answered(self, request: Request, reply: Reply) -> None:
        super().answered(request, reply)
        session = session_of(request)
        if session is None:
            return
        if reply.message is None:  # without a reply that it can read a client may give up
            self.last.pop(session[0], None)
        elif session[0] in self.last:
            self._open.add(request.connection, session[0])

    def closed(self, closed: Closed) -> None:
        for at in self._open.take(closed.connection):
            left = self.last.pop(at, None)
            if left is not None and has_gone(closed):
                self.fail(f"the connection was closed with a session of group {at[1]} open", left[1], closed)
