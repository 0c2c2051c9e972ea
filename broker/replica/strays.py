"""Stray partition directories: renamed to `topic-0.<id>-stray`, as in Kafka, and never deleted.

A directory is stray if its topic is not in the metadata, or not under the topic id in `partition.metadata`, or if its
partition is in another log directory. Kafka checks only the topic id; here a directory with a known name and without an
id is kept, because a crash may have prevented that the id reached the disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from ...coordinator.metadata.format import CLUSTER_METADATA
from ...coordinator.metadata.state import MetadataState
from ...storage.files import Files
from ...storage.layout import DIRECTORY_STRAY, parse_partition_directory, retired_directory
from .directories import LogDirectories, LogDirectory

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogManager")
METADATA_DIRECTORY = f"{CLUSTER_METADATA}-0"


def partition_directories(files: Files, directory: LogDirectory) -> Iterator[tuple[str, int]]:
    """Yields topic and index of every partition directory except the metadata log's. Raises OSError."""
    for name in files.names(directory.path):
        found = parse_partition_directory(name)
        if found is not None and name != METADATA_DIRECTORY:
            yield found


def may_exist(files: Files, path: str) -> bool:
    """Whether there is a file or directory, or it cannot be determined."""
    try:
        return files.exists(path)
    except OSError:
        return True


def held_partitions(log_directories: LogDirectories) -> list[str]:
    """The partition directories in all log directories that are online."""
    return [
        f"{one.path}/{topic}-{index}"
        for one in log_directories.online
        for topic, index in partition_directories(log_directories.files, one)
    ]


def offline_partitions(log_directories: LogDirectories, image: MetadataState) -> set[tuple[bytes, int]]:
    """The partitions, by topic id and index, that can only be in a log directory that failed."""
    if len(log_directories.online) == len(log_directories.all):
        return set()
    ids = frozenset[bytes]().union(*(one.ids for one in log_directories.online))
    held = {tp for one in log_directories.online for tp in partition_directories(log_directories.files, one)}
    return {
        key
        for key, state in image.partitions.items()
        if ids.isdisjoint(state.directories) and (image.topic_names[state.topic_id], state.index) not in held
    }


def set_aside(files: Files, path: str, new_id: Callable[[], bytes], why: str) -> None:
    """Renames a partition's directory, and logs that. Raises OSError."""
    parent, _, name = path.rpartition("/")
    topic, index = parse_partition_directory(name) or (name, 0)
    stray = f"{parent}/{retired_directory(topic, index, new_id().hex(), DIRECTORY_STRAY)}"
    files.rename(path, stray)
    logger.warning("%s: stray partition directory: %s; renamed to %s", path, why, stray)


def set_aside_strays(log_directories: LogDirectories, home: Callable[[str, int], LogDirectory | None]) -> None:
    """Renames stray directories. `home`: returns the log directory of a partition, None if the partition does not
    exist. Raises OSError.
    """
    for directory in log_directories.online:
        for topic, index in list(partition_directories(log_directories.files, directory)):
            owner = home(topic, index)
            if owner is directory:
                continue
            why = (
                "the partition is not in the metadata"
                if owner is None
                else f"the metadata places the partition in {owner.path}"
            )
            set_aside(log_directories.files, f"{directory.path}/{topic}-{index}", log_directories.new_id, why)
