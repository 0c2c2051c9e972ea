"""Opens batches into columns of records, a group of batches at a time: decompressed and decoded at once, one by one if
that fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..protocol import compression, legacy, records
from ..protocol.buffers import Data
from ..protocol.errors import MalformedMessage
from ..protocol.records import HEADER_SIZE, LOG_OVERHEAD, BatchAt
from . import decode
from .batches import HEADER_FIELDS, Array
from .decode import Fields, Headers
from .files import PADDING

GROUP_RECORDS = 100_000
GROUP_BYTES = 16 << 20
BATCH_BYTES_MAX = 256 << 20  # limit of one compressed batch; a larger one is an error


class Opened(NamedTuple):
    """Columns of the records of a group of batches, in log order.
    `row` is the row of each record's batch in `table`.
    """

    data: Data
    table: Array
    row: Array
    offset: Array
    timestamp: Array
    key_at: Array
    key_size: Array
    value_at: Array
    value_size: Array
    headers: Headers | None


class Plain(NamedTuple):
    """A record that was decoded by itself."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class Broken(NamedTuple):
    """A batch that cannot be opened."""

    position: int
    base_offset: int
    problem: str


def open_batches(
    data: Data, table: Array, with_headers: bool = False, limit_bytes: int = BATCH_BYTES_MAX
) -> Iterator[Opened | Broken]:
    """Yields the records of the batches of `table` in `data`; a damaged batch is yielded as Broken, in its place."""
    table = table[(table["magic"] != records.MAGIC) | (table["count"] != 0)]  # compaction leaves empty batches
    counts, sizes = table["count"].astype(np.int64), table["length"].astype(np.int64)
    behind_counts, behind_sizes = np.cumsum(counts), np.cumsum(sizes)
    kind = np.where(
        table["magic"] == records.MAGIC, (table["attributes"] & records.CODEC_MASK != 0).astype(np.int8), np.int8(2)
    )
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


def _plain(data: Data, rows: Array, with_headers: bool) -> Iterator[Opened | Broken]:
    begin = int(rows["position"][0])
    end = int(rows["position"][-1]) + LOG_OVERHEAD + int(rows["length"][-1])
    view = memoryview(data)
    part = view[begin : end + PADDING] if end + PADDING <= len(view) else bytes(view[begin:end]) + bytes(PADDING)
    starts = rows["position"] - begin + HEADER_SIZE
    yield from _decoded(
        part, rows, starts, starts + (rows["length"].astype(np.int64) + LOG_OVERHEAD - HEADER_SIZE), with_headers
    )


def _compressed(data: Data, rows: Array, with_headers: bool, limit_bytes: int) -> Iterator[Opened | Broken]:
    view, held, first = memoryview(data), 0, 0
    parts: list[bytes] = []
    for i, (at, length, attributes, base) in enumerate(zip(*(rows[name].tolist() for name in _PLACE), strict=True)):
        try:
            body, limit = (
                view[at + HEADER_SIZE : at + LOG_OVERHEAD + length],
                min(limit_bytes, compression.openable_bytes(length)),
            )
            plain = compression.decompress(attributes & records.CODEC_MASK, body, limit)
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


def _decoded(data: Data, rows: Array, starts: Array, ends: Array, with_headers: bool) -> Iterator[Opened | Broken]:
    """Decodes all batches at once; if that fails, splits the group in halves until the faulty batch is alone."""
    counts = rows["count"].astype(np.int64)
    try:
        # memory for the columns is allocated by these counts
        if (counts < 1).any() or (counts * records.RECORD_BYTES_MIN > ends - starts).any():
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


def _columns(data: Data, rows: Array, counts: Array, fields: Fields, headers: Headers | None) -> Opened:
    row = np.repeat(np.arange(len(rows)), counts)
    offset = np.repeat(rows["base_offset"], counts)
    offset += fields.offset_delta
    timestamp = np.repeat(rows["base_timestamp"], counts)
    timestamp += fields.timestamp_delta
    appended = (rows["attributes"] & records.TIMESTAMP_TYPE_MASK) != 0
    if appended.any():
        which = np.repeat(appended, counts)
        timestamp[which] = np.repeat(rows["max_timestamp"], counts)[which]
    return Opened(
        data, rows, row, offset, timestamp, fields.key_at, fields.key_size, fields.value_at, fields.value_size, headers
    )


def _by_hand(body: memoryview, row: np.void) -> Opened | Broken:
    """Decodes one batch with the codec, which checks every rule."""
    header = records.BatchHeader._make(int(row[name]) for name in HEADER_FIELDS)
    header = header._replace(
        attributes=header.attributes & ~records.CODEC_MASK, length=HEADER_SIZE - LOG_OVERHEAD + len(body)
    )
    try:
        found = records.decode(bytes(HEADER_SIZE) + bytes(body), BatchAt(0, header))
    except MalformedMessage as error:
        return Broken(int(row["position"]), int(row["base_offset"]), str(error))
    return _assembled(row, [Plain(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found])


def _legacy(data: Data, row: np.void, limit_bytes: int) -> Opened | Broken:
    at = int(row["position"])
    try:
        found = legacy.decode(memoryview(data)[at : at + LOG_OVERHEAD + int(row["length"])], limit_bytes)
    except MalformedMessage as error:
        return Broken(at, int(row["base_offset"]), str(error))
    return _assembled(row, [Plain(one.offset, one.timestamp, one.key, one.value, ()) for one in found])


def _assembled(row: np.void, found: Sequence[Plain]) -> Opened:
    """Returns columns over a buffer that is assembled from the records' fields."""
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

    keys, values = place([one.key for one in found]), place([one.value for one in found])
    pairs = [pair for one in found for pair in one.headers]
    names, contents = place([name.encode() for name, _ in pairs]), place([value for _, value in pairs])
    first = np.cumsum([0, *(len(one.headers) for one in found)])
    table = np.array([row])
    offset = np.array([one.offset for one in found], np.int64)
    timestamp = np.array([one.timestamp for one in found], np.int64)
    return Opened(
        b"".join(parts), table, np.zeros(len(found), np.int64), offset, timestamp, *keys, *values, Headers(first,
        *names, *contents)
    )  # fmt: skip
