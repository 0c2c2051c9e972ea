"""What an examination provokes: faults that bring about what does not happen by itself.

A schedule is the same in every run: it counts requests. Another seed moves each occasion by a few requests. What a
correct client survives by itself is provoked, and nothing that would lose or repeat records for its application. Two
exceptions say so: a transaction that has to be aborted, and a first fetch that is out of range, after which a consumer
begins where its reset policy says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from ....verdict.rule import Examination
from ..faults.byte_actions import Trickle
from ..faults.error_action import Fail
from ..faults.matching import Apis
from ..faults.request_actions import Close, Delay, Throttle
from ..faults.rules import AnyAction, Fault

SPREAD: Final = 3  # requests by which a seed moves an occasion at most
TRIES: Final = 5  # of one batch, which fail in a row


@dataclass(frozen=True)
class Provocation:
    """A fault, and what it is for."""

    what: str
    fault: Fault
    moves: bool = True


def once(
    what: str, api: str, nth: int, action: AnyAction | str, *, versions: str | None = None, moves: bool = True
) -> Provocation:
    """The n-th request of an API meets a fault. `action`: a text is an error."""
    made = Fail(action) if isinstance(action, str) else action
    return Provocation(what, Fault(api=api, nth=nth, versions=versions, action=made), moves)


def row(what: str, api: str, first: int, count: int, action: AnyAction | str) -> tuple[Provocation, ...]:
    """Some requests of an API in a row meet a fault, whatever the seed."""
    return tuple(once(what, api, nth, action, moves=False) for nth in range(first, first + count))


_COORDINATOR_ABSENT: Final = once("the coordinator is not there yet", "FindCoordinator", 1, "COORDINATOR_NOT_AVAILABLE",
                                  moves=False)  # fmt: skip
_PARTITION_MOVED: Final = "the leader of a partition has moved"
_LOST_REPLY: Final = "the reply to a batch is lost, and the batch is written"
_BUSY: Final = "too few replicas for a while"

METRICS: Final[dict[Examination, dict[str, str]]] = {"basic": {"metrics": "*", "interval.ms": "1000"}}
"""The subscription to metrics of clients (KIP-714) that there is as long as an examination."""

SCHEDULES: Final[dict[Examination, tuple[Provocation, ...]]] = {
    "basic": (
        once("an older broker", "ApiVersions", 2, "UNSUPPORTED_VERSION", versions="3+", moves=False),
        once("a topic without a leader", "Metadata", 3, "LEADER_NOT_AVAILABLE"),
        once(_PARTITION_MOVED, "Produce", 3, "NOT_LEADER_OR_FOLLOWER"),
        once("the first fetch is out of range", "Fetch", 1, "OFFSET_OUT_OF_RANGE", moves=False),
        once(_PARTITION_MOVED, "Fetch", 4, "NOT_LEADER_OR_FOLLOWER"),
        once("a leader with a newer epoch", "Fetch", 9, "FENCED_LEADER_EPOCH", versions="9+"),
        once("a fetch session that the broker has forgotten", "Fetch", 14, "FETCH_SESSION_ID_NOT_FOUND", versions="7+"),
        once(_PARTITION_MOVED, "ListOffsets", 1, "NOT_LEADER_OR_FOLLOWER", moves=False),
        once("the subscription to metrics has changed", "PushTelemetry", 2, "UNKNOWN_SUBSCRIPTION_ID", moves=False),
    ),
    "idempotence": (
        once("the coordinator loads", "InitProducerId", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once(_PARTITION_MOVED, "Produce", 2, "NOT_LEADER_OR_FOLLOWER", moves=False),
        once("a batch is written, and its reply says that it took too long", "Produce", 4,
             Fail("REQUEST_TIMED_OUT", at="reply"), moves=False),
        once(_LOST_REPLY, "Produce", 7, Close(at="before-reply")),
        *row(_BUSY, "Produce", 12, TRIES, "NOT_ENOUGH_REPLICAS"),
        *row("the reply to a batch comes late", "Produce", 20, 3, Delay(ms=300, at="reply")),
    ),
    "transactions": (
        _COORDINATOR_ABSENT,
        once("the coordinator loads", "InitProducerId", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the transaction before is not complete", "AddPartitionsToTxn", 1, "CONCURRENT_TRANSACTIONS", moves=False),
        once("the coordinator has moved", "AddPartitionsToTxn", 3, "NOT_COORDINATOR"),
        once("the transaction before is not complete", "AddOffsetsToTxn", 1, "CONCURRENT_TRANSACTIONS", moves=False),
        once("the coordinator of the group loads", "TxnOffsetCommit", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the coordinator has moved", "EndTxn", 2, "NOT_COORDINATOR", moves=False),
        once("the reply to the end of a transaction is lost", "EndTxn", 4, Close(at="before-reply")),
        once(_PARTITION_MOVED, "Produce", 2, "NOT_LEADER_OR_FOLLOWER", moves=False),
        once(_LOST_REPLY, "Produce", 5, Close(at="before-reply")),
        once("a transaction that the application has to abort", "Produce", 12, "TRANSACTION_ABORTABLE", versions="12+"),
    ),
    "classic-group": (
        _COORDINATOR_ABSENT,
        once("the coordinator loads", "JoinGroup", 2, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the group rebalances again", "SyncGroup", 1, "REBALANCE_IN_PROGRESS", moves=False),
        once("the coordinator loads", "OffsetFetch", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the coordinator has moved", "Heartbeat", 2, "NOT_COORDINATOR"),
        once("the group rebalances", "Heartbeat", 7, "REBALANCE_IN_PROGRESS"),
        once("the reply to a heartbeat is lost", "Heartbeat", 12, Close(at="before-reply")),
        once("the coordinator loads", "OffsetCommit", 2, "COORDINATOR_LOAD_IN_PROGRESS"),
        once("the coordinator has moved", "OffsetCommit", 6, "NOT_COORDINATOR"),
        once("the coordinator does not know the member", "Heartbeat", 20, "UNKNOWN_MEMBER_ID"),
    ),
    "consumer-group": (
        _COORDINATOR_ABSENT,
        once("the coordinator loads", "ConsumerGroupHeartbeat", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the coordinator loads", "OffsetFetch", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the coordinator has moved", "ConsumerGroupHeartbeat", 5, "NOT_COORDINATOR"),
        once("the member is fenced", "ConsumerGroupHeartbeat", 9, "FENCED_MEMBER_EPOCH"),
        once("the reply to a heartbeat is lost", "ConsumerGroupHeartbeat", 14, Close(at="before-reply")),
        once("the coordinator does not know the member", "ConsumerGroupHeartbeat", 19, "UNKNOWN_MEMBER_ID"),
        once("the coordinator loads", "OffsetCommit", 2, "COORDINATOR_LOAD_IN_PROGRESS"),
    ),
    "share-group": (
        _COORDINATOR_ABSENT,
        once("the coordinator loads", "ShareGroupHeartbeat", 1, "COORDINATOR_LOAD_IN_PROGRESS", moves=False),
        once("the coordinator has moved", "ShareGroupHeartbeat", 4, "NOT_COORDINATOR"),
        once("the coordinator does not know the member", "ShareGroupHeartbeat", 8, "UNKNOWN_MEMBER_ID"),
        once("a share session that the broker has forgotten", "ShareFetch", 4, "SHARE_SESSION_NOT_FOUND"),
        once(_PARTITION_MOVED, "ShareFetch", 9, "NOT_LEADER_OR_FOLLOWER"),
    ),
    "network": (
        *row("the coordinator is not there yet", "FindCoordinator", 1, TRIES, "COORDINATOR_NOT_AVAILABLE"),
        *row("the connection is lost before its first reply", "ApiVersions", 3, TRIES, Close(at="request")),
        once("the connection is lost", "Metadata", 3, Close(at="before-reply")),
        once("the client is throttled", "Metadata", 5, Throttle(ms=200)),
        once("what the client knows of the cluster leads nowhere", "Metadata", 8, "REBOOTSTRAP_REQUIRED",
             versions="13+"),
        once("the client is throttled", "Produce", 3, Throttle(ms=200)),
        once("the connection is lost in the middle of a reply", "Produce", 7, Close(at="middle")),
        *row(_BUSY, "Produce", 12, TRIES, "NOT_ENOUGH_REPLICAS"),
        once("the client is throttled", "Fetch", 3, Throttle(ms=200)),
        once("a reply comes in small pieces", "Fetch", 6, Trickle(piece_bytes=7)),
        once("the connection is lost in the middle of a reply", "Fetch", 10, Close(at="middle")),
        once("the coordinator has moved", "OffsetCommit", 1, "NOT_COORDINATOR", moves=False),
    ),
}  # fmt: skip


def provocations(examination: Examination, seed: int) -> Iterator[Provocation]:
    """Yields the schedule of an examination. The seed 0 leaves it as it is written."""
    for index, one in enumerate(SCHEDULES[examination]):
        moved = Random(f"{seed}/{index}").randrange(SPREAD + 1) if seed and one.moves else 0
        nth = one.fault.nth
        assert nth is not None
        yield replace(one, fault=replace(one.fault, nth=nth + moved))


def why_absent(fault: Fault, server: Apis) -> str | None:
    """Returns why no request can meet a fault: what the server, which may emulate a release, does not have. None if
    requests can.
    """
    api = next((one for one in map(server.api, server.api_keys()) if one.name == fault.api), None)
    if api is None:
        return f"the broker has no {fault.api}"
    versions = fault.version_range
    if versions is not None and (versions.low > api.high or versions.high < api.low):
        return f"the broker has {api.name} {api.low} to {api.high} only"
    return None
