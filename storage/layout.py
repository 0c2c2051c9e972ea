"""Names and entry formats of Kafka's files. Pure: no file is opened here."""

from __future__ import annotations

import re
import struct

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"
DIRECTORY_DELETED = "-delete"

PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

INDEX_ENTRY = struct.Struct(">ii")  # offset relative to the segment's base, position
TIME_INDEX_ENTRY = struct.Struct(">qi")  # timestamp, relative offset
TXN_INDEX_ENTRY = struct.Struct(">hqqqq")  # version, producer id, first offset, last offset, last stable offset

METADATA_SNAPSHOT = ".checkpoint"
_PARTITION_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)")
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def file_name(offset: int, suffix: str) -> str:
    """`00000000000000000042.log`."""
    return f"{offset:020d}{suffix}"


def offset_of(name: str) -> int:
    """The offset that a file is named after; ValueError when it is named otherwise."""
    return int(name[:20])


def partition_directory(topic: str, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_directory(name: str) -> tuple[str, int] | None:
    """Topic and partition of a directory, None for one of another kind (deleted, future, snapshots)."""
    if name.endswith(DIRECTORY_DELETED):
        return None
    found = _PARTITION_DIRECTORY.fullmatch(name)
    return (found["topic"], int(found["partition"])) if found else None


def snapshot_name(end_offset: int, epoch: int) -> str:
    """`00000000000000000042-0000000003.checkpoint`: of the metadata log."""
    return f"{end_offset:020d}-{epoch:010d}{METADATA_SNAPSHOT}"


def parse_snapshot_name(name: str) -> tuple[int, int] | None:
    """End offset and epoch of a snapshot of the metadata log, None for another file."""
    stem = name.removesuffix(METADATA_SNAPSHOT)
    if stem == name or len(stem) != 31 or not (stem[:20] + stem[21:]).isdigit():
        return None
    return int(stem[:20]), int(stem[21:])
