"""Where streams go on when logs are deleted, made again or cut; without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING
from ottla.pipeline.limits import Offsets, StreamOffset, within
from ottla.pipeline.options import Source
from ottla.pipeline.source import LogStreamReader
from ottla.pipeline.wire import Broker, WireStreamReader
from ottla.storage.layout import PARTITION_METADATA
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from .logs import Written

SCHEMA = StructType([StructField("offset", LongType())])
FIRST_ID, SECOND_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
EVERYTHING = ReadAllAvailable()


@pytest.fixture
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def made_again(written: Written, batches: int, topic_id: str | None = None) -> Written:
    for path in written.directory.iterdir():
        path.unlink()
    written.directory.rmdir()
    again = Written(written.root)
    for _ in range(batches):
        again.batch()
    if topic_id is not None:
        name(again, topic_id)
    return again


def name(written: Written, topic_id: str) -> None:
    (written.directory / PARTITION_METADATA).write_text(f"version: 0\ntopic_id: {topic_id}\n")


class Stream:
    """A stream that Spark runs, step by step; its offset is in a checkpoint."""

    def __init__(self, written: Written, **options: str) -> None:
        self.options = {"path": str(written.root), **options}
        self.at = self.reader().initialOffset()

    def reader(self) -> LogStreamReader:
        return LogStreamReader(Source.of(self.options), SCHEMA)

    def step(self, limit: ReadLimit = EVERYTHING) -> list[int]:
        began, self.at = self.at, self.planned(limit)
        return self.read(began, self.at)

    def planned(self, limit: ReadLimit = EVERYTHING) -> StreamOffset:
        end: StreamOffset = json.loads(json.dumps(self.reader().latestOffset(self.at, limit)))
        return end

    def read(self, start: StreamOffset, end: StreamOffset) -> list[int]:
        reader = self.reader()
        found = [batch for task in reader.partitions(start, end) for batch in reader.read(task)]
        return [offset for batch in found for offset in batch.column("offset").to_pylist()]


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(5)])
@pytest.mark.parametrize("ends", [{"t-0": 10}, {}])
def test_limits_do_not_go_back_where_a_log_ends_before_the_stream(limit: ReadLimit, ends: Offsets) -> None:
    assert within({"t-0": 100}, ends, limit) == {"t-0": 100}
    assert within({"t-0": 100}, {**ends, "t-1": 3}, limit) == {"t-0": 100, "t-1": 3}


def test_a_stream_may_begin_after_the_end(written: Written) -> None:
    written.batch()
    stream = Stream(written, startingOffsets="5")
    assert stream.step() == []
    written.batch()
    written.batch()
    assert stream.step() == [5, 6, 7, 8]


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(2)])
@pytest.mark.parametrize("batches", [1, 3])
def test_a_log_that_was_made_again_is_an_error_or_read_from_its_beginning(
    written: Written, batches: int, limit: ReadLimit
) -> None:
    """Its topic has another id, even if its end is not before what was read."""
    name(written, FIRST_ID)
    written.batch(batches=2)
    stream = Stream(written)
    assert stream.step() == list(range(6))
    again = made_again(written, batches, SECOND_ID)
    with pytest.raises(ValueError, match=f"t-0 was made again, with the topic id {SECOND_ID} in place of {FIRST_ID}"):
        stream.step()
    stream.options["failOnDataLoss"] = "false"
    assert stream.step(limit) + stream.step() == list(range(3 * batches))
    again.batch()
    assert stream.step() == list(range(3 * batches, 3 * batches + 3))


def test_a_log_without_a_topic_id_was_made_again_if_it_ends_before_what_was_read(written: Written) -> None:
    written.batch(batches=2)
    stream = Stream(written)
    assert stream.step() == list(range(6))
    made_again(written, 1)
    with pytest.raises(ValueError, match="records may be lost: t-0 ends at offset 3, and was read up to 6"):
        stream.step()
    stream.options["failOnDataLoss"] = "false"
    assert stream.step() == [0, 1, 2]


def test_a_stream_whose_checkpoint_has_no_ids_goes_on(written: Written) -> None:
    """Earlier versions wrote none."""
    name(written, FIRST_ID)
    written.batch(batches=2)
    stream = Stream(written)
    stream.at = {"t-0": 3}
    assert stream.step() == [3, 4, 5]
    assert stream.at == {"t-0": 6, "topicIds": {"t-0": FIRST_ID}}


def test_a_log_that_was_deleted(written: Written) -> None:
    name(written, FIRST_ID)
    written.batch()
    (written.root / "other-0").mkdir()
    stream = Stream(written)
    assert stream.step() == [0, 1, 2]
    written.directory.rename(written.root / "gone")
    with pytest.raises(ValueError, match="t-0 was deleted"):
        stream.step()
    stream.options["failOnDataLoss"] = "false"
    assert stream.step() == []
    assert stream.at == {"t-0": 3, "topicIds": {"t-0": FIRST_ID}}


def test_a_topic_that_a_stream_names_was_deleted(written: Written) -> None:
    written.batch()
    (written.root / "other-0").mkdir()
    stream = Stream(written, topic="t,other")
    assert stream.step() == [0, 1, 2]
    written.directory.rename(written.root / "gone")
    with pytest.raises(ValueError, match=r"t-0 was deleted\. With the option failOnDataLoss=false, a stream goes on"):
        stream.step()
    stream.options["failOnDataLoss"] = "false"
    assert stream.step() == []
    stream.options["topic"] = "t,typo"
    with pytest.raises(ValueError, match="does not contain the topics typo"):
        stream.step()


def test_a_micro_batch_is_not_read_again_from_another_log(written: Written) -> None:
    """Spark repeats it after a failure."""
    name(written, FIRST_ID)
    written.batch()
    stream = Stream(written)
    began, end = stream.at, stream.planned()
    made_again(written, 1, SECOND_ID)
    with pytest.raises(ValueError, match="t-0 was made again, with another topic id"):
        stream.read(began, end)
    stream.options["failOnDataLoss"] = "false"
    assert stream.read(began, end) == []


def test_options_have_the_case_that_spark_gives_them() -> None:
    """It changes the names to lower case."""
    given = CaseInsensitiveDict({"path": "logs", "verifyIndex": "true", "failOnDataLoss": "FALSE"})
    source = Source.of(given)
    assert (source.reading.against_log, source.fail_on_data_loss) == (True, False)
    assert Source.of(CaseInsensitiveDict({"path": "logs"})).fail_on_data_loss


def test_a_topic_of_a_broker_that_was_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broker, "limits", lambda broker: {("t", 0): (2, 4)})

    def reader(**options: Any) -> WireStreamReader:
        given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", **options}
        return WireStreamReader(Broker.of(given), SCHEMA)

    with pytest.raises(ValueError, match="t-0 ends at offset 4, and was read up to 10"):
        reader().latestOffset({"t-0": 10}, EVERYTHING)
    stream = reader(failOnDataLoss="false")
    end = stream.latestOffset({"t-0": 10}, EVERYTHING)
    assert end == {"t-0": 4}
    assert [(one.first, one.behind) for one in stream.partitions({"t-0": 10}, end)] == [(OFFSET_BEGINNING, 4)]
    assert [(one.first, one.behind) for one in stream.partitions({"t-0": 2}, end)] == [(2, 4)]


def retained(written: Written) -> None:
    """Retention has deleted 0..5 of 0..8, before the broker wrote 9..11."""
    written.batch(batches=2)
    first = written.log
    written.roll()
    written.batch()
    for kind in (".log", ".index", ".timeindex"):
        first.with_suffix(kind).unlink(missing_ok=True)
    written.batch()


@pytest.mark.parametrize("limit", [ReadAllAvailable(), ReadMaxRows(4)])
def test_records_that_retention_deleted_before_they_were_read_are_an_error_or_left_out(
    written: Written, limit: ReadLimit
) -> None:
    stream = Stream(written)
    retained(written)
    with pytest.raises(ValueError, match="records may be lost: t-0 begins at offset 6, and was read up to 0"):
        stream.step(limit)
    stream.options["failOnDataLoss"] = "false"
    assert stream.step(limit) + stream.step() == list(range(6, 12))


def test_records_that_were_read_before_retention_deleted_them_are_not_lost(written: Written) -> None:
    written.batch(batches=2)
    stream = Stream(written)
    assert stream.step() == list(range(6))
    first = written.log
    written.roll()
    written.batch()
    first.unlink()
    assert stream.step() == [6, 7, 8]


def test_a_partition_that_is_new_to_a_stream_has_lost_its_first_records(written: Written) -> None:
    (written.root / "t-1").mkdir()
    stream = Stream(written)
    (written.root / "t-1").rmdir()
    written.directory.rename(written.root / "t-1")
    written.directory, written.log = written.root / "t-1", written.root / "t-1" / written.log.name
    retained(written)
    Written(written.root)
    with pytest.raises(ValueError, match="records may be lost: t-1 is new, and begins at offset 6"):
        stream.step()
    stream.options["failOnDataLoss"] = "false"
    assert stream.step() == list(range(6, 12))


def test_a_micro_batch_is_not_read_again_without_what_retention_deleted(written: Written) -> None:
    written.batch(batches=2)
    stream = Stream(written)
    began, end = stream.at, stream.planned()
    first = written.log
    written.roll()
    written.batch()
    first.unlink()
    with pytest.raises(ValueError, match="records are lost: t-0 begins at offset 6, and is read from 0"):
        stream.read(began, end)
    stream.options["failOnDataLoss"] = "false"
    assert stream.read(began, end) == []


@pytest.mark.parametrize("view", ["records", "batches"])
def test_a_segment_that_is_deleted_between_planning_and_reading_is_an_error(written: Written, view: str) -> None:
    written.batch()
    first = written.log
    written.roll()
    written.batch()
    for fails in (True, False):
        stream = Stream(written, view=view, failOnDataLoss=str(fails).lower())
        reader = LogStreamReader(Source.of(stream.options), StructType([StructField("position", LongType())]))
        tasks = reader.partitions({"t-0": 0}, {"t-0": 6})
        content = first.read_bytes()
        first.unlink()
        if fails:
            with pytest.raises(ValueError, match=r"records are lost: t-0/0+\.log was deleted before it was read"):
                [batch for task in tasks for batch in reader.read(task)]
        else:
            assert [batch.num_rows for task in tasks for batch in reader.read(task)]
        first.write_bytes(content)


def test_the_first_records_of_a_topic_of_a_broker_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broker, "limits", lambda broker: {("t", 0): (2, 4)})
    given = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}
    with pytest.raises(ValueError, match="t-0 begins at offset 2, and was read up to 1"):
        WireStreamReader(Broker.of(given), SCHEMA).latestOffset({"t-0": 1}, EVERYTHING)
    goes_on = WireStreamReader(Broker.of({**given, "failOnDataLoss": "false"}), SCHEMA)
    assert goes_on.latestOffset({"t-0": 1}, EVERYTHING) == {"t-0": 4}
