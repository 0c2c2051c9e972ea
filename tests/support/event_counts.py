"""How many elements the events of the loop handle, counted where the product handles them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from .world import World


class EventCounts:
    """The most elements that a function of the product gets in one event, and how many it gets in all."""

    def __init__(
        self, world: World, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, size: Callable[..., int]
    ) -> None:
        self.most = self.count = self._now = 0
        take_next, call = world.schedule.take_next, getattr(owner, name)

        def next_event() -> Callable[[], None]:
            self._now = 0
            return take_next()

        def counted(*arguments: Any) -> Any:
            self._now += size(*arguments)
            self.count += size(*arguments)
            self.most = max(self.most, self._now)
            return call(*arguments)

        monkeypatch.setattr(world.schedule, "take_next", next_event)
        monkeypatch.setattr(owner, name, counted)
