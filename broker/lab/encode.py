"""Replies of the lab as JSON. An iterator in a reply is a list that is made in pieces, so that the loop runs between
them.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import TypeVar

from .http import Response

R = TypeVar("R")
Turns = Generator[None, None, R]
"""Work in turns of the loop: each `yield` ends one, `return` has the reply. A client that goes away ends the work."""

JSON = "application/json"
PIECE_BYTES = 16 << 10
ELEMENTS_AT_ONCE = 32


def as_json(value: object, status: int = 200) -> Response:
    """Returns a reply; in pieces if there is an iterator in it."""
    if _is_lazy(value):
        return Response(status, JSON, pieces(value))
    return Response(status, JSON, dumps(value) + b"\n")


def in_turns(work: Turns[object]) -> Response:
    """Returns the reply of work that takes several turns. The first turn is taken at once: what it raises is refused
    in words, and what a later turn raises ends the connection.
    """
    try:
        next(work)
    except StopIteration as end:
        return as_json(end.value)

    def steps() -> Iterator[bytes]:
        yield b""
        yield from pieces((yield from _run(work)))

    return Response(200, JSON, steps())


def _run(work: Turns[object]) -> Generator[bytes, None, object]:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value
        yield b""


def pieces(value: object) -> Iterator[bytes]:
    """Yields the JSON of a value in pieces of some PIECE_BYTES."""
    piece = bytearray()
    for part in _parts(value):
        piece += part
        if len(piece) >= PIECE_BYTES:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece) + b"\n"


def _elements(values: Iterator[object]) -> Iterator[bytes]:
    """Yields the JSON of elements, with commas between them: of several small ones at once, which takes a third of the
    time. What is large, or has an iterator in it, is made alone.
    """
    before, count = b"", 1
    while some := list(islice(values, count)):
        try:
            made = dumps(some)[1:-1]
        except _Lazy:
            for one in some:
                yield before
                yield from _parts(one)
                before = b", "
            count = 1
            continue
        yield before + made
        before = b", "
        count = min(2 * count, ELEMENTS_AT_ONCE) if len(made) < PIECE_BYTES // 4 else max(1, count // 2)


class _Lazy(TypeError):
    """A value has an iterator in it."""


def dumps(value: object) -> bytes:
    return _encode(value).encode()


def _plain(value: object) -> object:
    """What json does not know."""
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Iterator):
        raise _Lazy("an iterator has no form in JSON at once")
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_encode = json.JSONEncoder(default=_plain).encode


def _is_lazy(value: object) -> bool:
    """Whether an iterator is the value of a key, or of a key of a value that is."""
    if isinstance(value, Iterator):
        return True
    found = _plain(value) if is_dataclass(value) else value
    return isinstance(found, Mapping) and any(_is_lazy(one) for one in found.values())


def _parts(value: object) -> Iterator[bytes]:
    if isinstance(value, Iterator):
        yield b"["
        yield from _elements(value)
        yield b"]"
    elif _is_lazy(value):
        found = _plain(value) if is_dataclass(value) else value
        assert isinstance(found, Mapping)
        before = b"{"
        for name, one in found.items():
            yield before + dumps(str(name)) + b": "
            yield from _parts(one)
            before = b", "
        yield b"}"
    else:
        yield dumps(value)
