"""Checks whether a data directory is complete and consistent: every batch against its CRC, its neighbours, its producer
and the indexes; every file against its segment.

What Kafka does itself is not a finding: offsets and sequence numbers that the cleaner removed (below the partition's
mark in `cleaner-offset-checkpoint`), producers that begin again after their state expired or their records were
deleted, segments that wait to be deleted, and zeros after the records of the active segment. A compacted topic whose
policy was changed to `delete` has lost its mark: the gaps that compaction left are reported then.

It is one plan: what files show by themselves is found where they are read (`evidence`), the rest where the rows of a
partition come together (`checks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from .. import checks
from ..checks import PRODUCER_EXPIRY_MS
from . import Input, Report
from .audit_in_sql import in_transactions

PRODUCER_EXPIRY = "producer.id.expiration.ms"  # the broker's setting
EVIDENCE = {"verifyRecords": "compressed"}
ORDER = ("topic", "partition", "segment", "position")
COORDINATOR = "__transaction_state"


def report(source: Input) -> Report:
    """Returns the findings, and what was checked."""
    expiry_ms = source.setting_ms(PRODUCER_EXPIRY, PRODUCER_EXPIRY_MS)
    little = _little(source, expiry_ms)
    if little is None:
        evidence = source.read("evidence", **EVIDENCE)
        rows = source.kept(checked(evidence, expiry_ms, source.since_ms))
    else:
        rows = source.here(little)
    found = findings(rows)
    if source.has(COORDINATOR) and _are_open(rows, little):
        internal = source.internal(COORDINATOR)
        assert internal is not None
        found = found.unionAll(in_transactions(open_spans(rows), internal))
    return Report({"findings": in_order(found, "topic", "partition", "segment", "position", "kind"),
                   "partitions": in_order(looked_at(rows), "topic", "partition")}, findings="findings")  # fmt: skip


def _little(source: Input, expiry_ms: int) -> pa.Table | None:
    """Returns all that the evidence of a directory shows, if it is little."""
    little = source.little("evidence", **EVIDENCE)
    if little is None:
        return None
    places = list(zip(*(little.column(name).to_pylist() for name in ORDER), strict=True))
    order = sorted(range(len(places)), key=lambda row: [(one is not None, one) for one in places[row]])
    found = checks.checked(little.take(order).to_batches(), source.since_ms, expiry_ms)
    return pa.Table.from_batches(found, checks.TOLD)


def _are_open(rows: DataFrame, little: pa.Table | None) -> bool:
    """Whether transactions are open at the end of a partition."""
    if little is None:
        return not open_spans(rows).isEmpty()
    return bool(little.column("open").null_count < len(little))


def in_order(frame: DataFrame, *columns: str) -> DataFrame:
    """Returns the rows of a frame that is computed already, sorted. `orderBy` would run the query twice."""
    return frame.coalesce(1).sortWithinPartitions(*columns)


def checked(evidence: DataFrame, expiry_ms: int = PRODUCER_EXPIRY_MS, since_ms: int | None = None) -> DataFrame:
    """Returns all that the view `evidence` shows: findings, a row per partition that was read, and open transactions.

    `expiry_ms`: after this time the broker forgets a producer, which may then start with any sequence. `since_ms`:
    findings in segments that were not written since then are left out.
    """
    rows = evidence.repartition("topic", "partition").sortWithinPartitions(*ORDER)
    schema = from_arrow_schema(checks.TOLD)
    return rows.mapInArrow(partial(_checked, since_ms=since_ms, expiry_ms=expiry_ms), schema)


def _checked(batches: Iterable[pa.RecordBatch], since_ms: int | None, expiry_ms: int) -> Iterator[pa.RecordBatch]:
    return checks.checked(batches, since_ms, expiry_ms)


def findings(checked: DataFrame) -> DataFrame:
    """Returns the findings of a frame of `checked`."""
    return checked.where("kind IS NOT NULL").select(*checks.FINDING.names)


def looked_at(checked: DataFrame) -> DataFrame:
    """Returns a row per partition: how much of it was read."""
    return checked.where("looked IS NOT NULL").select("topic", "partition", "looked.*")


def open_spans(checked: DataFrame) -> DataFrame:
    """Returns the transactions that are open at the end of a partition."""
    return checked.where("open IS NOT NULL").selectExpr(
        "topic", "partition", "open.producerId", "offset AS firstOffset", "bigint(NULL) AS endOffset", "open.records"
    )
