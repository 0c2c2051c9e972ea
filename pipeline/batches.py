"""The batches of a segment file as one NumPy table: position, header, and whether the CRC is right.

Format version 2 is read by columns; entries of versions 0 and 1 get the same columns, with -1 for fields that they do
not have.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c

from ..protocol import legacy
from ..protocol.buffers import Data
from ..protocol.records import (
    CRC_START,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
)

Array = np.ndarray[Any, np.dtype[Any]]

_LENGTH_MIN = 14  # of a message of version 0 without key and value
_length_at = struct.Struct(">i").unpack_from
_ON_DISK = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
HEADER_FIELDS = _ON_DISK.names or ()
TABLE = np.dtype(
    [("position", "i8"), *((name, _ON_DISK[name].newbyteorder("=")) for name in HEADER_FIELDS), ("last_offset", "i8")]
)


class Scan(NamedTuple):
    """Complete batches in file order, and the position of the first byte after them."""

    table: Array
    end: int


def scan(data: Data, start: int, end: int) -> Scan:
    """Returns the complete batches of `data` in `start`..`end`; stops at bytes that are not
    a batch.
    """
    positions, sizes = _places(data, start, end)
    table = np.empty(len(positions), TABLE)
    if not positions:
        return Scan(table, start)
    at, flat = np.array(positions, np.int64), np.frombuffer(data, np.uint8)
    magic = flat[at + MAGIC_AT].view(np.int8)
    bad = np.flatnonzero((magic < 0) | (magic > MAGIC) | ((magic == MAGIC) & (np.array(sizes) < HEADER_SIZE)))
    if bad.size:
        table, at, magic = table[: bad[0]], at[: bad[0]], magic[: bad[0]]
    _fill(table, flat, at, magic == MAGIC)
    for i in np.flatnonzero(magic != MAGIC).tolist():
        table[i] = _legacy_row(data, positions[i], sizes[i])
    table["position"] = at
    table["last_offset"] = table["base_offset"] + table["last_offset_delta"]
    count = len(table)
    return Scan(table, positions[count - 1] + sizes[count - 1] if count else start)


def size_at(data: Data, at: int) -> int:
    """Returns the size of the batch that begins at a position, by its own length."""
    (length,) = _length_at(data, at + 8)
    return int(length) + LOG_OVERHEAD


def _places(data: Data, start: int, end: int) -> tuple[list[int], list[int]]:
    """Returns positions and sizes, from the lengths alone."""
    positions: list[int] = []
    sizes: list[int] = []
    at, last = start, end - MAGIC_AT
    while at < last:
        (length,) = _length_at(data, at + 8)
        size = length + LOG_OVERHEAD
        if length < _LENGTH_MIN or at + size > end:
            break
        positions.append(at)
        sizes.append(size)
        at += size
    return positions, sizes


def _fill(table: Array, data: Array, at: Array, modern: Array) -> None:
    rows = at if modern.all() else at[modern]
    if not rows.size:
        return
    windows = np.lib.stride_tricks.as_strided(data, (data.size - HEADER_SIZE + 1, HEADER_SIZE), (1, 1))
    headers = np.ascontiguousarray(windows[rows]).view(_ON_DISK).reshape(-1)
    for name in HEADER_FIELDS:
        table[name][modern] = headers[name]


def _legacy_row(data: Data, at: int, size: int) -> tuple[int, ...]:
    """Returns the row of an outer entry; its last offset is the entry's, its base offset is found when it is opened."""
    entry = next(legacy.entries(memoryview(data)[at : at + size]), None)
    if entry is None:  # the entry is incomplete
        return (at, -1, size - LOG_OVERHEAD, -1, -1, 0, 0, 0, -1, -1, -1, -1, -1, 0, -1)
    attributes = data[at + 17]
    (crc,) = struct.unpack_from(">I", data, at + 12)
    count = 0 if entry.codec else 1  # the count of a compressed set is known when it is opened
    return (
        at, entry.offset, size - LOG_OVERHEAD, NO_EPOCH, entry.magic, crc, attributes, 0, entry.timestamp,
        entry.timestamp,
        NO_PRODUCER_ID, NO_EPOCH, NO_SEQUENCE, count, entry.offset,
    )  # fmt: skip


def crc_verdicts(data: Data, table: Array) -> Array:
    """Returns whether each batch's CRC is right."""
    view = memoryview(data)
    return np.fromiter(
        (
            crc32c(view[at + CRC_START : at + LOG_OVERHEAD + length]) == crc
            if magic == MAGIC
            else _legacy_valid(view, at, length)
            for at, length, crc, magic in zip(
                table["position"].tolist(),
                table["length"].tolist(),
                table["crc"].tolist(),
                table["magic"].tolist(),
                strict=True,
            )
        ),
        bool,
        len(table),
    )


def _legacy_valid(view: memoryview, at: int, length: int) -> bool:
    entry = next(legacy.entries(view[at : at + LOG_OVERHEAD + length]), None)
    return entry is not None and entry.crc_valid
