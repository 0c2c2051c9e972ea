"""The only module that opens a path. `OsFiles` is the machine's file system; its double `MemFiles` can lose power.

Both have the same shape: a `Handle` reads and writes at positions and syncs, `Files` names, lists, renames and removes.
A write is not durable before `sync`, a name (creation, renaming, removal) not before `sync_directory`.
"""

from __future__ import annotations

import errno
import fcntl
import os
import random
import shutil
import time
from collections import OrderedDict
from typing import Any, Protocol


def time_ns() -> int:
    """For how long something took: the one clock below the broker, and nothing is decided by it."""
    return time.perf_counter_ns()


class Handle(Protocol):
    """An open file."""

    def read_at(self, position: int, length: int) -> bytes:
        """At most `length` bytes; fewer at the end of the file."""

    def write_at(self, position: int, data: Any) -> None:
        """All of `data`, or OSError."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Returns when the file's contents are durable. To be called from a thread: it blocks."""

    def close(self) -> None: ...


class Files(Protocol):
    """A file system. Paths are strings; errors are OSError."""

    def open(self, path: str, create: bool = False) -> Handle: ...

    def exists(self, path: str) -> bool: ...

    def names(self, directory: str) -> list[str]:
        """What a directory holds, sorted."""

    def make_directory(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Replaces `new` where it exists."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def read(self, path: str) -> bytes: ...

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        """The file holds either what it held or all of `data` when the process ends; durable on return unless told."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def sync_directory(self, path: str) -> None: ...

    def absolute(self, path: str) -> str:
        """The whole path."""

    def space(self, path: str) -> tuple[int, int]:
        """The bytes of the volume that a directory is on, and those of them that are left; -1 where nobody knows."""


class OsHandle:
    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read_at(self, position: int, length: int) -> bytes:
        data = os.pread(self.fd, length, position)
        if len(data) == length or not data:
            return data
        parts, got = [data], len(data)  # a signal or a limit of the kernel cut the read
        while got < length and (data := os.pread(self.fd, length - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def write_at(self, position: int, data: Any) -> None:
        written = os.pwrite(self.fd, data, position)
        total = len(data)
        while written < total:
            more = os.pwrite(self.fd, memoryview(data)[written:], position + written)
            if not more:
                raise OSError(errno.EIO, "nothing was written")
            written += more

    def size(self) -> int:
        return os.fstat(self.fd).st_size

    def truncate(self, size: int) -> None:
        os.ftruncate(self.fd, size)

    def sync(self) -> None:
        os.fsync(self.fd)

    def close(self) -> None:
        os.close(self.fd)


class OsFiles:
    """The file system of the machine. New files and directories are private to their owner."""

    def open(self, path: str, create: bool = False) -> OsHandle:
        return OsHandle(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600))

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, directory: str) -> list[str]:
        return sorted(os.listdir(directory))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, mode=0o700, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        temporary = path + ".tmp"
        with open(temporary, "wb", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def lock(self, path: str) -> int:
        """Holds an exclusive lock on `path` until the process ends or closes it; BlockingIOError when another has it."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise BlockingIOError(errno.EAGAIN, "locked by another process", path) from None
        return fd


class HandlePool:
    """Open files up to a number; the one not used for longest is closed for the next.

    `open` must be called for each use, and its result not be kept: it is open until the next call at least.
    """

    def __init__(self, files: Files, limit: int = 512) -> None:
        self.files = files
        self.limit = limit
        self._open: OrderedDict[str, Handle] = OrderedDict()

    def open(self, path: str, create: bool = False) -> Handle:
        handle = self._open.get(path)
        if handle is not None:
            self._open.move_to_end(path)
            return handle
        while len(self._open) >= self.limit:
            self._open.popitem(last=False)[1].close()
        handle = self._open[path] = self.files.open(path, create)
        return handle

    def close(self, path: str) -> None:
        handle = self._open.pop(path, None)
        if handle is not None:
            handle.close()

    def renamed(self, old: str, new: str) -> None:
        """The file at `old` has another name now; what is open stays open."""
        self.close(new)
        handle = self._open.pop(old, None)
        if handle is not None:
            self._open[new] = handle

    def close_all(self) -> None:
        while self._open:
            self._open.popitem()[1].close()


# the double


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
    are lost from some moment on, in the order in which they were made.
    """

    def __init__(self) -> None:
        self._names: dict[str, _Inode] = {}
        self._directories: set[str] = {"/"}
        self._durable_names: dict[str, _Inode] = {}
        self._pending: dict[str, list[tuple[str, _Inode | None]]] = {}
        self.now_ms = 0
        self.fail_writes: OSError | None = None
        self.fail_syncs: OSError | None = None

    def before_write(self, size: int) -> None:
        if self.fail_writes is not None:
            raise self.fail_writes

    def before_sync(self) -> None:
        if self.fail_syncs is not None:
            raise self.fail_syncs

    def _inode(self, path: str) -> _Inode:
        try:
            return self._names[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, "no such file", path) from None

    def _note(self, path: str, inode: _Inode | None) -> None:
        self._pending.setdefault(os.path.dirname(path), []).append((path, inode))

    def open(self, path: str, create: bool = False) -> MemHandle:
        if create and path not in self._names:
            self.before_write(0)
            self._names[path] = _Inode()
            self._names[path].modified_ms = self.now_ms
            self._note(path, self._names[path])
        return MemHandle(self, self._inode(path))

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def names(self, directory: str) -> list[str]:
        if directory not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", directory)
        held = (*self._names, *self._directories)
        return sorted({p.rpartition("/")[2] for p in held if p != "/" and os.path.dirname(p) == directory})

    def make_directory(self, path: str) -> None:
        while path not in self._directories:
            self._directories.add(path)
            path = os.path.dirname(path)

    def rename(self, old: str, new: str) -> None:
        if old in self._directories:
            self._directories.discard(old)
            self._directories.add(new)
            for path in [p for p in self._names if p.startswith(old + "/")]:
                self._move(path, new + path[len(old) :])
            return
        self._move(old, new)

    def _move(self, old: str, new: str) -> None:
        inode = self._inode(old)
        del self._names[old]
        self._names[new] = inode
        self._note(new, inode)
        self._note(old, None)

    def remove(self, path: str) -> None:
        self._inode(path)
        del self._names[path]
        self._note(path, None)

    def remove_tree(self, path: str) -> None:
        for name in [p for p in self._names if p.startswith(path + "/")]:
            self.remove(name)
        self._directories = {d for d in self._directories if d != path and not d.startswith(path + "/")}

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
            self.sync_directory(os.path.dirname(path))

    def size(self, path: str) -> int:
        return len(self._inode(path).data)

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def absolute(self, path: str) -> str:
        return path

    def space(self, path: str) -> tuple[int, int]:
        return -1, -1

    def sync_directory(self, path: str) -> None:
        self.before_sync()
        for name, inode in self._pending.pop(path, ()):
            self._set_durable(name, inode)

    def _set_durable(self, name: str, inode: _Inode | None) -> None:
        if inode is None:
            self._durable_names.pop(name, None)
        else:
            self._durable_names[name] = inode

    def lose_power(self, chance: random.Random) -> MemFiles:
        """The file system as it is found after a power failure; this one must not be used any more."""
        for pending in self._pending.values():
            for name, inode in pending[: chance.randint(0, len(pending))]:
                self._set_durable(name, inode)
        after = MemFiles()
        after.now_ms = self.now_ms
        after._directories = set(self._directories)
        found: dict[int, _Inode] = {}
        for name, inode in self._durable_names.items():
            if id(inode) not in found:
                found[id(inode)] = _after_power_loss(inode, chance)
            after._names[name] = after._durable_names[name] = found[id(inode)]
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
