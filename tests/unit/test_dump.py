"""`ottla dump`: what a file has, and no more."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.dump import Entry, dump_file

NAME = "00000000000000000100"


def dumped(path: Path, data: bytes) -> list[Entry]:
    """What is said of a file after its first line."""
    path.write_bytes(data)
    return list(dump_file(str(path)))[1:]


@pytest.mark.parametrize("ending", ["", ".deleted", ".1.deleted", ".cleaned", ".swap"])
def test_an_index_has_no_entries_in_the_zeros_that_were_allocated_before(tmp_path: Path, ending: str) -> None:
    offsets = dumped(tmp_path / f"{NAME}.index{ending}", struct.pack(">iiii", 3, 0, 7, 4096) + bytes(800))
    assert [(one["offset"], one["position"]) for one in offsets] == [(103, 0), (107, 4096)]
    times = dumped(tmp_path / f"{NAME}.timeindex{ending}", struct.pack(">qi", 1000, 7) + bytes(1200))
    assert [(one["timestamp"], one["offset"]) for one in times] == [(1000, 107)]


@pytest.mark.parametrize(("suffix", "entry_bytes"), [("index", 8), ("timeindex", 12), ("txnindex", 34)])
def test_an_index_that_ends_within_an_entry_says_so(tmp_path: Path, suffix: str, entry_bytes: int) -> None:
    found = dumped(tmp_path / f"{NAME}.{suffix}", bytes([1]) * (entry_bytes + 3))
    assert found[1:] == [{"kind": "rest", "position": entry_bytes, "bytes": 3, "error": "not a whole entry"}]


def test_an_index_of_no_segment_is_named(tmp_path: Path) -> None:
    (found,) = dumped(tmp_path / "some.index", bytes(8))
    assert found["error"] == "the name does not begin with an offset of 20 digits"


@pytest.mark.parametrize("ending", ["", ".deleted"])
def test_zeros_after_the_batches_of_a_segment_are_no_error(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"{NAME}.log{ending}"
    batch = bytes(records.encode([Record(None, b"value", 1000, 0)], Template(base_offset=100)))
    zeros = {"kind": "rest", "position": len(batch), "bytes": 5000}
    kinds = [one["kind"] for one in dumped(path, batch + bytes(5000))]
    assert kinds == ["batch", "record", "rest"]
    assert dumped(path, batch + bytes(5000))[-1] == {**zeros, "zeros": True}
    assert dumped(path, batch + bytes(4999) + b"x")[-1] == {**zeros, "error": "not a whole batch"}
