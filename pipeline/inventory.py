"""The views `partitions` (offsets and checkpoints of partitions) and `files` (the content of a data directory)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from ..storage import layout
from .committed import committed
from .directory import Directory
from .reading import Options

_SUFFIXES = {
    layout.LOG: "log",
    layout.INDEX: "index",
    layout.TIME_INDEX: "timeindex",
    layout.TXN_INDEX: "txnindex",
    layout.SNAPSHOT: "snapshot",
    layout.DELETED: "deleted",
    layout.CLEANED: "cleaned",
    layout.SWAP: "swap",
    layout.METADATA_SNAPSHOT: "checkpoint",
    ".part": "temporary",
    ".tmp": "temporary",
}
_NAMED = {layout.PARTITION_METADATA, layout.LEADER_EPOCHS, layout.QUORUM_STATE, layout.FLUSHED_OFFSET}
_DIRECTORIES = {layout.DIRECTORY_DELETED: "deleted", "-future": "future", "-stray": "stray"}


def partition_rows(
    directory: Directory, which: tuple[str, int], schema: pa.Schema, options: Options
) -> Iterator[pa.RecordBatch]:
    """Yields one partition as an Arrow batch of `schema`; nothing if it was deleted."""
    topic, partition = which
    segments = directory.segments(topic, partition)
    if not segments:
        return
    values: dict[str, Callable[[], object]] = {
        "topic": lambda: topic,
        "topicId": lambda: directory.topic_id(topic, partition),
        "partition": lambda: partition,
        "logStartOffset": lambda: directory.log_start_offset(segments[0]),
        "endOffset": lambda: directory.end_offset(topic, partition),
        "lastStableOffset": lambda: committed(directory, topic, partition).last_stable_offset,
        "highWatermark": lambda: directory.offsets(layout.HIGH_WATERMARKS).get(which),
        "cleanedOffset": lambda: directory.offsets(layout.CLEANER_OFFSETS).get(which),
        "leaderEpochs": lambda: [
            {"epoch": epoch, "startOffset": start} for epoch, start in directory.leader_epochs(*which)
        ],
        "segments": lambda: len(segments),
        "sizeInBytes": lambda: sum(one.size for one in segments),
    }
    yield pa.RecordBatch.from_pylist([{name: values[name]() for name in schema.names}], schema=schema)


class FileFacts(NamedTuple):
    """A row of the view `files`."""

    path: str
    kind: str
    topic: str | None = None
    partition: int | None = None
    base_offset: int | None = None
    size: int | None = None


def file_rows(directory: Directory, _: None, schema: pa.Schema, options: Options) -> Iterator[pa.RecordBatch]:
    """Yields the files of the directory as an Arrow batch of `schema`."""
    rows = [
        {
            "path": one.path,
            "topic": one.topic,
            "partition": one.partition,
            "kind": one.kind,
            "baseOffset": one.base_offset,
            "sizeInBytes": one.size,
        }
        for one in file_facts(directory)
    ]
    yield pa.RecordBatch.from_pylist(rows, schema=schema)


def file_facts(directory: Directory) -> Iterator[FileFacts]:
    """Yields the files of partitions, one partition after another, and the directories that are of none."""
    for name in directory.files.names():
        kind = next((kind for suffix, kind in _DIRECTORIES.items() if name.endswith(suffix)), None)
        if kind is not None:
            yield FileFacts(name, kind)
            continue
        found = layout.parse_partition_directory(name)
        if found is None:
            continue
        try:
            inside = directory.files.names(name)
        except (FileNotFoundError, NotADirectoryError):
            continue  # its topic was deleted since, or it is no directory
        for one in inside:
            path = f"{name}/{one}"
            try:
                size = directory.files.size(path)
            except FileNotFoundError:
                continue  # retention or compaction has removed it since
            base = int(one[:20]) if one[:20].isdecimal() and len(one) > 20 else None
            yield FileFacts(path, _kind(one, base), *found, base, size)


def _kind(name: str, base: int | None) -> str:
    if name in _NAMED:
        return "metadata"
    suffix = name[name.rfind(".") :]
    kind = _SUFFIXES.get(suffix, "unknown")
    return kind if base is not None or kind == "temporary" else "unknown"
