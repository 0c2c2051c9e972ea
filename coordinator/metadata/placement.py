"""Chooses the replicas of new partitions (Kafka's StripedReplicaPlacer).

The leaders go round the racks, and round the brokers of each rack; the further replicas of a partition are in other
racks where there are any. A fenced broker gets no leader, and a replica only when no other one is left. After as many
partitions as there are brokers, the order is shuffled, so that the same sets of replicas do not come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from .registration import Broker

T = TypeVar("T")
Chance = Callable[[int], int]
"""Returns a number below its argument."""


class _Ring:
    """Brokers that are given out in turn, each at most once in a round."""

    def __init__(self, brokers: list[int], chance: Chance) -> None:
        self.brokers = sorted(brokers)
        self._chance = chance
        self._offset = chance(len(brokers)) if len(brokers) > 1 else 0
        self._round = self._given = 0

    def next(self, number: int) -> int | None:
        """Returns the next broker of a round; None if all have been given."""
        brokers = self.brokers
        if not brokers:
            return None
        if self._round != number:
            self._round, self._given = number, 0
            self._offset = (self._offset + 1) % len(brokers)
        if self._given >= len(brokers):
            return None
        self._given += 1
        return brokers[(self._given - 1 + self._offset) % len(brokers)]

    def shuffle(self) -> None:
        _shuffle(self.brokers, self._chance)


class _Rack:
    def __init__(self, brokers: Iterable[Broker], chance: Chance) -> None:
        known = list(brokers)
        self.unfenced = _Ring([one.id for one in known if not one.fenced], chance)
        self._fenced = _Ring([one.id for one in known if one.fenced], chance)

    def next(self, number: int) -> int | None:
        found = self.unfenced.next(number)
        return self._fenced.next(number) if found is None else found

    def shuffle(self) -> None:
        self._fenced.shuffle()
        self.unfenced.shuffle()


class Placer:
    """Places partitions one after another. `brokers`: all that are registered; at least one is not fenced."""

    def __init__(self, brokers: Iterable[Broker], chance: Chance) -> None:
        by_rack: dict[str | None, list[Broker]] = {}
        for one in brokers:
            by_rack.setdefault(one.rack, []).append(one)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self._racks = [_Rack(by_rack[name], chance) for name in names]
        self._unfenced = sum(len(rack.unfenced.brokers) for rack in self._racks)
        self._chance = chance
        self._offset = chance(len(names)) if len(names) > 1 else 0
        self._round = 0

    def place(self, replicas: int) -> list[int]:
        """Returns the replicas of the next partition; there are at least as many brokers."""
        if self._round == self._unfenced and self._unfenced > 1:
            _shuffle(self._racks, self._chance)
            for rack in self._racks:
                rack.shuffle()
            self._round = 0
        racks, number = self._racks, self._round
        self._offset %= len(racks)
        first: int | None = self._offset
        while (leader := racks[first or 0].unfenced.next(number)) is None:
            first = ((first or 0) + 1) % len(racks)
        placed, at = [leader], self._offset
        while len(placed) < replicas:
            if at == first:
                first = None  # the leader's rack is left out in the first round only
            elif (found := racks[at].next(number)) is not None:
                placed.append(found)
            at = (at + 1) % len(racks)
        self._round += 1
        self._offset += 1
        return placed


def _shuffle(items: list[T], chance: Chance) -> None:
    for last in range(len(items) - 1, 0, -1):
        other = chance(last + 1)
        items[last], items[other] = items[other], items[last]
