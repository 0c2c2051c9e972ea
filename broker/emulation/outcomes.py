"""Waits for what the usual handlers return, and for work on records."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from ...protocol.encoded import Encoded
from ..steps import Allowance, TooLong, Work, at_once, opened_in_steps
from ..turn import Turn

SMALL_BYTES = 32 << 10
T = TypeVar("T")


async def outcome_of(returned: Awaitable[T] | T) -> T:
    """Returns the message or mark that a handler returned, now or later. Raises what the handler raises."""
    return await returned if isinstance(returned, Awaitable) else returned


def elements_of(array: list[T]) -> list[T]:
    """Returns the elements of an array of a reply, also of one that is encoded already."""
    found: object = array
    return cast("list[T]", found.decoded()) if isinstance(found, Encoded) else array


async def work_out(turn: Turn, size: int, make: Callable[[], Work[T]]) -> T:
    """Does the work on `size` bytes of records that `make` returns: at once if it is little, else in steps."""
    if size <= SMALL_BYTES:
        try:
            return at_once(make(), Allowance())
        except TooLong:
            pass  # it is done again, in steps
    return await opened_in_steps(turn, make())
