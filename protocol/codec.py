"""The public functions of the codec: `parse`, `parse_in_steps`, `build`, `explain`.

A reader and a writer are compiled for a schema and version on first use, unless an earlier process has cached them
(`cached_functions`). If the fast path fails, the checked path repeats the work, to name the field in a
`MalformedMessage`; if the checked path succeeds, its result counts. The checked path takes ten times as long, so for a
message whose elements are bounded it looks only at the first elements.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Generator
from functools import cache
from typing import TYPE_CHECKING, Any

from .buffers import Data, LateRecords, Parts
from .cached_functions import cached_function
from .encoded import Encoded
from .errors import MalformedMessage, TooManyElements
from .streams import UNBOUNDED, Room
from .structs import Struct
from .text import Json
from .varints import FastPathFailed

if TYPE_CHECKING:
    from .message import Message, PausingReader, Writer

_SURPRISES = (struct.error, IndexError, FastPathFailed, AttributeError, TypeError, ValueError, OverflowError, KeyError)
EXPLAINED_ELEMENTS = 2000


@cache
def reader(name: str, version: int) -> Callable[[Data, int], tuple[Any, int]]:
    return cached_function(name, f"read{version}", lambda: tree(name, version).reader())


@cache
def counting_reader(name: str, version: int) -> Callable[[Data, int, int], tuple[Any, int]]:
    """A reader that takes as its third argument how many elements the message may have. Raises TooManyElements."""
    return cached_function(name, f"count{version}", lambda: tree(name, version).reader(counting=True))


@cache
def pausing_reader(name: str, version: int) -> PausingReader:
    """A reader that yields between steps; it counts elements as `counting_reader`."""
    return cached_function(name, f"pause{version}", lambda: tree(name, version).pausing_reader())


@cache
def writer(name: str, version: int) -> Writer:
    return cached_function(name, f"write{version}", lambda: tree(name, version).writer())


def tree(name: str, version: int) -> Message:
    """Returns the construct tree of one version of a schema; imports `trees` and construct when something needs it.
    Raises UnsupportedVersion.
    """
    from . import trees

    return trees.tree(name, version)


def parse(name: str, version: int, data: Data, start: int = 0, elements_max: int = UNBOUNDED) -> Any:
    """Parses the message in `data` from `start` to its end. Bytes that no field claims may follow it, as in Kafka.

    `data` is bytes or a memoryview; `records` fields are views of it, everything else is copied. `elements_max`: the
    number of elements that all its arrays and tagged fields together may have.

    Raises MalformedMessage, and UnsupportedVersion for a version that the schema does not have.
    """
    try:
        if len(data) - start <= elements_max:  # an element is a byte at least
            return reader(name, version)(data, start)[0]
        return counting_reader(name, version)(data, start, elements_max)[0]
    except TooManyElements:
        raise
    except _SURPRISES:
        return _parse_again(name, version, data, start, elements_max)[0]


def parse_in_steps(
    name: str, version: int, data: bytes, start: int = 0, elements_max: int = UNBOUNDED
) -> Generator[None, None, Struct]:
    """Like `parse`, for long messages: yields after each step of about a millisecond, and returns the message."""
    try:
        message = yield from pausing_reader(name, version)(data, start, elements_max)
    except TooManyElements:
        raise
    except _SURPRISES:
        message, _ = _parse_again(name, version, data, start, elements_max)
    return message


def parse_from(name: str, version: int, data: Data, start: int = 0, elements_max: int = UNBOUNDED) -> tuple[Any, int]:
    """Like `parse`; also returns the position after the message."""
    try:
        return counting_reader(name, version)(data, start, elements_max)
    except TooManyElements:
        raise
    except _SURPRISES:
        return _parse_again(name, version, data, start, elements_max)


def _parse_again(name: str, version: int, data: Data, start: int, elements_max: int) -> tuple[Any, int]:
    """Parses what its reader could not: says why, or returns the message."""
    if elements_max == UNBOUNDED:
        return parse_checked(name, version, data, start)
    try:
        return parse_checked(name, version, data, start, min(elements_max, EXPLAINED_ELEMENTS))
    except TooManyElements as error:
        raise MalformedMessage(error.path, f"malformed after the first {EXPLAINED_ELEMENTS} elements") from None


def parse_checked(
    name: str, version: int, data: Data, start: int = 0, elements_max: int = UNBOUNDED
) -> tuple[Any, int]:
    """The reference form of `parse_from`: slow, and precise about what is wrong with the bytes."""
    stream = io.BytesIO(data)
    stream.seek(start)
    return tree(name, version).parse_stream(stream, room=Room(elements_max)), stream.tell()


def build(name: str, version: int, message: Struct, out: bytearray | None = None) -> bytearray:
    """Appends the bytes of the message to `out`. Raises MalformedMessage if this version cannot hold the message."""
    out = bytearray() if out is None else out
    parts = build_parts(name, version, message, out)
    if parts:
        raise MalformedMessage("", "records that are no bytes need build_parts")
    return out


def build_parts(name: str, version: int, message: Struct, out: bytearray) -> Parts:
    """Appends the bytes of the message to `out`; returns the `records` values that are not bytes, with their positions
    in `out`.
    """
    parts: Parts = []
    before = len(out)
    try:
        writer(name, version)(message, out, parts)
        return parts
    except _SURPRISES:
        del out[before:]
        stream, parts = io.BytesIO(), []
        tree(name, version).build_stream(message, stream, parts=parts)
        out += stream.getvalue()
        return [(before + place, part) for place, part in parts]


def build_checked(name: str, version: int, message: Struct) -> bytes:
    """The reference form of `build`."""
    built: bytes = tree(name, version).build(message)
    return built


def encoded(name: str, version: int, array: str) -> Encoded:
    """Returns an empty array of a message whose elements are encoded when they are appended.

    `array`: the path of an array of structs, such as `topics.partitions`.
    """
    return Encoded(*_element(name, version, array))


@cache
def _element(
    name: str, version: int, array: str
) -> tuple[Callable[[io.BytesIO], object], Callable[[object, bytearray, Parts], None]]:
    """Returns what parses an element of an array, and the function that appends one element to bytes and parts."""
    write_fast = cached_function(name, f"{array}{version}", lambda: tree(name, version).at(array).writer())

    def parse(stream: io.BytesIO) -> object:
        return tree(name, version).at(array).parse_stream(stream)

    def write(element: object, out: bytearray, parts: Parts) -> None:
        before, parts_before = len(out), len(parts)
        try:
            write_fast(element, out, parts)
        except _SURPRISES:
            del out[before:], parts[parts_before:]
            stream = io.BytesIO()
            late: Parts = []
            try:
                tree(name, version).at(array).build_stream(element, stream, parts=late)
            except MalformedMessage as error:
                raise MalformedMessage(f"{array}.{error.path}" if error.path else array, error.reason) from None
            out += stream.getvalue()
            parts += [(before + place, part) for place, part in late]

    return parse, write


def as_plain(message: object) -> Json:
    """Converts a message into dicts, lists, numbers and strings: field names in snake_case, bytes as hex, records as
    their size.
    """
    if isinstance(message, memoryview):
        return f"<{len(message)} bytes of records>"
    if isinstance(message, bytes | bytearray):
        return message.hex()
    if isinstance(message, Encoded):
        return as_plain(message.decoded())
    if isinstance(message, list | tuple):
        return [as_plain(item) for item in message]
    if isinstance(message, dict):
        return {str(name): as_plain(value) for name, value in message.items()}
    if isinstance(message, Struct):
        plain = {name: as_plain(getattr(message, name)) for name in message.__slots__ if name != "unknown_tags"}
        if message.unknown_tags:
            plain["unknown_tags"] = {str(tag): bytes(data).hex() for tag, data in message.unknown_tags}
        return plain
    if message is None or isinstance(message, str | int | float):
        return message
    return f"<{len(message)} bytes of records>" if isinstance(message, LateRecords) else repr(message)


def explain(name: str, version: int, data: Data) -> str:
    """Returns the message as indented JSON, for people."""
    return json.dumps(as_plain(parse(name, version, data)), indent=2)
