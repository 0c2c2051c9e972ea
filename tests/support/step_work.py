"""How much the longest step of the loop does, counted and not timed (`work`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .work import work_of
from .world import World

AFTER_MS = 10  # in which what a request causes is done


def longest_step(world: World, call: Callable[[], object]) -> int:
    """Runs `call`, whose events the loop carries out; returns the bytecodes of the longest of them."""
    longest = 0
    take_next = world.schedule.take_next

    def counted(event: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            nonlocal longest
            longest = max(longest, work_of(event))

        return run

    world.schedule.take_next = lambda: counted(take_next())  # type: ignore[method-assign]
    try:
        call()
    finally:
        world.schedule.take_next = take_next  # type: ignore[method-assign]
    return longest


def longest_step_of(world: World, name: str, version: int, message: Any) -> int:
    """Sends a request; returns the bytecodes of the longest step that follows its arrival."""

    def served() -> None:
        world.ask(name, version, message)
        world.pass_ms(AFTER_MS)

    return longest_step(world, served)
