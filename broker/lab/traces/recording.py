"""What the loop records of a trace: tuples, which become blocks of bytes some fifty times in a second.

To record an event costs about a microsecond. The text of its line (`events.py`) takes twenty times as long, so it is
made elsewhere: by the program that writes the trace (`writer.py`), or when the last events are asked for (`ring.py`).

A block is in the format of Python's `marshal`, which is that of one version of Python: it only goes from a broker to
its own program, and no file has it.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from typing import Final, NamedTuple

from ....protocol.buffers import Data
from ....protocol.json_text import NULL
from ..sent_replies import LENGTH, Holes
from . import events
from .events import Raw

REQUEST: Final = "request"
REPLY: Final = "reply"
RAW_BYTES_MAX: Final = 8 << 20  # of a frame whose bytes are written
_FORMAT: Final = 4  # of marshal: what several records share is written once

Ids = tuple[int, int, int, int]
"""The number of the exchange, the key of the API, the version and the correlation id."""
Body = bytes | bytearray | None
"""A frame, or a reply with its length; None for no message."""
Exchanged = tuple[str, int | None, int, str, Ids, int, int, Body, Holes | None]
"""The event, the broker's time if it is not the machine's, nanoseconds, the fields of the connection, the ids, the
size, the nanoseconds of the request, the body and its holes: what is missing of records.
"""
Record = Exchanged | bytes
"""An event of an exchange, or a line that is complete."""


class Times(NamedTuple):
    """When a block was made: nanoseconds, the broker's time, and the machine's. `zero_ms`: the broker's time at zero
    nanoseconds, if both pass at the same rate.
    """

    ns: int
    at_ms: int
    clock_ms: int
    zero_ms: int


def packed(times: Times, records: list[Record]) -> bytes:
    """Returns the block of some records."""
    return marshal.dumps((*times, records), _FORMAT)


def unpacked(block: Data) -> tuple[Times, list[Record]]:
    """Returns the times and the records of a block."""
    *times, records = marshal.loads(block)
    return Times(*times), records


def size_of(record: Record) -> int:
    """The bytes that a record keeps."""
    body = record if isinstance(record, bytes) else record[7]
    return len(body or b"")


def filled(body: bytes | bytearray, holes: Holes | None) -> bytes | bytearray:
    """The bytes of a request, with zeros where they are missing."""
    if not holes:
        return body
    parts: list[bytes | bytearray] = []
    done = 0
    for place, size in holes:
        parts += (body[done:place], bytes(size))
        done = place
    return b"".join((*parts, body[done:]))


def without_body(record: Record) -> Record:
    """A record without its message."""
    return record if isinstance(record, bytes) else (*record[:7], None, None)


def lines(times: Times, records: list[Record], raw: Raw) -> Iterator[bytes]:
    """Yields the lines of records."""
    for record in records:
        yield record if isinstance(record, bytes) else line(record, times.zero_ms, raw)


def line(record: Exchanged, zero_ms: int, raw: Raw) -> bytes:
    """Returns the line of an event. `raw`: whether it has the bytes of the frame."""
    event, at_ms, ns, connection, (number, key, version, correlation_id), size, began_ns, body, holes = record
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
        text = shape.request_of(filled(body, holes)) if event == REQUEST else shape.response_of(body, holes)
    except events.NO_MESSAGE:
        text = NULL
    made = events.line(head, text)
    if raw == "none" or holes:
        return made
    frame = memoryview(body)[0 if event == REQUEST else LENGTH :]
    if len(frame) > RAW_BYTES_MAX or not events.may_show_raw(raw, text, shape):
        return made
    return events.with_raw(made, frame)
