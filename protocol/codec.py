"""The one door to the codec: `parse`, `build`, `explain`.

A reader and a writer are compiled for a schema and version when it is first used. What they cannot do the checked path
repeats, to name the field in a `MalformedMessage`; if that path succeeds, its result counts.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from . import schema
from .emit import Truncated
from .errors import MalformedMessage

_SURPRISES = (struct.error, IndexError, Truncated, AttributeError, TypeError, ValueError, OverflowError, KeyError)


@cache
def reader(name: str, version: int) -> Callable[[Any, int], tuple[Any, int]]:
    read: Callable[[Any, int], tuple[Any, int]] = schema.tree(name, version).reader()
    return read


@cache
def writer(name: str, version: int) -> Callable[[Any, bytearray, list[Any]], bytearray]:
    write: Callable[[Any, bytearray, list[Any]], bytearray] = schema.tree(name, version).writer()
    return write


def parse(name: str, version: int, data: Any, start: int = 0) -> Any:
    """The message in `data` from `start` to its end, which may be followed by bytes that no field claims, as in Kafka.

    `data` is bytes or a memoryview; `records` fields are views of it, everything else is copied.
    Raises MalformedMessage, and UnsupportedVersion for a version that the schema does not have.
    """
    return parse_from(name, version, data, start)[0]


def parse_from(name: str, version: int, data: Any, start: int = 0) -> tuple[Any, int]:
    """As `parse`, with the position behind the message."""
    read = reader(name, version)
    try:
        return read(data, start)
    except _SURPRISES:
        return parse_checked(name, version, data, start)


def parse_checked(name: str, version: int, data: Any, start: int = 0) -> tuple[Any, int]:
    """The reference: slow, and eloquent when the bytes are wrong."""
    stream = io.BytesIO(data)
    stream.seek(start)
    return schema.tree(name, version)._parse(stream, None, ""), stream.tell()


def build(name: str, version: int, message: Any, out: bytearray | None = None) -> bytearray:
    """The message's bytes, appended to `out`. MalformedMessage when this version cannot hold it."""
    out = bytearray() if out is None else out
    parts = build_parts(name, version, message, out)
    if parts:
        raise MalformedMessage("", "records that are no bytes need build_parts")
    return out


def build_parts(name: str, version: int, message: Any, out: bytearray) -> list[tuple[int, Any]]:
    """Appends the message's bytes to `out`; returns the `records` values that are no bytes, with their places in `out`."""
    parts: list[tuple[int, Any]] = []
    before = len(out)
    try:
        writer(name, version)(message, out, parts)
        return parts
    except _SURPRISES:
        del out[before:]
        stream, parts = io.BytesIO(), []
        schema.tree(name, version)._build(message, stream, parts, "")
        out += stream.getvalue()
        return [(before + place, part) for place, part in parts]


def build_checked(name: str, version: int, message: Any) -> bytes:
    """The reference form of `build`."""
    stream = io.BytesIO()
    schema.tree(name, version)._build(message, stream, [], "")
    return stream.getvalue()


def as_plain(message: Any) -> Any:
    """A message as dicts, lists, numbers and strings: field names in snake_case, bytes as hex, records as their size."""
    if isinstance(message, memoryview):
        return f"<{len(message)} bytes of records>"
    if isinstance(message, bytes | bytearray):
        return message.hex()
    if isinstance(message, list | tuple):
        return [as_plain(item) for item in message]
    if hasattr(message, "unknown_tags"):
        plain = {name: as_plain(getattr(message, name)) for name in message.__slots__ if name != "unknown_tags"}
        if message.unknown_tags:
            plain["unknown_tags"] = {str(tag): bytes(data).hex() for tag, data in message.unknown_tags}
        return plain
    return message if isinstance(message, str | int | float | type(None)) else repr(message)


def explain(name: str, version: int, data: Any) -> str:
    """The message as indented JSON, for people."""
    return json.dumps(as_plain(parse(name, version, data)), indent=2)
