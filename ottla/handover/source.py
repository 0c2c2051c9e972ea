"""Reads the directories of a stopped cluster, of ottla or of an Apache Kafka with KRaft (3.3 and later), and changes
nothing in them.

Each directory is locked for reading, so that no broker can start on it meanwhile. The metadata log is copied to a
temporary directory and opened there, with the checks of a start.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple
from uuid import uuid4

from ..broker.controller import metadata_log
from ..broker.controller.metadata_opening import FlushedOffset, open_metadata
from ..broker.replica.directories import OWN_FILE, DirectoryError, Offsets, id_of_node, read_ends
from ..broker.replica.replica_ends import ReplicaEnds
from ..coordinator.metadata.format import MetadataFormat
from ..coordinator.metadata.state import MetadataState
from ..protocol import messages
from ..protocol.structs import Struct
from ..storage import checkpoints, layout
from ..storage.files import HELD, HandlePool, OsFiles
from . import EXIT_IN_USE, EXIT_UNUSABLE, EXIT_USAGE, HandoverRefused

Key = tuple[str, int]  # topic and partition
VERSIONS = {"0": "broker.id", "1": "node.id"}
"""Versions of `meta.properties`, with the property that has the node's id. Kafka with ZooKeeper writes version 0; so a
broker has it that has just come from there to KRaft.
"""
PREVIEW = "@metadata-0"
ZOOKEEPER_DECIDES = 2  # the state of a migration before everything was copied (PRE_MIGRATION); 1 is the next one


@dataclass(slots=True)
class SourceDirectory:
    """A log directory. `nodes`: those whose replicas are in it, which are several for one of ottla's."""

    path: str
    id: bytes
    node_id: int
    cluster_id: str
    is_clean: bool
    recovery_points: Offsets
    log_starts: Offsets
    high_watermarks: Offsets
    cleaner_offsets: Offsets
    replica_ends: ReplicaEnds = field(default_factory=ReplicaEnds)
    partitions: dict[Key, int] = field(default_factory=dict)  # their bytes
    others: list[str] = field(default_factory=list)  # names of directories that are no partition's
    nodes: frozenset[int] = frozenset()
    is_krafts: bool = True  # as its meta.properties says

    def partition_path(self, key: Key) -> str:
        return f"{self.path}/{layout.partition_directory(*key)}"

    def committed(self, key: Key) -> int:
        """Returns the offset up to which the checkpoints say that there are records."""
        return max(self.recovery_points.get(key, 0), self.high_watermarks.get(key, 0))


@dataclass(slots=True)
class Source:
    """A stopped cluster. `offset` and `epoch`: of the end of the metadata log."""

    directories: list[SourceDirectory]
    image: MetadataState
    offset: int
    epoch: int

    @property
    def cluster_id(self) -> str:
        return self.directories[0].cluster_id

    @property
    def node_ids(self) -> list[int]:
        """The nodes whose replicas are in the directories."""
        return sorted(frozenset[int]().union(*(one.nodes for one in self.directories)))

    @property
    def is_clean(self) -> bool:
        return all(one.is_clean for one in self.directories if one.partitions)

    @property
    def is_ottlas(self) -> bool:
        return any(os.path.exists(f"{one.path}/{OWN_FILE}") for one in self.directories)


@contextmanager
def opened(paths: tuple[str, ...]) -> Iterator[Source]:
    """Locks and reads the directories of a cluster. Raises HandoverRefused, OSError."""
    with ExitStack() as stack:
        directories: list[SourceDirectory] = []
        for path in dict.fromkeys(os.path.realpath(one) for one in paths):
            stack.enter_context(locked(path))
            directories.append(_directory(path))
        _check_same_cluster(directories)
        read = _metadata(directories)
        if read.migration == ZOOKEEPER_DECIDES:
            raise HandoverRefused(
                "the cluster was to be migrated from ZooKeeper to KRaft, which had not happened: use `ottla adopt`",
                EXIT_USAGE,
            )
        image = read.image
        for one in directories:
            shared = {n for n, broker in image.brokers.items() if id_of_node(one.id, n) in broker.log_dirs}
            one.nodes = frozenset((one.node_id, *shared)) if one.node_id in image.brokers else frozenset()
        yield Source(directories, image, read.offset, read.epoch)


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Holds the directory's lock for reading: a broker has it for writing."""
    try:
        fd = os.open(f"{path}/{layout.LOCK}", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:  # a broker creates it when it starts
        yield
        return
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        if error.errno in HELD:
            raise HandoverRefused(f"{path} is in use by another process; stop it first", EXIT_IN_USE) from None
        if error.errno != errno.ENOLCK:
            raise
        raise HandoverRefused(f"{path} cannot be locked: {error.strerror}", EXIT_UNUSABLE) from None
    try:
        yield
    finally:
        os.close(fd)


def _directory(path: str) -> SourceDirectory:
    meta = f"{path}/{layout.META_PROPERTIES}"
    files = OsFiles()
    try:
        values = checkpoints.decode_properties(files.read(meta))
        if values["version"] not in VERSIONS:
            raise ValueError(f"version {values['version']} is not supported")
        node_id, cluster = int(values[VERSIONS[values["version"]]]), values["cluster.id"]
        named = values.get("directory.id")
        directory_id = checkpoints.uuid_from_text(named) if named is not None else uuid4().bytes  # none before 3.7
    except FileNotFoundError:
        below = f"{path}/data"
        hint = f"; name {below}" if files.exists(f"{below}/{layout.META_PROPERTIES}") else ""
        raise HandoverRefused(f"{path} is no data directory: {meta} is missing{hint}", EXIT_UNUSABLE) from None
    except KeyError as error:
        raise HandoverRefused(f"{meta}: the property {error.args[0]} is missing", EXIT_UNUSABLE) from None
    except ValueError as error:
        raise HandoverRefused(f"{meta}: {error}", EXIT_UNUSABLE) from None
    found = SourceDirectory(
        path,
        directory_id,
        node_id,
        cluster,
        is_clean=files.exists(f"{path}/{layout.CLEAN_SHUTDOWN}"),
        recovery_points=checkpoints.read_offsets(files, f"{path}/{layout.RECOVERY_POINTS}"),
        log_starts=checkpoints.read_offsets(files, f"{path}/{layout.LOG_STARTS}"),
        high_watermarks=checkpoints.read_offsets(files, f"{path}/{layout.HIGH_WATERMARKS}"),
        cleaner_offsets=checkpoints.read_offsets(files, f"{path}/{layout.CLEANER_OFFSETS}"),
    )
    found.replica_ends = read_ends(files, path)
    found.is_krafts = values["version"] != "0"
    for name in files.names(path):
        if name == metadata_log.DIRECTORY or not os.path.isdir(f"{path}/{name}"):
            continue
        key = layout.parse_partition_directory(name)
        if key is None:
            found.others.append(name)
        else:
            found.partitions[key] = bytes_in(f"{path}/{name}")
    return found


def bytes_in(path: str) -> int:
    """Returns how many bytes the files of a directory have. Raises OSError."""
    with os.scandir(path) as files:
        return sum(one.stat().st_size for one in files if one.is_file())


def _check_same_cluster(directories: list[SourceDirectory]) -> None:
    by_id: dict[bytes, str] = {}
    first = directories[0]
    for one in directories:
        if one.cluster_id != first.cluster_id:
            raise HandoverRefused(
                f"{one.path} belongs to cluster {one.cluster_id}, but {first.path} to {first.cluster_id}", EXIT_USAGE
            )
        if by_id.setdefault(one.id, one.path) != one.path:
            raise HandoverRefused(
                f"{one.path} and {by_id[one.id]} have the same directory.id: one is a copy of the other", EXIT_USAGE
            )


class Metadata(NamedTuple):
    """What a metadata log says, and where it ends. `migration`: how far the cluster came from ZooKeeper (KIP-866)."""

    image: MetadataState
    offset: int
    epoch: int
    migration: int


def _metadata(directories: list[SourceDirectory]) -> Metadata:
    """Returns that of the metadata log that is furthest, among those that can be read."""
    found: Metadata | None = None
    wrong = ""
    for one in directories:
        if not os.path.isdir(f"{one.path}/{metadata_log.DIRECTORY}"):
            continue
        try:
            read = read_metadata(
                f"{one.path}/{metadata_log.DIRECTORY}",
                is_clean=one.is_clean,
                held=[layout.partition_directory(*key) for key in one.partitions],
            )
        except (DirectoryError, ValueError) as error:
            wrong = wrong or f"{one.path}/{metadata_log.DIRECTORY}: {error}"
            continue
        if found is None or (read.epoch, read.offset) > (found.epoch, found.offset):
            found = read
    if found is None:
        if not wrong and not any(one.is_krafts for one in directories):
            raise HandoverRefused(f"{directories[0].path} is of a Kafka with ZooKeeper: use `ottla adopt`", EXIT_USAGE)
        for one in directories:
            if os.path.isdir(f"{one.path}/{PREVIEW}"):
                wrong = f"{one.path} is of the preview of KRaft in Kafka 2.8, whose metadata no later Kafka reads"
        words = wrong or f"no directory has a {metadata_log.DIRECTORY}: name the one that has it, too"
        raise HandoverRefused(words, EXIT_UNUSABLE)
    return found


def read_metadata(source: str, *, is_clean: bool, held: list[str]) -> Metadata:
    """Reads a copy of a metadata log. `held`: the partitions' directories beside it. Raises DirectoryError, ValueError,
    OSError.
    """
    with tempfile.TemporaryDirectory(prefix="ottla-handover-") as temporary:
        path = f"{temporary}/{metadata_log.DIRECTORY}"
        shutil.copytree(source, path)
        files = OsFiles()
        pool = HandlePool(files)
        flushed = FlushedOffset(pool, path)
        flushed.load()
        now = int(time.time() * 1000)
        try:
            read = open_metadata(pool, path, flushed, now, clean=is_clean, salvage=False, held=held)
            decode = MetadataFormat().decode
            decoded = map(decode, metadata_log.metadata_records(read.log, read.first))
            image = MetadataState()
            migration = replay(image, chain(read.contents, (one[1] for one in decoded if one is not None)))
            snapshots = metadata_log.snapshots(files.names(path))
            epochs = (metadata_log.read_quorum_epoch(files, path), read.log.epochs.latest, *(e for _, e in snapshots))
            return Metadata(image, read.log.end_offset, max(epochs), migration)
        finally:
            pool.close_all()


def replay(image: MetadataState, records: Iterable[Struct]) -> int:
    """Applies the records; of a transaction (KIP-868) those that were committed. Returns the state of the migration."""
    migration = 0
    pending: list[Struct] | None = None
    for record in records:
        if isinstance(record, messages.BeginTransactionRecord):
            pending = []
        elif isinstance(record, messages.AbortTransactionRecord):
            pending = None
        elif pending is not None and not isinstance(record, messages.EndTransactionRecord):
            pending.append(record)
        else:
            for one in (*(pending or ()), record):
                if isinstance(one, messages.ZkMigrationStateRecord):
                    migration = one.zk_migration_state
                image.apply(one)
            pending = None
    return migration
