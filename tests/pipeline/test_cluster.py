"""Beyond one machine: object storage, a cluster of Spark, and plans for a terabyte."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from ottla.pipeline import reading
from ottla.pipeline.committed import committed
from ottla.pipeline.directory import Bounds, Directory, Slice
from ottla.pipeline.files import Files
from ottla.pipeline.options import Source
from ottla.pipeline.source import TASK_BYTES_MAX, Planner

from ottla.cli import main

from . import cluster

SCHEMA = pa.schema([("offset", pa.int64()), ("value", pa.binary())])


def everything(root: str) -> dict[str, Any]:
    """What a directory says of its partitions, with all records."""
    directory, told = Directory(root), {}
    for topic, number in directory.partitions:
        segments = directory.segments(topic, number)
        slices = directory.slices(segments, Bounds(), 4096, committed(directory, topic, number).aborted)
        rows = [
            batch.to_pylist() for one in slices for batch in reading.records(directory, one, SCHEMA, reading.Options())
        ]
        told[f"{topic}-{number}"] = (
            [(one.base_offset, one.size) for one in segments],
            directory.end_offset(topic, number),
            committed(directory, topic, number).last_stable_offset,
            directory.topic_id(topic, number),
            rows,
        )
    return told


@pytest.mark.slow
def test_object_storage_reads_as_a_path_does(in_s3: cluster.Stored, archive: Path) -> None:
    assert everything(in_s3.url) == everything(str(archive / "story"))
    with pytest.raises(FileNotFoundError):
        _ = Directory(f"s3://{cluster.BUCKET}/nowhere").partitions


@pytest.mark.slow
def test_a_job_runs_on_the_workers_of_a_cluster(on_a_cluster: cluster.Job, spark: Any, archive: Path) -> None:
    """It reads object storage, and reports what it reports of the same files on one machine."""
    assert on_a_cluster.exit_code == 0, on_a_cluster.errors
    here = CliRunner().invoke(main, ["pipeline", "lag", str(archive / "story"), "--format", "json"])
    told, expected = (sorted(text.splitlines()) for text in (on_a_cluster.output, here.stdout))
    assert told == expected
    assert any(json.loads(line)["table"] == "history" for line in told)
    assert on_a_cluster.executors == [1] * cluster.WORKERS


class Terabyte(Files):
    """100,000 segments of 10 MiB in 100 partitions, of which nothing exists but the names. No index is needed: no
    segment is cut into two.
    """

    SEGMENTS, PARTITIONS, EACH = 1_000, 100, 10 << 20

    def of_kind(self, directory: str, kind: str) -> list[str]:
        if not directory:
            return [f"big-{number}" for number in range(self.PARTITIONS)] if kind == "directory" else []
        return [f"{base * 160:020d}.log" for base in range(self.SEGMENTS)] if kind == "file" else []

    def size(self, name: str) -> int:
        return self.EACH

    def entries(self, name: str, entry_bytes: int) -> bytes:
        raise AssertionError(f"{name} was read")


@pytest.mark.slow
def test_the_plan_for_a_terabyte_is_small() -> None:
    """No task reads much more than its limit, what it takes to say so is some 100 bytes a segment, and each byte is
    read once.
    """
    planner = Planner(Source.of({"path": os.devnull, "minPartitions": "2"}))
    planner.directory.files = Terabyte(os.devnull)
    tasks = planner.tasks((topic, number, Bounds()) for topic, number in planner.partitions())
    total = Terabyte.SEGMENTS * Terabyte.PARTITIONS * Terabyte.EACH
    sizes = [sum(one.end - one.start for one in task.items if isinstance(one, Slice)) for task in tasks]
    assert sum(sizes) == total
    assert len(tasks) == -(-total // TASK_BYTES_MAX)
    assert max(sizes) <= TASK_BYTES_MAX + Terabyte.EACH
    assert sum(len(pickle.dumps(task)) for task in tasks) < 200 * Terabyte.SEGMENTS * Terabyte.PARTITIONS
