"""What goes out of a directory and into a broker: exports that were killed, loads, live readers and writers, and what
differs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from ottla.pipeline import wire as wires
from ottla.pipeline.jobs import diff, load
from ottla.pipeline.jobs import export as job
from ottla.pipeline.jobs.export import dated, export
from ottla.pipeline.jobs.specification import expression, parse
from ottla.protocol import records
from ottla.protocol.records import Record, Template
from pyspark.sql.types import LongType, StructField, StructType

from ottla.testing import Broker

from . import apart
from .conftest import Told
from .logs import Written

pytestmark = pytest.mark.slow
SPECIFICATION = """
topics:
  orders:
    partitions: 3
    records: 300
    key: order-{n % 10}
    value: '{"id": {n}, "tens": {n // 10}}'
    headers: {source: load}
    codec: lz4
  bulk:
    records: 50
    size: 700
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


def wire(spark: Any, broker: Broker, **options: Any) -> Any:
    return (
        spark.read.format("kafka-wire")
        .options(**{"kafka.bootstrap.servers": broker.bootstrap_servers, **options})
        .load()
    )


# export


def test_an_export_that_is_killed_goes_on(spark: Any, killed_export: Path, recorded: Told) -> None:
    """Killed when it has written some of its batches, and done again."""
    assert apart.commits(killed_export) >= 2
    goes_on(spark, killed_export, recorded)


def test_an_export_that_fails_goes_on(
    spark: Any, recorded: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends within its third batch. Of the second all is written but that it is done, as if it was killed between;
    a file of the third is not complete.
    """

    def fails(frame: Any) -> Any:
        if apart.commits(tmp_path) == 2:
            raise OSError("the disk is full")
        return dated(frame)

    monkeypatch.setattr(job, "dated", fails)
    with pytest.raises(Exception, match="the disk is full"):
        export(spark, recorded.path, apart.TOPICS, str(tmp_path), apart.OFFSETS_PER_BATCH)
    monkeypatch.undo()
    assert apart.commits(tmp_path) == 2
    for name in ("1", ".1.crc"):
        (tmp_path / job.CHECKPOINT / "commits" / name).unlink()
    written = next(tmp_path.glob("topic=codecs/*/batch=1/*.parquet"))
    started = tmp_path / "_temporary" / "0" / written.name
    started.parent.mkdir(parents=True)
    started.write_bytes(written.read_bytes()[:100])
    goes_on(spark, tmp_path, recorded)


def goes_on(spark: Any, begun: Path, recorded: Told) -> None:
    """Every committed record is exported once, for any reader of Parquet."""
    again = (spark, recorded.path, apart.TOPICS, str(begun), apart.OFFSETS_PER_BATCH)
    written = export(*again)
    found = spark.read.parquet(str(begun))
    assert set(found.columns) >= {"topic", "date", "batch", "value"}
    rows = [tuple(row) for row in found.selectExpr("topic", "partition", "offset", "cast(value as string)").collect()]
    wanted = [(topic, row[0], row[1], row[4]) for topic in ("codecs", "exact") for row in recorded.read(topic)]
    assert sorted(rows, key=lambda row: row[:3]) == wanted
    assert 0 < written < len(wanted)
    assert export(*again) == 0


def test_an_export_of_a_topic_that_was_made_again(spark: Any, tmp_path: Path) -> None:
    """It fails, or goes on from the beginning, as its user says."""
    out = str(tmp_path / "out")
    for batches in (2, 1):
        shutil.rmtree(tmp_path / "t-0", ignore_errors=True)
        written = Written(tmp_path)
        written.batch(batches=batches)
        if batches == 2:
            assert export(spark, str(tmp_path), "t", out, 100) == 6
    with pytest.raises(Exception, match="records may be lost: t-0 ends at offset 3, and was read up to 6"):
        export(spark, str(tmp_path), "t", out, 100)
    assert export(spark, str(tmp_path), "t", out, 100, fail_on_data_loss=False) == 3


def test_an_export_of_a_topic_that_is_not_there_begins_nothing(spark: Any, tmp_path: Path) -> None:
    Written(tmp_path).batch()
    with pytest.raises(ValueError, match=r"does not contain the topics typo$"):
        export(spark, str(tmp_path), "t, typo", str(tmp_path / "out"), 100)
    assert not (tmp_path / "out").exists()


# load, and the live table


def test_a_load_without_a_broker_says_so(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "REACHED_S", 0.2)
    with pytest.raises(RuntimeError, match=r"^127\.0\.0\.1:1: .*Broker transport failure"):
        load.load(spark, parse("topics: {orders: {records: 1, value: x}}"), "127.0.0.1:1")


def test_a_load_is_what_its_specification_says(spark: Any, broker: Broker) -> None:
    topics = parse(SPECIFICATION)
    assert load.load(spark, topics, broker.bootstrap_servers) == 350
    rows = (
        wire(spark, broker, topic="orders")
        .selectExpr("cast(key as string) k", "cast(value as string) v", "headers", "partition")
        .collect()
    )
    assert sorted(json.loads(row.v)["id"] for row in rows) == list(range(300))
    assert all(
        row.k == f"order-{json.loads(row.v)['id'] % 10}" and json.loads(row.v)["tens"] == json.loads(row.v)["id"] // 10
        for row in rows
    )
    assert {(row.headers[0].key, bytes(row.headers[0].value)) for row in rows} == {("source", b"load")}
    by_key: dict[str, set[int]] = {row.k: set() for row in rows}
    for row in rows:
        by_key[row.k].add(row.partition)
    assert all(len(partitions) == 1 for partitions in by_key.values()), "a key has its partition"
    sizes = wire(spark, broker, topic="bulk").select("valueSize").collect()
    assert [row.valueSize for row in sizes] == [700] * 50


def test_a_rate_is_kept(spark: Any, broker: Broker) -> None:
    """By the timestamps of the records: nothing is faster than it may be."""
    (topic,) = parse("topics: {slow: {records: 40, value: '{n}'}}")
    load.load(spark, [topic], broker.bootstrap_servers, rate=100)
    times = sorted(row.timestamp.timestamp() for row in wire(spark, broker, topic="slow").select("timestamp").collect())
    assert times[-1] - times[0] > 0.3


def test_the_live_table_is_that_of_the_directory(spark: Any, broker: Broker) -> None:
    load.load(
        spark,
        parse("topics: {live: {partitions: 2, records: 500, key: '{n}', value: 'v{n}', headers: {a: b}}}"),
        broker.bootstrap_servers,
    )
    columns = (
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "key",
        "value",
        "headers",
        "keySize",
        "valueSize",
        "leaderEpoch",
    )
    live = wire(spark, broker, topic="live").select(*columns)
    logs = spark.read.format("kafka-log").options(path=str(broker.data_directory), topic="live").load().select(*columns)
    assert live.exceptAll(logs).count() == 0
    assert live.count() == logs.count() == 500
    part = wire(
        spark, broker, topic="live", startingOffsets='{"live": {"0": 10, "1": -1}}', endingOffsets='{"live": {"0": 20}}'
    )
    assert sorted((row.partition, row.offset) for row in part.collect()) == [(0, n) for n in range(10, 20)]


def test_a_stream_from_topic_to_topic(spark: Any, broker: Broker, tmp_path: Path) -> None:
    load.load(
        spark,
        parse(
            "topics: {source: {partitions: 2, records: 600, key: '{n}', value: 'v{n}'}, target: {records: 0, size: 1}}"
        ),
        broker.bootstrap_servers,
    )
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "source", "maxOffsetsPerTrigger": "250"}
    stream = (
        spark.readStream.format("kafka-wire").options(**options).load().selectExpr("key", "concat(value, '!') as value")
    )
    writer = stream.writeStream.format("kafka-wire").options(
        **{"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "target"}
    )
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    assert len([one for one in query.recentProgress if one["numInputRows"]]) == 3
    rows = wire(spark, broker, topic="target").selectExpr("cast(key as string)", "cast(value as string)").collect()
    assert sorted(tuple(row) for row in rows) == sorted((f"{n}", f"v{n}!") for n in range(600))


def test_a_live_stream_goes_on_with_the_first_record_that_is_left(broker: Broker) -> None:
    """Retention may delete records between the plan and the task that reads them, too."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for n in range(6):
        producer.produce("aged", str(n))
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    (deleted,) = admin.delete_records([TopicPartition("aged", 0, 4)]).values()
    assert deleted.result().low_watermark == 4
    given = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "aged"}
    columns = StructType([StructField("offset", LongType())])
    fails = wires.WireStreamReader(wires.Broker.of(given), columns)
    (task,) = fails.partitions({"aged-0": 0}, {"aged-0": 6})
    with pytest.raises(KafkaException, match="out of range"):
        list(fails.read(task))
    goes_on = wires.WireStreamReader(wires.Broker.of({**given, "failOnDataLoss": "false"}), columns)
    assert [n for batch in goes_on.read(task) for n in batch.column("offset").to_pylist()] == [4, 5]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"topic": "nowhere"}, "topic nowhere"),
        ({}, "needs the option `topic`"),
        ({"topic": "t", "kafka.bootstrap.servers": ""}, "bootstrap.servers"),
    ],
)
def test_what_a_live_reader_cannot_do_is_said(spark: Any, broker: Broker, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        wire(spark, broker, **options).count()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "not YAML"),
        ("a: 1", "needs `topics`"),
        ("topics: {a: 1}", "topics.a: must be a mapping"),
        ("topics: {a: {records: 1, size: 2, colour: red}}", "unknown keys: colour"),
        ("topics: {a: {records: many, size: 2}}", "topics.a.records: must be a number"),
        ("topics: {a: {records: 1}}", "either `value` or `size`"),
        ("topics: {a: {records: 1, size: 1, codec: rar}}", "topics.a.codec"),
        ("topics: {a: {records: 1, value: {n}}}", "put it into quotes"),
        ("topics: {a: {records: 1, size: 1, headers: [x]}}", "must be a mapping from names to values"),
    ],
)
def test_a_specification_that_is_none(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_a_template_is_filled_by_sql(spark: Any) -> None:
    made = (
        spark.range(12, 13)
        .withColumnRenamed("id", "n")
        .selectExpr(expression("it's {n}, \\{n % 5}{n // 5} {m}"))
        .first()[0]
    )
    assert made == "it's 12, \\22 {m}"


# diff


def test_a_directory_does_not_differ_from_itself(spark: Any, archive: Path) -> None:
    path = str(archive / "story")
    assert diff.report(spark, path, path).tables["differences"].collect() == []


def test_what_two_directories_have_different(spark: Any, archive: Path) -> None:
    """The same topic before and after the cleaner came: what it took is missing on one side, and nothing else
    differs.
    """
    rows = (
        diff.report(spark, str(archive / "before"), str(archive / "after"), ["leaderEpoch"], "compacted")
        .tables["differences"]
        .collect()
    )
    assert {row.field for row in rows} == {"record"}
    assert all((row.left, row.right) == ("there", None) for row in rows)
    assert len(rows) == 492 - 132


def test_values_that_have_the_same_text_or_that_spark_cannot_hold_differ(spark: Any, tmp_path: Path) -> None:
    """Timestamps in nanoseconds are after the last one that Spark knows, bytes are shown in hexadecimal, and in October
    there are two moments with the same hour.
    """
    first = [
        Record(b"k", b"\xff", 1_729_989_000_000, 0),
        Record(b"k", b"v", 1_700_000_000_000_000_000, 1, [("h", b"A")]),
    ]
    second = [
        Record(b"k", b"0xFF", 1_729_992_600_000, 0),
        Record(b"k", b"v", 1_700_000_000_000_000_001, 1, [("h=41 h", b"A")]),
    ]
    left, right = str(tmp_path / "left"), str(tmp_path / "right")
    for name, made in (("left", first), ("right", second)):
        (tmp_path / name).mkdir()
        written = Written(tmp_path / name)
        written.log.write_bytes(records.encode(made, Template(base_offset=0)))
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        found = diff.report(spark, left, right).tables["differences"].collect()
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert [(row.offset, row.field) for row in found] == [
        (0, "timestamp"), (0, "value"), (1, "headers"), (1, "timestamp")
    ]  # fmt: skip
    assert (found[-1].left, found[-1].right) == ("1700000000000000000 ms", "1700000000000000001 ms")
    assert diff.report(spark, left, right, ["timestamp", "value", "headers"]).tables["differences"].collect() == []


def test_what_two_request_logs_have_different(spark: Any, tmp_path: Path) -> None:
    paths = []
    for name in ("left", "right"):
        path = tmp_path / f"{name}.jsonl"
        with Broker({"ottla.request.log": path}) as broker:
            load.load(spark, parse("topics: {a: {records: 3, value: x}}"), broker.bootstrap_servers)
        paths.append(path)
    own = tmp_path / "changed.jsonl"
    lines = [json.loads(line) for line in paths[0].read_text().splitlines()]
    changed = next(line for line in lines if line["api"] == "CreateTopics" and line["direction"] == "reply")
    changed["message"]["topics"][0]["num_partitions"] = 77
    own.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (row,) = diff.report(spark, str(paths[0]), str(own)).tables["differences"].collect()
    assert (row.api, row.direction, row.number, row.field, row.left, row.right) == (
        "CreateTopics",
        "reply",
        1,
        "topics[0].num_partitions",  # which this version of the reply does not have
        "-1",
        "77",
    )
    assert diff.report(spark, str(paths[0]), str(own), ["num_partitions"]).tables["differences"].collect() == []
    fields = {row.field.split(".")[-1] for row in diff.report(spark, *map(str, paths)).tables["differences"].collect()}
    assert "topic_id" in fields, "ids are random"
    shutil.copy(paths[0], tmp_path / "other.txt")
    (tmp_path / "other.txt").write_text("no log\n")
    with pytest.raises(Exception, match="this line is not from a request log"):
        diff.report(spark, str(paths[0]), str(tmp_path / "other.txt")).tables["differences"].collect()


def test_a_request_log_of_clients_without_a_name_does_not_differ_from_itself(spark: Any, tmp_path: Path) -> None:
    line = {"client_id": None, "api": "Metadata", "direction": "request", "version": 1, "message": {"topics": ["a"]}}
    left, right = tmp_path / "left.jsonl", tmp_path / "right.jsonl"
    left.write_text(json.dumps(line) + "\n")
    assert diff.report(spark, str(left), str(left)).tables["differences"].collect() == []
    right.write_text(json.dumps({**line, "message": {"topics": ["b"]}}) + "\n")
    (row,) = diff.report(spark, str(left), str(right)).tables["differences"].collect()
    assert (row.client, row.field, row.left, row.right) == (None, "topics[0]", "a", "b")
