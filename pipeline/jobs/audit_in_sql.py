"""The checks of the audit in SQL, as functions from the views of a data directory to findings: for declarative
pipelines, which cannot run Python over the rows of a table, and for notebooks. The job `audit` finds the same faster,
with `checks`; a test compares them.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from .. import findings
from ..checks import PRODUCER_EXPIRY_MS, SEQUENCE_MASK
from ..findings import Finding
from .transactions import hanging, spans, states


def of_views(
    batches: DataFrame,
    partitions: DataFrame,
    index: DataFrame,
    files: DataFrame,
    internal: DataFrame | None,
    expiry_ms: int = PRODUCER_EXPIRY_MS,
) -> DataFrame:
    """Returns the findings in a directory, from its views: `batches` with verifyRecords, `index` with verifyIndex;
    `internal` has the records of transaction coordinators.
    """
    log = spans(batches)
    return all_of(
        in_logs(batches, partitions, expiry_ms),
        in_ends(partitions),
        in_indexes(index),
        in_aborted(log, partitions, index),
        in_files(files),
        *(() if internal is None else (in_transactions(log, internal),)),
    )


def all_of(*parts: DataFrame) -> DataFrame:
    """Returns the findings of several functions, in one frame."""
    return reduce(DataFrame.unionAll, parts)


def in_logs(batches: DataFrame, partitions: DataFrame, expiry_ms: int = PRODUCER_EXPIRY_MS) -> DataFrame:
    """Checks bytes, CRCs, records, the order of offsets and leader epochs; and that each producer's sequences have no
    gaps and no repetitions.

    `expiry_ms`: after this time the broker forgets a producer, which may then start with any sequence.
    """
    producer = "producerId, producerEpoch"
    return _told(
        _beside_neighbours(batches, partitions, expiry_ms),
        _finding("error IS NOT NULL AND magic < 0", findings.BYTES, "error"),
        _finding("error IS NOT NULL AND magic >= 0 AND NOT crcValid", findings.CRC, "error"),
        _finding("error IS NOT NULL AND magic >= 0 AND crcValid", findings.RECORDS, "error"),
        _finding("follows AND offset < due", findings.ORDER, "due - 1"),
        _finding("missing", findings.CONTINUITY, "due, offset - 1"),
        _finding(
            "whole AND single AND NOT missing AND position = 0 AND (offset < named OR offset > named AND offset > "
            "cleaned)",
            findings.SEGMENT,
            "named, offset",
        ),
        _finding("whole AND leaderEpoch <> epoch", findings.LEADER_EPOCH, "leaderEpoch, epoch"),
        _finding("again", findings.SEQUENCE_DUPLICATE, f"{producer}, baseSequence, last.sequence"),
        _finding(
            "known AND numbered AND producerEpoch >= last.epoch AND NOT again AND baseSequence <> expected",
            findings.SEQUENCE_GAP,
            f"{producer}, baseSequence, expected",
        ),
        _finding("numbered AND producerEpoch < last.epoch", findings.PRODUCER_EPOCH, f"{producer}, last.epoch"),
    )


def _beside_neighbours(batches: DataFrame, partitions: DataFrame, expiry_ms: int) -> DataFrame:
    """Returns every batch with the one before it, and with the previous one of its producer: the expected offset and
    sequence, and the comparison.
    """
    marks = partitions.selectExpr(
        "topic",
        "partition",
        "coalesce(cleanedOffset, 0) AS cleaned",
        "greatest(coalesce(cleanedOffset, 0), logStartOffset) AS knownFrom",
        "leaderEpochs",
    )
    rows = batches.selectExpr(
        *PLACE,
        "baseOffset AS offset",
        "magic",
        "crcValid",
        "error",
        "lastOffset",
        "leaderEpoch",
        "producerId",
        "producerEpoch",
        "baseSequence",
        "maxTimestamp",
        "crcValid AND magic >= 0 AS whole",
        "magic = 2 OR codec = 'none' AS single",  # a compressed message set has no base offset in its header
        "producerId >= 0 AND NOT control AND magic = 2 AND crcValid AS numbered",
        f"(baseSequence + lastOffset - baseOffset) & {SEQUENCE_MASK} AS lastSequence",
    )
    # both windows need the rows of a partition in one place: they are shuffled once
    rows = rows.selectExpr(
        "*", "lag(struct(lastOffset, whole)) OVER (PARTITION BY topic, partition ORDER BY segment, position) AS before"
    )
    last = "struct(lastSequence AS sequence, producerEpoch AS epoch, lastOffset, maxTimestamp)"
    rows = rows.selectExpr(
        "*",
        f"lag({last}) OVER (PARTITION BY topic, partition, producerId, numbered ORDER BY segment, position) AS last",
    )
    rows = rows.join(f.broadcast(marks), ["topic", "partition"], "left").selectExpr(
        "*",
        "before.lastOffset + 1 AS due",
        "whole AND before.whole AND single AS follows",
        "bigint(substring(segment, 1, 20)) AS named",
        "try_element_at(filter(leaderEpochs, e -> e.startOffset <= offset), -1).epoch AS epoch",
        "numbered AND producerEpoch = last.epoch AS same",
        f"if(producerEpoch = last.epoch, (last.sequence + 1) & {SEQUENCE_MASK}, 0) AS expected",
        f"last.lastOffset >= knownFrom AND maxTimestamp <= last.maxTimestamp + INTERVAL '{expiry_ms / 1000:.3f}' "
        "SECOND AS known",
    )
    return rows.selectExpr(
        "*",
        "coalesce(follows AND offset > due AND offset > cleaned, FALSE) AS missing",
        "same AND baseSequence <= last.sequence AND baseSequence <> expected AS again",
    )


def in_ends(partitions: DataFrame) -> DataFrame:
    """Finds logs that end before their checkpointed high watermark (`replication-offset-checkpoint`)."""
    rows = partitions.selectExpr("topic", "partition", *NOWHERE, "endOffset AS offset", "highWatermark")
    return _told(rows, _finding("highWatermark > offset", findings.END, "offset, highWatermark"))


def in_indexes(index: DataFrame) -> DataFrame:
    """Finds entries of the offset and time indexes that contradict their segment, if that is undamaged."""
    return _told(index, _finding("error IS NOT NULL", findings.INDEX, "error"))


def in_aborted(spans: DataFrame, partitions: DataFrame, index: DataFrame) -> DataFrame:
    """Compares the transaction indexes with the markers: read_committed consumers rely on the indexes."""
    key = ("topic", "partition", "producerId", "lastOffset")
    marked = spans.where("outcome = 'ABORT'").selectExpr(
        "topic",
        "partition",
        "producerId",
        "endOffset AS lastOffset",
        "endSegment AS segment",
        "firstOffset AS first",
        "bigint(NULL) AS noted",
        "TRUE AS marked",
    )
    noted = index.where("kind = 'transaction'").selectExpr(
        *key, "segment", "bigint(NULL) AS first", "offset AS noted", "FALSE AS marked"
    )
    rows = (
        marked.unionAll(noted)
        .groupBy(*key)
        .agg(
            f.max_by("segment", "marked").alias("segment"),
            f.max("first").alias("first"),
            f.min("noted").alias("noted"),
            f.bool_or("marked").alias("marked"),
        )
    )
    marks = partitions.selectExpr(
        "topic",
        "partition",
        "greatest(logStartOffset, cleanedOffset) AS knownFrom",
        "coalesce(cleanedOffset, 0) AS cleaned",
    )
    rows = rows.join(f.broadcast(marks), ["topic", "partition"], "left").where("lastOffset >= cleaned")
    rows = rows.selectExpr("*", "bigint(NULL) AS position", "lastOffset AS offset")
    return _told(
        rows,
        _finding("noted IS NULL AND first IS NOT NULL", findings.ABORT_NOT_NOTED, "producerId"),
        _finding("NOT marked", findings.ABORT_NOT_MARKED, "producerId"),
        _finding("first <> noted AND noted >= knownFrom", findings.ABORT_BEGINS, "producerId, first, noted"),
    )


def in_transactions(spans: DataFrame, internal: DataFrame) -> DataFrame:
    """Finds transactions that are open in a partition and that no coordinator will end."""
    rows = hanging(spans, states(internal)).selectExpr(
        "topic", "partition", *NOWHERE, "firstOffset AS offset", "producerId", "why"
    )
    return _told(rows, _finding("TRUE", findings.TRANSACTION_HANGS, "producerId, why"))


def in_files(files: DataFrame) -> DataFrame:
    """Finds files without a segment, segments without their indexes, and remains of interrupted operations."""
    segment = "(PARTITION BY topic, partition, baseOffset)"
    rows = files.selectExpr(
        "topic", "partition", *NOWHERE, "baseOffset AS offset", "path", "kind", "sizeInBytes",
        f"bool_or(kind = 'log') OVER {segment} AS hasLog",
        f"count_if(kind IN ('index', 'timeindex')) OVER {segment} AS indexes",
    )  # fmt: skip
    return _told(
        rows,
        _finding("kind IN ('index', 'timeindex', 'txnindex') AND NOT hasLog", findings.WITHOUT_SEGMENT, "path"),
        _finding("kind IN ('unknown', 'stray')", findings.WITHOUT_LOG, "path"),
        _finding("kind IN ('cleaned', 'swap')", findings.INTERRUPTED, "path"),
        _finding("kind = 'log' AND sizeInBytes > 0 AND indexes < 2", findings.INDEX_FILES, "path"),
    )


PLACE = ("topic", "partition", "segment", "position")
NOWHERE = ("string(NULL) AS segment", "bigint(NULL) AS position")


def _finding(condition: str, one: Finding, values: str) -> str:
    """Returns SQL for a finding of a row, or null. `values`: SQL for what its words tell."""
    return f"if({condition}, struct('{one.kind}' AS kind, format_string('{one.words}', {values}) AS detail), NULL)"


def _told(rows: DataFrame, *candidates: str) -> DataFrame:
    """Returns a row for each finding in a row of PLACE and `offset`."""
    return rows.selectExpr(*PLACE, "offset", f"inline(array_compact(array({', '.join(candidates)})))")
