"""Helper of the APIs that handle each partition of a request by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from ...protocol.errors import ApiError
from ..steps import Pace


class Answer(Protocol):
    """The part of a reply for one partition."""

    error_code: int


A = TypeVar("A", bound=Answer)
P = TypeVar("P")


async def answered(pace: Pace, asked: Iterable[tuple[P, A]], answer: Callable[[P, A], None]) -> list[A]:
    """Returns the answers to the partitions of one topic, each of which `answer` fills in. An ApiError that it raises
    becomes the error code of the partition.
    """
    answers = []
    for wanted, out in asked:
        try:
            answer(wanted, out)
        except ApiError as error:
            out.error_code = error.code
        answers.append(out)
        if pace.is_over():
            await pace.rest()
    return answers
