"""The data source in a session: what it reads is what clients read, in batch and as a stream."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from ottla.pipeline import jobs, near
from ottla.pipeline.daemon import SOURCE, installed
from ottla.pipeline.java import check_java, class_archive
from ottla.pipeline.options import Source
from ottla.pipeline.views import VIEWS
from pyspark.sql.functions import count
from pyspark.sql.functions import sum as sum_

from ..support.poll import until
from .conftest import Told
from .story import CODECS, READ

pytestmark = pytest.mark.slow


def log(spark: Any, served: Told, **options: Any) -> Any:
    reader = spark.read.format("kafka-log").option("path", served.path)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader


def rows(frame: Any) -> list[tuple[Any, ...]]:
    wanted = frame.selectExpr("partition", "offset", "unix_millis(timestamp)", "key", "value", "headers").collect()

    def plain(one: bytearray | None) -> str | None:
        return None if one is None else one.decode()

    found = [(r[0], r[1], r[2], plain(r[3]), plain(r[4]), [(h.key, plain(h.value)) for h in r[5]]) for r in wanted]
    return sorted(found, key=lambda row: row[:2])


@pytest.mark.parametrize("topic", READ)
def test_what_a_committed_read_gives_is_what_clients_read(spark: Any, told: Told, topic: str) -> None:
    assert rows(
        log(spark, told, topic=topic, isolation="read_committed", verifyCrc="true", minPartitions=3).load()
    ) == told.read(topic)


def test_every_codec_is_read_of_every_kind_of_producer(spark: Any, told: Told) -> None:
    """Whose records are those above: idempotent, transactional and neither."""
    frame = log(spark, told, topic="codecs,mixed").load().where("NOT control")
    kinds = frame.selectExpr("codec", "producerId >= 0 AS idempotent", "transactional").distinct().collect()
    assert {tuple(row) for row in kinds} == {
        (codec, *kind) for codec in CODECS for kind in ((True, False), (True, True), (False, False))
    }


@pytest.mark.parametrize("name", ["before", "after"])
def test_compacted_topics_are_what_clients_read(spark: Any, archive: Path, recorded: Told, name: str) -> None:
    truth = recorded.truth["compacted"]["records"][name]
    for topic, records in truth.items():
        there = Told(str(archive / name), {"records": {topic: records}})
        assert rows(log(spark, there, topic=topic, isolation="read_committed").load()) == there.read(topic)


def test_markers_and_aborted_records_are_there_for_who_wants_all(spark: Any, served: Told) -> None:
    frame = log(spark, served, topic="exact").load()
    assert [tuple(r) for r in frame.groupBy("control").count().orderBy("control").collect()] == [(False, 70), (True, 6)]
    assert frame.where("transactional and producerId >= 0 and producerEpoch >= 0").count() == 76


def test_two_queries_over_one_frame_do_not_disturb_each_other(spark: Any, served: Told) -> None:
    frame = log(spark, served, topic="codecs").load()
    both = frame.where("partition = 0").union(frame.where("partition = 1 and offset >= 10"))
    wanted = [row for row in served.read("codecs") if row[0] == 0 or (row[0] == 1 and row[1] >= 10)]
    assert rows(both) == wanted
    assert frame.count() == len(CODECS) * 600


def test_ranges_by_option_and_by_filter(spark: Any, served: Told) -> None:
    wanted = [row for row in served.read("codecs") if row[0] == 1 and 100 <= row[1] < 150]
    assert wanted
    assert (
        rows(log(spark, served, topic="codecs", partition=1, startingOffsets=100, endingOffsets=150).load()) == wanted
    )
    per_partition = {
        "startingOffsets": '{"codecs": {"0": -1, "1": 100, "2": -1}}',
        "endingOffsets": '{"codecs": {"1": 150}}',
    }
    assert rows(log(spark, served, topic="codecs", **per_partition).load()) == wanted
    pushed = log(spark, served, topic="codecs", pushdown="true").load()
    assert rows(pushed.where("partition = 1 and offset >= 100 and offset < 150")) == wanted
    times = sorted(row[2] for row in served.read("codecs"))
    first, last = times[500], times[2500]
    wanted = [row for row in served.read("codecs") if first <= row[2] < last]
    assert rows(log(spark, served, topic="codecs", startingTimestamp=first, endingTimestamp=last).load()) == wanted


@pytest.mark.parametrize("view", VIEWS)
def test_every_column_says_what_it_means(spark: Any, served: Told, view: str) -> None:
    log(spark, served, view=view).load().createOrReplaceTempView("described")
    found = spark.sql("DESCRIBE described").collect()
    assert [(row["col_name"], row["comment"]) for row in found] == [(one.name, one.meaning) for one in VIEWS[view]]


@pytest.mark.parametrize("limit", ["ITEMS_MAX", "BYTES_MAX", "TABLE_BYTES_MAX"])
def test_what_is_little_is_read_here_as_the_source_reads_it(
    spark: Any, archive: Path, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what is not, by the source, which is registered then."""
    registered: list[Any] = []
    monkeypatch.setattr(jobs, "register", registered.append)
    source = jobs.Input(spark, str(archive / "story"), near=True)
    here = source.read("records", topic="codecs", partition="0")
    assert registered == []
    monkeypatch.setattr(near, limit, 0)
    other = jobs.Input(spark, source.path, near=True)
    there = [other.read("records", topic="codecs", partition="0") for _ in range(2)]
    assert registered == [spark]
    assert here.dtypes == there[0].dtypes
    assert here.orderBy("offset").collect() == there[0].orderBy("offset").collect()


def test_a_schema_is_a_projection(spark: Any, served: Told) -> None:
    frame = (
        log(spark, served, topic="codecs").schema("valueSize int, codec string, batchOffset long, position long").load()
    )
    assert frame.columns == ["valueSize", "codec", "batchOffset", "position"]
    counted = {r[0]: (r[1], r[2]) for r in frame.groupBy("codec").agg(count("*"), sum_("valueSize")).collect()}
    assert set(counted) == set(
        CODECS
    )  # how many of each is librdkafka's choice: what does not get smaller it does not compress
    values = [row[4] for row in served.read("codecs")]
    assert sum(one[0] for one in counted.values()) == len(values)
    assert sum(one[1] for one in counted.values()) == sum(len(value) for value in values if value is not None)


def test_batches_and_indexes(spark: Any, served: Told) -> None:
    batches = log(spark, served, topic="codecs", view="batches").load()
    assert batches.where("not crcValid or error is not null").count() == 0
    assert batches.selectExpr("sum(recordCount)", "sum(lastOffset - baseOffset + 1)").collect()[0][:] == (3000, 3000)
    index = log(spark, served, topic="codecs,exact", view="index").load()
    assert index.where("kind = 'transaction'").count() == 3
    entries = index.where("kind = 'offset'").selectExpr(
        "topic", "partition", "segment", "position", "offset as lastOffset"
    )
    assert entries.count() > 10
    everything = log(spark, served, view="batches", topic="codecs,exact").load()
    assert (
        entries.join(everything, ["topic", "partition", "segment", "position", "lastOffset"]).count() == entries.count()
    )


@pytest.mark.parametrize("view", ["records", "batches"])
def test_a_stream_goes_on_where_its_checkpoint_is(spark: Any, served: Told, tmp_path: Path, view: str) -> None:
    """In small steps, stopped after some of them, and begun again: each row once."""
    column = "offset" if view == "records" else "lastOffset"

    def begin(limit: int) -> Any:
        source = (
            spark.readStream.format("kafka-log")
            .option("path", served.path)
            .option("topic", "codecs")
            .option("view", view)
        )
        frame = source.option("maxOffsetsPerTrigger", limit).load().selectExpr("partition", f"{column} as at")
        writer = frame.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint")).format("parquet")
        return writer.option("path", str(tmp_path / "out"))

    first = begin(700).trigger(processingTime="0 seconds").start()

    def has_two_batches() -> bool:
        first.awaitTermination(0.1)
        return bool(first.lastProgress) and first.lastProgress["batchId"] >= 1

    until(has_two_batches, "the stream writes two batches", within=300)
    first.stop()
    begin(900).trigger(availableNow=True).start().awaitTermination()
    found = sorted((r[0], r[1]) for r in spark.read.parquet(str(tmp_path / "out")).collect())
    whole = log(spark, served, topic="codecs", view=view).load()
    assert found == sorted((r[0], r[1]) for r in whole.select("partition", column).collect())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"view": "pictures"}, "view must be one of"),
        ({"isolation": "serializable"}, "isolation must be one of"),
        ({"startingOffsets": "soon"}, "startingOffsets must be a number"),
        ({"endingOffsets": "{1"}, "endingOffsets must be a number or JSON like"),
        ({"partition": "x"}, "partition must be a number"),
    ],
)
def test_an_option_that_is_none(options: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Source.of({"path": "logs", **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "nothing"}, "does not contain the topics nothing"),
        ({"partition": "x"}, "partition must be a number"),
        ({"path": "/nowhere/at/all"}, "/nowhere/at/all"),
    ],
)
def test_what_is_wrong_is_said(spark: Any, served: Told, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        log(spark, served, **options).load().count()


def test_workers_import_what_is_installed_and_not_the_archive_of_its_sources(spark: Any) -> None:
    def imported(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        import pyspark  # of the worker

        loaded = SOURCE in sys.modules
        assert sum(batch.num_rows for batch in batches) == 1
        yield pa.RecordBatch.from_pydict({"file": [str(pyspark.__file__)], "loaded": [loaded]})

    (row,) = spark.range(0, 1, 1, 1).mapInArrow(imported, "file string, loaded boolean").collect()
    assert row.file == pyspark.__file__
    assert row.loaded, "by the daemon"
    elsewhere = ["", "lib", "/spark/python/lib/pyspark.zip"]
    assert installed([str(Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"), *elsewhere]) == elsewhere


def test_a_daemon_has_one_thread_although_it_imports_what_workers_need() -> None:
    """A fork has only the thread that forks: locks of others would stay locked in it."""
    program = (
        "import os, sys; from ottla.pipeline import daemon; daemon.preload('pyspark.sql.worker.plan_data_source_read');"
        f"assert {SOURCE!r} in sys.modules; assert 'pyarrow' in sys.modules;"
        "print(*[open(f'/proc/self/task/{one}/comm').read() for one in os.listdir('/proc/self/task')], sep='')"
    )
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=120)
    assert len(ran.stdout.split()) == 1, ran.stdout


def test_java_that_is_not_there_or_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match="needs Java 17 or newer: JAVA_HOME is"):
        check_java()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(RuntimeError, match="is version 8"):
        check_java()


def test_classes_are_taken_from_an_archive_once_there_is_one(spark: Any, tmp_path: Path) -> None:
    """With it, the archive that was used last stays."""
    jars, cache = tmp_path / "jars", tmp_path / "cache"
    jars.mkdir()
    assert class_archive(cache, jars, create=False) == ""
    made = re.search(r'-XX:ArchiveClassesAtExit="(.+)"', class_archive(cache, jars))
    assert made is not None
    archive = Path(made[1])
    archive.write_bytes(b"of Java")
    assert class_archive(cache, jars).endswith(f'-XX:SharedArchiveFile="{archive}"')
    for n, name in enumerate(("spark-older.jsa", "spark-old.jsa")):
        (cache / name).write_bytes(b"")
        os.utime(cache / name, (1000 + n, 1000 + n))
    (jars / "another.jar").write_bytes(b"")
    os.utime(jars, (1, 1))
    assert "-XX:ArchiveClassesAtExit" in class_archive(cache, jars)
    assert list(cache.iterdir()) == [archive]
    assert class_archive(archive / "below a file", jars) == class_archive(cache, tmp_path / "no jars") == ""
