"""Reads the directories of a stopped Kafka with ZooKeeper, and changes nothing in them.

Each directory is locked for reading, so that no broker can start on it meanwhile. What is no such directory is refused,
with the command that is meant for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from ..broker.controller import metadata_log
from ..broker.replica.directories import OWN_FILE, DirectoryError
from ..handover import EXIT_UNUSABLE, EXIT_USAGE, HandoverRefused
from ..handover.source import ZOOKEEPER_DECIDES, Key, SourceDirectory, bytes_in, locked, read_metadata
from ..storage import checkpoints, layout
from .survey import ReadOnlyFiles, Survey, survey

NO_BROKER = -1
META_VERSION = "0"
CHECKPOINTS = (layout.RECOVERY_POINTS, layout.LOG_STARTS, layout.HIGH_WATERMARKS, layout.CLEANER_OFFSETS)
MARKER = "adopting"  # a directory within an unfinished target, or within one that is adopted in place


@dataclass(slots=True)
class Found:
    """A log directory with what its logs hold. `broker_id`: NO_BROKER, `cluster_id`: empty where no file says it;
    `damaged`: the checkpoints that cannot be read.
    """

    home: SourceDirectory
    broker_id: int
    cluster_id: str
    has_meta: bool = True
    damaged: list[str] = field(default_factory=list)
    surveys: dict[Key, Survey] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        return self.home.is_clean


@contextmanager
def opened(paths: tuple[str, ...]) -> Iterator[list[Found]]:
    """Locks and reads log directories of one cluster. Raises HandoverRefused, OSError."""
    with ExitStack() as stack:
        found = []
        for path in dict.fromkeys(os.path.realpath(one) for one in paths):
            stack.enter_context(locked(path))
            found.append(_found(path))
        _check_same_cluster(found)
        if not any(one.home.partitions for one in found):
            raise HandoverRefused(f"{found[0].home.path} has no partition", EXIT_UNUSABLE)
        yield found


def _found(path: str) -> Found:
    files = ReadOnlyFiles()
    if files.exists(f"{path}/{OWN_FILE}"):
        raise HandoverRefused(f"{path} is ottla's already: start `ottla serve log.dirs={path}`", EXIT_USAGE)
    broker_id, cluster_id = _meta(files, path)
    is_clean = files.exists(f"{path}/{layout.CLEAN_SHUTDOWN}")
    damaged: list[str] = []
    points, starts, committed, cleaned = (_offsets(files, f"{path}/{name}", damaged) for name in CHECKPOINTS)
    home = SourceDirectory(path, uuid4().bytes, broker_id, cluster_id, is_clean, points, starts, committed, cleaned)
    found = Found(home, broker_id, cluster_id, files.exists(f"{path}/{layout.META_PROPERTIES}"), damaged)
    for name in files.names(path):
        if not os.path.isdir(f"{path}/{name}") or name == MARKER:
            continue
        key = layout.parse_partition_directory(name)
        if name == metadata_log.DIRECTORY or key is None or not layout.TOPIC_NAME.fullmatch(key[0]):
            home.others.append(name)
            continue
        home.partitions[key] = bytes_in(f"{path}/{name}")
        try:
            found.surveys[key] = survey(
                f"{path}/{name}", is_clean=is_clean, recovery_point=home.recovery_points.get(key, 0)
            )
        except ValueError as error:
            raise HandoverRefused(f"{path}/{name}: {error}", EXIT_UNUSABLE) from None
    return found


def _offsets(files: ReadOnlyFiles, path: str, damaged: list[str]) -> dict[Key, int]:
    """Returns the offsets of a checkpoint, none if it is missing or damaged, which is noted."""
    try:
        return checkpoints.decode_offsets(files.read(path))
    except FileNotFoundError:
        return {}
    except checkpoints.CorruptCheckpoint as error:
        damaged.append(f"{path}: {error}")
        return {}


def _meta(files: ReadOnlyFiles, path: str) -> tuple[int, str]:
    """Returns the broker's id and the cluster's, as far as the directory says them. Raises HandoverRefused if KRaft
    wrote it.
    """
    if files.exists(f"{path}/{metadata_log.DIRECTORY}"):
        _check_zookeeper_decides(path)
    meta = f"{path}/{layout.META_PROPERTIES}"
    try:
        values = checkpoints.decode_properties(files.read(meta))
        if values.get("version", META_VERSION) != META_VERSION:
            raise HandoverRefused(
                f"{meta} has version {values['version']}, which Kafka writes with KRaft: use `ottla takeover`",
                EXIT_USAGE,
            )
        return int(values.get("broker.id", NO_BROKER)), values.get("cluster.id", "")
    except FileNotFoundError:  # Kafka 0.8 writes none
        return NO_BROKER, ""
    except ValueError as error:
        raise HandoverRefused(f"{meta}: {error}", EXIT_UNUSABLE) from None


def _check_zookeeper_decides(path: str) -> None:
    """Raises HandoverRefused unless the metadata log is that of a broker whose migration to KRaft had only begun."""
    try:
        read = read_metadata(f"{path}/{metadata_log.DIRECTORY}", is_clean=False, held=[])
    except (DirectoryError, ValueError) as error:
        raise HandoverRefused(f"{path}/{metadata_log.DIRECTORY}: {error}", EXIT_UNUSABLE) from None
    if read.image.topics or (read.image.features and read.migration != ZOOKEEPER_DECIDES):
        raise HandoverRefused(
            f"{path} has a KRaft metadata log ({metadata_log.DIRECTORY}): use `ottla takeover`", EXIT_USAGE
        )


def _check_same_cluster(found: list[Found]) -> None:
    named: Found | None = None
    for one in found:
        if named is not None and one.cluster_id and one.cluster_id != named.cluster_id:
            raise HandoverRefused(
                f"{one.home.path} belongs to cluster {one.cluster_id}, but {named.home.path} to {named.cluster_id}",
                EXIT_USAGE,
            )
        named = named or (one if one.cluster_id else None)


def releases(found: list[Found]) -> str:
    """Returns which releases can have written directories, as their files show it."""
    surveys = [survey for one in found for survey in one.surveys.values()]
    if any(one.topic_id for one in surveys):
        return "2.8 to 3.9"
    if any(one.cluster_id for one in found):
        return "2.4 to 3.9"
    if any(2 in one.formats for one in surveys):
        return "0.11 to 3.9"
    if any(one.has_time_indexes for one in surveys):
        return "0.10 or later"
    return "0.9" if any(one.has_meta for one in found) else "0.8"
