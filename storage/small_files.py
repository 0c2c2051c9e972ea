"""The files of a log's directory that are no segments: topic id, leader epochs, producer snapshots.

Writing one does not wait for the disk: the next flush of the log makes it durable (`take_unsynced`). After a crash that
holds for those that are read too, because the process before may not have synced them.
"""

from __future__ import annotations

import logging

from . import checkpoints
from .epochs import LeaderEpochs
from .files import Files
from .layout import DELETED, LEADER_EPOCHS, LOG, PARTITION_METADATA, SNAPSHOT, file_name, offset_of
from .producers import Producers

logger = logging.getLogger("ottla.org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache")


class SmallFiles:
    """The small files in `directory`, which follows the log when it is renamed."""

    def __init__(self, files: Files, directory: str, has_new_names: bool) -> None:
        self.files = files
        self.directory = directory
        self._has_new_names = has_new_names  # a file was created, renamed or removed, and that may not be durable
        self._unsynced: set[str] = set()  # names of files whose contents may not be durable
        self._saved_epochs: list[tuple[int, int]] | None = None  # the content of their file

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    # what the next flush has to sync

    def note_new_names(self) -> None:
        """Files were created, renamed or removed: the next flush syncs the directory."""
        self._has_new_names = True

    def take_unsynced(self) -> tuple[list[str], bool]:
        """Returns the files to sync, and whether the directory is to be synced; they count as synced from now on."""
        paths, has_new_names = [self.path(name) for name in sorted(self._unsynced)], self._has_new_names
        self._unsynced.clear()
        self._has_new_names = False
        return paths, has_new_names

    def write(self, name: str, data: bytes) -> None:
        """Replaces a file, which the next flush makes durable."""
        self.files.replace(self.path(name), data, durable=False)
        self._unsynced.add(name)
        self._has_new_names = True

    def create(self, topic_id: bytes, epochs: LeaderEpochs) -> None:
        """Writes topic id and leader epochs where neither exists. A crash may leave either incomplete, which those who
        read them then know: the epochs begin at 0, so that no part of their file reads as other epochs.
        """
        self.files.create(self.path(PARTITION_METADATA), checkpoints.encode_partition_metadata(topic_id))
        self.files.create(self.path(LEADER_EPOCHS), checkpoints.encode_epochs(epochs.entries))
        self._unsynced.update((PARTITION_METADATA, LEADER_EPOCHS))
        self._saved_epochs = list(epochs.entries)

    # topic id

    def load_topic_id(self, clean: bool) -> bytes | None:
        """Returns the topic id; None if its file is missing, or if a crash (not `clean`) left it incomplete.

        Raises CorruptCheckpoint for an invalid file: the directory may belong to any topic.
        """
        path = self.path(PARTITION_METADATA)
        try:
            data = self.files.read(path)
            if not clean:
                self._unsynced.add(PARTITION_METADATA)
                if checkpoints.is_torn_partition_metadata(data):
                    return None
            return checkpoints.decode_partition_metadata(data)
        except FileNotFoundError:
            return None
        except checkpoints.CorruptCheckpoint as error:
            raise checkpoints.CorruptCheckpoint(f"{path}: {error}") from None

    def save_topic_id(self, topic_id: bytes) -> None:
        self.write(PARTITION_METADATA, checkpoints.encode_partition_metadata(topic_id))

    # leader epochs

    def load_epochs(self, clean: bool) -> LeaderEpochs | None:
        """Returns the leader epochs, none if their file is missing; None if the file is invalid."""
        path = self.path(LEADER_EPOCHS)
        try:
            entries = checkpoints.decode_epochs(self.files.read(path))
        except FileNotFoundError:
            return LeaderEpochs()
        except checkpoints.CorruptCheckpoint as error:
            logger.warning("%s: %s; the leader epochs are rebuilt from the log", path, error)
            return None
        self._saved_epochs = list(entries)
        if not clean:
            self._unsynced.add(LEADER_EPOCHS)
        return LeaderEpochs(entries)

    def save_epochs(self, epochs: LeaderEpochs) -> None:
        """Writes the leader epochs if they differ from their file."""
        if epochs.entries != self._saved_epochs:
            self.write(LEADER_EPOCHS, checkpoints.encode_epochs(epochs.entries))
            self._saved_epochs = list(epochs.entries)

    # producer snapshots

    def snapshot_offsets(self) -> list[int]:
        """Returns the offsets of the producer snapshots, in no order."""
        return [offset_of(name) for name in self.files.names(self.directory) if name.endswith(SNAPSHOT)]

    def save_snapshot(self, producers: Producers, offset: int) -> None:
        self.write(file_name(offset, SNAPSHOT), producers.snapshot())

    def load_snapshot(self, producers: Producers, offsets: list[int], start: int, end: int) -> int:
        """Fills `producers` from the newest valid snapshot, of those at `offsets`, between `start` and `end`; returns
        its offset, or `start` if there is none. Removes invalid snapshots.
        """
        for offset in sorted(offsets, reverse=True):
            if start <= offset <= end:
                path = self.path(file_name(offset, SNAPSHOT))
                try:
                    producers.load_snapshot(self.files.read(path), offset)
                except ValueError as error:
                    logger.warning(
                        "%s: %s; the producer state is read from an older snapshot or from the log", path, error
                    )
                    self.files.remove(path)
                else:
                    return offset
        return start

    def remove_snapshot(self, offset: int) -> None:
        self.files.remove(self.path(file_name(offset, SNAPSHOT)))

    def deleted_suffix(self, base_offset: int) -> str:
        """Returns the suffix of the files of a segment that is about to be deleted: `.deleted`, or `.1.deleted` while
        an earlier one waits for its deletion, which compaction has replaced by this one, and may still be read.
        """
        path, suffix, number = self.path(file_name(base_offset, LOG)), DELETED, 0
        while self.files.exists(path + suffix):
            number += 1
            suffix = f".{number}{DELETED}"
        return suffix

    def mark_snapshot_deleted(self, offset: int, suffix: str) -> None:
        """Renames the snapshot at `offset`, if there is one: its segment is about to be deleted."""
        path = self.path(file_name(offset, SNAPSHOT))
        if self.files.exists(path):
            self.files.rename(path, path + suffix)
