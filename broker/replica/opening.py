"""Opens the logs that a request needs. A few are opened when they are used; many, which were just created, or whose
broker has just started, are opened some at a time before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from ..steps import Pace, slices
from ..turn import Turn
from .partition import Partition

OPENED_AT_ONCE = 8  # logs that a request opens in a turn of the loop
LOOKED_AT = 1000  # partitions of which those that are not open are found in a step
T = TypeVar("T")


def many_unopened(partitions: Iterable[Partition | None]) -> list[Partition]:
    """Returns those whose logs are opened when they are used, if they are many."""
    found = [one for one in partitions if one is not None and one.opening is not None]
    return found if len(found) > OPENED_AT_ONCE else []


async def open_many_in_steps(turn: Turn, wanted: Sequence[T], find: Callable[[T], Partition | None]) -> None:
    """Opens the logs of very many elements of a request, if many of them are not open. `find` returns the partition of
    an element.
    """
    unopened: list[Partition] = []
    for some in slices(wanted, LOOKED_AT):
        unopened += (one for one in map(find, some) if one is not None and one.opening is not None)
        await turn.next()
    if len(unopened) > OPENED_AT_ONCE:
        await open_in_steps(turn, unopened)


async def open_in_steps(turn: Turn, unopened: Iterable[Partition]) -> None:
    """Opens logs that have not been opened meanwhile."""
    pace = Pace(turn, OPENED_AT_ONCE)
    for partition in unopened:
        if partition.opening is not None:
            partition.opening()
            if pace.is_over():
                await pace.rest()
