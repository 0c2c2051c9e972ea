"""Arrow columns of records and batches; only the requested columns are made. Arrow's own code copies the payloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from ..protocol import compression, records
from ..protocol.buffers import Data
from .batches import Array
from .directory import Place
from .opened import Opened

MICROSECONDS = 1000
TIME_MAX_MS = ((1 << 63) - 1) // MICROSECONDS  # the last one that fits a timestamp of Spark, in the year 294247
INSTANT = pa.timestamp("us", "UTC")

Maker = Callable[[Opened, Place], pa.Array]


def gathered(data: Data, at: Array, size: Array, kind: pa.DataType) -> pa.Array:
    """Returns an Arrow array of slices of `data`; null if a size is -1. Slices are in order and do not overlap."""
    n = at.size
    there = size >= 0
    if not there.any():
        return pa.nulls(n, kind)
    if not there.all():
        # a null is an empty slice at the end of the previous one
        at = np.where(there, at, np.maximum.accumulate(np.where(there, at + size, 0)))
    begin = int(at[0])
    offsets = np.empty(2 * n + 1, np.int32)
    offsets[0 : 2 * n : 2] = at - begin
    offsets[1 : 2 * n : 2] = offsets[0 : 2 * n : 2] + np.maximum(size, 0)
    offsets[2 * n] = offsets[2 * n - 1]
    slots = pa.Array.from_buffers(kind, 2 * n, [None, pa.py_buffer(offsets), pa.py_buffer(memoryview(data)[begin:])])
    wanted = np.arange(0, 2 * n, 2, dtype=np.int32)
    return slots.take(pa.array(wanted, mask=None if there.all() else ~there))


def record_batch(opened: Opened, kept: Array | None, place: Place, schema: pa.Schema) -> pa.RecordBatch:
    """Returns the records of a group as an Arrow batch of `schema`, which has columns of the view `records`.

    `kept`: a mask of the records to return.
    """
    arrays = [_RECORD_COLUMNS[field.name](opened, place) for field in schema]
    batch = pa.RecordBatch.from_arrays(
        [_as(one, field.type) for one, field in zip(arrays, schema, strict=True)], schema=schema
    )
    return batch if kept is None else batch.filter(pa.array(kept))


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


def instant(milliseconds: Array) -> pa.Array:
    """Returns an Arrow array of times in ms; null for one that does not fit, such as one that a producer has given in
    ns.
    """
    beyond = (milliseconds > TIME_MAX_MS) | (milliseconds < -TIME_MAX_MS)
    if beyond.any():
        return pa.array(np.where(beyond, 0, milliseconds) * MICROSECONDS, mask=beyond).cast(INSTANT)
    return pa.Array.from_buffers(
        INSTANT, milliseconds.size, [None, pa.py_buffer(np.ascontiguousarray(milliseconds * MICROSECONDS))]
    )


def _size(sizes: Array) -> pa.Array:
    return pa.array(sizes.astype(np.int32), mask=None if (sizes >= 0).all() else sizes < 0)


def _flag(mask: int) -> Maker:
    return lambda o, _: pa.array(((o.table["attributes"] & mask) != 0)[o.row])


def _of_batch(name: str) -> Maker:
    return lambda o, _: pa.array(o.table[name][o.row])


def _codec(attributes: Array) -> pa.Array:
    return _codec_names().take(pa.array(attributes & records.CODEC_MASK))


@cache
def _codec_names() -> pa.Array:
    """Not made at import: the first array that PyArrow makes imports pandas, which planning does not need."""
    return pa.array([*compression.NAMES, "unknown", "unknown", "unknown"], pa.string())


def _sequence(o: Opened, _: Place) -> pa.Array:
    base = o.table["base_sequence"][o.row].astype(np.int64)
    found = (base + (o.offset - o.table["base_offset"][o.row])) & 0x7FFFFFFF
    return pa.array(np.where(base < 0, records.NO_SEQUENCE, found).astype(np.int32))


def _headers(o: Opened, _: Place) -> pa.Array:
    n = len(o.offset)
    if o.headers is None or not o.headers.key_at.size:
        empty = pa.StructArray.from_arrays([pa.array([], pa.string()), pa.array([], pa.binary())], ["key", "value"])
        return pa.ListArray.from_arrays(pa.array(np.zeros(n + 1, np.int32)), empty)
    h = o.headers
    names = _text(gathered(o.data, h.key_at, h.key_size, pa.binary()))
    pairs = pa.StructArray.from_arrays(
        [names, gathered(o.data, h.value_at, h.value_size, pa.binary())], ["key", "value"]
    )
    return pa.ListArray.from_arrays(pa.array(h.first.astype(np.int32)), pairs)


def _text(names: pa.Array) -> pa.Array:
    """Returns names of headers as text. Bytes that are not UTF-8 are replaced, as consumers of Kafka do it."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([one.decode(errors="replace") for one in names.to_pylist()], pa.string())


_RECORD_COLUMNS: dict[str, Maker] = {
    "key": lambda o, _: gathered(o.data, o.key_at, o.key_size, pa.binary()),
    "value": lambda o, _: gathered(o.data, o.value_at, o.value_size, pa.binary()),
    "headers": _headers,
    "topic": lambda o, place: pa.repeat(pa.scalar(place.topic), len(o.offset)),
    "partition": lambda o, place: pa.repeat(pa.scalar(place.partition, pa.int32()), len(o.offset)),
    "offset": lambda o, _: pa.array(o.offset),
    "timestamp": lambda o, _: instant(o.timestamp),
    "timestampMs": lambda o, _: pa.array(o.timestamp),  # no view has it: for schemas that ask for it
    "timestampType": lambda o, _: pa.array(((o.table["attributes"] >> 3) & 1).astype(np.int32)[o.row]),
    "producerId": _of_batch("producer_id"),
    "producerEpoch": _of_batch("producer_epoch"),
    "sequence": _sequence,
    "transactional": _flag(records.TRANSACTIONAL_MASK),
    "control": _flag(records.CONTROL_MASK),
    "leaderEpoch": _of_batch("leader_epoch"),
    "codec": lambda o, _: _codec(o.table["attributes"]).take(pa.array(o.row)),
    "keySize": lambda o, _: _size(o.key_size),
    "valueSize": lambda o, _: _size(o.value_size),
    "batchOffset": _of_batch("base_offset"),
    "position": _of_batch("position"),
}


def batch_rows(
    table: Array,
    crc_valid: Array | None,
    errors: list[str | None],
    kinds: list[str | None],
    place: Place,
    schema: pa.Schema,
) -> pa.RecordBatch:
    """Returns the batches of a table as an Arrow batch of `schema`, which has columns of the view `batches`."""
    attributes, n = table["attributes"], len(table)
    horizon = (attributes & records.DELETE_HORIZON_MASK) != 0
    columns: dict[str, Callable[[], pa.Array]] = {
        "topic": lambda: pa.repeat(pa.scalar(place.topic), n),
        "partition": lambda: pa.repeat(pa.scalar(place.partition, pa.int32()), n),
        "segment": lambda: pa.repeat(pa.scalar(place.segment), n),
        "position": lambda: pa.array(table["position"]),
        "sizeInBytes": lambda: pa.array(table["length"] + records.LOG_OVERHEAD),
        "baseOffset": lambda: pa.array(table["base_offset"]),
        "lastOffset": lambda: pa.array(table["last_offset"]),
        "leaderEpoch": lambda: pa.array(table["leader_epoch"]),
        "magic": lambda: pa.array(table["magic"].astype(np.int32)),
        "crc": lambda: pa.array(table["crc"].astype(np.int64)),
        "crcValid": lambda: pa.nulls(n, pa.bool_()) if crc_valid is None else pa.array(crc_valid),
        "codec": lambda: _codec(attributes),
        "timestampType": lambda: pa.array(((attributes >> 3) & 1).astype(np.int32)),
        "transactional": lambda: pa.array((attributes & records.TRANSACTIONAL_MASK) != 0),
        "control": lambda: pa.array((attributes & records.CONTROL_MASK) != 0),
        "controlType": lambda: pa.array(kinds, pa.string()),
        "baseTimestamp": lambda: instant(table["base_timestamp"]),
        "maxTimestamp": lambda: instant(table["max_timestamp"]),
        "deleteHorizonMs": lambda: pa.array(table["base_timestamp"], mask=~horizon),
        "producerId": lambda: pa.array(table["producer_id"]),
        "producerEpoch": lambda: pa.array(table["producer_epoch"]),
        "baseSequence": lambda: pa.array(table["base_sequence"]),
        "recordCount": lambda: pa.array(table["count"]),
        "error": lambda: pa.array(errors, pa.string()),
    }
    return pa.RecordBatch.from_arrays([_as(columns[field.name](), field.type) for field in schema], schema=schema)
