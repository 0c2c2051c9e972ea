"""Long batches of records of one shape: read in few runs, as the codec reads them, also where a byte is damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ottla.pipeline import even
from ottla.pipeline.batches import scan
from ottla.pipeline.decode import overlapping
from ottla.pipeline.files import PADDING
from ottla.pipeline.opened import Broken, Opened, open_batches
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


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.parametrize(("key", "value"), [(None, b"value"), (b"k", b"value"), (b"k", None)])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_damage_is_what_the_codec_finds(place: str, key: bytes | None, value: bytes | None) -> None:
    """Each byte of a record is changed, in several ways: sizes of null become other negative numbers, too."""
    data = bytearray(batch(300, key, value))
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
                assert is_broken(damaged)
            else:
                assert by_columns(damaged) == wanted


def is_broken(data: bytes) -> bool:
    (group,) = open_batches(data, scan(data, 0, len(data)).table, with_headers=True)
    return isinstance(group, Broken)


def test_bytes_after_the_last_record_are_an_error() -> None:
    data = bytearray(batch(300))
    data[HEADER_SIZE - 4 : HEADER_SIZE] = (299).to_bytes(4, "big")
    assert is_broken(bytes(data))


@pytest.mark.parametrize("missing", [1, 2, 50, 107])
def test_a_batch_that_ends_within_a_record_is_an_error(missing: int) -> None:
    """Another batch follows, so that there are bytes after the end."""
    data = bytearray(batch(300)[:-missing])
    data[8:12] = (len(data) - records.LOG_OVERHEAD).to_bytes(4, "big")
    both = bytes(data) + batch(300)
    first, second = open_batches(both, scan(both, 0, len(both)).table)
    assert isinstance(first, Broken)
    assert isinstance(second, Opened)


def test_numbers_of_more_than_eight_bytes_before_the_key_are_left_to_the_other_way() -> None:
    """A timestamp of five bytes, an offset of three and the size of the key."""
    data = batch(step=1 << 20)
    assert runs(data) is None
    assert by_columns(data) == by_codec(data)


def test_a_group_of_small_batches_is_left_to_the_other_way() -> None:
    data = b"".join(batch(even.COUNT_MIN - 1) for _ in range(3))
    assert runs(data) is None
    assert by_columns(data) == by_codec(data)
