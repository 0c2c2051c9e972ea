"""A world that counts turns of the loop."""

from __future__ import annotations

from typing import Any

from .memory_files import MemFiles
from .world import World


class Turns(World):
    """A world that counts the turns that requests wait for."""

    def __init__(self, files: MemFiles | None = None, **settings: str) -> None:
        super().__init__(files, **settings)
        self.turns = 0
        next_turn = self.broker.turn.next

        def counted() -> Any:
            self.turns += 1
            return next_turn()

        self.broker.turn.next = counted  # type: ignore[method-assign]
