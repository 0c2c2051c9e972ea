"""The double of the machine's file system: in memory, forgetful when the power goes, and failing on demand."""

from __future__ import annotations

import errno
import random
from collections.abc import Iterator, Sequence
from typing import Any

from ottla.storage.layout import FILE_NAME_LENGTH_MAX


def _split(path: str) -> tuple[str, str]:
    """Returns the directory of a path, and the name in it."""
    directory, _, name = path.rpartition("/")
    return directory or "/", name


class _Inode:
    """A file's contents: what is durable, what a reader sees, and the writes between."""

    __slots__ = ("data", "durable", "modified_ms", "pending")

    def __init__(self) -> None:
        self.durable = b""
        self.data = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []  # writes, or sizes that the file was cut to
        self.modified_ms = 0

    def apply(self, change: tuple[int, bytes] | int) -> None:
        if isinstance(change, int):
            del self.data[change:]
            self.data.extend(bytes(change - len(self.data)))
        else:
            position, written = change
            if position > len(self.data):
                self.data.extend(bytes(position - len(self.data)))
            self.data[position : position + len(written)] = written
        self.pending.append(change)


class _Directory:
    """What a directory has: as a reader sees it, as it is durable, and the changes between.

    A change is durable whole or not at all.
    """

    __slots__ = ("durable", "entries", "pending")

    def __init__(self) -> None:
        self.entries: dict[str, _Inode | _Directory] = {}
        self.durable: dict[str, _Inode | _Directory] = {}
        self.pending: list[dict[str, _Inode | _Directory | None]] = []

    def change(self, change: dict[str, _Inode | _Directory | None]) -> None:
        """Gives names another meaning, or none."""
        _apply(self.entries, change)
        self.pending.append(change)

    def sync(self, changes: int | None = None) -> None:
        """Makes the first changes durable, or all."""
        for change in self.pending[:changes]:
            _apply(self.durable, change)
        del self.pending[:changes]

    def below(self, path: str = "") -> Iterator[tuple[str, _Inode]]:
        """Yields the files in it and in the directories within it, by path."""
        for name, entry in list(self.entries.items()):
            if isinstance(entry, _Inode):
                yield f"{path}/{name}", entry
            else:
                yield from entry.below(f"{path}/{name}")


def _apply(entries: dict[str, _Inode | _Directory], change: dict[str, _Inode | _Directory | None]) -> None:
    for name, entry in change.items():
        if entry is None:
            entries.pop(name, None)
        else:
            entries[name] = entry


class MemHandle:
    __slots__ = ("files", "inode")

    def __init__(self, files: MemFiles, inode: _Inode) -> None:
        self.files = files
        self.inode = inode

    def read_at(self, position: int, length: int) -> bytes:
        return bytes(self.inode.data[position : position + length])

    def write_at(self, position: int, data: Any) -> None:
        self.files.before_write(len(data))
        self.inode.apply((position, bytes(data)))

    def write_all_at(self, position: int, pieces: Sequence[Any]) -> None:
        for piece in pieces:
            self.write_at(position, piece)
            position += len(piece)

    def fileno(self) -> int:
        return -1

    def size(self) -> int:
        return len(self.inode.data)

    def truncate(self, size: int) -> None:
        self.inode.apply(size)

    def sync(self) -> None:
        self.files.before_sync()
        self.inode.durable = bytes(self.inode.data)
        self.inode.pending.clear()

    def close(self) -> None:
        """Nothing is held."""


class MemFiles:
    """A file system in memory. `lose_power` forgets what was not synced, partly and at random; `fail` breaks calls.

    Faults: unsynced writes are dropped, torn, reordered or leave zeros (a new size without its blocks); unsynced names
    are lost from some moment on, in the order in which they were made. A rename within a directory is whole or not
    there, as in any file system; so is that of a directory with all that it holds.
    """

    def __init__(self) -> None:
        self._root = _Directory()
        self.now_ms = 0
        self.fail_writes: OSError | None = None
        self.fail_syncs: OSError | None = None

    def before_write(self, size: int) -> None:
        if self.fail_writes is not None:
            raise self.fail_writes

    def before_sync(self) -> None:
        if self.fail_syncs is not None:
            raise self.fail_syncs

    def _find(self, path: str) -> _Inode | _Directory | None:
        found: _Inode | _Directory | None = self._root
        for name in path.split("/"):
            if name:
                found = found.entries.get(name) if isinstance(found, _Directory) else None
        return found

    def _directory(self, path: str) -> _Directory:
        found = self._find(path)
        if not isinstance(found, _Directory):
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        return found

    def _inode(self, path: str) -> _Inode:
        found = self._find(path)
        if not isinstance(found, _Inode):
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        return found

    @staticmethod
    def _check_name(path: str) -> None:
        if len(_split(path)[1]) > FILE_NAME_LENGTH_MAX:
            raise OSError(errno.ENAMETOOLONG, "File name too long", path)

    def open(self, path: str, create: bool = False) -> MemHandle:
        if create and self._find(path) is None:
            self._check_name(path)
            self.before_write(0)
            made = _Inode()
            made.modified_ms = self.now_ms
            directory, name = _split(path)
            self._directory(directory).change({name: made})
        return MemHandle(self, self._inode(path))

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def names(self, directory: str) -> list[str]:
        return sorted(self._directory(directory).entries)

    def make_directory(self, path: str) -> None:
        """Makes it with those above it."""
        directory = self._root
        for name in path.split("/"):
            if name:
                self._check_name(name)
                found = directory.entries.get(name)
                if found is None:
                    found = _Directory()
                    directory.change({name: found})
                assert isinstance(found, _Directory), path
                directory = found

    def rename(self, old: str, new: str) -> None:
        self._check_name(new)
        entry = self._find(old)
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", old)
        (old_directory, old_name), (new_directory, new_name) = _split(old), _split(new)
        origin, destination = self._directory(old_directory), self._directory(new_directory)
        if origin is destination:
            origin.change({new_name: entry, old_name: None})
        else:
            destination.change({new_name: entry})
            origin.change({old_name: None})

    def remove(self, path: str) -> None:
        self._inode(path)
        directory, name = _split(path)
        self._directory(directory).change({name: None})

    def remove_tree(self, path: str) -> None:
        found = self._find(path)
        if isinstance(found, _Directory):
            for name in list(found.entries):
                if isinstance(found.entries[name], _Inode):
                    self.remove(f"{path}/{name}")
                else:
                    self.remove_tree(f"{path}/{name}")
            directory, name = _split(path)
            self._directory(directory).change({name: None})

    def read(self, path: str) -> bytes:
        return bytes(self._inode(path).data)

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        handle = self.open(path + ".tmp", create=True)
        handle.truncate(0)
        handle.write_at(0, data)
        if durable:
            handle.sync()
        self.rename(path + ".tmp", path)
        if durable:
            self.sync_directory(_split(path)[0])

    def create(self, path: str, data: bytes) -> None:
        if self._find(path) is not None:
            raise FileExistsError(errno.EEXIST, "File exists", path)
        self.open(path, create=True).write_at(0, data)

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        self._inode(path).modified_ms = time_ms

    def absolute(self, path: str) -> str:
        return path

    def real(self, path: str) -> str:
        return path

    def space(self, path: str) -> tuple[int, int]:
        return -1, -1

    def sync_directory(self, path: str) -> None:
        self.before_sync()
        self._directory(path).sync()

    def copy(self) -> MemFiles:
        """The same files once more, all of it durable."""
        after = MemFiles()
        after.now_ms = self.now_ms
        after._root = _copied(self._root)
        return after

    def paths(self) -> list[str]:
        """The files, sorted."""
        return sorted(path for path, _ in self._root.below())

    def lose_power(self, chance: random.Random) -> MemFiles:
        """The file system as it is found after a power failure; this one must not be used any more."""
        after = MemFiles()
        after.now_ms = self.now_ms
        after._root = _directory_after_power_loss(self._root, chance, {})
        return after


def _copied(directory: _Directory) -> _Directory:
    after = _Directory()
    for name, entry in directory.entries.items():
        if isinstance(entry, _Directory):
            after.entries[name] = _copied(entry)
        else:
            copied = after.entries[name] = _Inode()
            copied.data, copied.durable = bytearray(entry.data), bytes(entry.durable)
            copied.modified_ms = entry.modified_ms
    after.durable = dict(after.entries)
    return after


def _directory_after_power_loss(
    directory: _Directory, chance: random.Random, found: dict[int, _Inode | _Directory]
) -> _Directory:
    """`found`: what was reached already, by identity: of a move to another directory only one end may be durable."""
    directory.sync(chance.randint(0, len(directory.pending)))
    after = _Directory()
    for name, entry in directory.durable.items():
        known = found.get(id(entry))
        if known is None:
            known = found[id(entry)] = (
                _directory_after_power_loss(entry, chance, found)
                if isinstance(entry, _Directory)
                else _after_power_loss(entry, chance)
            )
        after.entries[name] = after.durable[name] = known
    return after


def _after_power_loss(inode: _Inode, chance: random.Random) -> _Inode:
    found = _Inode()
    found.modified_ms = inode.modified_ms
    found.data = bytearray(inode.durable)
    kept = list(inode.pending)
    if chance.random() < 0.3:
        chance.shuffle(kept)
    for change in kept:
        fate = chance.random()
        if isinstance(change, int):
            if fate < 0.5:
                found.apply(change)
            continue
        position, written = change
        if fate < 0.35:
            continue  # never reached the disk
        if fate < 0.5:
            written = written[: chance.randint(0, len(written))]
        elif fate < 0.65:
            written = bytes(len(written))  # the size did, the blocks did not
        found.apply((position, written))
    found.durable = bytes(found.data)
    found.pending.clear()
    return found
