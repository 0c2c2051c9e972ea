"""Spark reads what `ottla adopt` made, and what Kafkas with KRaft wrote: records of every format, and committed offsets
in every form. Of the latter one release by default, with OTTLA_RELEASES=1 each.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from ottla.pipeline.jobs import Input, report_of

from ottla.adoption.catalog import from_described
from ottla.adoption.plan import Given
from ottla.adoption.work import Order, prepared

from ..support.old_directories import KraftDirectories, OldDirectories

pytestmark = pytest.mark.slow
KRAFT = ("3.0.2", "3.1.2", "3.2.3", "3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1")
ALL = os.environ.get("OTTLA_RELEASES") == "1"
COLUMNS = ("topic", "partition", "offset", "key", "value", "unix_millis(timestamp) AS ms")


def plain(value: bytearray | None) -> str | None:
    return None if value is None else value.decode()


def records_of(frame: Any) -> dict[str, list[list[Any]]]:
    """The records of topics that are not Kafka's own, by partition."""
    found: dict[str, list[list[Any]]] = {}
    for row in frame.where("NOT control AND NOT startswith(topic, '__')").selectExpr(*COLUMNS).collect():
        made = [row.offset, plain(row.key), plain(row.value), -1 if row.ms is None else row.ms]
        found.setdefault(f"{row.topic}-{row.partition}", []).append(made)
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2", "3.9.1"])
def test_spark_reads_all_that_was_adopted(version: str, spark: Any, tmp_path: Path) -> None:
    old = OldDirectories(version, tmp_path / "old")
    known = Given(from_described(old.described.read_text()), new_cluster_id="new")
    data = str(tmp_path / "data")
    with prepared(Order((str(old.data("killed")),), data, known)) as adoption:
        adoption.carry_out(sync=lambda: None)
    frame = spark.read.format("kafka-log").option("path", data).option("isolation", "read_uncommitted").load()
    assert records_of(frame) == {name: rows for name, rows in old.records("killed").items() if rows}
    lag = report_of("lag")(Input(spark, data)).tables["lag"].collect()
    offsets: dict[str, dict[str, int]] = {}
    for row in lag:
        offsets.setdefault(row.group, {})[f"{row.topic}-{row.partition}"] = row.committedOffset
    assert offsets == old.offsets("killed")


@pytest.mark.parametrize("version", KRAFT if ALL else KRAFT[:1])
def test_spark_reads_what_a_kafka_with_kraft_wrote(version: str, spark: Any, tmp_path: Path) -> None:
    """Its directory as it is, and the committed offsets in it."""
    recorded = KraftDirectories(version, tmp_path)
    (data,) = (one for one in recorded.nodes("clean") if one.endswith("node-1"))
    truth = recorded.truth["clean"]
    frame = spark.read.format("kafka-log").option("path", data).option("isolation", "read_uncommitted").load()
    assert records_of(frame) == {name: rows for name, rows in truth["records"].items() if rows}
    lag = report_of("lag")(Input(spark, data)).tables["lag"].collect()
    offsets = {f"{row.topic}-{row.partition}": row.committedOffset for row in lag if row.group == "simple"}
    assert offsets == truth["offsets"]["simple"]
