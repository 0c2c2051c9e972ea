"""How a client finds its coordinators."""

from __future__ import annotations

from typing import Final

from ...protocol.errors import Errors
from ..events import Reply, Request
from ..replies import errors_of
from ..rule import Needs, Rule, rule

ERRORS_MAX: Final = 5
ON_THEIR_WAY_US: Final = 500_000  # in which requests come that were sent before the first error arrived
MOVED: Final = (Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE)


@rule(
    "protocol.coordinator-found-again",
    "network",
    apis=(
        *("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
        *("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit"),
        *("ConsumerGroupHeartbeat", "ShareGroupHeartbeat"),
    ),
    needs=Needs(errors=True, asks=("FindCoordinator",)),
    source="Kafka protocol",
    why="The coordinator has moved to another broker, and does not come back by asking.",
)
class CoordinatorFoundAgain(Rule):
    """After NOT_COORDINATOR, a client asks FindCoordinator before it goes on."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._first: tuple[Request, Reply] | None = None

    def asked(self, request: Request) -> None:
        if request.api == "FindCoordinator" and self._first is not None:
            self.kept()
            self._count, self._first = 0, None

    def answered(self, request: Request, reply: Reply) -> None:
        if request.api == "FindCoordinator" or not any(one in MOVED for one in errors_of(reply)):
            return
        if self._first is None:
            self._count, self._first = 1, (request, reply)
        elif request.mono_us - self._first[1].mono_us >= ON_THEIR_WAY_US:
            self._count += 1
        if self._count >= ERRORS_MAX:
            words = f"{self._count} requests that the broker does not coordinate, and no FindCoordinator"
            self.fail(words, *self._first, request, reply)
            self._count, self._first = 0, None
