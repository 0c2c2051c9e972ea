"""Changes log directories in place, so that a crash leaves them as they were, or such that the next run goes on.

Everything new is made in `adopting` within each directory, and synced. Then `adopting/ready` in the first directory
names all of them: from there on there is only one way. The new files and directories are renamed to their places; a
partition's directory that is replaced becomes a stray one, which neither Kafka nor ottla deletes. `meta.properties` of
the first directory comes last, so that no broker starts on what is not complete.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from uuid import uuid4

from ..storage import checkpoints
from ..storage.files import Files
from ..storage.layout import DIRECTORY_STRAY, META_PROPERTIES, parse_partition_directory, retired_directory
from .findings import MARKER

NEW, READY = "new", "ready"
OLD_META = f"{META_PROPERTIES}.before-adoption"


def staging(path: str) -> str:
    """Returns where the new files of a directory are made."""
    return f"{path}/{MARKER}/{NEW}"


def begin(files: Files, paths: Sequence[str]) -> None:
    """Makes the places for new files, without what an earlier run left in them. Raises OSError."""
    for path in paths:
        discard(files, path)
        files.make_directory(staging(path))
        files.sync_directory(path)


def discard(files: Files, path: str) -> None:
    """Removes what was begun in a directory, before it is ready. Raises OSError."""
    if files.exists(f"{path}/{MARKER}"):
        files.remove_tree(f"{path}/{MARKER}")


def commit(files: Files, paths: Sequence[str], sync: Callable[[], None]) -> None:
    """What is new in the directories counts from now on; the first is that of the metadata. `sync` makes everything
    that was written durable. Raises OSError.
    """
    sync()
    files.replace(f"{paths[0]}/{MARKER}/{READY}", json.dumps(list(paths)).encode())
    finish(files, paths)


def begun(files: Files, paths: Sequence[str]) -> list[str]:
    """Returns the directories of an adoption that has only to be finished; none if there is none. Raises OSError."""
    for path in paths:
        ready = f"{path}/{MARKER}/{READY}"
        if files.exists(ready):
            return [str(one) for one in json.loads(files.read(ready))]
        if files.exists(f"{path}/{MARKER}") and not files.exists(staging(path)):  # only the marker is left of it
            return [path]
    return []


def finish(files: Files, paths: Sequence[str]) -> None:
    """Renames what is new to its place. May be repeated. Raises OSError."""
    for path in reversed(paths):
        if files.exists(staging(path)):
            names = files.names(staging(path))
            for name in sorted(names, key=lambda name: (name == META_PROPERTIES, name)):
                _put(files, path, name)
            files.sync_directory(path)
    for path in reversed(paths):
        if files.exists(staging(path)):
            files.remove_tree(staging(path))
        if files.exists(f"{path}/{MARKER}/{READY}"):
            files.remove(f"{path}/{MARKER}/{READY}")
        discard(files, path)
        files.sync_directory(path)


def _put(files: Files, path: str, name: str) -> None:
    place = f"{path}/{name}"
    key = parse_partition_directory(name)
    if key is not None and files.exists(place):
        files.rename(place, f"{path}/{retired_directory(*key, uuid4().hex, DIRECTORY_STRAY)}")
    files.rename(f"{staging(path)}/{name}", place)


def keep_meta(files: Files, path: str) -> None:
    """Keeps the old `meta.properties` under another name; Kafka 0.8 has none. Raises OSError."""
    meta = f"{path}/{META_PROPERTIES}"
    if files.exists(meta):
        files.replace(f"{staging(path)}/{OLD_META}", files.read(meta), durable=False)


def merged_offsets(old: dict[tuple[str, int], int], new: dict[tuple[str, int], int]) -> bytes:
    """Returns a checkpoint's content, with other offsets for some partitions."""
    return checkpoints.encode_offsets({**old, **new})
