"""Frames without their records, decoded: of records in a reply, which are sent from files, only the size is known, of
those in a request also the header of their first batch.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from typing import Final, cast

from ...protocol import codec, headers
from ...protocol.emit import uvarint_to
from ...protocol.errors import MalformedMessage
from ...protocol.json_text import BATCH_HEADER_BYTES
from ...protocol.message import Message
from ...protocol.structs import Struct
from ...protocol.trees import tree
from ...protocol.wire import Array, Records
from ..replies import Reply

LENGTH: Final = 4  # of the prefix of a frame
_MARK: Final = struct.Struct(">12sq")  # in place of records: a text and their size
_TEXT: Final = b"\xffnot at hand"
Holes = Sequence[tuple[int, int]]
"""Where records are missing in a frame: the position and how many bytes."""


class Missing:
    """Records that are not at hand. `head`: the bytes that are, those they begin with."""

    def __init__(self, head: bytes, size: int) -> None:
        self.head = head
        self._size = size

    def __len__(self) -> int:
        return self._size


def holes_of(reply: Reply) -> Holes:
    return [(place, len(part)) for place, part in reply.parts]


def request_of(request: str, version: int, frame: bytes, holes: Holes) -> Struct:
    """Decodes a request, without its length. Raises MalformedMessage."""
    header_version = headers.request_header_version(request, version)
    if holes:
        frame = _marked(request, frame, holes, BATCH_HEADER_BYTES, is_flexible=header_version > 1)
    _, start = headers.client_id_of(header_version, frame)
    message = cast(Struct, codec.parse(request, version, frame, start))
    return _with_missing(request, version, message, BATCH_HEADER_BYTES) if holes else message


def reply_of(response: str, version: int, data: bytes, holes: Holes) -> Struct:
    """Decodes a reply, with its length. Raises MalformedMessage."""
    header_version = headers.response_header_version(response, version)
    if holes:
        data = _marked(response, data, holes, 0, is_flexible=bool(header_version))
    message = cast(Struct, codec.parse(response, version, data, 2 * LENGTH + header_version))
    return _with_missing(response, version, message, 0) if holes else message


def _marked(name: str, data: bytes, holes: Holes, head_bytes: int, is_flexible: bool) -> bytes:
    """A frame with marks in place of missing records. `head_bytes`: of the records, which are before each hole. Raises
    MalformedMessage if a fault has changed their length.
    """
    view = memoryview(data)
    out, done = bytearray(), 0
    for place, size in holes:
        start = place - head_bytes
        length = _length(size + head_bytes, is_flexible)
        before = start - len(length)
        if before < done or view[before:start] != length:
            raise MalformedMessage(name, "records of another length")
        out += view[done:before]
        out += _length(head_bytes + _MARK.size, is_flexible) + view[start:place] + _MARK.pack(_TEXT, size)
        done = place
    out += view[done:]
    return bytes(out)


def _with_missing(name: str, version: int, message: Struct, head_bytes: int) -> Struct:
    """Puts `Missing` in place of the marks in a message, and returns it."""
    for arrays, field in _records_of(name, version):
        _find(message, arrays, field, head_bytes)
    return message


def _length(size: int, is_flexible: bool) -> bytes:
    """The length of records in a message."""
    if not is_flexible:
        return size.to_bytes(4, "big")
    out = bytearray()
    uvarint_to(out, size + 1)
    return bytes(out)


@cache
def _records_of(name: str, version: int) -> list[tuple[tuple[str, ...], str]]:
    return _places(tree(name, version))


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


def _find(message: Struct, arrays: tuple[str, ...], field: str, head_bytes: int) -> None:
    if arrays:
        for one in getattr(message, arrays[0]) or ():
            _find(one, arrays[1:], field, head_bytes)
        return
    value = getattr(message, field)
    if value is not None and len(value) == head_bytes + _MARK.size:
        text, size = _MARK.unpack_from(value, head_bytes)
        if text == _TEXT:
            setattr(message, field, Missing(bytes(value[:head_bytes]), head_bytes + size))
