"""Is a data directory whole? Every batch against its CRC, its neighbours, its producer and the indexes; every file against its segment.

What Kafka does itself is no finding: offsets and sequence numbers that the cleaner took out (below the partition's mark in
`cleaner-offset-checkpoint`), producers that begin anew after their state expired or their records were deleted, segments that wait to be
deleted, and zeros behind the records of the active segment. A compacted topic whose policy was changed to `delete` has lost its mark: the
gaps that compaction left are told then.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from . import Input, Report
from .transactions import hanging, spans, states

SEQUENCE_MASK = 0x7FFFFFFF
PRODUCER_EXPIRY = "INTERVAL 1 DAY"  # producer.id.expiration.ms


def report(source: Input) -> Report:
    """The findings, and what was looked at."""
    batches = source.table("batches", verifyRecords="compressed")
    partitions, index, files = source.table("partitions"), source.table("index"), source.table("files")
    parts = [
        in_batches(batches, partitions),
        in_ends(partitions),
        in_sequences(batches, partitions),
        in_indexes(batches, index),
        in_aborted(batches, partitions, index),
        in_files(files),
    ]
    internal = source.internal("__transaction_state")
    if internal is not None:
        parts.append(in_transactions(batches, internal))
    found = reduce(DataFrame.unionByName, parts)
    if source.since_ms is not None:
        found = lately(found, batches, source.since_ms)
    found = found.orderBy("topic", "partition", "segment", "position", "kind")
    return Report({"findings": found, "partitions": looked_at(batches, partitions)}, findings="findings")


def lately(findings: DataFrame, batches: DataFrame, since_ms: int) -> DataFrame:
    """Without those of segments to which nothing was written since then."""
    place = ["topic", "partition", "segment"]
    last = batches.where("magic >= 0").groupBy(*place).agg(f.max(f.unix_millis("maxTimestamp")).alias("last"))
    return findings.join(last.where(f.col("last") < since_ms).select(*place), place, "left_anti")


def looked_at(batches: DataFrame, partitions: DataFrame) -> DataFrame:
    """A row for each partition: how much of it was read."""
    sums = batches.where("magic >= 0").groupBy("topic", "partition")
    read = sums.agg(f.count("*").alias("batches"), f.sum("recordCount").alias("records"), f.sum("sizeInBytes").alias("bytes"))
    columns = ("topic", "partition", "logStartOffset", "endOffset", "segments", "batches", "records", "bytes")
    return partitions.join(read, ["topic", "partition"], "left").select(*columns).fillna(0).orderBy("topic", "partition")


def in_batches(batches: DataFrame, partitions: DataFrame) -> DataFrame:
    """Bytes, CRCs, records, and the order of offsets and leader epochs."""
    marks = partitions.select("topic", "partition", f.coalesce("cleanedOffset", f.lit(0)).alias("cleaned"), "leaderEpochs")
    window = Window.partitionBy("topic", "partition").orderBy("segment", "position")
    rows = batches.select("*", (f.col("crcValid") & (f.col("magic") >= 0)).alias("whole"))
    rows = rows.select("*", f.lag(f.struct("lastOffset", "whole", "segment")).over(window).alias("before"))
    rows = rows.join(f.broadcast(marks), ["topic", "partition"], "left")
    base, both, expected = f.col("baseOffset"), f.col("whole") & f.col("before.whole"), f.col("before.lastOffset") + 1
    named_after = f.substring("segment", 1, 20).cast("long")
    single = (f.col("magic") == 2) | (f.col("codec") == "none")  # of an old compressed set the first offset is not in its header
    epoch = f.expr("element_at(filter(leaderEpochs, e -> e.startOffset <= baseOffset), -1).epoch")
    missing = f.coalesce(both & single & (base > expected) & (base > f.col("cleaned")), f.lit(False))
    broken = f.when(f.col("magic") < 0, "bytes").when(~f.col("crcValid"), "crc").otherwise("records")
    return _told(
        rows,
        _finding(f.col("error").isNotNull(), broken, f.col("error")),
        _finding(both & single & (base < expected), "order", f.format_string("begins at or before %d, the end of the batch before it", expected - 1)),
        _finding(missing, "continuity", f.format_string("offsets %d to %d are missing", expected, base - 1)),
        _finding(
            f.col("whole")
            & single
            & ~missing
            & (f.col("position") == 0)
            & ((base < named_after) | ((base > named_after) & (base > f.col("cleaned")))),
            "segment",
            f.format_string("the segment is named after %d and begins with %d", named_after, base),
        ),
        _finding(
            f.col("whole") & (f.col("leaderEpoch") != epoch),
            "leader-epoch",
            f.format_string("is of leader epoch %d, the checkpoint has %d", "leaderEpoch", epoch),
        ),
        offset="baseOffset",
        position="position",
    )


def in_ends(partitions: DataFrame) -> DataFrame:
    """Logs that end before what all replicas had of them (`replication-offset-checkpoint`)."""
    rows = partitions.withColumn("segment", f.lit(None).cast("string")).withColumn("offset", f.col("endOffset"))
    said = f.format_string("the log ends at %d, its high watermark was %d", "endOffset", "highWatermark")
    return _told(rows, _finding(f.col("highWatermark") > f.col("endOffset"), "end", said))


def in_sequences(batches: DataFrame, partitions: DataFrame) -> DataFrame:
    """What each producer wrote, in its order: nothing left out, nothing twice, no epoch that was over."""
    marks = partitions.select("topic", "partition", f.greatest(f.coalesce("cleanedOffset", f.lit(0)), "logStartOffset").alias("known_from"))
    window = Window.partitionBy("topic", "partition", "producerId").orderBy("segment", "position")
    rows = batches.where("producerId >= 0 AND NOT control AND magic = 2 AND crcValid")
    last = (f.col("baseSequence").cast("long") + f.col("lastOffset") - f.col("baseOffset")).bitwiseAND(SEQUENCE_MASK)
    before = f.lag(f.struct(last.alias("sequence"), "producerEpoch", "lastOffset", "maxTimestamp")).over(window)
    rows = rows.select("*", before.alias("before")).join(f.broadcast(marks), ["topic", "partition"], "left").where("before IS NOT NULL")
    first, ended = f.col("baseSequence"), f.col("before.sequence")
    same, newer = (f.col("producerEpoch") == f.col("before.producerEpoch"), f.col("producerEpoch") > f.col("before.producerEpoch"))
    expected = f.when(same, (ended + 1).bitwiseAND(SEQUENCE_MASK)).otherwise(f.lit(0))
    known = (f.col("before.lastOffset") >= f.col("known_from")) & f.expr(f"maxTimestamp <= before.maxTimestamp + {PRODUCER_EXPIRY}")
    again = same & (first <= ended) & (first != expected)
    who = (f.col("producerId"), f.col("producerEpoch"))
    return _told(
        rows,
        _finding(again, "sequence-duplicate", f.format_string("producer %d, epoch %d: %d again, %d was there", *who, first, ended)),
        _finding(
            known & (same | newer) & ~again & (first != expected),
            "sequence-gap",
            f.format_string("producer %d, epoch %d: %d, where %d was due", *who, first, expected),
        ),
        _finding(
            f.col("producerEpoch") < f.col("before.producerEpoch"),
            "producer-epoch",
            f.format_string("producer %d: epoch %d after %d", *who, f.col("before.producerEpoch")),
        ),
        offset="baseOffset",
        position="position",
    )


def in_indexes(batches: DataFrame, index: DataFrame) -> DataFrame:
    """Every entry of the offset and time indexes against the batches of its segment; of segments that are whole."""
    place = ["topic", "partition", "segment"]
    whole = batches.where("magic >= 0")
    index = index.join(f.broadcast(batches.where("magic < 0").select(place).distinct()), place, "left_anti")
    following = f.lead("position").over(Window.partitionBy(*place).orderBy("position"))
    entries = index.where("kind = 'offset'").select(*place, "offset", "position", following.alias("next"))
    at = whole.select(*place, "position", f.lit(True).alias("begins"))
    ends = whole.select(*place, f.col("lastOffset").alias("offset"), f.col("position").alias("of"))
    rows = entries.join(at, [*place, "position"], "left").join(ends, [*place, "offset"], "left")
    rows = rows.withColumn("right", f.expr("begins IS NOT NULL AND of IS NOT NULL AND of >= position AND (next IS NULL OR of < next)"))
    offsets = _told(
        rows.groupBy(*place, "offset", "position").agg(f.bool_or("right").alias("right")),
        _finding(~f.col("right"), "index", f.format_string("the offset index has %d at position %d, the log has not", "offset", "position")),
        position="position",
    )
    held = whole.select(*place, f.col("maxTimestamp").alias("timestamp"), "baseOffset", "lastOffset", "magic", "codec")
    rows = index.where("kind = 'time'").select(*place, "offset", "timestamp").join(held, [*place, "timestamp"], "left")
    fits = "lastOffset IS NOT NULL AND offset <= lastOffset AND (offset >= baseOffset OR (magic < 2 AND codec <> 'none'))"
    rows = rows.groupBy(*place, "offset", "timestamp").agg(f.bool_or(f.expr(fits)).alias("right"))
    said = f.format_string("the time index has offset %d for %s, the log has not", "offset", f.col("timestamp").cast("string"))
    return offsets.unionByName(_told(rows, _finding(~f.col("right"), "index", said)))


def in_aborted(batches: DataFrame, partitions: DataFrame, index: DataFrame) -> DataFrame:
    """The transaction indexes against the markers: readers of committed records believe the indexes."""
    marks = partitions.select("topic", "partition", f.coalesce("cleanedOffset", f.lit(0)).alias("cleaned"))
    keys = ["topic", "partition", "producerId", "lastOffset"]
    ended = spans(batches).where("outcome = 'ABORT'").withColumnRenamed("endOffset", "lastOffset").withColumn("marked", f.lit(True))
    earliest = batches.where("magic >= 0").groupBy("topic", "partition").agg(f.min("baseOffset").alias("earliest"))
    noted = index.where("kind = 'transaction'").select(*keys, f.col("offset").alias("noted"), f.col("segment").alias("notedIn"))
    rows = ended.join(noted, keys, "full").join(f.broadcast(marks), ["topic", "partition"], "left").join(earliest, ["topic", "partition"], "left")
    rows = rows.where("lastOffset >= cleaned").select("*", f.col("lastOffset").alias("offset"), f.coalesce("endSegment", "notedIn").alias("segment"))
    first, noted_first = f.col("firstOffset"), f.col("noted")
    return _told(
        rows,
        _finding(
            noted_first.isNull() & first.isNotNull(),
            "transaction-index",
            f.format_string("the transaction of producer %d was aborted, the index has it not", "producerId"),
        ),
        _finding(
            f.col("marked").isNull(),
            "transaction-index",
            f.format_string("the index has a transaction of producer %d, the log has not", "producerId"),
        ),
        _finding(
            (first != noted_first) & (noted_first >= f.greatest("earliest", "cleaned")),
            "transaction-index",
            f.format_string("the transaction of producer %d begins at %d, in the index at %d", "producerId", first, noted_first),
        ),
    )


def in_transactions(batches: DataFrame, internal: DataFrame) -> DataFrame:
    """Transactions that are open in a partition and that no coordinator will end."""
    rows = hanging(spans(batches), states(internal)).withColumn("segment", f.lit(None).cast("string"))
    said = f.format_string("the transaction of producer %d hangs: %s", "producerId", "why")
    return _told(rows.withColumnRenamed("firstOffset", "offset"), _finding(f.lit(True), "transaction-hangs", said))


def in_files(files: DataFrame) -> DataFrame:
    """Files that belong to no segment, segments without their indexes, and what an interruption left."""
    place = ["topic", "partition", "baseOffset"]
    logs = files.where("kind = 'log'").select(*place, f.lit(True).alias("has_log"))
    rows = files.join(logs, place, "left")
    indexes = files.where("kind IN ('index', 'timeindex')").groupBy(*place).agg(f.count("*").alias("indexes"))
    rows = rows.join(indexes, place, "left")
    belongs = f.col("kind").isin("index", "timeindex", "txnindex")
    rows = rows.select("*", f.lit(None).cast("string").alias("segment"), f.col("baseOffset").alias("offset"))
    return _told(
        rows,
        _finding(belongs & f.col("has_log").isNull(), "orphan", f.format_string("%s: there is no such segment", "path")),
        _finding(f.col("kind").isin("unknown", "stray"), "orphan", f.format_string("%s belongs to no log", "path")),
        _finding(f.col("kind").isin("cleaned", "swap"), "interrupted", f.format_string("%s: cleaning was interrupted", "path")),
        _finding(
            (f.col("kind") == "log") & (f.col("sizeInBytes") > 0) & (f.coalesce("indexes", f.lit(0)) < 2),
            "index",
            f.format_string("%s has not both its indexes", "path"),
        ),
    )


def _finding(condition: Column, kind: Column | str, detail: Column) -> Column:
    name = f.lit(kind) if isinstance(kind, str) else kind
    return f.when(condition, f.struct(name.alias("kind"), detail.alias("detail")))


def _told(rows: DataFrame, *candidates: Column, offset: str = "offset", position: str | None = None) -> DataFrame:
    """A row for each finding in a row, which tells its offset and, where there is one, its position by these columns."""
    rows = rows.select(
        "topic",
        "partition",
        "segment",
        (f.lit(None).cast("long") if position is None else f.col(position)).alias("position"),
        f.col(offset).alias("offset"),
        f.explode(f.filter(f.array(*candidates), lambda one: one.isNotNull())).alias("found"),
    )
    return rows.select("topic", "partition", "segment", "position", "offset", "found.kind", "found.detail")
