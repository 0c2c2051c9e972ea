"""Encodes the large arrays of a reply in steps, between which other requests are served."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ...protocol import schema
from ...protocol.schema import StructSchema
from ...protocol.structs import Struct
from ..steps import STEP_ELEMENTS
from .answers import Answers
from .context import Context

STEP_ENCODED = 4 * STEP_ELEMENTS  # elements: encoding one takes less time than making it


class ArrayOf(NamedTuple):
    """An array of structs in a reply, and those in its elements."""

    name: str
    inner: tuple[ArrayOf, ...]


@cache
def arrays_of(response: str, version: int) -> tuple[ArrayOf, ...]:
    """Returns the arrays of a response that may be encoded one by one: none if it has records, which are not copied."""
    loaded = schema.load(response)
    structs = (loaded.root, *loaded.structs.values())
    if any(field.type == "records" for struct in structs for field in struct.fields):
        return ()
    return _arrays(loaded.root, version)


def _arrays(struct: StructSchema, version: int) -> tuple[ArrayOf, ...]:
    return tuple(
        ArrayOf(f.name, _arrays(f.struct, version))
        for f in struct.fields
        if f.is_array and f.struct is not None and version in f.versions and version not in f.tagged
    )


def encoded_in_steps(context: Context, reply: Struct) -> Iterator[None]:
    """Replaces each large array of a reply by its bytes. Yields between steps. Raises ReplyTooLarge, and
    MalformedMessage if the version cannot hold an element.
    """
    return _Encoding(context).arrays(reply, arrays_of(context.api.response, context.version), "")


class _Encoding:
    def __init__(self, context: Context) -> None:
        self._answers = Answers(context)
        self._left = STEP_ENCODED

    def arrays(self, owner: Struct, arrays: tuple[ArrayOf, ...], place: str) -> Iterator[None]:
        for name, inner in arrays:
            elements = getattr(owner, name)
            if type(elements) is not list or not _is_large(elements, inner):
                continue
            encoded = self._answers.array(place + name)
            left = elements[::-1]
            setattr(owner, name, encoded)
            del elements
            while left:  # each element is freed when it is encoded
                element = left.pop()
                weight = _weight(element, inner)
                if weight > STEP_ENCODED:
                    yield from self.arrays(element, inner, f"{place}{name}.")
                    weight = _weight(element, inner)  # of what is not encoded yet
                encoded.append(element)
                self._left -= weight
                if self._left <= 0:
                    self._left = STEP_ENCODED
                    self._answers.check_size()
                    yield


def _is_large(elements: list[Struct], inner: tuple[ArrayOf, ...]) -> bool:
    if len(elements) > STEP_ENCODED or not inner:
        return len(elements) > STEP_ENCODED
    return sum(_weight(one, inner) for one in elements) > STEP_ENCODED


def _weight(element: Struct, inner: tuple[ArrayOf, ...]) -> int:
    """Returns how many structs an element is, with those in its arrays."""
    weight = 1
    for name, within in inner:
        elements = getattr(element, name)
        if type(elements) is list:
            weight += sum(_weight(one, within) for one in elements) if within else len(elements)
    return weight
