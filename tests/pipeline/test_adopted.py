"""Spark reads what `ottla adopt` made: records of every format, and committed offsets in every form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ottla.pipeline.jobs import Input, report_of

from ottla.adoption.catalog import from_described
from ottla.adoption.plan import Given
from ottla.adoption.work import Order, prepared

from ..support.old_directories import OldDirectories

pytestmark = pytest.mark.slow
COLUMNS = ("topic", "partition", "offset", "key", "value", "unix_millis(timestamp) AS ms")


def plain(value: bytearray | None) -> str | None:
    return None if value is None else value.decode()


@pytest.mark.parametrize("version", ["0.8.2.2", "0.10.2.2", "3.9.1"])
def test_spark_reads_all_that_was_adopted(version: str, spark: Any, tmp_path: Path) -> None:
    old = OldDirectories(version, tmp_path / "old")
    known = Given(from_described(old.described.read_text()), new_cluster_id="new")
    data = str(tmp_path / "data")
    with prepared(Order((str(old.data("killed")),), data, known)) as adoption:
        adoption.carry_out(sync=lambda: None)
    frame = spark.read.format("kafka-log").option("path", data).option("isolation", "read_uncommitted").load()
    found: dict[str, list[list[Any]]] = {name: [] for name in old.records("killed")}
    for row in frame.where("NOT control AND NOT startswith(topic, '__')").selectExpr(*COLUMNS).collect():
        made = [row.offset, plain(row.key), plain(row.value), -1 if row.ms is None else row.ms]
        found[f"{row.topic}-{row.partition}"].append(made)
    assert {name: sorted(rows) for name, rows in found.items()} == old.records("killed")
    lag = report_of("lag")(Input(spark, data)).tables["lag"].collect()
    offsets: dict[str, dict[str, int]] = {}
    for row in lag:
        offsets.setdefault(row.group, {})[f"{row.topic}-{row.partition}"] = row.committedOffset
    assert offsets == old.offsets("killed")
