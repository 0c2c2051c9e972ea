"""Damaged indexes and logs that were closed in order: see `tests.sim.indexes`."""

from __future__ import annotations

import random

import pytest
from ottla.storage.files import HandlePool
from ottla.storage.recovery import open_now
from ottla.storage.settings import LogSettings

from ..support.seeds import spans
from . import indexes as sim_indexes
from .indexes import DIRECTORY, KINDS, clone, filled, open_log, said, write

pytestmark = pytest.mark.long

DAMAGES = [(kind, damage) for kind in KINDS for damage in ("cut", "longer", "noise")]
DAMAGES += [
    (kind, damage) for kind in KINDS for damage in ("empty", "gone") if kind != ".txnindex"
]  # without aborted transactions there is none


@pytest.mark.parametrize("seeds", spans(0, 200, quick=15))
def test_a_flipped_bit_in_an_index_changes_nothing(seeds: range) -> None:
    for seed in seeds:
        sim_indexes.run(seed)


@pytest.mark.parametrize(("kind", "damage"), DAMAGES)
def test_an_index_that_is_cut_lost_or_noise_changes_nothing(kind: str, damage: str) -> None:
    files, log = filled()
    before = said(log)
    for name in [n for n in files.names(DIRECTORY) if n.endswith(kind)]:
        damaged = clone(files)
        path = f"{DIRECTORY}/{name}"
        handle, size = damaged.open(path), damaged.size(path)
        if damage == "gone":
            damaged.remove(path)
        elif damage == "longer":
            handle.write_at(size, b"\7" * 5)
        elif damage == "noise":
            handle.write_at(0, random.Random(1).randbytes(size))
        else:
            handle.truncate(0 if damage == "empty" else size - 3)
        again = open_log(damaged)
        assert again.end_offset == before["end"]
        assert said(again) == before, (name, damage)


def test_a_log_that_was_closed_in_order_and_ends_in_noise_is_cut_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An offset is given out once: what is appended next is found again."""
    files, log = filled()
    before = said(log)
    handle = files.open(log.active.path(".log"))
    handle.write_at(log.active.size, b"noise" * 40)
    again = open_log(files)
    assert "can be read only up to offset" in caplog.text
    assert said(again) == before
    write(again, 9000, 1)
    again.close()
    assert open_log(files).end_offset == before["end"] + 1


def test_an_index_without_its_segment_is_reported_and_removed(caplog: pytest.LogCaptureFixture) -> None:
    """After a crash nothing else tells that the segment was there."""
    files, log = filled()
    name = log.active.path("")
    files.remove(f"{name}.log")
    again = open_now(HandlePool(files, 8), DIRECTORY, LogSettings(), 0, clean=False)
    assert again.end_offset == log.active.base_offset
    assert f"{name}.index: an index without a segment" in caplog.text
    assert not [one for one in files.names(DIRECTORY) if f"{DIRECTORY}/{one}".startswith(f"{name}.") and "index" in one]
    assert open_now(HandlePool(files, 8), DIRECTORY, LogSettings(), 0, clean=False).end_offset == again.end_offset
