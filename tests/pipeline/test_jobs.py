"""What the jobs find in a directory is what the clients did that filled it: of ottla's, and of the one that Kafka 4.4.0
wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import pytest
from ottla.coordinator.metadata.state import BROKER, TOPIC
from ottla.pipeline.jobs import ALL, Input, audit, compaction, report_of, shares, together, transactions

from .conftest import Told
from .story import CODECS

pytestmark = pytest.mark.slow


class Asked:
    """What is said of a directory, each table asked once for all tests."""

    def __init__(self, source: Input) -> None:
        self.source = source
        self.report = lru_cache(lambda job: report_of(job)(source))
        self.rows = lru_cache(lambda job, table: self.report(job).tables[table].collect())

    def of(self, job: str, table: str, **wanted: Any) -> list[Any]:
        """The rows of a table in which columns have certain values."""
        return [row for row in self.rows(job, table) if all(row[name] == value for name, value in wanted.items())]


@pytest.fixture(scope="module")
def asked(spark: Any, told: Told) -> Iterator[Asked]:
    made = Asked(Input(spark, told.path))
    yield made
    made.source.close()


@pytest.fixture(scope="module")
def cleaned_at_ms(recorded: Told) -> int:
    return int(recorded.truth["compacted"]["cleaned_at_ms"])


def test_every_internal_record_is_understood(asked: Asked) -> None:
    rows = asked.source.read("internal").collect()
    assert [row for row in rows if row.type is None or row.error is not None] == []
    kinds = {row.type for row in rows}
    assert {
        "OffsetCommit",
        "GroupMetadata",
        "ConsumerGroupCurrentMemberAssignment",
        "ShareSnapshot",
        "StreamsGroupMetadata",
        "StreamsGroupTopology",
        "StreamsGroupMemberMetadata",
        "StreamsGroupTargetAssignmentMetadata",
        "StreamsGroupTargetAssignmentMember",
        "StreamsGroupCurrentMemberAssignment",
        "TransactionLog",
        "TopicRecord",
    } <= kinds
    assert {"FeatureLevelRecord", "SnapshotHeaderRecord"} <= kinds, "of the snapshot that the log begins with"
    tombstones = [row for row in rows if row.type == "ConsumerGroupMemberMetadata" and row.value is None]
    assert [
        row.rawValue is None and row.rawKey is not None and json.loads(row.key)["group_id"] for row in tombstones
    ] == ["consumer"] * 2


def test_a_clean_directory_has_nothing_to_find(asked: Asked) -> None:
    assert asked.rows("audit", "findings") == []
    read = {(row.topic, row.partition): row.records for row in asked.rows("audit", "partitions")}
    assert read["exact", 0] == 76
    assert sum(count for (topic, _), count in read.items() if topic == "codecs") == 3000


def test_lag_is_what_the_broker_says(asked: Asked, told: Told) -> None:
    for group, wanted in told.truth["offsets"].items():
        rows = asked.of("lag", "lag", group=group)
        assert [[row.partition, row.committedOffset, row.logEndOffset] for row in rows] == wanted
        assert all(row.lag == row.logEndOffset - row.committedOffset for row in rows)
    if "described" in told.truth:
        columns = ("group", "topic", "partition", "committedOffset", "logEndOffset", "lag")
        assert [[str(row[name]) for name in columns] for row in asked.of("lag", "lag", topic="work")] == told.truth[
            "described"
        ]


def test_the_history_of_lag_goes_commit_by_commit(asked: Asked) -> None:
    rows = asked.of("lag", "history", group="classic", partition=0)
    assert [(row.committedOffset, row.logEndOffset, row.lag) for row in rows] == [(100, 100, 0), (70, 100, 30)]


@pytest.mark.parametrize(("group", "topic"), [("classic", "work"), ("consumer", "work"), ("streams", "0")])
def test_rebalances_are_those_that_the_members_saw(asked: Asked, told: Told, group: str, topic: str) -> None:
    """`truth` has who owned what when the group had settled: one member, then two, then the other one. A task has its
    subtopology in the place of a topic.
    """
    owned = asked.of("rebalances", "ownership", group=group)
    assert {row.topic for row in owned} == {topic}
    first, both, second = told.truth["ownership"][group]
    members = sorted(
        {row.memberId for row in owned}, key=lambda member: min(row.fromTime for row in owned if row.memberId == member)
    )
    assert len(members) == 2

    def at(moment: Any) -> list[list[int]]:
        held = [
            [
                row.partition
                for row in owned
                if row.memberId == one and row.fromTime <= moment and (row.toTime is None or row.toTime > moment)
            ]
            for one in members
        ]
        return [sorted(one) for one in held if one]

    settled = [row for row in asked.of("rebalances", "rebalances", group=group) if row.partitions]
    assert [at(row.endTime) for row in settled] == [first, both, second]
    assert [(row.members, row.movedPartitions) for row in settled] == [(1, 0), (2, 2), (1, 2)]
    assert all(row.toTime is not None for row in owned), "all members have gone"


def test_shares_are_what_the_queue_was_told(asked: Asked, told: Told) -> None:
    internal = asked.source.internal(shares.TOPIC)
    assert internal is not None
    found = shares.records(shares.states(internal, asked.source.table("partitions"))).collect()
    names = {"Acknowledged": 2, "Archived": 4}
    assert (
        sorted([row.offset, row.deliveryCount, names[row.state]] for row in found if row.state != "Available")
        == told.truth["shares"]
    )
    (row,) = asked.rows("shares", "groups")
    assert (row.group, row.topic, row.startOffset, row.logEndOffset) == ("jobs", "jobs", 18, 20)
    assert (row.acknowledged, row.archived, row.redelivered, row.mostDeliveries) == (16, 2, 6, 2)
    assert row.acknowledgedAfterMsP50 >= 0
    (stall,) = asked.rows("shares", "stalls")
    assert (stall.startOffset, stall.waiting) == (10, 2)


def test_transactions_ended_as_their_producer_ended_them(asked: Asked) -> None:
    rows = asked.rows("transactions", "transactions")
    exact = [row for row in rows if row.transactionalId == "exact"]
    assert [row.outcome for row in exact] == ["Abort", "Commit"] * 3 + ["Ongoing"]
    assert exact[-1].endTime is None
    assert all(row.durationMs >= 0 for row in rows if row is not exact[-1])
    mixed = {(row.transactionalId, row.outcome, row.partitions) for row in rows} - {
        ("exact", row.outcome, 1) for row in exact
    }
    assert mixed == {(f"mixed-{codec}", outcome, 2) for codec in CODECS for outcome in ("Commit", "Abort")}
    held = asked.of("transactions", "held", topic="exact")
    assert [(row.firstOffset, row.endOffset) for row in held] == [(11 * n, 11 * n + 10) for n in range(6)] + [
        (66, None)
    ]
    assert {row.transactionalId for row in held} == {"exact"}
    assert [row.outcome for row in held] == ["Abort", "Commit"] * 3 + [None]
    assert asked.rows("transactions", "hanging") == []


@pytest.mark.parametrize("job", ALL)
def test_a_report_of_little_is_that_of_the_source(spark: Any, asked: Asked, job: str) -> None:
    source = Input(spark, asked.source.path, near=True)
    tables = report_of(job)(source).tables
    assert {name: frame.collect() for name, frame in tables.items()} == {name: asked.rows(job, name) for name in tables}
    source.close()


@pytest.mark.parametrize("job", ALL)
def test_a_report_of_little_shuffles_nothing_and_starts_no_python(
    spark: Any, recorded: Told, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does it change the case of letters, for which Spark first looks up that of every character."""
    source = Input(spark, recorded.path, near=True)
    for name, frame in report_of(job)(source).tables.items():
        frame.explain()
        plan = capsys.readouterr().out
        assert "LocalTableScan" in plan, name
        assert not re.findall(r"Exchange (?:hash|range)partitioning|Python|MapInArrow|InMemory", plan), name
        assert not re.findall(r"\b(?:lower|upper|initcap)\(", plan), name
    source.close()


def test_since_leaves_out_what_was_before(spark: Any, asked: Asked) -> None:
    whole = asked.of("transactions", "transactions", transactionalId="exact")
    third = int(whole[2].endTime.timestamp() * 1000)
    late = (
        transactions.report(Input(spark, asked.source.path, since_ms=third))
        .tables["transactions"]
        .where("transactionalId = 'exact'")
    )
    assert [row.outcome for row in late.collect()] == ["Abort", "Commit", "Abort", "Commit", "Ongoing"]


TOPICS = "compacted,young"


@pytest.fixture(scope="module")
def left(spark: Any, archive: Path) -> set[tuple[str, int]]:
    """Topic and offset of what Kafka's cleaner left. Half of `young` had to wait."""
    rows = (
        spark.read.format("kafka-log")
        .options(path=str(archive / "after"), topic=TOPICS)
        .load()
        .select("topic", "offset")
        .collect()
    )
    found = {(row.topic, row.offset) for row in rows}
    assert len(rows) == len(found)
    assert sum(topic == "compacted" for topic, _ in found) < 200
    assert sum(topic == "young" for topic, _ in found) < 300
    return found


@pytest.mark.parametrize("name", ["before", "after"])
def test_compaction_is_what_kafkas_cleaner_left(
    spark: Any, archive: Path, left: set[tuple[str, int]], cleaned_at_ms: int, name: str
) -> None:
    """Kept are the records that the real cleaner kept, and after it there is nothing left to do."""
    source = Input(spark, str(archive / name))
    reader = spark.read.format("kafka-log").schema(compaction.RECORD_COLUMNS).options(path=source.path, topic=TOPICS)
    batches = source.table("batches", topic=TOPICS)
    policies = compaction.policies_of(source)
    assert policies == (["__transaction_state", "compacted", "young"], {"young": 3_600_000}, 0)
    limits = compaction.limits(
        batches, source.read("files"), source.read("partitions", topic=TOPICS), policies, cleaned_at_ms
    )
    rows = compaction.judged(
        reader.load(), reader.option("isolation", "read_committed").load(), batches, limits, cleaned_at_ms
    )
    assert {(row.topic, row.offset) for row in rows.where("kept").select("topic", "offset").collect()} == left
    source.close()


def test_what_could_be_cleaned_later(spark: Any, archive: Path, left: set[tuple[str, int]], cleaned_at_ms: int) -> None:
    """When the hour that `young` waits has gone by, and the day that others wait where the broker says so has not."""
    day_ms = {compaction.BROKER_LAG: "86400000"}
    source = Input(spark, str(archive / "before"), now_ms=cleaned_at_ms + 2 * 3_600_000, settings=day_ms)
    rows = {row.topic: row for row in compaction.report(source).tables["partitions"].collect()}
    source.close()
    assert rows["compacted"].keptRecords == rows["compacted"].records > sum(topic == "compacted" for topic, _ in left)
    assert rows["young"].keptRecords < sum(topic == "young" for topic, _ in left) / 2


def test_what_is_configured_is_what_was_said_last() -> None:
    def told(name: str, value: str | None, resource: tuple[int, str] = (TOPIC, "t")) -> tuple[str, dict[str, Any]]:
        return "ConfigRecord", {
            "resource_type": resource[0],
            "resource_name": resource[1],
            "name": name,
            "value": value,
        }

    topic = "TopicRecord", {"topic_id": "0a", "name": "t"}
    own, brokers = (TOPIC, "t"), (BROKER, "")
    said = [topic, told(compaction.LAG, "1"), told(compaction.LAG, "2"), told(compaction.BROKER_LAG, "9", brokers)]
    assert compaction.configured(said) == {own: {compaction.LAG: "2"}, brokers: {compaction.BROKER_LAG: "9"}}
    assert compaction.configured([*said, told(compaction.LAG, None)]) == {brokers: {compaction.BROKER_LAG: "9"}}
    gone = "RemoveTopicRecord", {"topic_id": "0a"}
    assert compaction.configured([*said, gone, topic]) == {brokers: {compaction.BROKER_LAG: "9"}}, (
        "a topic takes its own with it"
    )


def test_a_setting_that_is_no_number() -> None:
    with pytest.raises(ValueError, match="must be a number of milliseconds, found 'an hour'"):
        Input(cast(Any, None), "", settings={compaction.BROKER_LAG: "an hour"}).setting_ms(compaction.BROKER_LAG, 0)


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
