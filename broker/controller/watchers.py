"""The parts of a broker that follow the metadata: each is called once per commit, in order, and may follow in steps.

One that fails is called again later with the same change, and until then later changes wait: a topic that is deleted
and created again must not be created before it is removed. The others get theirs at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from ...coordinator.metadata.delta import MetadataDelta
from .. import bugs
from ..steps import Pace
from ..turn import Turn

RETRY_MS = 1000
ATTEMPTS = 3  # how often a watcher gets a change that it fails to handle
STEP_CHANGES = 128  # that are followed in a step: a partition that is removed takes some 40 us


Changed = Callable[[MetadataDelta], Iterator[None] | None]
"""Follows a change of the metadata; in steps, if it is a generator."""


class _Watcher:
    """One part, and the changes that it has not handled yet."""

    def __init__(self, changed: Changed) -> None:
        self.changed = changed
        self.waiting: deque[MetadataDelta] = deque()
        self.attempts = 0  # for the first of them


class Watchers:
    """The watchers, in the order in which they were added."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._all: list[_Watcher] = []

    def add(self, changed: Changed) -> None:
        self._all.append(_Watcher(changed))

    async def tell(self, delta: MetadataDelta) -> None:
        """Passes a change to every watcher; ends when all have followed, or failed."""
        pace = Pace(self._turn, STEP_CHANGES)
        for watcher in self._all:
            watcher.waiting.append(delta)
            if len(watcher.waiting) == 1:
                await self._tell(watcher, pace)

    async def _tell(self, watcher: _Watcher, pace: Pace) -> None:
        while watcher.waiting:
            watcher.attempts += 1
            try:
                for _ in watcher.changed(watcher.waiting[0]) or ():
                    if pace.is_over():
                        await pace.rest()
            except Exception as error:
                name = getattr(watcher.changed, "__qualname__", "a watcher")
                bugs.report(f"{name} after a commit of the metadata", error)
                if watcher.attempts < ATTEMPTS:
                    self._turn.later(RETRY_MS, lambda: self._again(watcher))
                    return
            watcher.waiting.popleft()
            watcher.attempts = 0

    def _again(self, watcher: _Watcher) -> None:
        self._turn.background(self._tell(watcher, Pace(self._turn, STEP_CHANGES)))
