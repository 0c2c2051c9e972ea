"""What the jobs find in a directory is what the clients did that filled it: of ottla's, and of the one that Kafka 4.4.0 wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ottla.pipeline.jobs import Input, audit, compaction, lag, rebalances, shares, together, transactions

from .conftest import Told
from .story import CODECS

pytestmark = pytest.mark.slow


@pytest.fixture
def source(spark: Any, told: Told) -> Any:
    found = Input(spark, told.path)
    yield found
    found.close()


@pytest.fixture(scope="module")
def cleaned_at_ms(archive: Path) -> int:
    return int(json.loads((archive / "truth.json").read_text())["compacted"]["cleaned_at_ms"])


def test_every_internal_record_is_understood(source: Input) -> None:
    rows = source.read("internal")
    assert rows.where("type IS NULL OR error IS NOT NULL").count() == 0
    kinds = {row.type for row in rows.select("type").distinct().collect()}
    assert {"OffsetCommit", "GroupMetadata", "ConsumerGroupCurrentMemberAssignment", "ShareSnapshot", "TransactionLog", "TopicRecord"} <= kinds
    assert {"FeatureLevelRecord", "SnapshotHeaderRecord"} <= kinds, "of the snapshot that the log begins with"
    tombstones = rows.where("type = 'ConsumerGroupMemberMetadata' AND value IS NULL")
    assert tombstones.where("rawValue IS NULL AND rawKey IS NOT NULL AND get_json_object(key, '$.group_id') = 'consumer'").count() == 2


def test_a_clean_directory_has_nothing_to_find(source: Input) -> None:
    report = audit.report(source)
    assert report.tables["findings"].collect() == []
    read = {(row.topic, row.partition): row.records for row in report.tables["partitions"].collect()}
    assert read["exact", 0] == 76
    assert sum(count for (topic, _), count in read.items() if topic == "codecs") == 3000


def test_lag_is_what_the_broker_says(source: Input, told: Told) -> None:
    rows = lag.lag(lag.commits(source.read("internal", topic="__consumer_offsets", isolation="read_committed")), source.read("partitions"))
    for group, wanted in told.truth["offsets"].items():
        found = [[row.partition, row.committedOffset, row.logEndOffset] for row in rows.where(f"`group` = '{group}'").collect()]
        assert found == wanted
        assert rows.where(f"`group` = '{group}' AND lag <> logEndOffset - committedOffset").count() == 0
    if "described" in told.truth:
        columns = ("group", "topic", "partition", "committedOffset", "logEndOffset", "lag")
        assert [[str(one) for one in row] for row in rows.where("topic = 'work'").select(*columns).collect()] == told.truth["described"]


def test_the_history_of_lag_goes_commit_by_commit(source: Input) -> None:
    rows = lag.report(source).tables["history"].where("`group` = 'classic' AND partition = 0").collect()
    assert [(row.committedOffset, row.logEndOffset, row.lag) for row in rows] == [(100, 100, 0), (70, 100, 30)]


@pytest.mark.parametrize("group", ["classic", "consumer"])
def test_rebalances_are_those_that_the_members_saw(source: Input, told: Told, group: str) -> None:
    """`truth` has who owned what when the group had settled: one member, then two, then the other one."""
    report = rebalances.report(source)
    owned = report.tables["ownership"].where(f"`group` = '{group}'").collect()
    assert {row.topic for row in owned} == {"work"}
    first, both, second = told.truth["ownership"][group]
    members = sorted({row.memberId for row in owned}, key=lambda member: min(row.fromTime for row in owned if row.memberId == member))
    assert len(members) == 2

    def at(moment: Any) -> list[list[int]]:
        held = [
            [row.partition for row in owned if row.memberId == one and row.fromTime <= moment and (row.toTime is None or row.toTime > moment)]
            for one in members
        ]
        return [sorted(one) for one in held if one]

    settled = [row for row in report.tables["rebalances"].where(f"`group` = '{group}'").collect() if row.partitions]
    assert [at(row.endTime) for row in settled] == [first, both, second]
    assert [(row.members, row.movedPartitions) for row in settled] == [(1, 0), (2, 2), (1, 2)]
    assert all(row.toTime is not None for row in owned), "all members have gone"


def test_shares_are_what_the_queue_was_told(source: Input, told: Told) -> None:
    written = shares.states(source.read("internal", topic=shares.TOPIC), source.read("partitions"))
    found = shares.records(written).where("state <> 'Available'").orderBy("offset").collect()
    names = {"Acknowledged": 2, "Archived": 4}
    assert [[row.offset, row.deliveryCount, names[row.state]] for row in found] == told.truth["shares"]
    report = shares.report(source)
    (row,) = report.tables["groups"].collect()
    assert (row.group, row.topic, row.startOffset, row.logEndOffset) == ("jobs", "jobs", 18, 20)
    assert (row.acknowledged, row.archived, row.redelivered, row.mostDeliveries) == (16, 2, 6, 2)
    assert row.acknowledgedAfterMsP50 >= 0
    (stall,) = report.tables["stalls"].collect()
    assert (stall.startOffset, stall.waiting) == (10, 2)


def test_transactions_ended_as_their_producer_ended_them(source: Input) -> None:
    report = transactions.report(source)
    rows = report.tables["transactions"].collect()
    exact = [row for row in rows if row.transactionalId == "exact"]
    assert [row.outcome for row in exact] == ["Abort", "Commit"] * 3 + ["Ongoing"]
    assert exact[-1].endTime is None
    assert all(row.durationMs >= 0 for row in rows if row is not exact[-1])
    mixed = {(row.transactionalId, row.outcome, row.partitions) for row in rows} - {("exact", row.outcome, 1) for row in exact}
    assert mixed == {(f"mixed-{codec}", outcome, 2) for codec in CODECS for outcome in ("Commit", "Abort")}
    held = report.tables["held"].where("topic = 'exact'").collect()
    assert [(row.firstOffset, row.endOffset) for row in held] == [(11 * n, 11 * n + 10) for n in range(6)] + [(66, None)]
    assert {row.transactionalId for row in held} == {"exact"}
    assert report.tables["hanging"].collect() == []


@pytest.mark.parametrize("topic", ["compacted", "young"])
def test_compaction_is_what_kafkas_cleaner_left(spark: Any, archive: Path, topic: str, cleaned_at_ms: int) -> None:
    """Kept are the records that the real cleaner kept, and after it there is nothing left to do. Half of `young` has to wait."""

    def kept(name: str) -> list[int]:
        source = Input(spark, str(archive / name))
        reader = spark.read.format("kafka-log").schema(compaction.RECORD_COLUMNS).options(path=source.path, topic=topic)
        batches, files, partitions = (source.read(view, topic=topic) for view in ("batches", "files", "partitions"))
        lags = compaction.lags(source.read("internal", topic="__cluster_metadata"))
        limits = compaction.limits(batches, files, partitions, lags, cleaned_at_ms)
        rows = compaction.judged(reader.load(), reader.option("isolation", "read_committed").load(), batches, limits, cleaned_at_ms)
        return sorted(row.offset for row in rows.where("kept").select("offset").collect())

    left = spark.read.format("kafka-log").options(path=str(archive / "after"), topic=topic).load()
    offsets = sorted(row.offset for row in left.select("offset").collect())
    assert kept("before") == offsets
    assert kept("after") == offsets
    assert len(offsets) < {"compacted": 200, "young": 300}[topic]


def test_what_could_be_cleaned_later(spark: Any, archive: Path, cleaned_at_ms: int) -> None:
    """When the hour that `young` waits has gone by, and before."""
    left = {}
    for hours in (0, 2):
        source = Input(spark, str(archive / "before"), now_ms=cleaned_at_ms + hours * 3_600_000)
        summary = compaction.report(source).tables["partitions"].collect()
        left[hours] = {row.topic: row.keptRecords for row in summary if row.topic in ("compacted", "young")}
        source.close()
    after = spark.read.format("kafka-log").options(path=str(archive / "after"), topic="compacted,young").load()
    assert left[0] == {row.topic: row["count"] for row in after.groupBy("topic").count().collect()}
    assert left[2]["compacted"] == left[0]["compacted"]
    assert left[2]["young"] < left[0]["young"] / 2


def test_a_compacted_directory_is_clean(spark: Any, archive: Path) -> None:
    source = Input(spark, str(archive / "after"))
    assert audit.report(source).tables["findings"].collect() == []
    source.close()


def test_jobs_together_leave_out_what_is_not_there(spark: Any, archive: Path) -> None:
    source = Input(spark, str(archive / "before"))
    report = together(source, ("lag", "shares", "transactions"))
    assert report.findings == "transactions: hanging"
    assert {name.split(":")[0] for name in report.tables} == {"transactions"}
    source.close()


def test_since_leaves_out_what_was_before(spark: Any, archive: Path) -> None:
    path = str(archive / "story")
    whole = transactions.report(Input(spark, path)).tables["transactions"].where("transactionalId = 'exact'").collect()
    third = int(whole[2].endTime.timestamp() * 1000)
    late = transactions.report(Input(spark, path, since_ms=third)).tables["transactions"].where("transactionalId = 'exact'").collect()
    assert [row.outcome for row in late] == ["Abort", "Commit", "Abort", "Commit", "Ongoing"]
