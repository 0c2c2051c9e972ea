"""Splits the work on a large request into steps.

A handler of many elements handles some of them and then lets the loop run (`Turn.next`). The size of a step is a number
of elements and does not depend on the clock.

`Work` on records of clients is a generator. It yields None after each step, which takes a few milliseconds at most; or
it yields a function that takes longer, does not use the loop and releases the interpreter lock, and gets its result
back. Some steps run at once (`at_once`); longer work waits in line (`opened_in_steps`).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from .later import Later
from .turn import Turn

STEP_ELEMENTS = 256
STEP_BYTES = 64 << 10
STEPS_AT_ONCE = 2
T = TypeVar("T")
A = TypeVar("A")
Work = Generator[Callable[[], Any] | None, Any, T]


class Pace:
    """Counts the elements that a handler has handled since the loop last ran, at most `step`."""

    __slots__ = ("_left", "_step", "_turn")

    def __init__(self, turn: Turn, step: int = STEP_ELEMENTS) -> None:
        self._turn = turn
        self._left = self._step = step

    def is_over(self, elements: int = 1) -> bool:
        """Counts elements; returns whether the step is over, after which the handler awaits `rest`."""
        self._left -= elements
        return self._left <= 0

    async def rest(self) -> None:
        self._left = self._step
        await self._turn.next()


async def in_steps(turn: Turn, work: Iterable[None], step: int = STEP_ELEMENTS) -> None:
    """Runs a generator, `step` parts per turn of the loop, until the broker stops."""
    pace = Pace(turn, step)
    for _ in work:
        if pace.is_over():
            await pace.rest()
            if turn.stopped:
                return


async def paced(turn: Turn, work: Generator[None, None, T], step: int = STEP_ELEMENTS) -> T:
    """Runs a generator, `step` parts per turn of the loop; returns its result."""
    pace = Pace(turn, step)
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        if pace.is_over():
            await pace.rest()


async def each_in_steps(turn: Turn, elements: Iterable[A], make: Callable[[A], T]) -> list[T]:
    """Returns what `make` makes of each element; of many elements, `STEP_ELEMENTS` per turn, from the next turn on."""
    given = elements if isinstance(elements, Sequence) else list(elements)
    if len(given) <= STEP_ELEMENTS:
        return list(map(make, given))
    made: list[T] = []
    for some in slices(given):
        await turn.next()
        made += map(make, some)
    return made


def slices(elements: Sequence[T], step: int = STEP_ELEMENTS) -> Iterator[Sequence[T]]:
    """Yields the elements in slices of `step`."""
    return (elements[at : at + step] for at in range(0, len(elements), step))


# work on records


class TooLong(Exception):
    """The work needs more steps than allowed, and is abandoned."""


class Allowance:
    """How many steps an input event may take before it has to wait."""

    __slots__ = ("left",)

    def __init__(self, left: int = STEPS_AT_ONCE) -> None:
        self.left = left


def at_once(work: Work[T], allowance: Allowance) -> T:
    """Does the work. Raises TooLong if it takes more steps than are allowed, or yields a function."""
    try:
        while allowance.left > 0:
            allowance.left -= 1
            if next(work) is not None:
                break
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise TooLong


def all_at_once(work: Work[T]) -> T:
    """Does all of the work, before anything waits for the loop: at the start."""
    given = None
    while True:
        try:
            wanted = work.send(given)
        except StopIteration as end:
            result: T = end.value
            return result
        given = wanted() if wanted is not None else None


async def opened_in_steps(turn: Turn, work: Work[T]) -> T:
    """Does the work, some steps in each of this request's turns of the loop."""
    done, given = 0, None
    await turn.next()
    while True:
        try:
            wanted = work.send(given)
        except StopIteration as end:
            result: T = end.value
            return result
        if wanted is not None:
            given = await off_loop(turn, wanted)
            continue
        given, done = None, done + 1
        if done % STEPS_AT_ONCE == 0:
            await turn.next()


def off_loop(turn: Turn, work: Callable[[], Any]) -> Later[Any]:
    """Completes with the result of `work`, run in a thread, as an input event; fails with its exception."""
    later: Later[Any] = Later()
    turn.in_thread(work, later.settle)
    return later
