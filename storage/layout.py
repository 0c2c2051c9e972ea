"""Names and entry formats of Kafka's files. Pure: opens no file."""

from __future__ import annotations

import re
import struct

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
PASSING = re.compile(r"(\.[0-9]+)?\.deleted$|\.cleaned$|\.swap$")  # of a file that waits for its deletion or its place
DIRECTORY_DELETED, DIRECTORY_STRAY, DIRECTORY_FUTURE = "-delete", "-stray", "-future"
FILE_NAME_LENGTH_MAX = 255  # limit of common file systems

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
QUORUM_STATE = "quorum-state"
FLUSHED_OFFSET = "flushed-offset"  # of the metadata log; ottla's own, which Kafka ignores

INDEX_ENTRY = struct.Struct(">ii")  # offset relative to the segment's base, position
TIME_INDEX_ENTRY = struct.Struct(">qi")  # timestamp, relative offset
TXN_INDEX_ENTRY = struct.Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset

METADATA_SNAPSHOT, METADATA_DAMAGED = ".checkpoint", ".damaged"
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
_OFFSET_NAME = re.compile(r"[0-9]{20}\.")
_FUTURE_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)\.[0-9a-f]{32}-future")
_DELETED_DIRECTORY = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def file_name(offset: int, suffix: str) -> str:
    """`00000000000000000042.log`."""
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int:
    """Returns the offset in a file name. Raises ValueError if the name has another form."""
    if not _OFFSET_NAME.match(name):
        raise ValueError(f"{name}: the name does not begin with an offset of 20 digits")
    return int(name[:20])


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def retired_directory(topic: str, partition: int, unique: str, suffix: str) -> str:
    """Returns `topic-0.<unique>-delete`, the name of a partition's directory before its removal; the topic is truncated
    if the name would be too long.
    """
    ending = f"-{partition}.{unique}{suffix}"
    return topic[: FILE_NAME_LENGTH_MAX - len(ending)] + ending


def future_directory(topic: str, partition: int, unique: str) -> str:
    """Returns `topic-0.<unique>-future`, the name of the directory that a log is copied to before it moves there."""
    return f"{topic}-{partition}.{unique}{DIRECTORY_FUTURE}"


def parse_future_directory(name: str) -> tuple[str, int] | None:
    """Returns topic and partition of a directory that a log is copied to; None for directories of another kind."""
    found = _FUTURE_DIRECTORY.fullmatch(name)
    return (found["topic"], int(found["partition"])) if found else None


def is_deleted_directory(name: str) -> bool:
    """Whether the name is that of a deleted partition's directory."""
    return _DELETED_DIRECTORY.fullmatch(name) is not None


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Returns topic and partition of a directory; None for directories of another kind (deleted, future, snapshots)."""
    if name.endswith(DIRECTORY_DELETED):
        return None
    found = _PARTITION_DIRECTORY.fullmatch(name)
    return (found["topic"], int(found["partition"])) if found else None


def snapshot_name(end_offset: int, epoch: int) -> str:
    """Returns `00000000000000000042-0000000003.checkpoint`, the name of a snapshot of the metadata log."""
    return f"{end_offset:020d}-{epoch:010d}{METADATA_SNAPSHOT}"


def parse_snapshot_name(name: str) -> tuple[int, int] | None:
    """Returns end offset and epoch of a snapshot of the metadata log; None for another file."""
    stem = name.removesuffix(METADATA_SNAPSHOT)
    if stem == name or len(stem) != 31 or not (stem[:20] + stem[21:]).isdigit():
        return None
    return int(stem[:20]), int(stem[21:])
