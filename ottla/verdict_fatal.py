"""The examination `fatal` of `ottla verdict`: errors after which a client, or its transaction, has to end.

No application goes on by itself after most of them, so the program under examination is run again as long as a run has
met an error that no run before has met. Only these rules count: what ends in the middle leaves nothing in good order.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .testing import Broker

NAME: Final = "fatal"
RULES: Final = (
    "KIP-98.sequences-in-order",
    "KIP-360.epoch-bumped",
    "KIP-98.refused-not-repeated",
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
    """An error, and the requests of an API that get it: which of them, by number, and only in these versions. `late`:
    the last of them and so many after it are answered late each, so that a client that sends more without waiting has
    them on their way when it hears of the error, however busy it is.
    """

    what: str
    api: str
    error: str
    numbers: tuple[int, ...]
    versions: str | None = None
    late: int = 0


LATE_MS: Final = 1000
PRODUCER_FENCED: Final = "another producer has taken the transactional id"
NOTHING_TO_END: Final = "a producer ends a transaction that there is not"
BATCH_ASTRAY: Final = "a batch is refused as out of order"
BATCH_REFUSED: Final = "a batch is refused for what it is"
INSTANCE_TAKEN: Final = "another member has taken the instance id"
MEMBER_REFUSED: Final = "the broker refuses what a member of a consumer group asks for"
ENDINGS: Final = (
    Ending(PRODUCER_FENCED, "EndTxn", "INVALID_PRODUCER_EPOCH", (2,), "0-1"),
    Ending(PRODUCER_FENCED, "EndTxn", "PRODUCER_FENCED", (2,), "2+"),
    Ending(NOTHING_TO_END, "EndTxn", "INVALID_TXN_STATE", (5,)),
    Ending(BATCH_ASTRAY, "Produce", "OUT_OF_ORDER_SEQUENCE_NUMBER", (12,)),
    Ending(BATCH_REFUSED, "Produce", "INVALID_RECORD", (14,), late=4),
    Ending(INSTANCE_TAKEN, "Heartbeat", "FENCED_INSTANCE_ID", (3,), "3+"),  # which have the instance id
    # more than once, for who asks for the same again
    Ending(MEMBER_REFUSED, "ConsumerGroupHeartbeat", "INVALID_REQUEST", (4, 5, 6, 7)),
)
STEPS: Final = tuple(dict.fromkeys(one.what for one in ENDINGS))


class Endings:
    """The faults of a broker. `steps`: those of STEPS that it provokes, from now on; `done`: what of that a client has
    met.
    """

    def __init__(self, broker: Broker, steps: Collection[str] = STEPS) -> None:
        self._lab = broker.lab
        self.done: list[str] = []
        self._left: dict[str, list[int]] = {what: [] for what in steps}  # the numbers of the faults of a step
        for one in ENDINGS:
            if one.what not in steps:
                continue
            self._left[one.what] += [self._provoke(one, nth, kind="error", error=one.error) for nth in one.numbers]
            late = range(one.numbers[-1], one.numbers[-1] + 1 + one.late) if one.late else ()
            self._left[one.what] += [self._provoke(one, nth, kind="delay", ms=LATE_MS, at="reply") for nth in late]

    def _provoke(self, one: Ending, nth: int, **action: object) -> int:
        """Returns the number of the fault."""
        fault = {"api": one.api, "versions": one.versions, "nth": nth, "action": action}
        return int(self._lab.post("faults", fault)["number"])

    def end_met(self) -> bool:
        """Removes the faults of what has been met, so that it is met in one run only. Returns whether more may be met:
        something was, and something is left.
        """
        met = self.met()
        self._remove(met)
        self.done += met
        return bool(met and self._left)

    @property
    def left(self) -> list[str]:
        """What no client has met before the latest `end_met`."""
        return list(self._left)

    def met(self) -> list[str]:
        """What a client has met since `end_met`."""
        return [what for what, faults in self._left.items() if any(map(self._is_applied, faults))]

    def close(self) -> None:
        """Removes the faults of what has not been met."""
        self._remove(self.left)

    def _remove(self, steps: Collection[str]) -> None:
        for what in steps:
            for number in self._left.pop(what):
                self._lab.delete(f"faults/{number}")

    def _is_applied(self, number: int) -> bool:
        return bool(self._lab.get(f"faults/{number}")["applied"])
