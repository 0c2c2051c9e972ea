"""The log directories: created and formatted if new, locked while the broker runs, with Kafka's checkpoints."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from ...protocol.errors import ApiError, Errors
from ...storage import checkpoints
from ...storage.failures import is_disk_failure, is_passing
from ...storage.files import Files, HandlePool
from ...storage.layout import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    parse_partition_directory,
)
from .. import bugs
from ..config.config import Config
from ..metrics import Metrics
from ..sparse_log import SparseLog
from ..turn import Turn
from . import replica_ends
from .replica_ends import NO_EPOCH, Ends, ReplicaEnds

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.log.LogManager")

OWN_FILE = "ottla.json"
OWN_FORMAT = 1
UNKNOWN_ID = bytes(16)  # of a directory whose `meta.properties` cannot be read
META_VERSION = "1"
EVERY_DIRECTORY = "*"  # as a value of `cordoned.log.dirs`

Offsets = dict[tuple[str, int], int]


class DirectoryError(Exception):
    """A log directory with which the broker cannot start."""


class DirectoryLocked(DirectoryError):
    """Another process uses the directory."""


@dataclass(slots=True)
class LogDirectory:
    """One of `log.dirs`."""

    path: str
    id: bytes
    clean: bool  # the last shutdown was clean
    recovery_points: Offsets = field(default_factory=dict)
    log_starts: Offsets = field(default_factory=dict)
    high_watermarks: Offsets = field(default_factory=dict)
    cleaner_offsets: Offsets = field(default_factory=dict)
    replica_ends: ReplicaEnds = field(default_factory=ReplicaEnds)
    lock: int | None = None
    failed: bool = False
    created: bool = False
    partitions: int = 0  # the number of its partitions
    jobs: int = 0  # checkpoint jobs that were made
    written: dict[str, int] = field(default_factory=dict)  # the job that wrote each checkpoint last
    stored: dict[str, Offsets] = field(default_factory=dict)  # what each checkpoint holds, as far as that is known
    writing: threading.Lock = field(default_factory=threading.Lock)
    node_ids: dict[int, bytes] = field(default_factory=dict)  # by node: those of a partition's replicas
    failed_nodes: set[int] = field(default_factory=set)  # the nodes of which the lab lets it fail

    @property
    def ids(self) -> frozenset[bytes]:
        return frozenset((self.id, *self.node_ids.values()))

    def share_among(self, nodes: Iterable[int], first: int) -> None:
        """Gives each node an id of the directory, which it shares with the others; the first one has the real id."""
        self.node_ids.update({node: self.id if node == first else id_of_node(self.id, node) for node in nodes})

    def has_failed(self, node: int) -> bool:
        """Whether the replicas of a node in the directory are offline."""
        return self.failed or node in self.failed_nodes

    def has_saved(self, topic: str, index: int) -> bool:
        """Whether the checkpoints may have offsets of a partition."""
        key = topic, index
        return bool(self.log_starts.get(key) or self.high_watermarks.get(key))


def id_of_node(directory_id: bytes, node: int) -> bytes:
    """Returns the id that a log directory has for a node that shares it with the first one."""
    from hashlib import sha256  # one node needs none of it

    return sha256(directory_id + node.to_bytes(4, "big")).digest()[:16]


def open_directories(
    files: Files,
    paths: list[str],
    node_id: int,
    cluster_id: str | None,
    new_id: Callable[[], bytes],
    salvage: bool = False,
) -> tuple[list[LogDirectory], str]:
    """Opens or formats the directories; returns them and the id of their cluster.

    The first holds the metadata, and must be usable; another one that the disk keeps from being opened is offline, as
    in Kafka. `salvage`: a directory that has lost its `meta.properties` gets another one. DirectoryError,
    DirectoryLocked, OSError.
    """
    found: list[LogDirectory] = []
    by_real_path: dict[str, str] = {}
    for path in paths:
        same = by_real_path.setdefault(files.real(path), path)
        if same == path and any(one.path == path for one in found):
            logger.warning("log.dirs: %s is listed twice; the second entry is ignored", path)
            continue
        if same != path:
            raise DirectoryError(f"log.dirs: {path} and {same} are the same directory")
        try:
            directory, cluster_id = _open_directory(files, path, node_id, cluster_id, new_id, salvage)
        except OSError as error:
            if not found or is_passing(error):
                raise
            logger.error("log directory %s failed: %s; its partitions are offline", path, error)
            directory = LogDirectory(path, UNKNOWN_ID, clean=False, failed=True)
        for other in found:
            if other.id == directory.id != UNKNOWN_ID:
                raise DirectoryError(
                    f"log.dirs: {path} and {other.path} have the same directory.id in {META_PROPERTIES}; remove the "
                    "one that is a copy of the other"
                )
        found.append(directory)
    return found, cluster_id or ""


def _open_directory(
    files: Files, path: str, node_id: int, cluster_id: str | None, new_id: Callable[[], bytes], salvage: bool
) -> tuple[LogDirectory, str]:
    _make_durable_directory(files, path)
    lock = None
    if hasattr(files, "lock"):
        try:
            lock = files.lock(f"{path}/{LOCK}")
        except BlockingIOError:
            raise DirectoryLocked(f"{path} is in use by another process") from None
    names = files.names(path)  # also shows whether the directory can be listed
    meta = f"{path}/{META_PROPERTIES}"
    created = not files.exists(meta)
    if created:
        _check_is_new(names, path, salvage)
        cluster = cluster_id or checkpoints.uuid_to_text(new_id())
        directory_id = new_id()
        write_meta(files, meta, node_id, cluster, directory_id)
    else:
        cluster, directory_id = _read_meta(files, meta, node_id, cluster_id)
    _check_own_file(files, path)
    clean = files.exists(f"{path}/{CLEAN_SHUTDOWN}")
    directory = LogDirectory(path, directory_id, clean, lock=lock, created=created)
    directory.recovery_points = checkpoints.read_offsets(files, f"{path}/{RECOVERY_POINTS}")
    directory.log_starts = checkpoints.read_offsets(files, f"{path}/{LOG_STARTS}")
    directory.high_watermarks = checkpoints.read_offsets(files, f"{path}/{HIGH_WATERMARKS}")
    directory.cleaner_offsets = checkpoints.read_offsets(files, f"{path}/{CLEANER_OFFSETS}")
    directory.replica_ends = read_ends(files, path)
    return directory, cluster


def read_ends(files: Files, path: str) -> ReplicaEnds:
    """Reads where the replicas in a log directory were; one that is not known is where its log ends. Raises OSError."""
    try:
        ends, epoch, crashed = replica_ends.decode(files.read(f"{path}/{replica_ends.FILE}"))
    except FileNotFoundError:
        return ReplicaEnds()
    except ValueError as error:
        logger.warning("%s/%s: %s; the replicas have their whole logs", path, replica_ends.FILE, error)
        ends, epoch, crashed = {}, NO_EPOCH, set()
    is_latest = epoch == _shutdown_epoch(files, path)
    return ReplicaEnds(ends, is_latest and epoch != NO_EPOCH, stored=b"", crashed=crashed if is_latest else set())


def _shutdown_epoch(files: Files, path: str) -> int:
    """Returns the broker epoch of the clean shutdown; NO_EPOCH without one, or if the mark has none (old Kafkas)."""
    try:
        return int(json.loads(files.read(f"{path}/{CLEAN_SHUTDOWN}"))["brokerEpoch"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return NO_EPOCH


def _make_durable_directory(files: Files, path: str) -> None:
    """Makes a directory with those above it that are missing, and makes their names durable. Raises OSError."""
    above = path = files.absolute(path)
    changed = []
    while not files.exists(above):
        above = above.rpartition("/")[0] or "/"
        changed.append(above)
    files.make_directory(path)
    for directory in changed:
        with suppress(PermissionError):  # who may write into a directory may not always read it, as a sync does
            files.sync_directory(directory)


def _check_is_new(names: list[str], path: str, salvage: bool) -> None:
    """Raises DirectoryError if a directory without `meta.properties` has partitions: it is not new,
    but has lost the file.
    """
    held = [name for name in names if parse_partition_directory(name)]
    if not held:
        return
    lost = f"{path}/{META_PROPERTIES} is missing, but the directory holds {len(held)} partitions, for example {held[0]}"
    if not salvage:
        raise DirectoryError(f"{lost}; restore the file, or start with ottla.recovery=salvage to create a new one")
    logger.error("%s; creating a new one (ottla.recovery=salvage)", lost)


def write_meta(files: Files, path: str, node_id: int, cluster: str, directory_id: bytes) -> None:
    """Writes the `meta.properties` in `path`. Raises OSError."""
    values = {
        "node.id": str(node_id),
        "directory.id": checkpoints.uuid_to_text(directory_id),
        "version": META_VERSION,
        "cluster.id": cluster,
    }
    files.replace(path, checkpoints.encode_properties(values))


def _read_meta(files: Files, path: str, node_id: int, cluster_id: str | None) -> tuple[str, bytes]:
    try:
        values = checkpoints.decode_properties(files.read(path))
        if values["version"] != META_VERSION:
            raise DirectoryError(
                f"{path}: unsupported version {values['version']}; only version {META_VERSION} is supported"
                + ("; a Kafka with ZooKeeper wrote it: use `ottla adopt`" if values["version"] == "0" else "")
            )
        found_node, cluster = int(values["node.id"]), values["cluster.id"]
        directory_id = checkpoints.uuid_from_text(values["directory.id"])
    except KeyError as error:
        raise DirectoryError(f"{path}: the property {error.args[0]} is missing") from None
    except ValueError as error:
        raise DirectoryError(f"{path}: {error}") from None
    if found_node != node_id:
        raise DirectoryError(f"{path}: the directory belongs to node {found_node}, but node.id is {node_id}")
    if cluster_id and cluster != cluster_id:
        raise DirectoryError(
            f"{path}: the directory belongs to cluster {cluster}, but the configured cluster id is {cluster_id}"
        )
    return cluster, directory_id


def _check_own_file(files: Files, path: str) -> None:
    """Checks the file of ottla's own format; refuses a newer format."""
    own = f"{path}/{OWN_FILE}"
    if not files.exists(own):
        files.replace(own, json.dumps({"format": OWN_FORMAT}).encode())
        return
    try:
        found = int(json.loads(files.read(own))["format"])
    except (ValueError, KeyError, TypeError):
        raise DirectoryError(f'{own} is damaged; it should contain {{"format": {OWN_FORMAT}}}') from None
    if found > OWN_FORMAT:
        raise DirectoryError(f"{own} has format {found}; this version of ottla supports formats up to {OWN_FORMAT}")


class CheckpointJob(NamedTuple):
    """Offsets to write, by the name of their file, as they were when the job was made."""

    number: int
    offsets: dict[str, Offsets]
    ends: Ends | None = None  # None: they are not written
    crashed: tuple[int, ...] = ()


def _tables(directory: LogDirectory) -> dict[str, Offsets]:
    """Returns the offsets by the checkpoint that holds them."""
    return {
        RECOVERY_POINTS: directory.recovery_points,
        LOG_STARTS: directory.log_starts,
        HIGH_WATERMARKS: directory.high_watermarks,
        CLEANER_OFFSETS: directory.cleaner_offsets,
    }


def _kept(name: str, offsets: Offsets) -> Offsets:
    """Returns the offsets that a checkpoint holds."""
    return {key: offset for key, offset in offsets.items() if offset > 0} if name == LOG_STARTS else offsets


def are_stored(directory: LogDirectory) -> bool:
    """Whether the checkpoints hold the offsets of a directory, and its file where the replicas are."""
    held = directory.replica_ends
    return held.stored == held.content(held.by_key, held.crashed, NO_EPOCH) and all(
        directory.stored.get(name) == _kept(name, offsets) for name, offsets in _tables(directory).items()
    )


def checkpoint_job(directory: LogDirectory, *names: str) -> CheckpointJob:
    """Copies the offsets for the named checkpoints, by default for all."""
    directory.jobs += 1
    tables = _tables(directory)
    ends = None if names else dict(directory.replica_ends.by_key)
    offsets = {name: dict(tables[name]) for name in names or tables}
    return CheckpointJob(directory.jobs, offsets, ends, tuple(sorted(directory.replica_ends.crashed)))


def store(files: Files, directory: LogDirectory, job: CheckpointJob) -> None:
    """Writes checkpoints; may run in a thread. Leaves out a file for which a later job has run, or which holds these
    offsets already. Raises OSError.
    """
    with directory.writing:
        for name, offsets in job.offsets.items():
            if directory.written.get(name, 0) > job.number:
                continue
            kept = _kept(name, offsets)
            if directory.stored.pop(name, None) != kept:
                files.replace(f"{directory.path}/{name}", checkpoints.encode_offsets(kept))
            directory.written[name], directory.stored[name] = job.number, kept
        if job.ends is not None and directory.written.get(replica_ends.FILE, 0) <= job.number:
            store_ends(files, directory, job.ends, job.crashed, NO_EPOCH)
            directory.written[replica_ends.FILE] = job.number


def store_ends(files: Files, directory: LogDirectory, ends: Ends, crashed: Collection[int], broker_epoch: int) -> None:
    """Writes where replicas are, unless the file holds it already. Raises OSError."""
    held = directory.replica_ends
    data = held.content(ends, crashed, broker_epoch)
    if data is not None and data != held.stored:
        held.stored = b""  # until it is written
        files.replace(f"{directory.path}/{replica_ends.FILE}", data)
        held.stored = data


class LogDirectories:
    """All log directories, the files in them, and the handling of their I/O errors. `offline` takes the partitions of a
    failed directory offline.
    """

    def __init__(
        self,
        turn: Turn,
        config: Config,
        files: Files,
        new_id: Callable[[], bytes],
        metrics: Metrics,
        sparsely: SparseLog,
        nodes: Iterable[int],
    ) -> None:
        self.turn = turn
        self.config = config
        self.nodes = tuple(nodes)
        self.files = files
        self.new_id = new_id
        self.metrics = metrics
        self.sparsely = sparsely
        self.pool = HandlePool(files)
        self.all: list[LogDirectory] = []
        self.crashed: set[int] = set()  # nodes that were killed and have not come back; each directory remembers them
        self.offline: Callable[[LogDirectory], None] = lambda directory: None
        turn.io_error = self.storage_error

    def open(self) -> str:
        """Opens or formats the directories; returns their cluster id.
        Raises DirectoryError, DirectoryLocked or OSError.
        """
        config = self.config
        paths = [path.rstrip("/") or "/" for path in config.log_dirs]
        wanted = config["ottla.cluster.id"] or None
        salvage = config["ottla.recovery"] == "salvage"
        self.all, cluster_id = open_directories(self.files, paths, config.node_id, wanted, self.new_id, salvage)
        self.crashed.update(*(directory.replica_ends.crashed for directory in self.all))
        for directory in self.all:
            directory.share_among(self.nodes, config.node_id)
            directory.replica_ends.crashed = self.crashed
        return cluster_id

    def end_trust(self) -> None:
        """Removes the marks of the last clean shutdown, before the first write that a crash may tear. A start that is
        refused before leaves them: they prove that what is damaged was durable. Raises OSError.
        """
        for directory in self.online:
            if directory.clean:
                try:
                    self.files.remove(f"{directory.path}/{CLEAN_SHUTDOWN}")
                    self.files.sync_directory(directory.path)
                except OSError as error:
                    if directory is self.all[0] or is_passing(error):
                        raise
                    logger.error("log directory %s failed: %s; its partitions are offline", directory.path, error)
                    directory.failed = True

    @property
    def online(self) -> list[LogDirectory]:
        """The log directories that have not failed."""
        return [directory for directory in self.all if not directory.failed]

    def ids_of(self, node: int) -> list[bytes]:
        """Returns the ids of the directories that have not failed, as a node has them."""
        return [one.node_ids[node] for one in self.all if not one.has_failed(node)]

    def cordoned(self, named: Sequence[str], node: int) -> tuple[bytes, ...]:
        """Returns the ids of the directories in which a node places no new replicas (KIP-1066). `named`: their paths,
        or `*` for all.
        """
        return tuple(one.node_ids[node] for one in self.all if EVERY_DIRECTORY in named or one.path in named)

    def storage_error(self, error: OSError, home: LogDirectory | None = None) -> ApiError:
        """Handles an I/O error; returns KAFKA_STORAGE_ERROR for the reply. `home`: the directory of the partition that
        was used; if it is not known, the path in the error decides which directory is affected.
        """
        path = str(error.filename or "")
        for directory in self.all if home is None else (home,):
            if directory is home or path == directory.path or path.startswith(f"{directory.path}/"):
                self.io_failed(directory, error)
                return ApiError(Errors.KAFKA_STORAGE_ERROR)
        bugs.report("an operation on a file outside the log directories", error)
        return ApiError(Errors.UNKNOWN_SERVER_ERROR)

    def _is_there(self, directory: LogDirectory) -> bool:
        try:
            return self.files.exists(f"{directory.path}/{META_PROPERTIES}")
        except OSError:
            return False

    def io_failed(self, directory: LogDirectory, error: OSError) -> bool:
        """Handles an I/O error in a log directory; returns whether the directory is offline.

        A failed disk takes its partitions offline, and the last one takes the broker down, as in Kafka. Another error
        (`storage.failures`) fails only its operation, unless the directory itself is gone.
        """
        if directory.failed:
            return True
        if not is_disk_failure(error) and self._is_there(directory):
            self.metrics.io_errors += 1
            self.sparsely.warning("io", "log directory %s: %s", directory.path, error)
            return False
        directory.failed = True
        logger.error("log directory %s failed: %s", directory.path, error)
        self.offline(directory)
        if directory is self.all[0] and len(self.all) > 1:
            self.turn.fatal(f"the log directory of the metadata log failed, {directory.path}: {error}")
        elif all(d.failed for d in self.all):
            self.turn.fatal(f"all log directories failed; the last one was {directory.path}: {error}")
        return True
