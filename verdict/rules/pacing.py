"""How often a client asks: throttling (KIP-219) and back-off (KIP-580)."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ...protocol import messages as m
from ...protocol.errors import Errors
from ..events import Closed, Reply, Request
from ..replies import errors_of
from ..rule import Needs, Recent, Rule, rule

TOLERANCE_MS: Final = 5
# by API, the first version in which a client waits by itself (`shouldClientThrottle` of Kafka's replies)
THROTTLED_SINCE: Final[dict[int, int]] = {
    **dict.fromkeys((21, 22, 24, 25, 26, 28, 29, 30, 31, 33, 34, 35, 37, 38, 39, 40, 41, 42), 1),
    **dict.fromkeys((43, 44, 45, 46, 47, 50, 51, 75), 0),
    0: 6, 1: 8, 2: 3, 3: 6, 8: 4, 9: 4, 10: 2, 11: 3, 12: 2, 13: 2, 14: 2, 15: 2, 16: 2, 18: 2, 19: 3, 20: 2, 32: 2,
}  # fmt: skip
BACK_OFF_MS: Final = 10
REPEATS_MAX: Final = 3
WAITS_AFTER: Final = frozenset(
    {
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
        Errors.COORDINATOR_NOT_AVAILABLE,
        Errors.NOT_COORDINATOR,
        Errors.LEADER_NOT_AVAILABLE,
        Errors.NOT_LEADER_OR_FOLLOWER,
        Errors.UNKNOWN_TOPIC_OR_PARTITION,
        Errors.REQUEST_TIMED_OUT,
        Errors.NOT_ENOUGH_REPLICAS,
        Errors.KAFKA_STORAGE_ERROR,
        Errors.CONCURRENT_TRANSACTIONS,
    }
)


@rule(
    "KIP-219.throttle-kept",
    "network",
    messages=False,
    needs=Needs(throttled=True),
    source="KIP-219",
    why="The broker does not read meanwhile, and the client's request times out without a reason that it could know.",
    severity="warning",
)
class ThrottleKept(Rule):
    """After a reply with a throttle time, a client sends nothing on that connection until it is over."""

    def __init__(self) -> None:
        super().__init__()
        self._until_us: dict[int, tuple[int, Request, Reply]] = {}

    def answered(self, request: Request, reply: Reply) -> None:
        since = THROTTLED_SINCE.get(request.key)
        if since is not None and request.version >= since and reply.throttle_time_ms > TOLERANCE_MS:
            until_us = reply.mono_us + (reply.throttle_time_ms - TOLERANCE_MS) * 1000
            self._until_us[request.connection] = until_us, request, reply

    def asked(self, request: Request) -> None:
        until = self._until_us.pop(request.connection, None)
        if until is None:
            return
        until_us, before, reply = until
        if request.mono_us >= until_us:
            self.kept()
        else:
            after_ms = (request.mono_us - reply.mono_us) // 1000
            words = f"{request.api} came {after_ms} ms after a reply with throttle_time_ms {reply.throttle_time_ms}"
            self.fail(words, before, reply, request)

    def closed(self, closed: Closed) -> None:
        self._until_us.pop(closed.connection, None)


@rule(
    "KIP-580.back-off",
    "network",
    apis=(
        *("ListOffsets", "FindCoordinator", "JoinGroup", "SyncGroup", "OffsetFetch"),
        *("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"),
    ),
    source="KIP-580",
    why="Clients that ask again at once keep a broker busy that has trouble already.",
)
class BackOff(Rule):
    """A client waits before it asks again after an error that passes: at least 10 ms, from the third time on.

    Batches and commits are left out: other ones may be on their way already when the first is refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self._failing: Recent[tuple[int, int, str], tuple[int, Request, Reply]] = Recent()
        """By connection, API, and what it is asked for."""

    def answered(self, request: Request, reply: Reply) -> None:
        at = request.connection, request.key, _subject(request)
        errors = errors_of(reply)
        if not errors or not any(code in WAITS_AFTER for code in errors):
            if self._failing:
                self._failing.pop(at, None)
            return
        before = self._failing.get(at)
        repeats = 0
        if before is not None:
            waited_ms = (request.mono_us - before[2].mono_us) / 1000
            if waited_ms >= BACK_OFF_MS:
                self.kept()
            else:
                repeats = before[0] + 1
            if repeats >= REPEATS_MAX:
                words = f"{request.api} came again {waited_ms:.1f} ms after an error, {repeats} times in a row"
                self.fail(words, before[1], before[2], request)
                repeats = 0
        self._failing[at] = repeats, request, reply


def _subject(request: Request) -> str:
    """The groups, the partitions or the transactional id that a request is about: clients ask for several, one after
    the other.
    """
    found = request.message
    if isinstance(found, m.ListOffsetsRequest):
        named = [(topic.name, [one.partition_index for one in topic.partitions]) for topic in found.topics]
        return str(crc32(repr(named).encode()))
    if isinstance(found, m.FindCoordinatorRequest):
        return " ".join((found.key, *found.coordinator_keys))
    if isinstance(found, m.OffsetFetchRequest):
        return " ".join((found.group_id, *(one.group_id for one in found.groups)))
    for name in ("group_id", "transactional_id"):
        if hasattr(found, name):
            return str(getattr(found, name))
    return ""
