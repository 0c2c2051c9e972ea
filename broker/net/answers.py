"""Replies with many parts, and their size limit.

Handlers whose replies may be much larger than the request (ten bytes name a group, whose reply lists all members) add
the parts to `Answers`, which encodes each of them at once. If the reply grows beyond `ottla.reply.max.bytes`, the work
stops and the connection is closed; an error per element would be another unbounded reply. Kafka's replies are limited
only by its heap; below the limit ottla's are the same, including repeated parts for repeated names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ...protocol import codec
from ...protocol.buffers import Parts
from ...protocol.encoded import Encoded
from ..steps import STEP_BYTES, STEP_ELEMENTS, Pace
from ..topic_pieces import Key, Piece
from . import error_counts
from .context import Context

T = TypeVar("T")
A = TypeVar("A")


class ReplyTooLarge(Exception):
    """A reply would exceed its size limit: the connection is closed."""


class Answers:
    """The parts of a reply, which are encoded, and their errors counted, when they are added to an array of it.

    A part that contains an array of parts is added when that array is complete. `step`: how many parts are made before
    the loop runs, if they are small.
    """

    __slots__ = ("_arrays", "_bytes_max", "_context", "_pace", "_turned_at")

    def __init__(self, context: Context, step: int = STEP_ELEMENTS) -> None:
        self._context = context
        self._pace = Pace(context.broker.turn, step)
        self._bytes_max = context.broker.config["ottla.reply.max.bytes"]
        self._arrays: dict[str, Encoded] = {}  # arrays that are not complete
        self._turned_at = 0

    def array(self, place: str) -> Any:
        """Returns an array of the reply (an `Encoded`), such as `topics`, or of the latest part,
        such as `topics.partitions`.
        """
        context = self._context
        made = self._arrays[place] = codec.encoded(context.api.response, context.version, place)
        write, plan = made.write, error_counts.plan_of_element(context.api.response, place)

        def counted(answer: object, data: bytearray, parts: Parts) -> None:
            if type(answer) is Piece:
                data += answer.data
                for code in answer.errors:
                    context.broker.metrics.errors[context.api.key, code] += 1
                return
            write(answer, data, parts)
            error_counts.count(answer, plan, context.api.key, context.broker.metrics.errors)

        made.write = counted
        return made

    async def add(self, place: str, answer: Any) -> None:
        """Adds a part to the latest array of its place. Raises ReplyTooLarge."""
        self._arrays[place].append(answer)
        for inner in [name for name in self._arrays if len(name) > len(place)]:
            del self._arrays[inner]  # the answer has it
        size = self.check_size()
        if self._pace.is_over() or size - self._turned_at > STEP_BYTES:
            self._turned_at = size
            await self._pace.rest()

    def check_size(self) -> int:
        """Returns the bytes of the arrays that are not complete. Raises ReplyTooLarge."""
        size = sum(len(one.data) for one in self._arrays.values())
        if size > self._bytes_max:
            raise ReplyTooLarge
        return size


def topic_piece(context: Context, name: str, operations: int, describe: Callable[[], object]) -> Piece:
    """Returns a topic as an element of the reply's `topics`: as it was encoded before, if nothing of it has changed.

    `operations`: the bits of operations that it shows; `describe` makes it otherwise.
    """
    pieces, key = context.broker.partitions.pieces, Key(context.api.key, context.version, operations)
    found = pieces.get(name, key)
    if found is None:
        topic, response = describe(), context.api.response
        array, errors = codec.encoded(response, context.version, "topics"), Counter[tuple[int, int]]()
        array.append(topic)
        error_counts.count(topic, error_counts.plan_of_element(response, "topics"), context.api.key, errors)
        found = Piece(bytes(array.data), tuple(code for _, code in errors.elements()))
        pieces.keep(name, key, found)
    return found


async def answer_each(
    context: Context, array: str, asked: Iterable[T], answer: Callable[[T], A | Piece], step: int = STEP_ELEMENTS
) -> list[A]:
    """Returns the parts for the elements of a request, in their order, as an array of the reply (an `Encoded` for a
    list). Raises ReplyTooLarge.
    """
    answers = Answers(context, step)
    made: list[A] = answers.array(array)
    for one in asked:
        await answers.add(array, answer(one))
    return made
