"""Fetch sessions (KIP-227), and where a consumer goes on after an error or a truncation (KIP-320)."""

from __future__ import annotations

from typing import Final

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Reply, Request
from ..replies import partition_errors
from ..rule import Needs, OfConnections, Recent, Rule, rule

FINAL_EPOCH: Final = -1
OUT_OF_RANGE: Final = Errors.OFFSET_OUT_OF_RANGE
REPEATS_MAX: Final = 5
KNOWN_AFTER_MS: Final = 1000  # what a reply has told on another connection
SESSION_LOST: Final = (
    Errors.FETCH_SESSION_ID_NOT_FOUND,
    Errors.INVALID_FETCH_SESSION_EPOCH,
    Errors.FETCH_SESSION_TOPIC_ID_ERROR,
)
EPOCH_MAX: Final = 0x7FFFFFFF
LATE_US: Final = 5_000_000  # of a reply


def has_gone(closed: Closed) -> bool:
    """Whether a client that closed a connection has gone by itself: not if the broker has closed it, nor if the client
    may have given up because a reply was late.
    """
    waits = closed.unanswered
    if closed.by == "broker":
        return False
    if waits is None:
        return True
    found = waits.message
    max_wait_ms = found.max_wait_ms if isinstance(found, m.FetchRequest | m.ShareFetchRequest) else 0
    return closed.mono_us <= waits.mono_us + max_wait_ms * 1000 + LATE_US


def after(epoch: int) -> int:
    """The epoch of a session that follows; 0 is that of a new one."""
    return 1 if epoch == EPOCH_MAX else epoch + 1


@rule(
    "KIP-227.epochs-in-order",
    "basic",
    apis=("Fetch",),
    source="KIP-227",
    why="The broker refuses another epoch, and the consumer has to send all partitions again.",
)
class EpochsInOrder(Rule):
    """A fetch session's requests have the epochs 1, 2, 3, ..., or -1 or 0 to end it."""

    def __init__(self) -> None:
        super().__init__()
        self._last: Recent[int, tuple[int, Request]] = Recent()  # by session

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest)
        if found is None or found.session_id == 0:
            return
        epoch = found.session_epoch
        before = self._last.get(found.session_id)
        if epoch in (FINAL_EPOCH, 0):
            self._last.pop(found.session_id, None)
        elif before is not None:
            if epoch == after(before[0]):
                self.kept()
            else:
                words = f"epoch {epoch} of session {found.session_id} after {before[0]}"
                self.fail(words, before[1], request)
            self._last[found.session_id] = epoch, request

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.FetchResponse)
        asked = request.of(m.FetchRequest)
        if found is None or asked is None:
            return
        if found.error_code:
            self._last.pop(asked.session_id, None)
        elif asked.session_epoch == 0 and found.session_id:
            self._last[found.session_id] = 0, request


@rule(
    "KIP-227.session-closed",
    "basic",
    apis=("Fetch",),
    source="KIP-227",
    why="A broker keeps a bounded number of sessions, and those of others are refused meanwhile.",
    severity="warning",
)
class SessionClosed(Rule):
    """A consumer that goes ends its fetch session with the epoch -1."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, tuple[int, Request]] = {}  # by connection

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest)
        is_last = found is not None and found.session_epoch == FINAL_EPOCH
        if is_last and self._open.pop(request.connection, None) is not None:
            self.kept()

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.FetchResponse)
        if found is None or found.error_code:  # without a reply that it can read a client may give up
            self._open.pop(request.connection, None)
        elif found.session_id:
            asked = request.of(m.FetchRequest)
            if asked is not None and asked.session_epoch != FINAL_EPOCH:
                self._open[request.connection] = found.session_id, request

    def closed(self, closed: Closed) -> None:
        left = self._open.pop(closed.connection, None)
        if left is not None and has_gone(closed):
            self.fail(f"the connection was closed with session {left[0]} open", left[1], closed)


@rule(
    "KIP-227.only-changes",
    "basic",
    apis=("Fetch",),
    source="KIP-227",
    why="Sending what the broker knows is what sessions are there to save.",
    severity="warning",
)
class OnlyChanges(Rule):
    """A request of a fetch session has only the partitions that have changed since the one before."""

    def __init__(self) -> None:
        super().__init__()
        self._sent: Recent[tuple[int, str | bytes, int], tuple[int, ...]] = Recent()  # by session and partition

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest)
        if found is None or found.session_id == 0 or found.session_epoch <= 0:
            return
        same = []
        for topic in found.topics:
            for one in topic.partitions:
                at = found.session_id, topic.topic or topic.topic_id, one.partition
                if self._sent.get(at) == _state(one):
                    same.append(one.partition)
                self._sent[at] = _state(one)
        for gone in found.forgotten_topics_data:
            for partition in gone.partitions:
                self._sent.pop((found.session_id, gone.topic or gone.topic_id, partition), None)
        if same:
            self.fail(f"{len(same)} partitions are sent again without a change", request)
        else:
            self.kept()

    def answered(self, request: Request, reply: Reply) -> None:
        found, asked = reply.of(m.FetchResponse), request.of(m.FetchRequest)
        if found is None or asked is None or asked.session_epoch != 0 or not found.session_id:
            return
        for topic in asked.topics:
            for one in topic.partitions:
                self._sent[found.session_id, topic.topic or topic.topic_id, one.partition] = _state(one)


def _state(one: m.FetchRequest.FetchPartition) -> tuple[int, ...]:
    epochs = one.current_leader_epoch, one.last_fetched_epoch
    return one.fetch_offset, one.log_start_offset, *epochs, one.partition_max_bytes


@rule(
    "KIP-227.session-restarted",
    "basic",
    apis=("Fetch",),
    needs=Needs(errors=True),
    source="KIP-227",
    why="The broker has forgotten the session, and no request of it can succeed.",
)
class SessionRestarted(Rule):
    """After an error of its fetch session, a consumer begins a new one (epoch 0), or fetches without (epoch -1)."""

    def __init__(self) -> None:
        super().__init__()
        self._lost: dict[int, tuple[Request, Reply]] = {}  # by connection

    def asked(self, request: Request) -> None:
        found = request.of(m.FetchRequest)
        lost = self._lost.pop(request.connection, None) if found is not None else None
        if found is None or lost is None:
            return
        if found.session_epoch <= 0:
            self.kept()
        else:
            self.fail(f"epoch {found.session_epoch} of session {found.session_id}, which is lost", *lost, request)

    def answered(self, request: Request, reply: Reply) -> None:
        found = reply.of(m.FetchResponse)
        if found is not None and found.error_code in SESSION_LOST:
            self._lost[request.connection] = request, reply

    def closed(self, closed: Closed) -> None:
        self._lost.pop(closed.connection, None)


@rule(
    "protocol.out-of-range-reset",
    "basic",
    apis=("Fetch", "ListOffsets", "OffsetForLeaderEpoch"),
    needs=Needs(asks=("ListOffsets", "OffsetForLeaderEpoch"), answers=("Fetch",)),
    source="Kafka protocol",
    why="The records at that offset are gone, or were never there. Asking again does not bring them.",
    severity="warning",
)
class OutOfRangeReset(Rule):
    """After OFFSET_OUT_OF_RANGE, a consumer asks which offsets there are, or goes on at another one."""

    def __init__(self) -> None:
        super().__init__()
        self._failed: Recent[tuple[str | bytes, int], tuple[int, int, Request, Reply]] = Recent()  # offset, how often

    def asked(self, request: Request) -> None:
        if request.api != "Fetch" and self._failed:
            self.kept()
            self._failed.clear()

    def answered(self, request: Request, reply: Reply) -> None:
        asked = request.of(m.FetchRequest)
        if asked is None:
            return
        failed = {(one.topic, one.partition) for one in partition_errors(reply) if one.code == OUT_OF_RANGE}
        if not failed and not self._failed:
            return
        for topic in asked.topics:
            for one in topic.partitions:
                self._judge((topic.topic or topic.topic_id, one.partition), one.fetch_offset, failed, request, reply)

    def _judge(
        self,
        at: tuple[str | bytes, int],
        offset: int,
        failed: set[tuple[str | bytes, int]],
        request: Request,
        reply: Reply,
    ) -> None:
        before = self._failed.get(at)
        if at not in failed or (before is not None and before[0] != offset):
            if before is not None:
                self.kept()
                del self._failed[at]
        elif before is None:
            self._failed[at] = offset, 1, request, reply
        elif before[1] + 1 < REPEATS_MAX:
            self._failed[at] = offset, before[1] + 1, before[2], before[3]
        else:
            self.fail(f"offset {offset}, which is out of range, {before[1] + 1} times", before[2], before[3], request)
            del self._failed[at]


@rule(
    "KIP-320.truncation-found",
    "basic",
    apis=("Metadata", "OffsetForLeaderEpoch", "ListOffsets", "Fetch"),
    needs=Needs(asks=("Fetch", "ListOffsets"), answers=("Metadata", "OffsetForLeaderEpoch", "Fetch")),
    source="KIP-320",
    why="The new leader has other records from there on: who reads on at the old position misses them.",
)
class TruncationFound(Rule):
    """A consumer that has asked where its leader epoch ends does not fetch beyond that end next.

    Where it asks on another connection than it fetches, a fetch may be on its way when the end is told. Then one beyond
    the end counts only if another one at the same position comes a second later.
    """

    def __init__(self) -> None:
        super().__init__()
        self._names: Recent[bytes, str] = Recent()
        # where the log ends, by partition, until its next fetch
        self._ends: Recent[tuple[str, int], tuple[int, Request, Reply]] = Recent()
        self._of: OfConnections[tuple[str, int]] = OfConnections()  # on which they were told
        self._beyond: Recent[tuple[str, int], int] = Recent()  # the offset of a fetch on another connection
        self._waiting: Recent[int, Request] = Recent()  # the last fetch of a connection that was not answered yet

    def answered(self, request: Request, reply: Reply) -> None:
        if request.api == "Fetch":
            self._waiting.pop(request.connection, None)
            return
        named, found = reply.of(m.MetadataResponse), reply.of(m.OffsetForLeaderEpochResponse)
        for described in named.topics if named is not None else ():
            if described.name and any(described.topic_id):
                self._names[described.topic_id] = described.name
        if request.connection in self._waiting:  # what that fetch brings moves the position beyond the end
            return
        for topic in found.topics if found is not None else ():
            for one in topic.partitions:
                if not one.error_code and one.end_offset >= 0:
                    self._ends[topic.topic, one.partition] = one.end_offset, request, reply
                    self._of.add(request.connection, (topic.topic, one.partition))
                    self._beyond.pop((topic.topic, one.partition), None)

    def asked(self, request: Request) -> None:
        if request.api == "Fetch":
            self._waiting[request.connection] = request
        if not self._ends:
            return
        found, listed = request.of(m.FetchRequest), request.of(m.ListOffsetsRequest)
        for topic in listed.topics if listed is not None else ():  # it begins at another offset, wherever that is
            for one in topic.partitions:
                self._ends.pop((topic.name, one.partition_index), None)
        for fetched in found.topics if found is not None else ():
            name = fetched.topic or self._names.get(fetched.topic_id, "")
            for part in fetched.partitions:
                at = name, part.partition
                end = self._ends.get(at)
                if end is None or self._may_be_early(at, part.fetch_offset, end, request):
                    continue
                del self._ends[at]
                if part.fetch_offset <= end[0]:
                    self.kept()
                else:
                    words = f"{name}-{part.partition} from offset {part.fetch_offset}, and its epoch ends at {end[0]}"
                    self.fail(words, *end[1:], request)
        if found is not None and found.session_epoch > 0:  # it reads what it does not name where it was (KIP-227)
            for key in self._of.take(request.connection):
                end = self._ends.get(key)
                if end is not None and not request.is_elsewhere(end[1]):
                    del self._ends[key]

    def closed(self, closed: Closed) -> None:
        self._waiting.pop(closed.connection, None)
        self._of.take(closed.connection)

    def _may_be_early(
        self, at: tuple[str, int], offset: int, end: tuple[int, Request, Reply], request: Request
    ) -> bool:
        """Whether a fetch on another connection may have been sent before the client knew the end."""
        if not request.is_elsewhere(end[1]) or offset <= end[0]:
            return False
        before = self._beyond.get(at)
        self._beyond[at] = offset
        return offset != before or request.at_ms < end[2].at_ms + KNOWN_AFTER_MS
