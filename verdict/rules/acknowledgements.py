"""What members of share groups acknowledge, and when (KIP-932, KIP-1222)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Reply, Request
from ..rule import Needs, OfConnections, Recent, Rule, rule
from .share_groups import SESSION, Session, session_of

RENEW: Final = 4
TYPES: Final = (0, 1, 2, 3)  # gap, accept, release, reject
RENEWAL_SINCE: Final = 2  # version
RANGES_MAX: Final = 1000  # of a partition, that are remembered
TOLERANCE_US: Final = 1_000_000
SESSION_LOST: Final = (
    Errors.SHARE_SESSION_NOT_FOUND,
    Errors.INVALID_SHARE_SESSION_EPOCH,
    Errors.SHARE_SESSION_LIMIT_REACHED,
)
Batch = m.ShareFetchRequest.AcknowledgementBatch | m.ShareAcknowledgeRequest.AcknowledgementBatch
Place = tuple[str, str, bytes, int]
"""Group, member, topic id and partition."""


def acknowledged(request: Request) -> Iterator[tuple[Place, list[Batch]]]:
    """Yields the partitions of a ShareFetch or ShareAcknowledge with the batches that they acknowledge."""
    found = request.message
    if isinstance(found, m.ShareFetchRequest | m.ShareAcknowledgeRequest):
        for topic in found.topics:
            for one in topic.partitions:
                if one.acknowledgement_batches:
                    at = found.group_id or "", found.member_id or "", bytes(topic.topic_id), one.partition_index
                    yield at, list(one.acknowledgement_batches)


@rule(
    "KIP-932.acknowledge-types",
    "share-group",
    apis=SESSION,
    source="KIP-932",
    why="The broker refuses other types, and all that came with them (INVALID_REQUEST).",
)
class AcknowledgeTypes(Rule):
    """Acknowledgements are gaps (0), accept (1), release (2) or reject (3), or renew (4) since version 2."""

    def asked(self, request: Request) -> None:
        for _, batches in acknowledged(request):
            types = {one for batch in batches for one in batch.acknowledge_types}
            wrong = types.difference(TYPES, (RENEW,) if request.version >= RENEWAL_SINCE else ())
            if wrong:
                self.fail(f"acknowledge types {sorted(wrong)}", request)
            else:
                self.kept()


@rule(
    "KIP-932.acknowledgements-in-order",
    "share-group",
    apis=SESSION,
    source="KIP-932",
    why="The broker refuses batches that overlap, go back, or have too few or too many types (INVALID_REQUEST).",
)
class AcknowledgementsInOrder(Rule):
    """The batches of acknowledgements of a partition rise, and have one type, or one for each offset."""

    def asked(self, request: Request) -> None:
        for _, batches in acknowledged(request):
            last, wrong = -1, ""
            for one in batches:
                count = one.last_offset - one.first_offset + 1
                if one.first_offset <= last or count < 1:
                    wrong = f"offsets {one.first_offset} to {one.last_offset} after {last}"
                elif len(one.acknowledge_types) not in (1, count):
                    wrong = f"{len(one.acknowledge_types)} types for {count} offsets"
                last = one.last_offset
            if wrong:
                self.fail(wrong, request)
            else:
                self.kept()


@dataclass(slots=True)
class _Acquired:
    """The offsets of a partition that a member has acquired at some time, as ranges that rise and do not touch."""

    firsts: list[int] = field(default_factory=list)
    lasts: list[int] = field(default_factory=list)
    has_forgotten: bool = False

    def add(self, first: int, last: int) -> None:
        start = bisect_right(self.lasts, first - 2)
        end = bisect_right(self.firsts, last + 1)
        if start < end:
            first, last = min(first, self.firsts[start]), max(last, self.lasts[end - 1])
        self.firsts[start:end], self.lasts[start:end] = [first], [last]
        if len(self.firsts) > RANGES_MAX:
            del self.firsts[0], self.lasts[0]
            self.has_forgotten = True

    def has(self, first: int, last: int) -> bool:
        at = bisect_right(self.firsts, first) - 1
        if at >= 0 and last <= self.lasts[at]:
            return True
        return self.has_forgotten and (not self.firsts or first < self.firsts[0])


@rule(
    "KIP-932.acknowledges-acquired",
    "share-group",
    apis=SESSION,
    needs=Needs(answers=("ShareFetch",)),
    source="KIP-932",
    why="Other members have these records, or no member has them yet; the broker refuses it (INVALID_RECORD_STATE).",
)
class AcknowledgesAcquired(Rule):
    """A member acknowledges only records that it acquired."""

    def __init__(self) -> None:
        super().__init__()
        self._acquired: Recent[Place, tuple[_Acquired, Request]] = Recent()
        self._begun: Recent[tuple[str, str], None] = Recent()  # members whose first session was seen

    def asked(self, request: Request) -> None:
        session = session_of(request)
        if session is not None and session[1] == 0:
            self._begun[session[0][1:]] = None
        for at, batches in acknowledged(request):
            if at[:2] not in self._begun or self._acquired.has_forgotten:
                continue
            known = self._acquired.get(at)
            for one in batches:
                if known is not None and known[0].has(one.first_offset, one.last_offset):
                    self.kept()
                else:
                    words = f"offsets {one.first_offset} to {one.last_offset}, which it has not acquired"
                    self.fail(words, known[1] if known is not None else None, request)

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.ShareFetchRequest), reply.of(m.ShareFetchResponse)
        if asked is None or found is None:
            return
        for topic in found.responses:
            for one in topic.partitions:
                at = asked.group_id or "", asked.member_id or "", bytes(topic.topic_id), one.partition_index
                for part in one.acquired_records:
                    known = self._acquired.get(at)
                    ranges = known[0] if known is not None else _Acquired()
                    ranges.add(part.first_offset, part.last_offset)
                    self._acquired[at] = ranges, request


@rule(
    "KIP-932.new-session-plain",
    "share-group",
    apis=SESSION,
    source="KIP-932",
    why="A new session has acquired nothing; the broker refuses the request.",
)
class NewSessionPlain(Rule):
    """The first request of a share session (epoch 0) is a ShareFetch without acknowledgements."""

    def asked(self, request: Request) -> None:
        session = session_of(request)
        if session is None or session[1] != 0:
            return
        if request.api == "ShareFetch" and not any(True for _ in acknowledged(request)):
            self.kept()
        else:
            self.fail(f"{request.api} with acknowledgements and epoch 0", request)


@rule(
    "KIP-932.session-restarted",
    "share-group",
    apis=SESSION,
    needs=Needs(errors=True),
    source="KIP-932",
    why="The broker has forgotten the session, and no request of it can succeed.",
)
class ShareSessionRestarted(Rule):
    """After an error of its share session, a member begins a new one with epoch 0, or ends with -1."""

    def __init__(self) -> None:
        super().__init__()
        self._lost: Recent[Session, tuple[Request, Reply]] = Recent()
        self._of: OfConnections[Session] = OfConnections()

    def asked(self, request: Request) -> None:
        session = session_of(request)
        lost = self._lost.pop(session[0], None) if session is not None else None
        if session is None or lost is None:
            return
        if session[1] <= 0:
            self.kept()
        else:
            self.fail(f"{request.api} with epoch {session[1]} in a session that is lost", *lost, request)

    def answered(self, request: Request, reply: Reply) -> None:
        session, found = session_of(request), reply.message
        if session is None or not isinstance(found, m.ShareFetchResponse | m.ShareAcknowledgeResponse):
            return
        if found.error_code in SESSION_LOST:
            self._lost[session[0]] = request, reply
            self._of.add(request.connection, session[0])

    def closed(self, closed: Closed) -> None:
        for at in self._of.take(closed.connection):
            self._lost.pop(at, None)


def renewed(request: Request) -> Iterator[tuple[Place, Batch]]:
    """Yields the batches with renewals."""
    for at, batches in acknowledged(request):
        yield from ((at, one) for one in batches if RENEW in one.acknowledge_types)


@rule(
    "KIP-1222.renewal-marked",
    "share-group",
    apis=SESSION,
    source="KIP-1222",
    why="The broker refuses renewals in a request that does not say so (INVALID_REQUEST).",
)
class RenewalMarked(Rule):
    """A request that renews locks says so (is_renew_ack)."""

    def asked(self, request: Request) -> None:
        found = request.message
        if not isinstance(found, m.ShareFetchRequest | m.ShareAcknowledgeRequest):
            return
        if not any(True for _ in renewed(request)):
            return
        if found.is_renew_ack:
            self.kept()
        else:
            self.fail("renewals, and is_renew_ack is not set", request)


@dataclass(slots=True)
class _Lock:
    """The highest offset that was acquired last, until when, and by which request."""

    last_offset: int
    lasts_us: int
    until_us: int
    request: Request
    reply: Reply


@rule(
    "KIP-1222.renews-in-time",
    "share-group",
    apis=SESSION,
    needs=Needs(answers=("ShareFetch",)),
    source="KIP-1222",
    why="When the lock is over the record goes to another member, and is processed twice.",
    severity="warning",
)
class RenewsInTime(Rule):
    """A member renews the lock of a record before it is over."""

    def __init__(self) -> None:
        super().__init__()
        self._locks: Recent[Place, _Lock] = Recent()

    def asked(self, request: Request) -> None:
        for at, one in renewed(request):
            lock = self._locks.get(at)
            if lock is None:
                continue
            if request.mono_us <= lock.until_us:
                self.kept()
                lock.until_us = request.mono_us + lock.lasts_us
            elif one.first_offset <= lock.last_offset:
                late_ms = (request.mono_us - lock.until_us) // 1000
                words = f"renews offset {one.first_offset} {late_ms} ms after its lock"
                self.fail(words, lock.request, lock.reply, request)

    def answered(self, request: Request, reply: Reply) -> None:
        asked, found = request.of(m.ShareFetchRequest), reply.of(m.ShareFetchResponse)
        if asked is None or found is None or found.acquisition_lock_timeout_ms <= 0:
            return
        lasts_us = found.acquisition_lock_timeout_ms * 1000 + TOLERANCE_US
        for topic in found.responses:
            for one in topic.partitions:
                if one.acquired_records:
                    at = asked.group_id or "", asked.member_id or "", bytes(topic.topic_id), one.partition_index
                    last_offset, until_us = one.acquired_records[-1].last_offset, reply.mono_us + lasts_us
                    self._locks[at] = _Lock(last_offset, lasts_us, until_us, request, reply)
