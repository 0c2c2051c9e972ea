"""Replies that contain a given error, made from the places that an API declares (`error_places`).

`reply_with_error` needs no handler: nothing happened. `put_error` changes the reply of a handler: the work was done,
and the client hears an error. `take_out` changes a request before its handler: the chosen elements fail, and the
handler does the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from ..protocol import messages, schema
from ..protocol.encoded import Encoded
from ..protocol.errors import ApiError
from ..protocol.schema import StructSchema
from ..protocol.structs import Struct
from .error_places import Declares, Key, Level, Place, Roles, Text, Where, every, places_of, root_roles


class Shape(NamedTuple):
    """A place in one version of a reply: for each level the class of an element and the keys that the version has; the
    other fields that it has; and the records of the last element, which may not be null as they are by default.
    """

    levels: tuple[tuple[type[Struct], tuple[Key, ...]], ...]
    others: tuple[tuple[str, object], ...]
    has_text: bool
    records: tuple[str, ...]

    def empty(self, depth: int) -> Struct:
        """Returns an element of a level."""
        made = self.levels[depth][0]()
        if depth + 1 == len(self.levels):
            for name in self.records:
                setattr(made, name, b"")
        return made

    def answer(self, level: Level, depth: int, element: object) -> Struct:
        """Returns an element of the reply that is identified as an element of the request is."""
        made = self.empty(depth)
        for key in self.levels[depth][1]:
            value = level.value(element, key.request)
            setattr(made, key.reply, level.null if value is None else value)
        return made

    def fill(self, place: Place, part: Struct, error: ApiError) -> None:
        """Puts an error into the part of a reply that has room for it."""
        for name, value in self.others:
            setattr(part, name, value)
        if place.code is not None:
            setattr(part, place.code, int(error.code))
        if self.has_text:
            setattr(part, place.message, place.text.of(error))


@cache
def shape_of(response: str, version: int, place: Place) -> Shape:
    loaded = schema.load(response)
    struct: StructSchema = loaded.root
    levels = []
    for level in place.levels:
        (inner,) = (f.struct for f in struct.fields if f.name == level.reply)
        assert inner is not None
        struct = inner
        there = {f.name for f in struct.fields if version in f.versions}
        keys = tuple(key for key in level.keys if key.reply in there)
        levels.append((messages.struct_class(loaded, struct), keys))
    fields = {f.name: f for f in struct.fields if version in f.versions}
    others = tuple(
        (name, value)
        for name, value in place.others
        if name in fields and (value is not None or version in fields[name].nullable)
    )
    records = tuple(f.name for f in fields.values() if f.type == "records" and version not in f.nullable)
    return Shape(tuple(levels), others, place.text is not Text.NOTHING and place.message in fields, records)


# replies of which the handler knows nothing


def reply_with_error(
    api: Declares, version: int, request: object, error: ApiError, where: Where = every, place: Place | None = None
) -> Struct:
    """Returns a reply with an error, without a handler: in all places for errors of the whole request, or in the
    elements of one place; `where` leaves only chosen elements in the reply.
    """
    reply = messages.struct_class(loaded := schema.load(api.response), loaded.root)()
    outer = root_roles(request)
    for one in [place] if place is not None else [one for one in places_of(api, version) if one.of_whole]:
        shape = shape_of(api.response, version, one)
        if one.levels:
            setattr(reply, one.levels[0].reply, _answers(one, shape, 0, _first(one, request), error, where, outer))
        elif where(outer):
            shape.fill(one, reply, error)
            for name in one.copied:
                setattr(reply, name, getattr(request, name))
    return reply


def answers_with_error(
    api: Declares, version: int, place: Place, elements: Iterable[object], error: ApiError
) -> list[Any]:
    """Returns the elements of the outermost array of a reply that answer elements of a request with an error."""
    return _answers(place, shape_of(api.response, version, place), 0, elements, error, every, {})


def _first(place: Place, request: object) -> Iterable[object]:
    return place.levels[0].elements(request)


def _answers(
    place: Place, shape: Shape, depth: int, elements: Iterable[object], error: ApiError, where: Where, outer: Roles
) -> list[Struct]:
    level, made = place.levels[depth], []
    inner_level = place.levels[depth + 1] if depth + 1 < len(place.levels) else None
    for position, element in enumerate(elements):
        roles = outer if where is every else level.requested(element, position, outer)
        answer = shape.answer(level, depth, element)
        if inner_level is not None:
            inner = _answers(place, shape, depth + 1, inner_level.elements(element), error, where, roles)
            if not inner and where is not every:
                continue
            setattr(answer, inner_level.reply, inner)
        elif where(roles):
            shape.fill(place, answer, error)
        else:
            continue
        made.append(answer)
    return made


# replies that the handler has made: the work was done, and the client hears an error


@dataclass(frozen=True, slots=True)
class Put:
    """A reply, and in how many of its elements an error was put."""

    reply: Struct
    count: int


def put_error(
    api: Declares, version: int, request: object, reply: Struct, error: ApiError, where: Where, place: Place
) -> Put:
    """Puts an error into the chosen elements of a reply that the handler has made. An error of the whole reply makes a
    new one.
    """
    outer = root_roles(request)
    if not place.levels:
        if not where(outer):
            return Put(reply, 0)
        return Put(reply_with_error(api, version, request, error, place=None if place.of_whole else place), 1)
    return Put(reply, _put(place, shape_of(api.response, version, place), 0, reply, error, where, outer))


def _put(place: Place, shape: Shape, depth: int, part: object, error: ApiError, where: Where, outer: Roles) -> int:
    level, count = place.levels[depth], 0
    elements = _decoded(part, level.reply)
    for position, element in enumerate(elements):
        roles = level.replied(element, position, outer)
        if depth + 1 < len(place.levels):
            count += _put(place, shape, depth + 1, element, error, where, roles)
        elif where(roles):
            count += 1
            if not place.is_kept:
                fresh = shape.empty(depth)
                for key in level.keys:
                    setattr(fresh, key.reply, getattr(element, key.reply))
                elements[position] = fresh
            shape.fill(place, elements[position], error)
    return count


def _decoded(part: object, name: str) -> list[Struct]:
    """Returns an array of a reply as a list; one that is encoded already is replaced by its elements."""
    found = getattr(part, name)
    if isinstance(found, Encoded):
        found = found.decoded()
        setattr(part, name, found)
    return found if found is not None else []


# requests of which the handler gets a part: the others did not happen


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken out of a request: how many elements, whether nothing is left, and what adds their errors to the
    reply to the others.
    """

    count: int
    is_all: bool
    complete: Callable[[Struct], Struct]


def take_out(api: Declares, version: int, request: object, error: ApiError, where: Where, place: Place) -> Taken:
    """Takes the chosen elements out of a request, before the handler gets it. A request of which nothing is left is
    answered by `complete` of an empty reply.
    """
    outer = root_roles(request)
    if not place.levels:
        is_all = where(outer)
        at = None if place.of_whole else place
        return Taken(int(is_all), is_all, lambda reply: reply_with_error(api, version, request, error, place=at))
    refused = _answers(place, shape_of(api.response, version, place), 0, _first(place, request), error, where, outer)
    count = _prune(place, 0, request, where, outer)
    is_all = count > 0 and not any(True for _ in _first(place, request))

    def complete(reply: Struct) -> Struct:
        _merge(place, 0, _decoded(reply, place.levels[0].reply), refused)
        return reply

    return Taken(count, is_all, complete)


def _prune(place: Place, depth: int, part: object, where: Where, outer: Roles) -> int:
    """Removes the chosen elements of a request, and what is empty without them; returns how many elements."""
    level, count, is_last = place.levels[depth], 0, depth + 1 == len(place.levels)
    for holder, name in level.holders(part):
        left = []
        for position, element in enumerate(getattr(holder, name) or ()):
            roles = level.requested(element, position, outer)
            taken = int(where(roles)) if is_last else _prune(place, depth + 1, element, where, roles)
            is_gone = is_last or not any(True for _ in place.levels[depth + 1].elements(element))
            count += taken
            if not taken or not is_gone:
                left.append(element)
        if getattr(holder, name) is not None:
            setattr(holder, name, left)
    return count


def _merge(place: Place, depth: int, found: list[Struct], added: list[Struct]) -> None:
    """Adds elements to an array of a reply; into those of the same keys if the array has them."""
    level = place.levels[depth]
    if depth + 1 == len(place.levels) or not level.keys:
        found += added
        return
    known = {frozenset(level.replied(one, 0, {}).items()): one for one in found}
    for one in added:
        same = known.setdefault(frozenset(level.replied(one, 0, {}).items()), one)
        if same is one:
            found.append(one)
        else:
            inner = place.levels[depth + 1].reply
            _merge(place, depth + 1, _decoded(same, inner), getattr(one, inner))
