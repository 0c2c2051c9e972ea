"""States of producers in partitions, by the epochs of the producers."""

from __future__ import annotations

from typing import Generic, TypeVar

from ..events import BatchHead
from ..rule import Recent

Place = tuple[int, int, str | bytes, int]
"""Producer id, epoch, topic and partition."""
V = TypeVar("V")


def place(topic: str | bytes, partition: int, head: BatchHead) -> Place:
    return head.producer_id, head.producer_epoch, topic, partition


class NewestEpochs(Generic[V]):
    """States of places, of which only that of the newest epoch stays: a transactional producer may have a new epoch in
    each transaction.
    """

    def __init__(self) -> None:
        self._states: Recent[tuple[int, str | bytes, int], tuple[int, V]] = Recent()

    def __len__(self) -> int:
        return len(self._states)

    @property
    def has_forgotten(self) -> bool:
        return self._states.has_forgotten

    def is_over(self, at: Place) -> bool:
        """Whether there was a later epoch."""
        known = self._states.get((at[0], *at[2:]))
        return known is not None and known[0] > at[1]

    def get(self, at: Place) -> V | None:
        known = self._states.get((at[0], *at[2:]))
        return known[1] if known is not None and known[0] == at[1] else None

    def put(self, at: Place, state: V) -> None:
        """Puts the state of an epoch, unless it is over."""
        if not self.is_over(at):
            self._states[(at[0], *at[2:])] = at[1], state
