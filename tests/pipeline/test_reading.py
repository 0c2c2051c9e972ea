"""Directories, slices and what is left out of them, on logs that the storage wrote; without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from ottla.pipeline import directory as directories
from ottla.pipeline import evidence, indexes, reading
from ottla.pipeline import source as sources
from ottla.pipeline.batches import TABLE
from ottla.pipeline.columns import INSTANT, TIME_MAX_MS
from ottla.pipeline.directory import Bounds, Directory, Slice
from ottla.pipeline.files import Files, is_directory
from ottla.pipeline.indexes import offsets_right, times_right
from ottla.pipeline.options import Source
from ottla.pipeline.reading import BrokenLog, Options
from ottla.pipeline.source import TASK_BYTES_MIN, FilteredLogReader, LogReader, LogStreamReader, Planner
from ottla.protocol import records
from ottla.protocol.records import Record, Template
from pyspark.sql.datasource import EqualTo
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from .logs import Written, offsets, offsets_of


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


@pytest.mark.parametrize(("first", "last"), [(0, 0), (4, 4), (3, 9), (29, 31), (59, 1000), (-5, 2), (60, 70)])
def test_a_range_of_offsets_is_exact_and_reads_little(written: Written, first: int, last: int) -> None:
    for n in range(20):
        if n == 10:
            written.roll()
        written.batch(3)
    assert offsets(written, Bounds(first, last)) == list(range(max(0, first), min(last, 59) + 1))
    directory = Directory(str(written.root))
    read = sum(
        one.end - one.start for one in directory.slices(directory.segments("t", 0), Bounds(first, last), 1 << 30)
    )
    assert read <= (last - max(first, 0) + 9) * 40


@pytest.mark.parametrize(("first", "last"), [(1000, 1000), (1010, 1013), (1030, 1030), (1100, 1200)])
def test_a_range_of_timestamps(written: Written, first: int, last: int) -> None:
    for n in range(12):
        if n == 5:
            written.roll()
        written.batch(3)
    assert offsets(written, Bounds(first_timestamp=first, last_timestamp=last)) == [
        n for n in range(36) if first <= 1000 + n <= last
    ]


def test_a_damaged_length_costs_what_the_index_cannot_find_again(written: Written) -> None:
    places = [written.batch() for _ in range(6)]
    data = bytearray(written.log.read_bytes())
    data[places[2] + 8] = 0x7F
    written.log.write_bytes(bytes(data))
    with pytest.raises(BrokenLog, match=f"t-0/0+.log: no complete batch at position {places[2]}"):
        offsets(written)
    assert offsets(written, options=Options(skip_broken=True)) == [0, 1, 2, 3, 4, 5, *range(9, 18)]


def test_the_end_may_be_in_the_middle_of_being_written(written: Written) -> None:
    written.batch()
    last = written.batch()
    data = written.log.read_bytes()
    written.log.write_bytes(data[: last + 30])
    assert offsets(written) == [0, 1, 2]
    written.log.write_bytes(data[:last] + bytes(1000))
    assert offsets(written) == [0, 1, 2]


def test_a_wrong_crc_is_an_error_where_it_is_asked_for(written: Written) -> None:
    written.batch()
    place = written.batch()
    written.batch()
    data = bytearray(written.log.read_bytes())
    data[place + 17] ^= 1
    written.log.write_bytes(bytes(data))
    assert offsets(written) == list(range(9))
    with pytest.raises(BrokenLog, match=f"CRC of the batch at position {place}"):
        offsets(written, options=Options(verify_crc=True))
    assert offsets(written, options=Options(verify_crc=True, skip_broken=True)) == [0, 1, 2, 6, 7, 8]


def test_a_url_is_read_as_a_path_is(written: Written) -> None:
    for n in range(10):
        if n == 5:
            written.roll()
        written.batch()
    directory = Directory(f"file://{written.root}")
    slices = list(directory.slices(directory.segments("t", 0), Bounds(4, 20), 200))
    assert list(offsets_of(directory, slices)) == list(range(4, 21))


def test_names_of_headers_that_are_not_utf_8_are_read_as_consumers_read_them(written: Written) -> None:
    made = [Record(None, b"v", 1000, n, [(name, b"1")]) for n, name in enumerate(("a", "xyz"))]
    whole = records.encode(made, Template(base_offset=0)).replace(b"xyz", b"\xffyz")
    written.log.write_bytes(whole)
    directory = Directory(str(written.root))
    schema = pa.schema([("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))])
    (part,) = directory.slices(directory.segments("t", 0), Bounds(), 1 << 30)
    (batch,) = reading.records(directory, part, schema, Options())
    names = [header["key"] for headers in batch.column("headers").to_pylist() for header in headers]
    assert names == ["a", "\ufffdyz"]


def test_a_file_that_is_cut_while_it_is_read_does_not_end_the_process(written: Written) -> None:
    """As memory that is mapped to it would."""
    written.batch(1000)
    size = written.log.stat().st_size
    program = (
        "import os, sys; from ottla.pipeline.files import Files; root, name, size = sys.argv[1:];"
        "data, _ = Files(root).part(name, 0, int(size)); os.truncate(f'{root}/{name}', 0); print(len(bytes(data)))"
    )
    command = [sys.executable, "-c", program, str(written.directory), written.log.name, str(size)]
    assert size > os.sysconf("SC_PAGE_SIZE")
    assert int(subprocess.run(command, check=True, capture_output=True, timeout=120).stdout) == size


def test_times_that_no_timestamp_of_spark_can_hold_are_null(written: Written) -> None:
    """A producer may give them in nanoseconds; a task must not take them for others."""
    in_ns = 1_700_000_000_000_000_000
    made = [Record(None, b"v", at, n) for n, at in enumerate((in_ns, -1, -in_ns, TIME_MAX_MS, TIME_MAX_MS + 1))]
    for one in made:
        with written.log.open("ab") as file:
            file.write(records.encode([one], Template(base_offset=one.offset)))
    written.log.with_suffix(".timeindex").write_bytes(in_ns.to_bytes(8, "big") + bytes(4))
    directory = Directory(str(written.root))
    (segment,) = directory.segments("t", 0)
    (part,) = directory.slices([segment], Bounds(), 1 << 30)
    expected = [None, -1000, None, TIME_MAX_MS * 1000, None]
    for read, names in ((reading.records, ["timestamp"]), (reading.batches, ["baseTimestamp", "maxTimestamp"])):
        for name in names:
            (batch,) = pa.Table.from_batches(read(directory, part, pa.schema({name: INSTANT}), Options())).to_batches()
            assert batch.column(0).cast(pa.int64()).to_pylist() == expected
    (batch,) = indexes.rows(directory, segment, pa.schema({"timestamp": INSTANT}), Options())
    assert batch.column(0).to_pylist() == [None]


def test_a_path_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert is_directory(str(tmp_path))
    assert is_directory("s3://bucket/data")
    assert not is_directory(str(tmp_path / "file"))
    assert not is_directory(str(tmp_path / "nowhere"))


def test_a_segment_is_compared_with_its_indexes_in_windows(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros after the last batch of a log that is written were allocated in advance."""
    for n in range(9):
        written.batch(1 + n)
    monkeypatch.setattr(directories, "WINDOW_BYTES", 150)
    directory = Directory(str(written.root))
    (segment,) = directory.segments("t", 0)
    table = reading.whole_table(directory, segment)
    assert table is not None
    assert table["position"].tolist() == [one.position for one in records.batches(written.log.read_bytes())]
    with written.log.open("ab") as file:
        file.write(bytes(200_000))
    with_zeros = reading.whole_table(directory, segment)
    assert with_zeros is not None
    assert len(with_zeros) == 9
    assert reading.whole_table(directory, replace(segment, next_base_offset=100)) is None
    with written.log.open("ab") as file:
        file.write(b"\1")
    assert reading.whole_table(directory, segment) is None


def test_what_is_no_data_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        _ = Directory(str(tmp_path / "nowhere")).partitions
    with pytest.raises(ValueError, match="no partition"):
        _ = Directory(str(tmp_path)).partitions
    (tmp_path / "t-0").mkdir()
    with pytest.raises(ValueError, match="does not contain the topics other"):
        Directory(str(tmp_path)).chosen(["other"])
    assert Directory(str(tmp_path)).segments("t", 0) == []
    assert Directory(str(tmp_path)).end_offset("t", 0) == -1


@pytest.mark.parametrize("view", ["records", "evidence", "index"])
def test_little_is_read_by_one_task(written: Written, view: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task takes longer than a MiB of a log."""
    for _ in range(8):
        written.batch()
        written.roll()
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    options = {"path": str(written.root), "view": view, "verifyIndex": "true"}

    def tasks(**chosen: str) -> int:
        planner = Planner(Source.of({**options, **chosen}))
        return len(planner.tasks((*one, Bounds()) for one in planner.partitions()))

    assert tasks() == 1
    assert tasks(minPartitions="3") == 3
    with written.log.open("ab") as file:
        file.truncate(TASK_BYTES_MIN * 3 // 2)
    assert tasks() == 2
    planner = Planner(Source.of(options))
    assert [planner.task_count(size) for size in (0, 3 * TASK_BYTES_MIN, 1 << 30, 7 << 30)] == [1, 3, 4, 7]


def test_long_segments_are_read_in_parts_that_memory_is_kept_for(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few tasks there are."""
    for _ in range(80):
        written.batch()
    size = written.log.stat().st_size
    for name, bytes_ in (("SLICE_BYTES_MIN", 1), ("SLICE_BYTES_MAX", size // 20)):
        monkeypatch.setattr(sources, name, bytes_)
    (task,) = LogReader(Source.of({"path": str(written.root), "minPartitions": "1"}), StructType()).partitions()
    assert max(one.end - one.start for one in task.items if isinstance(one, Slice)) < size // 10


def test_index_entries_against_the_batches_of_their_segment() -> None:
    """An entry is of one append, of one batch or several: its position is the first one's, its offset the last
    one's.
    """
    table = np.zeros(4, TABLE)
    table["position"], table["magic"] = [0, 100, 250, 300], records.MAGIC
    table["base_offset"], table["last_offset"], table["max_timestamp"] = (
        [10, 12, 15, 16],
        [11, 14, 15, 19],
        [70, 90, 80, 95],
    )

    def offsets(*entries: tuple[int, int]) -> list[bool]:
        offset, position = np.array(entries).T
        found: list[bool] = offsets_right(table, offset, position).tolist()
        return found

    assert offsets((14, 100), (19, 300)) == [True, True]
    assert offsets((15, 100), (19, 300)) == [True, True]  # an append of two batches
    assert offsets((19, 100), (19, 300)) == [False, True]  # that end lies after the next entry
    assert offsets((13, 100), (19, 299)) == [False, False]  # no batch ends there, none begins there
    assert offsets((19, 300), (14, 100)) == [True, True]  # whatever their order
    assert offsets((11, 100)) == [False]  # it ends before

    def times(*entries: tuple[int, int]) -> list[bool]:
        timestamp, offset = np.array(entries).T
        found: list[bool] = times_right(table, timestamp, offset).tolist()
        return found

    assert times((70, 11), (90, 12), (90, 14), (95, 18)) == [True] * 4
    assert times((70, 12), (80, 14), (96, 19), (95, 20), (70, 9)) == [False] * 5
    table["magic"], table["attributes"] = 1, 3  # of an old compressed set only the last offset is known
    assert times((70, 9), (70, 12)) == [True, False]
    assert times_right(table[:0], np.array([1]), np.array([1])).tolist() == [False]


def test_a_log_may_grow_while_its_indexes_are_compared_with_it(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An entry for a batch that came after the log was read contradicts nothing."""
    written.batch()
    written.batch()
    part = Files.part

    def growing(files: Files, name: str, start: int, end: int) -> Any:
        found = part(files, name, start, end)
        written.batch()
        return found

    monkeypatch.setattr(Files, "part", growing)
    directory = Directory(str(written.root))
    (segment,) = directory.segments("t", 0)
    assert list(evidence.rows(directory, segment, pa.schema([("detail", pa.string())]), Options())) == []
    errors = pa.schema([("error", pa.string())])
    (rows,) = indexes.rows(directory, segment, errors, Options(against_log=True))
    assert rows["error"].to_pylist() == [None] * 5  # two offsets and three times


def test_a_log_may_grow_while_its_end_is_compared_with_its_high_watermark(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    written.batch()
    marks = written.root / "replication-offset-checkpoint"
    end_offset = Directory.end_offset

    def growing(directory: Directory, topic: str, partition: int) -> int:
        end = end_offset(directory, topic, partition)
        written.batch()
        marks.write_text(f"0\n1\nt 0 {written.offset}\n")
        return end

    monkeypatch.setattr(Directory, "end_offset", growing)
    schema = pa.schema({"kind": pa.string()})
    batches = evidence.rows(Directory(str(written.root)), ("t", 0), schema, Options())
    assert [row["kind"] for batch in batches for row in batch.to_pylist()] == [evidence.MARKS]
    monkeypatch.undo()
    marks.write_text(f"0\n1\nt 0 {written.offset + 1}\n")
    batches = evidence.rows(Directory(str(written.root)), ("t", 0), schema, Options())
    assert [row["kind"] for batch in batches for row in batch.to_pylist()] == ["end", evidence.MARKS]


def test_a_filter_leaves_the_list_of_files_to_spark(written: Written) -> None:
    """Only what a view leaves out may be taken from Spark: the files are listed as a whole."""
    options = {"path": str(written.root), "pushdown": "true"}
    is_of_topic = EqualTo(("topic",), "other")
    schema = StructType([StructField("path", StringType())])
    files = FilteredLogReader(Source.of({**options, "view": "files"}), schema)
    assert list(files.pushFilters([is_of_topic])) == [is_of_topic]
    partitions = FilteredLogReader(Source.of({**options, "view": "partitions"}), schema)
    assert list(partitions.pushFilters([is_of_topic])) == []


def test_metadata_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    """In batch and as a stream; the snapshot's records have the last offset that is in it, whatever theirs are in its
    file.
    """
    partition = tmp_path / "__cluster_metadata-0"
    partition.mkdir()

    def write(name: str, base: int, values: list[bytes]) -> None:
        made = [Record(None, value, 1000, base + n) for n, value in enumerate(values)]
        (partition / name).write_bytes(records.encode(made, Template(base_offset=base)))

    schema = StructType([StructField("offset", LongType()), StructField("rawValue", BinaryType())])

    def read(**options: Any) -> list[tuple[int, bytes]]:
        source = Source.of(
            {"path": str(tmp_path), "view": "internal", **{name: str(value) for name, value in options.items()}}
        )
        batch, stream = LogReader(source, schema), LogStreamReader(source, schema)
        of_stream = stream.partitions(stream.initialOffset(), stream.now().offset())
        found = []
        for reader, tasks in ((batch, batch.partitions()), (stream, of_stream)):
            tables = [one for task in tasks for one in reader.read(task)]
            found.append([row for one in tables for row in zip(*one.to_pydict().values(), strict=True)])
        assert sorted(found[0]) == sorted(found[1]) or "endingOffsets" in options
        return sorted(found[0])

    log = [(10, b"k"), (11, b"l")]
    write("00000000000000000010.log", 10, [b"k", b"l"])
    assert read() == log
    write("00000000000000000012-0000000003.checkpoint", 0, [b"x", b"y", b"z"])
    assert read() == [*log, (11, b"x"), (11, b"y"), (11, b"z")], "what is before the log can be had only in a later one"
    write("00000000000000000010-0000000002.checkpoint", 0, [b"c", b"d"])
    write("00000000000000000004-0000000001.checkpoint", 0, [b"a"])
    assert read() == [(9, b"c"), (9, b"d"), *log]
    assert read(startingOffsets=10) == log
    assert read(endingOffsets=10) == [(9, b"c"), (9, b"d")]


@pytest.mark.parametrize(
    ("written", "holes", "entries"),
    [
        (b"12345678" * 3, 0, 3),
        (b"12345678" * 3, 10 << 20, 3),
        (b"12345678" * 20_000, 10 << 20, 20_000),
        (b"12345678" + bytes(300_000) + b"12345678", 0, 37_502),
        (b"12345678" + bytes(300_000), 0, 1),
        (b"1234567\0" * 2 + b"123", 0, 2),  # an entry that is not complete is not filled up
        (b"", 10 << 20, 0),
    ],
)
def test_an_index_without_the_zeros_after_it(tmp_path: Path, written: bytes, holes: int, entries: int) -> None:
    """Whether they were written or not."""
    path = tmp_path / "index"
    path.write_bytes(written)
    if holes:
        os.truncate(path, holes)
    found = Files(str(tmp_path)).entries("index", 8)
    assert found == (written + bytes(holes))[: len(found)]
    assert len(found) // 8 == entries
    assert Files(f"file://{tmp_path}").entries("index", 8) == found
    assert Files(str(tmp_path)).entries("nowhere", 8) == b""
