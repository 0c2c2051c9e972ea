"""The log directories: made and formatted when they are new, locked while the broker runs, with Kafka's checkpoints in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from ..storage import checkpoints
from ..storage.files import Files
from ..storage.layout import CLEAN_SHUTDOWN, CLEANER_OFFSETS, HIGH_WATERMARKS, LOCK, LOG_STARTS, META_PROPERTIES, RECOVERY_POINTS

OWN_FILE = "ottla.json"
OWN_FORMAT = 1
META_VERSION = "1"

Offsets = dict[tuple[str, int], int]


class DirectoryError(Exception):
    """A log directory that the broker cannot start on."""


class DirectoryLocked(DirectoryError):
    """Another process has the directory."""


@dataclass(slots=True)
class LogDirectory:
    """One of `log.dirs`."""

    path: str
    id: bytes
    clean: bool  # the last owner stopped in order
    recovery_points: Offsets = field(default_factory=dict)
    log_starts: Offsets = field(default_factory=dict)
    high_watermarks: Offsets = field(default_factory=dict)
    cleaner_offsets: Offsets = field(default_factory=dict)
    lock: int | None = None
    failed: bool = False
    created: bool = False


def open_directory(files: Files, path: str, node_id: int, cluster_id: str | None, new_id: Callable[[], bytes]) -> tuple[LogDirectory, str]:
    """Opens or formats a directory; returns it and the id of its cluster. DirectoryError, DirectoryLocked, OSError."""
    files.make_directory(path)
    lock = None
    if hasattr(files, "lock"):
        try:
            lock = files.lock(f"{path}/{LOCK}")
        except BlockingIOError:
            raise DirectoryLocked(f"{path} is in use by another process") from None
    meta = f"{path}/{META_PROPERTIES}"
    created = not files.exists(meta)
    if created:
        cluster = cluster_id or checkpoints.uuid_to_text(new_id())
        directory_id = new_id()
        _write_meta(files, meta, node_id, cluster, directory_id)
    else:
        cluster, directory_id = _read_meta(files, meta, node_id, cluster_id)
    _check_own_file(files, path)
    directory = LogDirectory(path, directory_id, created or files.exists(f"{path}/{CLEAN_SHUTDOWN}"), lock=lock, created=created)
    if not created:
        directory.recovery_points = checkpoints.read_offsets(files, f"{path}/{RECOVERY_POINTS}")
        directory.log_starts = checkpoints.read_offsets(files, f"{path}/{LOG_STARTS}")
        directory.high_watermarks = checkpoints.read_offsets(files, f"{path}/{HIGH_WATERMARKS}")
        directory.cleaner_offsets = checkpoints.read_offsets(files, f"{path}/{CLEANER_OFFSETS}")
    if files.exists(f"{path}/{CLEAN_SHUTDOWN}"):
        files.remove(f"{path}/{CLEAN_SHUTDOWN}")
        files.sync_directory(path)
    return directory, cluster


def _write_meta(files: Files, path: str, node_id: int, cluster: str, directory_id: bytes) -> None:
    values = {
        "node.id": str(node_id),
        "directory.id": checkpoints.uuid_to_text(directory_id),
        "version": META_VERSION,
        "cluster.id": cluster,
    }
    files.replace(path, checkpoints.encode_properties(values))


def _read_meta(files: Files, path: str, node_id: int, cluster_id: str | None) -> tuple[str, bytes]:
    values = checkpoints.decode_properties(files.read(path))
    try:
        if values["version"] != META_VERSION:
            raise DirectoryError(f"{path}: version {values['version']}, and only version {META_VERSION} is known")
        found_node, cluster = int(values["node.id"]), values["cluster.id"]
        directory_id = checkpoints.uuid_from_text(values["directory.id"])
    except (KeyError, ValueError) as error:
        raise DirectoryError(f"{path}: {error!r} is missing or wrong") from None
    if found_node != node_id:
        raise DirectoryError(f"{path}: the directory is of node {found_node}, and node.id is {node_id}")
    if cluster_id and cluster != cluster_id:
        raise DirectoryError(f"{path}: the directory is of cluster {cluster}, and {cluster_id} was asked for")
    return cluster, directory_id


def _check_own_file(files: Files, path: str) -> None:
    """What Kafka has no file for; a format from the future is refused by name."""
    own = f"{path}/{OWN_FILE}"
    if not files.exists(own):
        files.replace(own, json.dumps({"format": OWN_FORMAT}).encode())
        return
    try:
        found = json.loads(files.read(own))["format"]
    except (ValueError, KeyError, TypeError):
        raise DirectoryError(f"{own} is damaged") from None
    if found > OWN_FORMAT:
        raise DirectoryError(f"{own} has format {found}; this version of ottla knows {OWN_FORMAT} and older")


def save_recovery_points(files: Files, directory: LogDirectory) -> None:
    files.replace(f"{directory.path}/{RECOVERY_POINTS}", checkpoints.encode_offsets(directory.recovery_points))


def save_checkpoints(files: Files, directory: LogDirectory) -> None:
    """Writes the offset checkpoints."""
    save_recovery_points(files, directory)
    for name, offsets in (
        (LOG_STARTS, {tp: offset for tp, offset in directory.log_starts.items() if offset > 0}),
        (HIGH_WATERMARKS, directory.high_watermarks),
        (CLEANER_OFFSETS, directory.cleaner_offsets),
    ):
        files.replace(f"{directory.path}/{name}", checkpoints.encode_offsets(offsets))


def mark_clean(files: Files, directory: LogDirectory, broker_epoch: int) -> None:
    content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
    files.replace(f"{directory.path}/{CLEAN_SHUTDOWN}", content.encode())
