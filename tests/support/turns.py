"""A world that counts turns of the loop."""

from __future__ import annotations

from collections import deque
from typing import Any

from .memory_files import MemFiles
from .world import World


class _Steps(deque[Any]):
    """The steps that wait for a turn (`Turn.next`)."""

    def __init__(self, world: Turns) -> None:
        super().__init__()
        self._world = world

    def append(self, step: Any) -> None:
        self._world.turns += 1
        super().append(step)


class Turns(World):
    """A world that counts the turns that requests wait for."""

    def __init__(self, files: MemFiles | None = None, **settings: str) -> None:
        super().__init__(files, **settings)
        self.turns = 0
        self.broker.turn._steps = _Steps(self)
