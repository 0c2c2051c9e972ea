"""The columns of the views of `kafka-log`: their names, their types in Spark and their meanings.

Spark shows the meanings as comments (`DESCRIBE`), and the documentation as a table.
"""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    name: str
    kind: str
    meaning: str


_TOPIC = Column("topic", "string", "The name of the topic")
_PARTITION = Column("partition", "int", "The number of the partition")
_SEGMENT = Column("segment", "string", "The name of the segment file")
_PRODUCER_ID = Column("producerId", "long", "The producer id; -1 without an idempotent producer")
_PRODUCER_EPOCH = Column("producerEpoch", "short", "The epoch of the producer id; -1 without an idempotent producer")
_TIMESTAMP_TYPE = Column(
    "timestampType", "int", "0: the producer set the timestamp; 1: the broker set it at the append"
)
_TRANSACTIONAL = Column("transactional", "boolean", "Whether the batch belongs to a transaction")
_LEADER_EPOCH = Column("leaderEpoch", "int", "The leader epoch of the append; -1 in the formats 0 and 1")
_BEYOND = "null after the year 294247, such as one in nanoseconds"
_CODEC = Column("codec", "string", "The compression of the batch: none, gzip, snappy, lz4, zstd or unknown")
RECORDS = (
    Column("key", "binary", "The key; null if the record has none"),
    Column("value", "binary", "The value; null for a tombstone"),
    Column("headers", "array<struct<key: string, value: binary>>", "The headers in order; their values may be null"),
    _TOPIC,
    _PARTITION,
    Column("offset", "long", "The offset of the record"),
    Column("timestamp", "timestamp", f"The timestamp of the record; {_BEYOND}"),
    _TIMESTAMP_TYPE,
    _PRODUCER_ID,
    _PRODUCER_EPOCH,
    Column("sequence", "int", "The sequence number of the record; -1 without an idempotent producer"),
    _TRANSACTIONAL,
    Column("control", "boolean", "Whether this is a control record, such as a marker; clients do not get it"),
    _LEADER_EPOCH,
    _CODEC,
    Column("keySize", "int", "The size of the key in bytes; null if the record has none"),
    Column("valueSize", "int", "The size of the value in bytes; null for a tombstone"),
    Column("batchOffset", "long", "The base offset of the batch"),
    Column("position", "long", "The position of the batch in the segment file"),
)
BATCHES = (
    _TOPIC,
    _PARTITION,
    _SEGMENT,
    Column("position", "long", "The position of the batch in the segment file"),
    Column("sizeInBytes", "int", "The size of the batch with its header"),
    Column("baseOffset", "long", "The first offset of the batch; -1 if it is unknown"),
    Column("lastOffset", "long", "The last offset of the batch, even if compaction removed the record"),
    _LEADER_EPOCH,
    Column("magic", "int", "The format version: 0, 1 or 2; -1 for bytes that are not a batch"),
    Column("crc", "long", "The CRC in the header of the batch"),
    Column("crcValid", "boolean", "Whether the CRC is right; false for bytes that are not a batch"),
    _CODEC,
    _TIMESTAMP_TYPE,
    _TRANSACTIONAL,
    Column("control", "boolean", "Whether this is a control batch, such as the marker of a transaction"),
    Column("controlType", "string", "ABORT, COMMIT or the name of the control record; null for other batches"),
    Column("baseTimestamp", "timestamp", f"The timestamp from which those of the records count; {_BEYOND}"),
    Column("maxTimestamp", "timestamp", f"The largest timestamp of the records; {_BEYOND}"),
    Column("deleteHorizonMs", "long", "When the cleaner may remove tombstones and markers, in ms; null: not yet set"),
    _PRODUCER_ID,
    _PRODUCER_EPOCH,
    Column("baseSequence", "int", "The sequence number of the first record; -1 without an idempotent producer"),
    Column("recordCount", "int", "The number of records in the batch"),
    Column("error", "string", "What is wrong with the batch, or that these bytes are not a batch; else null"),
)
INDEX = (
    _TOPIC,
    _PARTITION,
    _SEGMENT,
    Column("kind", "string", "The index that has the entry: offset, time or transaction"),
    Column(
        "offset", "long", "The last offset of the append; the offset of the timestamp; the first one of the transaction"
    ),
    Column("position", "long", "The position in the segment file; null except in the offset index"),
    Column("timestamp", "timestamp", f"The largest timestamp so far; {_BEYOND}, and except in the time index"),
    Column("producerId", "long", "The producer of the aborted transaction; null except in the transaction index"),
    Column("lastOffset", "long", "The last offset of the aborted transaction; null except in the transaction index"),
    Column("lastStableOffset", "long", "The last stable offset at the abort; null except in the transaction index"),
    Column("error", "string", "How the log contradicts the entry, with the option verifyIndex; else null"),
)
PARTITIONS = (
    _TOPIC,
    Column("topicId", "string", "The id of the topic; null if the directory does not record it"),
    _PARTITION,
    Column("logStartOffset", "long", "The first offset that consumers get"),
    Column("endOffset", "long", "The offset after the last complete batch"),
    Column("lastStableOffset", "long", "The first offset of the oldest open transaction; without one the end offset"),
    Column("highWatermark", "long", "The high watermark in the checkpoint; null if there is none"),
    Column("cleanedOffset", "long", "The offset up to which the log is compacted; null if it never was"),
    Column("leaderEpochs", "array<struct<epoch: int, startOffset: long>>", "The leader epochs and their first offsets"),
    Column("segments", "int", "The number of segment files"),
    Column("sizeInBytes", "long", "The size of the segment files"),
)
FILES = (
    Column("path", "string", "The path in the data directory"),
    Column("topic", "string", "The name of the topic; null if the path is of no partition"),
    Column("partition", "int", "The number of the partition; null if the topic is null"),
    Column(
        "kind", "string",
        "log, index, timeindex, txnindex, snapshot, checkpoint, metadata, deleted, cleaned, swap, temporary or "
        "unknown; for a directory: deleted, future or stray",
    ),
    Column("baseOffset", "long", "The offset in the name of the file; null if there is none"),
    Column("sizeInBytes", "long", "The size of the file; null for a directory"),
)  # fmt: skip
INTERNAL = (
    _TOPIC,
    _PARTITION,
    Column("offset", "long", "The offset of the record; for a record of a snapshot the last offset before its end"),
    Column("timestamp", "timestamp", f"The timestamp of the record; {_BEYOND}"),
    _PRODUCER_ID,
    _PRODUCER_EPOCH,
    _TRANSACTIONAL,
    Column("control", "boolean", "Whether this is a control record"),
    Column("type", "string", "The name of the schema without Key or Value; null if the type or version is unknown"),
    Column("key", "string", "The key as JSON; null if the record has none or its type is unknown"),
    Column("value", "string", "The value as JSON; null for a tombstone or if the type is unknown"),
    Column("rawKey", "binary", "The key as it is stored"),
    Column("rawValue", "binary", "The value as it is stored"),
    Column("error", "string", "Why the record cannot be decoded; else null"),
)
EVIDENCE = (
    _TOPIC,
    _PARTITION,
    Column("segment", "string", "The name of the segment file; empty for what belongs to a whole partition"),
    Column("position", "long", "The position in the segment file; null if there is none"),
    Column("offset", "long", "The offset of a finding"),
    Column("kind", "string", "The kind of a finding; else marks, aborted or batches"),
    Column("detail", "string", "The words of a finding; the segment of aborted transactions"),
    Column("data", "binary", "What is packed; null for a finding"),
)
VIEWS = {
    "records": RECORDS,
    "batches": BATCHES,
    "index": INDEX,
    "partitions": PARTITIONS,
    "files": FILES,
    "internal": INTERNAL,
    "evidence": EVIDENCE,
}


def ddl(view: str) -> str:
    """Returns the schema of a view in Spark's language, with the meanings as comments."""
    return ", ".join(f"{one.name} {one.kind} COMMENT '{one.meaning}'" for one in VIEWS[view])
