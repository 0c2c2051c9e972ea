"""Slices of segments: each record is read once, however a log is cut and whatever happens to its files meanwhile."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from ottla.pipeline import directory as directories
from ottla.pipeline import reading
from ottla.pipeline.directory import Bounds, Directory, dealt
from ottla.pipeline.files import Files
from ottla.protocol import records

from .logs import Written, offsets, offsets_of, put_away


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


@pytest.mark.parametrize("slice_bytes", [1, 200, 1 << 30])
def test_every_record_once_however_it_is_cut(written: Written, slice_bytes: int) -> None:
    for n in range(40):
        if n in (10, 11, 30):
            written.roll()
        written.batch(1 + n % 4)
    assert offsets(written, slice_bytes=slice_bytes) == list(range(written.offset))


@pytest.mark.parametrize("slice_bytes", [1, 200, 600, 1 << 30])
def test_every_record_once_where_appends_are_of_several_batches(written: Written, slice_bytes: int) -> None:
    """Kafka up to 3.9 indexes appends: the entry has the position of its first batch and the offset of its last one.
    Followers append many batches at a time.
    """
    for n in range(40):
        if n in (10, 30):
            written.roll()
        written.batch(1 + n % 4, batches=1 + n % 3)
    assert offsets(written, slice_bytes=slice_bytes) == list(range(written.offset))
    assert offsets(written, Bounds(5, 60), slice_bytes) == list(range(5, 61))


def test_a_task_reads_little_more_than_its_part_where_appends_are_of_several_batches(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        written.batch(batches=3)
    read = []
    part = Files.part

    def counted(files: Files, name: str, start: int, end: int) -> Any:
        read.append(end - start)
        return part(files, name, start, end)

    monkeypatch.setattr(Files, "part", counted)
    assert offsets(written, slice_bytes=2000) == list(range(written.offset))
    assert sum(read) < 2 * written.log.stat().st_size


@pytest.mark.parametrize("damaged", range(12, 15))
def test_what_is_damaged_is_found_once_although_slices_overlap_by_an_append(written: Written, damaged: int) -> None:
    for _ in range(9):
        written.batch(batches=3)
    at = list(records.batches(written.log.read_bytes()))[damaged].position
    with written.log.open("r+b") as file:
        file.seek(at + 8)
        file.write((5).to_bytes(4, "big"))
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), 1))
    assert len(slices) == 9
    found = [reading.batches_of(directory, part) for part in slices]
    assert [start for one in found if one is not None for start, _ in one.gaps] == [at]


def test_files_that_change_between_planning_and_reading(written: Written) -> None:
    """A cleaner may have made a file shorter, retention may have renamed one or taken it away."""
    for _ in range(8):
        written.batch()
    first = written.log
    written.roll()
    for _ in range(4):
        written.batch()
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), 200))
    assert len([one for one in slices if one.segment.base_offset == 0]) > 2
    whole = first.read_bytes()
    keep = [at for at in records.batches(whole) if at.header.base_offset not in (0, 12)]
    first.write_bytes(b"".join(whole[at.position : at.position + at.header.size] for at in keep))
    assert list(offsets_of(directory, slices)) == [*range(3, 12), *range(15, 36)]
    first.write_bytes(whole)
    first.rename(str(first) + ".deleted")
    assert list(offsets_of(directory, slices)) == list(range(36))
    Path(str(first) + ".deleted").unlink()
    assert list(offsets_of(directory, slices)) == list(range(24, 36))


@pytest.mark.parametrize("slice_bytes", [200, 1 << 30])
@pytest.mark.parametrize("second_is", ["there", "renamed", "removed"])
def test_segments_that_the_cleaner_merges_between_planning_and_reading(
    written: Written, slice_bytes: int, second_is: str
) -> None:
    """The first segment has the batches of the second one then, which waits for its deletion for a minute."""
    logs = []
    for _ in range(4):
        logs.append(written.log)
        for _ in range(6):
            written.batch()
        written.roll()
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), slice_bytes))
    first, second = (one.read_bytes() for one in logs[:2])
    logs[0].write_bytes(first[list(records.batches(first))[2].position :] + second)
    if second_is == "renamed":
        logs[1].rename(f"{logs[1]}.deleted")
    elif second_is == "removed":
        logs[1].unlink()
    assert list(offsets_of(directory, slices)) == list(range(6, 72))


def rewritten(log: Path, keep: range) -> None:
    """What compaction leaves: the batches that begin in a range."""
    whole = log.read_bytes()
    kept = [one for one in records.batches(whole) if one.header.base_offset in keep]
    log.write_bytes(b"".join(whole[one.position : one.position + one.header.size] for one in kept))
    log.with_suffix(".index").unlink(missing_ok=True)


@pytest.mark.parametrize("slice_bytes", [200, 1 << 30])
@pytest.mark.parametrize(
    "suffixes", [(".deleted", ".1.deleted"), (".1.deleted", ".deleted"), (".9.deleted", ".10.deleted")]
)
def test_a_segment_that_was_compacted_before_it_is_deleted(
    written: Written, slice_bytes: int, suffixes: tuple[str, str]
) -> None:
    """What it was before the compaction waits for its deletion, too, and has the next free name: the number does not
    say which is the later one. It has a batch that the compaction removed, and lacks the later ones.
    """
    for _ in range(8):
        written.batch()
    log, whole = written.log, written.log.read_bytes()
    rewritten(log, range(12))
    written.roll()
    written.batch()
    put_away(log, suffixes[0])
    log.write_bytes(whole)
    rewritten(log, range(3, 24))
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), slice_bytes))
    put_away(log, suffixes[1])
    assert list(offsets_of(directory, slices)) == list(range(3, 27))


@pytest.mark.parametrize("suffix", [".deleted", ".1.deleted"])
def test_a_segment_that_is_compacted_and_deleted_between_planning_and_reading(written: Written, suffix: str) -> None:
    """Its batches are at other positions than in the plan."""
    for _ in range(8):
        written.batch()
    log = written.log
    written.roll()
    written.batch()
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), 200))
    rewritten(log, range(3, 24))
    put_away(log, suffix)
    assert list(offsets_of(directory, slices)) == list(range(3, 27))


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_segment_that_is_compacted_during_planning(
    written: Written, monkeypatch: pytest.MonkeyPatch, is_finished: bool
) -> None:
    """The log of before is put away, and the cleaned one has no place yet. A crash may leave it so."""
    for _ in range(2):
        written.batch()
        written.roll()
    first, looks, of_kind = written.directory / f"{0:020d}.log", [], Files.of_kind
    swap = first.rename(f"{first}.swap")

    def looked(files: Files, directory: str, kind: str) -> list[str]:
        looks.append(kind)
        found = of_kind(files, directory, kind)
        if is_finished and kind == "directory" and looks.count(kind) == 3:
            swap.rename(first)
        return found

    monkeypatch.setattr(Files, "of_kind", looked)
    segments = Directory(str(written.root)).segments("t", 0)
    assert [one.base_offset for one in segments] == ([0, 3, 6] if is_finished else [3, 6])
    assert looks.count("file") == (4 if is_finished else directories.SWAP_LOOKS)


def test_a_batch_that_moved_to_where_another_was(written: Written) -> None:
    """All batches are of one size, and the first has gone: what a task finds at its place is whole, and not its own."""
    (written.directory / f"{0:020d}.log").unlink()
    written.offset = 10
    written.roll()
    for _ in range(20):
        written.batch()
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), 200))
    whole = written.log.read_bytes()
    written.log.write_bytes(whole[len(whole) // 20 :])
    assert list(offsets_of(directory, slices)) == list(range(13, 70))


def test_slices_are_dealt_evenly_by_bytes_and_by_topic(written: Written) -> None:
    """What takes long in one topic, as opening it does where it is compressed, is long in each list."""
    for n in range(40):
        if n % 7 == 6:
            written.roll()
        written.batch()
    directory = Directory(str(written.root))
    slices = list(directory.slices(directory.segments("t", 0), Bounds(), 150))
    others = [replace(one, segment=replace(one.segment, topic="other")) for one in slices[:13]]
    lists = dealt([*others, *slices], 4)
    assert sorted(chain(*lists), key=lambda one: (one.segment.topic, one.segment.base_offset, one.start)) == [
        *others,
        *slices,
    ]
    for topic in ("t", "other"):
        sizes = [sum(one.end - one.start for one in each if one.segment.topic == topic) for each in lists]
        assert min(sizes) > sum(sizes) / 4 / 2
        assert max(sizes) < sum(sizes) / 4 * 2
    assert dealt(slices[:2], 4) == [[slices[0]], [slices[1]]]
