"""Batches opened into columns of records, a group of batches at a time: decompressed, decoded at once, and by hand where that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..protocol import compression, legacy, records
from ..protocol.errors import MalformedMessage
from ..protocol.records import HEADER_SIZE, LOG_OVERHEAD, BatchAt
from . import decode
from .batches import HEADER_FIELDS, Array
from .decode import PADDING, Fields, Headers

GROUP_RECORDS = 100_000
GROUP_BYTES = 16 << 20
BATCH_BYTES_MAX = 256 << 20  # what one compressed batch may hold; more is an error, not memory


class Opened(NamedTuple):
    """Columns of the records of a group of batches, in log order. `row` is each record's batch in `table`."""

    data: Any
    table: Array
    row: Array
    offset: Array
    timestamp: Array
    key_at: Array
    key_size: Array
    value_at: Array
    value_size: Array
    headers: Headers | None


class Broken(NamedTuple):
    """A batch that cannot be opened."""

    position: int
    base_offset: int
    problem: str


def open_batches(data: Any, table: Array, with_headers: bool = False, limit_bytes: int = BATCH_BYTES_MAX) -> Iterator[Opened | Broken]:
    """The records of the batches of `table`, which lie in `data`; what is damaged comes as Broken, in its place."""
    table = table[(table["magic"] != records.MAGIC) | (table["count"] != 0)]  # compaction leaves empty ones
    counts, sizes = table["count"].astype(np.int64), table["length"].astype(np.int64)
    behind_counts, behind_sizes = np.cumsum(counts), np.cumsum(sizes)
    kind = np.where(table["magic"] == records.MAGIC, (table["attributes"] & records.CODEC_MASK != 0).astype(np.int8), np.int8(2))
    borders = np.append(np.flatnonzero(np.diff(kind)) + 1, len(table))
    first = 0
    while first < len(table):
        behind = int(borders[np.searchsorted(borders, first, side="right")])
        full = int(np.searchsorted(behind_counts, behind_counts[first] - counts[first] + GROUP_RECORDS))
        heavy = int(np.searchsorted(behind_sizes, behind_sizes[first] - sizes[first] + GROUP_BYTES))
        behind = min(behind, max(first + 1, min(full, heavy)))
        rows = table[first:behind]
        if kind[first] == 0:
            yield from _plain(data, rows, with_headers)
        elif kind[first] == 1:
            yield from _compressed(data, rows, with_headers, limit_bytes)
        else:
            for row in rows:
                yield _legacy(data, row, limit_bytes)
        first = behind


def _plain(data: Any, rows: Array, with_headers: bool) -> Iterator[Opened | Broken]:
    begin = int(rows["position"][0])
    end = int(rows["position"][-1]) + LOG_OVERHEAD + int(rows["length"][-1])
    view = memoryview(data)
    part = view[begin : end + PADDING] if end + PADDING <= len(view) else bytes(view[begin:end]) + bytes(PADDING)
    starts = rows["position"] - begin + HEADER_SIZE
    yield from _decoded(part, rows, starts, starts + (rows["length"].astype(np.int64) + LOG_OVERHEAD - HEADER_SIZE), with_headers)


def _compressed(data: Any, rows: Array, with_headers: bool, limit_bytes: int) -> Iterator[Opened | Broken]:
    view, held, first = memoryview(data), 0, 0
    parts: list[bytes] = []
    for i, (at, length, attributes, base) in enumerate(zip(*(rows[name].tolist() for name in _PLACE), strict=True)):
        try:
            plain = compression.decompress(attributes & records.CODEC_MASK, view[at + HEADER_SIZE : at + LOG_OVERHEAD + length], limit_bytes)
        except MalformedMessage as error:
            yield from _joined(parts, rows[first:i], with_headers)
            parts, held, first = [], 0, i + 1
            yield Broken(at, base, str(error))
            continue
        if held and held + len(plain) > GROUP_BYTES:
            yield from _joined(parts, rows[first:i], with_headers)
            parts, held, first = [], 0, i
        parts.append(plain)
        held += len(plain)
    yield from _joined(parts, rows[first:], with_headers)


_PLACE = ("position", "length", "attributes", "base_offset")


def _joined(parts: Sequence[bytes], rows: Array, with_headers: bool) -> Iterator[Opened | Broken]:
    if not parts:
        return
    sizes = np.array([len(one) for one in parts], np.int64)
    ends = np.cumsum(sizes)
    yield from _decoded(b"".join([*parts, bytes(PADDING)]), rows, ends - sizes, ends, with_headers)


def _decoded(data: Any, rows: Array, starts: Array, ends: Array, with_headers: bool) -> Iterator[Opened | Broken]:
    """All at once; where that fails, by halves until the odd one stands alone."""
    counts = rows["count"].astype(np.int64)
    try:
        if (counts < 1).any() or (counts > ends - starts).any():
            raise decode.Irregular
        flat = np.frombuffer(data, np.uint8)
        fields = decode.decode(flat, starts, counts, ends, rows["last_offset_delta"] + 1 == counts)
        headers = decode.headers(flat, fields) if with_headers else None
    except decode.Irregular:
        if len(rows) == 1:
            yield _by_hand(memoryview(data)[int(starts[0]) : int(ends[0])], rows[0])
            return
        half = len(rows) // 2
        yield from _decoded(data, rows[:half], starts[:half], ends[:half], with_headers)
        yield from _decoded(data, rows[half:], starts[half:], ends[half:], with_headers)
        return
    yield _columns(data, rows, counts, fields, headers)


def _columns(data: Any, rows: Array, counts: Array, fields: Fields, headers: Headers | None) -> Opened:
    row = np.repeat(np.arange(len(rows)), counts)
    offset = np.repeat(rows["base_offset"], counts)
    offset += fields.offset_delta
    timestamp = np.repeat(rows["base_timestamp"], counts)
    timestamp += fields.timestamp_delta
    appended = (rows["attributes"] & records.TIMESTAMP_TYPE_MASK) != 0
    if appended.any():
        which = np.repeat(appended, counts)
        timestamp[which] = np.repeat(rows["max_timestamp"], counts)[which]
    return Opened(data, rows, row, offset, timestamp, fields.key_at, fields.key_size, fields.value_at, fields.value_size, headers)


def _by_hand(body: memoryview, row: Any) -> Opened | Broken:
    """One batch through the codec that knows every rule."""
    header = records.BatchHeader._make(int(row[name]) for name in HEADER_FIELDS)
    header = header._replace(attributes=header.attributes & ~records.CODEC_MASK, length=HEADER_SIZE - LOG_OVERHEAD + len(body))
    try:
        found = records.decode(bytes(HEADER_SIZE) + bytes(body), BatchAt(0, header))
    except MalformedMessage as error:
        return Broken(int(row["position"]), int(row["base_offset"]), str(error))
    return _assembled(row, [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found])


def _legacy(data: Any, row: Any, limit_bytes: int) -> Opened | Broken:
    at = int(row["position"])
    try:
        found = legacy.decode(memoryview(data)[at : at + LOG_OVERHEAD + int(row["length"])], limit_bytes)
    except MalformedMessage as error:
        return Broken(at, int(row["base_offset"]), str(error))
    return _assembled(row, [(one.offset, one.timestamp, one.key, one.value, ()) for one in found])


def _assembled(row: Any, found: Sequence[tuple[int, int, bytes | None, bytes | None, Any]]) -> Opened:
    """Columns over a buffer that is made of the records' fields."""
    parts: list[bytes] = []
    filled = 0

    def place(fields: Sequence[bytes | None]) -> tuple[Array, Array]:
        nonlocal filled
        at, size = np.empty(len(fields), np.int64), np.empty(len(fields), np.int64)
        for i, one in enumerate(fields):
            at[i], size[i] = filled, -1 if one is None else len(one)
            if one:
                parts.append(one)
                filled += len(one)
        return at, size

    keys, values = place([one[2] for one in found]), place([one[3] for one in found])
    pairs = [pair for one in found for pair in one[4]]
    names, contents = place([name.encode() for name, _ in pairs]), place([value for _, value in pairs])
    first = np.cumsum([0, *(len(one[4]) for one in found)])
    table = np.array([row])
    offset, timestamp = (np.array([one[n] for one in found], np.int64) for n in (0, 1))
    return Opened(
        b"".join(parts), table, np.zeros(len(found), np.int64), offset, timestamp, *keys, *values, Headers(first, *names, *contents)
    )  # fmt: skip
