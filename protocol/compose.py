"""Wire types together with the types of construct, in both directions.

A wire type or a message stands in a `construct.Struct` like any other type. The other way, `Stock` makes a field or an
element of a message of any type of construct's, and `RecordValues` reads and builds the values of the records in a
batch with one. An example:

    >>> from construct import Float32b, Int16ub, Struct
    >>> from ottla.protocol import messages
    >>> from ottla.protocol.compose import RecordValues, Stock
    >>> from ottla.protocol.trees import tree
    >>> from ottla.protocol.wire import Array, Records, String
    >>> reading = Struct("sensor" / Int16ub, "celsius" / Float32b)
    >>> report = Struct(
    ...     "station" / String(flexible=True, nullable=False),
    ...     "latest" / Array(Stock(reading), flexible=True, nullable=False),
    ...     "asked_by" / tree("ApiVersionsRequest", 3),
    ...     "log" / RecordValues(Records(flexible=True, nullable=False), reading),
    ... )
    >>> client = messages.ApiVersionsRequest(client_software_name="weather", client_software_version="1")
    >>> one = dict(sensor=1, celsius=21.5)
    >>> data = report.build(dict(station="north", latest=[one], asked_by=client, log=[one, dict(sensor=2, celsius=-3)]))
    >>> found = report.parse(data)
    >>> found.station, found.latest[0].celsius, found.asked_by.client_software_name
    ('north', 21.5, 'weather')
    >>> [value.sensor for value in found.log]
    [1, 2]
    >>> report.parse(data[:3])
    Traceback (most recent call last):
    ottla.protocol.errors.MalformedMessage: station: needs 5 bytes where 2 are left

The same `reading` opens the values of a batch as it was fetched: `RecordValues(construct.GreedyBytes,
reading).parse(batch)`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

from construct import Adapter, Construct, ConstructError, Container

from . import records
from .buffers import Data
from .emit import Emitter
from .errors import MalformedMessage
from .records import Record, Template
from .varints import FastPathFailed
from .wire import Wire


class Stock(Wire):
    """A type of construct's as a field or an element of a message.

    It has no emitted form: the function of its message calls construct. An element of an array is taken to have one
    byte at least. Its context is that of the whole: `this` does not know the fields of a message around it.
    """

    def __init__(self, subcon: Construct) -> None:
        super().__init__()
        self.subcon = subcon

    def _parse(self, stream: io.BytesIO, context: Container, path: str) -> object:
        try:
            return self.subcon._parsereport(stream, context, path)
        except ConstructError as error:
            raise MalformedMessage(path, _reason(error)) from None

    def _build(self, obj: object, stream: io.BytesIO, context: Container, path: str) -> object:
        try:
            return self.subcon._build(obj, stream, context, path)
        except ConstructError as error:
            raise MalformedMessage(path, _reason(error)) from None

    def emit_read(self, e: Emitter, depth: int, target: str, head: str) -> None:
        e.line(depth, f"{target}, pos = {e.bind('stock', self._read)}(buf, pos, limit)")

    def emit_write(self, e: Emitter, depth: int, value: str) -> None:
        e.line(depth, f"out += {e.bind('stock', self._written)}({value})")

    def _read(self, buf: Data, pos: int, limit: int) -> tuple[object, int]:
        stream = io.BytesIO(buf[pos:limit])
        try:
            return self.subcon.parse_stream(stream), pos + stream.tell()
        except ConstructError:
            raise FastPathFailed from None

    def _written(self, obj: object) -> bytes:
        try:
            return bytes(self.subcon.build(obj))
        except ConstructError:
            raise FastPathFailed from None


def _reason(error: ConstructError) -> str:
    """The error's text without the line that names construct's own path."""
    return str(error).splitlines()[-1]


class RecordValues(Adapter):  # type: ignore[misc]  # construct has no types
    """The values of the records in a field of record batches, each read and built with a type of construct's.

    `batches` is the type of the field: `wire.Records`, or `construct.GreedyBytes` for batches by themselves. Null
    values are None. What is built is one batch without keys; its records have the timestamp `timestamp`, in
    milliseconds.
    """

    def __init__(self, batches: Construct, value: Construct, timestamp: int = 0) -> None:
        super().__init__(batches)
        self.value = value
        self.timestamp = timestamp

    def _decode(self, obj: Data | None, context: Container, path: str) -> list[object]:
        batches = () if obj is None else [one for at in records.batches(obj) for one in records.decode(obj, at)]
        found = [record.value for record in batches]
        return [None if value is None else self.value.parse(value) for value in found]

    def _encode(self, obj: Sequence[object], context: Container, path: str) -> bytes:
        values = [None if value is None else self.value.build(value) for value in obj]
        made = [Record(None, value, self.timestamp) for value in values]
        return bytes(records.encode(made, Template())) if made else b""
