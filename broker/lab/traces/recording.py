"""What the loop records of a trace: bytes, in blocks that go to a program some fifty times in a second.

To record an event costs about a microsecond. The text of its line (`events.py`) takes several times as long, so it is
made elsewhere: by the program that writes the trace (`writer.py`), or when the last events are asked for (`ring.py`).

A block is the `Times` when it was made, and then pieces, each with its kind in the first byte. Numbers have the byte
order of the machine, which is the program's, too, and takes least to pack. A block needs no other one: it names each
connection of its events itself.

    TEXT         names a connection: its number, and the size of the text of its fields, which follows
    LINE         the size of a line that is complete, which follows
    REQUEST      an event: the connection, the exchange, nanoseconds, the key of the API, the version, the correlation
                 id, the size, and that of its body; and the body
    REPLY        an event: nanoseconds, the size, and that of its body; its REQUEST without the body; and the body
    ASKED        a request, of which records may be missing at its end: the connection, the exchange, nanoseconds, the
                 size, and that of its body; and the body
    ANSWERED     the reply to an ASKED or a REQUEST of the same block: the exchange, nanoseconds, the size of its body;
                 and the body, with the length
    ANSWERED_TO  such a reply with one hole: the exchange, nanoseconds, the hole's position and size, the size of its
                 body; and the body, with the length
    AT           of the next event, the broker's time, if that is not the machine's
    HOLES        of the next event, what is missing of records: a count, and so many positions and sizes
    WAITING      of the next event, what waited for it: a count, and so many keys of APIs

A size of a body with the bit BARE is that of one that is not there; an ASKED still has its first START.size bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from ....protocol.json_text import NULL
from ..sent_replies import LENGTH, Holes
from . import events
from .events import Raw

TEXT, LINE, REQUEST, REPLY, ASKED, ANSWERED, ANSWERED_TO, AT, HOLES, WAITING = range(10)
TIMES: Final = struct.Struct(">qqqq")  # begins with a zero, unlike a question
NAMED: Final = struct.Struct("=BII")
SIZED: Final = struct.Struct("=BI")
HEAD: Final = struct.Struct("=BIqqhhiII")
REPLIED: Final = struct.Struct(f"=BqII{HEAD.size}s")
SHORT: Final = struct.Struct("=BIqqII")
SHORT_REPLY: Final = struct.Struct("=BqqI")
SHORT_REPLY_TO: Final = struct.Struct("=BqqIII")
START: Final = struct.Struct(">hhi")  # of each request: the key of the API, the version, the correlation id
BROKER_MS: Final = struct.Struct("=Bq")
HOLE: Final = struct.Struct("=II")
KEY: Final = struct.Struct("=h")
_ONE_HOLE: Final = struct.Struct(SIZED.format + HOLE.format[1:])
_REPLY_HEAD: Final = struct.Struct("=BqII" + HEAD.format[1:])
_KEPT: Final = struct.Struct("=I")  # the size of a body, the last of HEAD and the short ones, and before it in REPLIED
_SIZES: Final = {
    REQUEST: HEAD.size,
    REPLY: REPLIED.size,
    ASKED: SHORT.size,
    ANSWERED: SHORT_REPLY.size,
    ANSWERED_TO: SHORT_REPLY_TO.size,
}
ELEMENT_BYTES: Final = {HOLES: HOLE.size, WAITING: KEY.size}
BARE: Final = 1 << 31
pack_head, pack_replied = HEAD.pack, REPLIED.pack
pack_asked, pack_answered, pack_answered_to = SHORT.pack, SHORT_REPLY.pack, SHORT_REPLY_TO.pack
RAW_BYTES_MAX: Final = 8 << 20  # of a frame whose bytes are written


class Times(NamedTuple):
    """When a block was made: nanoseconds, the broker's time, and the machine's. `zero_ms`: the broker's time at zero
    nanoseconds, if both pass at the same rate.
    """

    ns: int
    at_ms: int
    clock_ms: int
    zero_ms: int


Waiting = list[int]
"""The API keys of the requests that had come behind another one, and waited for its reply."""
Exchanged = tuple[int, int | None, int, str, int, int, int, int, int, int, bytes | None, Holes | None, Waiting | None]
"""An event of an exchange: REQUEST or REPLY, the broker's time if it is not the machine's, nanoseconds, the text of the
connection's fields, the number of the exchange, the key of the API, the version, the correlation id, the size, the
nanoseconds of the request, the body, its holes: what is missing of records, and what waited for a reply.
"""
Record = Exchanged | bytes
"""An event of an exchange, or a line that is complete."""


def line_piece(line: bytes) -> bytes:
    return SIZED.pack(LINE, len(line)) + line


def named(connection: int, text: str) -> bytes:
    """The piece that names a connection."""
    data = text.encode()
    return NAMED.pack(TEXT, connection, len(data)) + data


def missing(holes: Holes) -> bytes:
    """The piece that says what is missing of the next event, at least one hole."""
    if len(holes) == 1:  # nearly always
        return _ONE_HOLE.pack(HOLES, 1, *holes[0])
    return SIZED.pack(HOLES, len(holes)) + b"".join(HOLE.pack(*one) for one in holes)


def waited(keys: Waiting) -> bytes:
    """The piece that says which requests waited for the next event."""
    return SIZED.pack(WAITING, len(keys)) + b"".join(map(KEY.pack, keys))


def times_of(block: bytes) -> Times:
    return Times(*TIMES.unpack_from(block))


def records(block: bytes) -> Iterator[Record]:
    """Yields the records of a block."""
    texts: dict[int, str] = {}
    asked: dict[int, tuple[int, int, int, int, int]] = {}  # by the exchange
    at_ms: int | None = None
    holes: Holes | None = None
    waiting: Waiting | None = None
    place, end = TIMES.size, len(block)
    while place < end:
        kind = block[place]
        if kind == ASKED:
            _, connection, exchange, ns, size, kept = SHORT.unpack_from(block, place)
            place += SHORT.size
            key, version, correlation_id = START.unpack_from(block, place)
            if kept & BARE:
                place += START.size
            asked[exchange] = connection, ns, key, version, correlation_id
            kind, began_ns, missed = REQUEST, ns, size - (kept & ~BARE)
            if missed:
                holes = [(size - missed, missed)]
        elif kind == ANSWERED:
            _, exchange, ns, kept = SHORT_REPLY.unpack_from(block, place)
            place += SHORT_REPLY.size
            connection, began_ns, key, version, correlation_id = asked[exchange]
            kind, size = REPLY, (kept & ~BARE) - LENGTH
        elif kind == ANSWERED_TO:
            _, exchange, ns, hole, missed, kept = SHORT_REPLY_TO.unpack_from(block, place)
            place += SHORT_REPLY_TO.size
            connection, began_ns, key, version, correlation_id = asked[exchange]
            kind, size, holes = REPLY, (kept & ~BARE) + missed - LENGTH, [(hole, missed)]
        elif kind == REQUEST:
            _, connection, exchange, ns, key, version, correlation_id, size, kept = HEAD.unpack_from(block, place)
            asked[exchange] = connection, ns, key, version, correlation_id
            began_ns = ns
            place += HEAD.size
        elif kind == REPLY:
            (_, ns, size, kept, _, connection, exchange, began_ns, key, version, correlation_id, _, _) = (
                _REPLY_HEAD.unpack_from(block, place)
            )
            place += _REPLY_HEAD.size
        else:
            start, place = place, _after(block, place)
            if kind == LINE:
                yield block[start + SIZED.size : place]
            elif kind == TEXT:
                texts[NAMED.unpack_from(block, start)[1]] = block[start + NAMED.size : place].decode()
            elif kind == AT:
                at_ms = BROKER_MS.unpack_from(block, start)[1]
            elif kind == HOLES:
                holes = list(HOLE.iter_unpack(block[start + SIZED.size : place]))
            else:
                waiting = [key for (key,) in KEY.iter_unpack(block[start + SIZED.size : place])]
            continue
        body = None
        if not kept & BARE:
            body = block[place : place + kept]
            place += kept
        text = texts[connection]
        yield kind, at_ms, ns, text, exchange, key, version, correlation_id, size, began_ns, body, holes, waiting
        at_ms = holes = waiting = None


def _after(block: bytes, place: int) -> int:
    """Where a piece ends that is no event."""
    kind = block[place]
    if kind == AT:
        return place + BROKER_MS.size
    if kind == TEXT:
        return place + NAMED.size + int(NAMED.unpack_from(block, place)[2])
    (_, count) = SIZED.unpack_from(block, place)
    return place + SIZED.size + int(count) * ELEMENT_BYTES.get(kind, 1)


def without_large(block: bytes, bytes_max: int) -> bytes:
    """A block without the bodies that are larger."""
    out, place, end = bytearray(block[: TIMES.size]), TIMES.size, len(block)
    while place < end:
        start, kind = place, block[place]
        if kind not in _SIZES:
            place = _after(block, place)
            out += block[start:place]
            continue
        body = place + _SIZES[kind]
        at = body - (HEAD.size if kind == REPLY else 0)  # after the size of the body
        (kept,) = _KEPT.unpack_from(block, at - _KEPT.size)
        start_bytes = START.size if kind == ASKED else 0
        place = body + (start_bytes if kept & BARE else kept)
        if kept & BARE or kept <= bytes_max:
            out += block[start:place]
        else:
            out += block[start : at - _KEPT.size] + _KEPT.pack(kept | BARE) + block[at : body + start_bytes]
    return bytes(out)


def filled(body: bytes, holes: Holes | None) -> bytes:
    """The bytes of a request, with zeros where they are missing."""
    if not holes:
        return body
    parts: list[bytes] = []
    done = 0
    for place, size in holes:
        parts += (body[done:place], bytes(size))
        done = place
    return b"".join((*parts, body[done:]))


def lines(block: bytes, raw: Raw) -> Iterator[bytes]:
    """Yields the lines of a block."""
    zero_ms = times_of(block).zero_ms
    for record in records(block):
        yield record if isinstance(record, bytes) else line(record, zero_ms, raw)


def line(record: Exchanged, zero_ms: int, raw: Raw) -> bytes:
    """Returns the line of an event. `raw`: whether it has the bytes of the frame."""
    kind, at_ms, ns, connection, exchange, key, version, correlation_id, size, began_ns, body, holes, waiting = record
    shape = events.shape(key, version)
    if at_ms is None:
        at_ms = zero_ms + ns // 1_000_000
    is_request = kind == REQUEST
    event, latency = ("request", "") if is_request else ("reply", f',"latency_us":{(ns - began_ns) // 1000}')
    if waiting is not None:
        latency += f',"waiting":[{",".join(map(str, waiting))}]'
    head = (
        f'"event":"{event}","at_ms":{at_ms},"mono_us":{ns // 1000},{connection},"exchange":{exchange},{shape.text},'
        f'"correlation_id":{correlation_id},"size":{size}{latency}'
    )
    if body is None:
        return events.line(head, NULL)
    try:
        text = shape.request_of(filled(body, holes)) if is_request else shape.response_of(body, holes)
    except events.NO_MESSAGE:
        text = NULL
    made = events.line(head, text)
    if raw == "none" or holes:
        return made
    frame = memoryview(body)[0 if is_request else LENGTH :]
    if len(frame) > RAW_BYTES_MAX or not events.may_show_raw(raw, text, shape):
        return made
    return events.with_raw(made, frame)
