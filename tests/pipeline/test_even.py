"""Long batches of records of one shape: read in few runs, as the codec reads them, also where a byte is damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ottla.pipeline import even
from ottla.pipeline.batches import scan
from ottla.pipeline.decode import overlapping
from ottla.pipeline.files import PADDING
from ottla.pipeline.opened import Broken, open_batches
from ottla.protocol import records
from ottla.protocol.errors import MalformedMessage
from ottla.protocol.records import HEADER_SIZE, Record, Template

from .decoded import by_codec, by_columns

COUNT = 9000  # the offset delta has one, two and three bytes


def batch(count: int = COUNT, key: bytes | None = None, value: bytes | None = b"v" * 100, step: int = 1) -> bytes:
    made = [Record(key, value, 1_700_000_000_000 + n * step, n) for n in range(count)]
    return bytes(records.encode(made, Template()))


def runs(data: bytes) -> list[even.Run] | None:
    table = scan(data, 0, len(data)).table
    flat = np.frombuffer(data + bytes(PADDING), np.uint8)
    starts = table["position"] + HEADER_SIZE
    ends = table["position"] + table["length"].astype(np.int64) + records.LOG_OVERHEAD
    return even.runs(flat, overlapping(flat), starts, table["count"].astype(np.int64), ends)


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({}, 3),
        ({"step": 0}, 3),
        ({"step": 3}, 5),
        ({"key": b""}, 3),
        ({"key": b"a key"}, 3),
        ({"key": b"k" * 100}, 3),
        ({"value": None}, 3),
        ({"value": b""}, 3),
        ({"value": b"v" * 20_000, "count": 300}, 2),
        ({"step": -70}, 5),
    ],
)
def test_records_of_one_shape_are_few_runs(settings: dict[str, Any], count: int) -> None:
    data = batch(**settings)
    found = runs(data)
    assert found is not None
    assert len(found) == count
    assert by_columns(data) == by_codec(data)


def test_batches_of_different_shapes_are_read_together() -> None:
    data = batch(300) + batch(600, b"k", b"other") + batch(300, value=None)
    assert runs(data) is not None
    assert by_columns(data) == by_codec(data)


@pytest.mark.parametrize("size", [lambda n: n % 2, lambda n: n * n % 300], ids=["two sizes", "all sizes"])
def test_records_of_many_shapes_are_left_to_the_other_way(size: Any) -> None:
    data = bytes(records.encode([Record(None, b"v" * size(n), 0, n) for n in range(1000)], Template()))
    assert runs(data) is None
    assert by_columns(data) == by_codec(data)


@pytest.mark.parametrize("which", [0, 1, 150, 299])
def test_a_record_of_another_shape_is_found(which: int) -> None:
    """Headers are not read here; everything else makes a run of its own."""
    for other in (
        Record(b"k", b"v" * 10, 5, which),
        Record(None, None, 5, which),
        Record(None, b"v" * 9, 5, which),
        Record(None, b"w" * 10, 5, which),
        Record(None, b"v" * 10, 1 << 30, which),
        Record(None, b"v" * 10, 5, which, [("h", b"x")]),
    ):
        made = [Record(None, b"v" * 10, 5, n) for n in range(300)]
        made[which] = other
        data = bytes(records.encode(made, Template()))
        assert (runs(data) is None) == bool(other.headers)
        assert by_columns(data) == by_codec(data)


@pytest.mark.parametrize("key", [None, b"k"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_damage_is_what_the_codec_finds(place: str, key: bytes | None) -> None:
    """Each byte of a record is changed, in several ways."""
    data = bytearray(batch(300, key, b"value"))
    found = runs(bytes(data))
    assert found is not None
    run = found[0 if place == "first" else -1]
    start = run.start + {"first": 0, "middle": 7, "last": run.record_count - 1}[place] * run.shape.stride
    for at in range(start, start + run.shape.stride):
        for change in (1, 2, 0x7F, 0x80):
            data[at] ^= change
            damaged = bytes(data)
            data[at] ^= change
            try:
                wanted = by_codec(damaged)
            except MalformedMessage:
                (group,) = open_batches(damaged, scan(damaged, 0, len(damaged)).table, with_headers=True)
                assert isinstance(group, Broken)
            else:
                assert by_columns(damaged) == wanted


def test_bytes_after_the_last_record_are_an_error() -> None:
    data = bytearray(batch(300))
    data[HEADER_SIZE - 4 : HEADER_SIZE] = (299).to_bytes(4, "big")
    (group,) = open_batches(bytes(data), scan(bytes(data), 0, len(data)).table)
    assert isinstance(group, Broken)


def test_a_group_of_small_batches_is_left_to_the_other_way() -> None:
    data = b"".join(batch(even.COUNT_MIN - 1) for _ in range(3))
    assert runs(data) is None
    assert by_columns(data) == by_codec(data)
