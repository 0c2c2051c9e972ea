"""Replies as they are sent, decoded again: of records that are sent from files, only the size is known."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, cast

from ...protocol import codec, headers
from ...protocol.buffers import Data
from ...protocol.errors import MalformedMessage
from ...protocol.message import Message
from ...protocol.structs import Struct
from ...protocol.trees import tree
from ...protocol.varints import uvarint_to
from ...protocol.wire import Array, Records
from ..replies import Reply

LENGTH: Final = 4  # of the prefix of a frame
_MARK: Final = struct.Struct(">12sq")  # in place of records: a text and their size
_TEXT: Final = b"\xffnot at hand"
Holes = list[tuple[int, int]]
"""Where records are missing in the head of a reply: the position and how many bytes."""


class Missing:
    """Records that are not at hand."""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size


def holes_of(reply: Reply) -> Holes | None:
    return [(place, len(part)) for place, part in reply.parts] or None


def message_of(response: str, version: int, head: Data, holes: Holes | None) -> Struct:
    """Decodes a reply, with its length. Raises MalformedMessage."""
    header_version = headers.response_header_version(response, version)
    start = 2 * LENGTH + header_version
    if not holes:
        return cast(Struct, codec.parse(response, version, bytes(head), start))
    message = cast(Struct, codec.parse(response, version, _marked(response, head, holes, bool(header_version)), start))
    for arrays, field in _records_of(response, version):
        _find(message, arrays, field)
    return message


def _marked(response: str, head: Data, holes: Holes, is_flexible: bool) -> bytes:
    """A reply with marks in place of missing records. Raises MalformedMessage if a fault has changed their length."""
    view = memoryview(head)
    out, done = bytearray(), 0
    for place, size in holes:
        length = _length(size, is_flexible)
        before = place - len(length)
        if before < done or view[before:place] != length:
            raise MalformedMessage(response, "records of another length")
        out += view[done:before]
        out += _length(_MARK.size, is_flexible) + _MARK.pack(_TEXT, size)
        done = place
    out += view[done:]
    return bytes(out)


def _length(size: int, is_flexible: bool) -> bytes:
    """The length of records in a message."""
    if not is_flexible:
        return size.to_bytes(4, "big")
    out = bytearray()
    uvarint_to(out, size + 1)
    return bytes(out)


@cache
def _records_of(response: str, version: int) -> list[tuple[tuple[str, ...], str]]:
    return _places(tree(response, version))


def _places(of: Message) -> list[tuple[tuple[str, ...], str]]:
    """Where a message has records: the names of the arrays on the way to them, and of their field."""
    found: list[tuple[tuple[str, ...], str]] = []
    for member in (*of.plain, *of.tagged):
        wire = member.wire
        if isinstance(wire, Records):
            found.append(((), member.name))
        elif isinstance(wire, Array) and isinstance(wire.item, Message):
            found += [((member.name, *arrays), field) for arrays, field in _places(wire.item)]
    return found


def _find(message: Struct, arrays: tuple[str, ...], field: str) -> None:
    """Puts `Missing` in place of the marks in a message."""
    if arrays:
        for one in getattr(message, arrays[0]) or ():
            _find(one, arrays[1:], field)
        return
    value = getattr(message, field)
    if value is not None and len(value) == _MARK.size:
        text, size = _MARK.unpack(value)
        if text == _TEXT:
            setattr(message, field, Missing(size))
