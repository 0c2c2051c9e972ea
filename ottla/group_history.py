"""The timeline of a group from a data directory, without a broker: what the records of `__consumer_offsets` tell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .coordinator.group.events import GroupEventView, shown
from .coordinator.group.story import Stories
from .protocol import opening, records
from .protocol.errors import MalformedMessage
from .protocol.records import BatchAt, Record
from .storage import checkpoints, layout
from .storage.batch_info import info_at

TOPIC = "__consumer_offsets"


def timeline(directory: str, group: str) -> list[GroupEventView]:
    """Returns the events of a group, oldest first. Raises FileNotFoundError if the directory has no groups."""
    root = Path(directory)
    folders = sorted((one for one in root.glob(f"{TOPIC}-*") if one.name[len(TOPIC) + 1 :].isdecimal()), key=_number)
    if not folders:
        raise FileNotFoundError(f"{directory} does not contain {TOPIC}: there were no groups")
    names = _topic_names(root)
    found: list[GroupEventView] = []
    for folder in folders:
        stories = Stories(names.get)
        for at_ms, batch in _batches(folder):
            for name, event in stories.feed(batch):
                if name == group:
                    found.append(shown(event, len(found) + 1, at_ms, None, "log"))
    return found


def _number(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _topic_names(root: Path) -> dict[bytes, str]:
    """The names of topics by their ids, as the directories of partitions have them."""
    names = {}
    for file in sorted(root.glob(f"*/{layout.PARTITION_METADATA}")):
        try:
            names[checkpoints.decode_partition_metadata(file.read_bytes())] = file.parent.name.rpartition("-")[0]
        except checkpoints.CorruptCheckpoint:  # a topic without a name, as one that was deleted
            continue
    return names


def _batches(folder: Path) -> Iterator[tuple[int, list[Record]]]:
    """Yields the time and the records of each batch of a partition. What cannot be read is left out."""
    for path in sorted(folder.glob(f"*{layout.LOG}")):
        with open(path, "rb") as file:
            position, size = 0, os.path.getsize(path)
            while position < size:
                file.seek(position)
                info = info_at(file.read(records.HEADER_SIZE), 0, position)
                if info is None or position + info.size > size:
                    break
                if info.header is not None and not info.header.is_control:
                    file.seek(position)
                    yield info.max_timestamp, _records(file.read(info.size), BatchAt(0, info.header))
                position += info.size


def _records(data: bytes, at: BatchAt) -> list[Record]:
    try:
        return [record for some in opening.contents(data, at) for record in some]
    except MalformedMessage:
        return []
