"""The examination `fatal` of `ottla verdict`: errors after which a client, or its transaction, has to end.

No application goes on by itself after most of them, so the program under examination is run again as long as a run has
met an error that no run before has met. Only these rules count: what ends in the middle leaves nothing in good order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .testing import Broker

NAME: Final = "fatal"
RULES: Final = (
    "KIP-588.fenced-stops",
    "KIP-360.own-epoch-named",
    "KIP-1050.fatal-stops",
    "KIP-345.fenced-stops",
    "KIP-848.refused-stops",
)
SETTINGS: Final[dict[str, object]] = {
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 1000,  # without it, what a member meets takes it a quarter of a minute
}


@dataclass(frozen=True)
class Ending:
    """An error, and the requests of an API that get it: which of them, by number, and only in these versions."""

    what: str
    api: str
    error: str
    numbers: tuple[int, ...]
    versions: str | None = None


PRODUCER_FENCED: Final = "another producer has taken the transactional id"
MEMBER_REFUSED: Final = "the broker refuses what a member of a consumer group asks for"
ENDINGS: Final = (
    Ending(PRODUCER_FENCED, "EndTxn", "INVALID_PRODUCER_EPOCH", (2,), "0-1"),
    Ending(PRODUCER_FENCED, "EndTxn", "PRODUCER_FENCED", (2,), "2+"),
    Ending("a producer ends a transaction that there is not", "EndTxn", "INVALID_TXN_STATE", (5,)),
    Ending("a batch is refused as out of order", "Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", (12,)),
    Ending("another member has taken the instance id", "Heartbeat", "FENCED_INSTANCE_ID", (3,)),
    # more than once, for who asks for the same again
    Ending(MEMBER_REFUSED, "ConsumerGroupHeartbeat", "INVALID_REQUEST", (4, 5, 6, 7)),
)
STEPS: Final = tuple(dict.fromkeys(one.what for one in ENDINGS))


class Endings:
    """The faults of a broker. `done`: what of STEPS a client has met."""

    def __init__(self, broker: Broker) -> None:
        self._lab = broker.lab
        self.done: list[str] = []
        self._left: dict[str, list[int]] = {what: [] for what in STEPS}  # the numbers of the faults of a step
        for one in ENDINGS:
            for nth in one.numbers:
                fault = {"api": one.api, "versions": one.versions, "nth": nth}
                action = {"kind": "error", "error": one.error}
                self._left[one.what].append(self._lab.post("faults", {**fault, "action": action})["number"])

    def end_met(self) -> bool:
        """Removes the faults of what has been met, so that it is met in one run only. Returns whether more may be met:
        something was, and something is left.
        """
        met = [what for what, faults in self._left.items() if any(map(self._is_applied, faults))]
        for what in met:
            for number in self._left.pop(what):
                self._lab.delete(f"faults/{number}")
        self.done += met
        return bool(met and self._left)

    def _is_applied(self, number: int) -> bool:
        return bool(self._lab.get(f"faults/{number}")["applied"])
