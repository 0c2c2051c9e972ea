"""The view `internal`: the records of Kafka's internal topics, keys and values as JSON with the fields of Kafka's
schemas in snake_case.

A record of an unknown type or version has no `type`; its bytes are in `rawKey` and `rawValue`, as for all records. A
tombstone has no value. The snapshot before the log of `__cluster_metadata` is read with it: its records have the last
offset that the snapshot includes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from ..coordinator.described import Described, Describer, control_name, control_value, describer
from ..protocol.errors import MalformedMessage
from ..protocol.records import CONTROL_MASK, Record
from ..protocol.text import Json
from .columns import gathered, record_batch
from .directory import Bounds, Directory, Slice, Snapshot
from .opened import Opened
from .reading import Options, kept, opened

_DESCRIBED = frozenset(("type", "key", "value", "error"))
_BYTES = {"rawKey": "key", "rawValue": "value"}


def rows(directory: Directory, part: Slice, schema: pa.Schema, options: Options) -> Iterator[pa.RecordBatch]:
    """Yields the records of a slice as Arrow batches of `schema`. Raises BrokenLog."""
    describe = describer(part.segment.topic)
    assert describe is not None, part.segment.topic
    plain = pa.schema(
        [pa.field(_BYTES.get(one.name, one.name), one.type) for one in schema if one.name not in _DESCRIBED]
    )
    bounds = part.bounds
    if isinstance(part.segment, Snapshot):
        part = replace(part, bounds=Bounds())  # the bounds are offsets of the log
    for found_in_file in opened(directory, part, options):
        group = found_in_file
        if isinstance(part.segment, Snapshot):
            group = group._replace(offset=np.full_like(group.offset, part.segment.base_offset))
        copied = iter(record_batch(group, None, part.segment.place, plain).columns)
        found = _described(group, describe) if _DESCRIBED & set(schema.names) else {}
        arrays = [pa.array(found[one.name], pa.string()) if one.name in _DESCRIBED else next(copied) for one in schema]
        made = pa.RecordBatch.from_arrays(arrays, schema=schema)
        mask = kept(group.offset, group.timestamp, bounds)
        yield made if mask is None else made.filter(pa.array(mask))


def _described(group: Opened, describe: Describer) -> dict[str, list[str | None]]:
    """Returns the columns that need decoded records."""
    keys = gathered(group.data, group.key_at, group.key_size, pa.binary()).to_pylist()
    values = gathered(group.data, group.value_at, group.value_size, pa.binary()).to_pylist()
    controls = ((group.table["attributes"] & CONTROL_MASK) != 0)[group.row].tolist()
    found: dict[str, list[str | None]] = {name: [] for name in _DESCRIBED}
    for key, value, control in zip(keys, values, controls, strict=True):
        error = one = None
        try:
            one = _control(key, value) if control else describe(Record(key, value))
        except MalformedMessage as problem:
            error = str(problem)
        found["type"].append(None if one is None else one.type)
        found["key"].append(None if one is None or one.key is None else _json(one.key))
        found["value"].append(None if one is None or one.value is None else _json(one.value))
        found["error"].append(error)
    return found


def _control(key: bytes | None, value: bytes | None) -> Described | None:
    kind = control_name(key)
    return None if kind is None else Described(kind, None, control_value(kind, value))


def _json(plain: Json) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)
