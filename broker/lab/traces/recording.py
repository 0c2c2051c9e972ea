"""What the loop records of a trace: blocks of bytes, some fifty in a second.

To record an event costs about a microsecond. The text of its line (`events.py`) takes twenty times as long, so it is
made elsewhere: by the program that writes the trace (`writer.py`), or when the last events are asked for (`ring.py`).

A block begins with `Times`. Its entries are complete lines, the fields of connections for the exchanges that follow,
and requests and replies with their bytes. Of records only the header of the first batch is there, unless their bytes
are asked for. A block only goes from a broker to its own program, and no file has it: its numbers are in the order of
the machine.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ....protocol.buffers import Data
from ....protocol.json_text import NULL
from ..cut_frames import LENGTH, Holes
from . import events
from .events import Raw

REQUEST: Final = "request"
REPLY: Final = "reply"
RAW_BYTES_MAX: Final = 8 << 20  # of a frame whose bytes are written
TIMES: Final = struct.Struct("=x4q")  # after a zero, with which no other block of a stream begins
EXCHANGE: Final = struct.Struct("=BIIIqqqqqhhi")
"""The kind of the entry, the bytes of the frame that follow the holes, how many holes, the size, nanoseconds, the
broker's time, nanoseconds of the request, and `Ids`.
"""
OF_REQUEST, OF_REPLY, OF_CONNECTION, OF_LINE = 1, 2, 3, 4
MACHINES_TIME: Final = -(1 << 63)  # in place of the broker's time, if both pass at the same rate
NO_FRAME: Final = 0xFFFFFFFF  # bytes of a frame that is not there
_CONNECTION: Final = struct.Struct("=BIq")  # with the length and the number
_LINE: Final = struct.Struct("=BI")  # with the length
_HOLE: Final = struct.Struct("=II")
_KINDS: Final = {OF_REQUEST: REQUEST, OF_REPLY: REPLY}

Ids = tuple[int, int, int, int, int]
"""The numbers of the connection and of the exchange, the key of the API, the version and the correlation id."""


class Times(NamedTuple):
    """When a block was made: nanoseconds, the broker's time, and the machine's. `zero_ms`: the broker's time at zero
    nanoseconds, if both pass at the same rate.
    """

    ns: int
    at_ms: int
    clock_ms: int
    zero_ms: int


class Exchanged(NamedTuple):
    """A request or a reply. `at_ms`: the broker's time, None if it is the machine's. `connection`: the text of its
    fields. `began_ns`: nanoseconds of the request. `body`: a frame, or a reply with its length; None for no message.
    """

    event: str
    at_ms: int | None
    ns: int
    connection: str
    number: int
    key: int
    version: int
    correlation_id: int
    size: int
    began_ns: int
    body: bytes | None
    holes: Holes


Record = Exchanged | bytes
"""An event of an exchange, or a line that is complete."""


def line_entry(line: bytes) -> bytes:
    """The entry of a line that is complete."""
    return _LINE.pack(OF_LINE, len(line)) + line


def connection_entry(number: int, text: str) -> bytes:
    """The entry of the fields of a connection."""
    data = text.encode()
    return _CONNECTION.pack(OF_CONNECTION, len(data), number) + data


def holes_data(holes: Holes) -> bytes:
    """The holes of a frame, which are before it."""
    if len(holes) == 1:
        return _HOLE.pack(*holes[0])
    return b"".join(_HOLE.pack(*one) for one in holes)


def with_line(block: bytes, line: bytes) -> bytes:
    """A block with a line before its entries."""
    return block[: TIMES.size] + line_entry(line) + block[TIMES.size :]


def unpacked(block: Data) -> tuple[Times, list[Record]]:
    """Returns the times and the records of a block."""
    return Times(*TIMES.unpack_from(block)), list(_records(memoryview(block)))


def _records(block: memoryview) -> Iterator[Record]:
    place, texts = TIMES.size, dict[int, str]()
    while place < len(block):
        kind = block[place]
        if kind == OF_LINE:
            _, size = _LINE.unpack_from(block, place)
            place += _LINE.size + size
            yield bytes(block[place - size : place])
        elif kind == OF_CONNECTION:
            _, size, number = _CONNECTION.unpack_from(block, place)
            place += _CONNECTION.size + size
            texts[number] = str(block[place - size : place], "utf-8")
        else:
            fields = EXCHANGE.unpack_from(block, place)
            _, kept, holes, size, ns, at_ms, began_ns, connection, number, key, version, correlation_id = fields
            place += EXCHANGE.size + holes * _HOLE.size
            found = list(_HOLE.iter_unpack(block[place - holes * _HOLE.size : place]))
            body = None
            if kept != NO_FRAME:
                body = bytes(block[place : place + kept])
                place += kept
            given_ms = None if at_ms == MACHINES_TIME else at_ms
            ids = (number, key, version, correlation_id)
            yield Exchanged(_KINDS[kind], given_ms, ns, texts[connection], *ids, size, began_ns, body, found)


def without_large(block: bytes, bytes_max: int) -> bytes:
    """A block without the frames that have more than so many bytes."""
    view, place = memoryview(block), TIMES.size
    out = bytearray(view[:place])
    while place < len(block):
        kind, size = _LINE.unpack_from(block, place)
        if kind in _KINDS:
            fields = list(EXCHANGE.unpack_from(block, place))
            kept, holes = fields[1:3]
            end = place + EXCHANGE.size + holes * _HOLE.size + (0 if kept == NO_FRAME else kept)
            if kept != NO_FRAME and kept > bytes_max:
                fields[1:3] = NO_FRAME, 0
                out += EXCHANGE.pack(*fields)
                place = end
        else:
            end = place + (_LINE if kind == OF_LINE else _CONNECTION).size + size
        out += view[place:end]
        place = end
    return bytes(out)


def lines(times: Times, records: Iterable[Record], raw: Raw) -> Iterator[bytes]:
    """Yields the lines of records."""
    for record in records:
        yield record if isinstance(record, bytes) else line(record, times.zero_ms, raw)


def line(record: Exchanged, zero_ms: int, raw: Raw) -> bytes:
    """Returns the line of an event. `raw`: whether it has the bytes of the frame."""
    event, at_ms, ns, connection, number, key, version, correlation_id, size, began_ns, body, holes = record
    shape = events.shape(key, version)
    if at_ms is None:
        at_ms = zero_ms + ns // 1_000_000
    latency = f',"latency_us":{(ns - began_ns) // 1000}' if event == REPLY else ""
    head = (
        f'"event":"{event}","at_ms":{at_ms},"mono_us":{ns // 1000},{connection},"exchange":{number},{shape.text},'
        f'"correlation_id":{correlation_id},"size":{size}{latency}'
    )
    if body is None:
        return events.line(head, NULL)
    try:
        text = shape.request_of(body, holes) if event == REQUEST else shape.response_of(body, holes)
    except events.NO_MESSAGE:
        text = NULL
    made = events.line(head, text)
    if raw == "none" or holes:
        return made
    frame = memoryview(body)[0 if event == REQUEST else LENGTH :]
    if len(frame) > RAW_BYTES_MAX or not events.may_show_raw(raw, text, shape):
        return made
    return events.with_raw(made, frame)
