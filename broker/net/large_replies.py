"""Encodes the large arrays of a reply in steps, between which other requests are served."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ...protocol import schema
from ...protocol.buffers import LateRecords
from ...protocol.schema import StructSchema
from ...protocol.structs import Struct
from ..steps import STEP_ELEMENTS, in_steps
from .answers import Answers
from .context import Context

STEP_ENCODED = 4 * STEP_ELEMENTS  # elements: encoding one takes less time than making it


class ArrayOf(NamedTuple):
    """An array of structs in a reply, and those in its elements."""

    name: str
    inner: tuple[ArrayOf, ...]


@cache
def arrays_of(response: str, version: int) -> tuple[ArrayOf, ...]:
    """Returns the arrays of a response that may be encoded one by one."""
    return _arrays(schema.load(response).root, version)


@cache
def has_records(response: str) -> bool:
    loaded = schema.load(response)
    return any(f.type == "records" for struct in (loaded.root, *loaded.structs.values()) for f in struct.fields)


def _arrays(struct: StructSchema, version: int) -> tuple[ArrayOf, ...]:
    return tuple(
        ArrayOf(f.name, _arrays(f.struct, version))
        for f in struct.fields
        if f.is_array and f.struct is not None and version in f.versions and version not in f.tagged
    )


def _freed(kept: list[list[Struct]]) -> Iterator[None]:
    """Frees elements that a reply had, and would free in one step. Yields before each step."""
    for elements in kept:
        while elements:
            yield
            del elements[-STEP_ENCODED:]


class Encoding:
    """Replaces each large array of a reply by its bytes. `kept`: of each of them the elements, if they stay with the
    reply because they have records.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers = Answers(context)
        self._keeps = has_records(context.api.response)  # which are released if the connection is lost
        self._left = STEP_ENCODED
        self.kept: list[list[Struct]] = []

    def steps(self, reply: Struct) -> Iterator[None]:
        """Yields between steps. Raises ReplyTooLarge, and MalformedMessage if the version cannot hold an element."""
        context = self._context
        return self._arrays(reply, arrays_of(context.api.response, context.version), "")

    def _arrays(self, owner: Struct, arrays: tuple[ArrayOf, ...], place: str) -> Iterator[None]:
        for name, inner in arrays:
            elements = getattr(owner, name)
            if type(elements) is not list or not _is_large(elements, inner):
                continue
            encoded = self._answers.array(place + name)
            if self._keeps:
                encoded.kept = elements
                self.kept.append(elements[:])
            left = elements[::-1]
            setattr(owner, name, encoded)
            del elements
            while left:  # each element without records is freed when it is encoded
                element = left.pop()
                weight = _weight(element, inner)
                if weight > STEP_ENCODED:
                    yield from self._arrays(element, inner, f"{place}{name}.")
                    weight = _weight(element, inner)  # of what is not encoded yet
                encoded.append(element)
                self._left -= weight
                if self._left <= 0:
                    self._left = STEP_ENCODED
                    self._answers.check_size()
                    yield


async def encode_in_steps(context: Context, reply: Struct) -> None:
    """As `Encoding`; the loop runs between the steps, and before the whole is put together. Raises
    ReplyTooLarge and MalformedMessage.
    """
    has_steps, turn, encoding = False, context.broker.turn, Encoding(context)
    try:
        for _ in encoding.steps(reply):
            has_steps = True
            await context.paused(turn.next())
        if has_steps:
            await context.paused(turn.next())
            turn.background(in_steps(turn, _freed(encoding.kept), 1))  # after the reply, which leaves in this step
    except BaseException:  # the reply is too large, or the connection is closed: nothing will send the records
        _release(context, reply)
        raise


async def in_next_turn(context: Context, outcome: object) -> None:
    """Returns in a later turn of the loop. `outcome`: what the handler has returned."""
    try:
        await context.turn.next()
    except BaseException:  # the connection is closed: nothing will send the records
        if isinstance(outcome, Struct):
            _release(context, outcome)
        raise


def _release(context: Context, reply: Struct) -> None:
    if has_records(context.api.response):
        _release_records(reply, arrays_of(context.api.response, context.version))


def _release_records(reply: Struct, arrays: tuple[ArrayOf, ...]) -> None:
    """Releases the records of a reply that will not be sent."""
    for name, inner in arrays:
        elements = getattr(reply, name)
        for element in elements if elements is not None else ():
            _release_records(element, inner)
            records = getattr(element, "records", b"")
            if isinstance(records, LateRecords):
                records.release()


def _is_large(elements: list[Struct], inner: tuple[ArrayOf, ...]) -> bool:
    weight = len(elements)
    if inner:
        for one in elements:
            if weight > STEP_ENCODED:
                break
            weight += _weight(one, inner) - 1
    return weight > STEP_ENCODED


def _weight(element: Struct, inner: tuple[ArrayOf, ...]) -> int:
    """Returns how many structs an element is, with those in its arrays; they are counted until a step is full."""
    weight = 1
    for name, within in inner:
        elements = getattr(element, name)
        if type(elements) is not list:
            continue
        weight += len(elements)
        if within:
            for one in elements:
                if weight > STEP_ENCODED:
                    return weight
                weight += _weight(one, within) - 1
    return weight
