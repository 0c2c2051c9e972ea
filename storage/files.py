"""The only module that opens a path. `OsFiles` is the machine's file system; its double in the tests, `MemFiles`, can
lose power.

Both have the same shape: a `Handle` reads and writes at positions and syncs, `Files` names, lists, renames and removes.
A write is not durable before `sync`, a name (creation, renaming, removal) not before `sync_directory`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from ..protocol.buffers import Data
from .failures import OUT_OF_DESCRIPTORS
from .loaded_indexes import LoadedIndexes

T = TypeVar("T")
PIECES_AT_ONCE = 512  # in one call of the system, which takes 1,024
HELD = frozenset((errno.EAGAIN, errno.EACCES))  # the errors of lockf for a lock that another process holds


def time_ns() -> int:
    """Clock for measuring durations: the only clock below the broker; no decision depends on it."""
    return time.perf_counter_ns()


class Handle(Protocol):
    """An open file."""

    def read_at(self, position: int, length: int) -> bytes:
        """Returns at most `length` bytes; fewer at the end of the file."""

    def write_at(self, position: int, data: Data) -> None:
        """Writes all of `data`. Raises OSError."""

    def write_all_at(self, position: int, pieces: Sequence[Data]) -> None:
        """Writes all pieces, one after another. Raises OSError."""

    def fileno(self) -> int:
        """Returns the descriptor; -1 of a file that the system does not know."""

    def size(self) -> int: ...

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Returns when the contents of the file are durable. Blocks: call it from a thread."""

    def close(self) -> None: ...


class Files(Protocol):
    """A file system. Paths are strings; errors are OSError."""

    def open(self, path: str, create: bool = False) -> Handle: ...

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory. Raises OSError if that cannot be determined."""

    def names(self, directory: str) -> list[str]:
        """Returns the names in a directory, sorted."""

    def make_directory(self, path: str) -> None: ...

    def rename(self, old: str, new: str) -> None:
        """Renames a file; replaces `new` if it exists."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def read(self, path: str) -> bytes: ...

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        """Replaces a file atomically: after a crash it holds its old contents or all of `data`.
        Durable on return if `durable`.
        """

    def create(self, path: str, data: bytes) -> None:
        """Writes a file that does not exist. After a crash it may be missing or incomplete: its readers must know."""

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def set_modified_ms(self, path: str, time_ms: int) -> None: ...

    def sync_directory(self, path: str) -> None: ...

    def absolute(self, path: str) -> str:
        """Returns the absolute path."""

    def real(self, path: str) -> str:
        """Returns the absolute path without links: the same for every name of a directory."""

    def space(self, path: str) -> tuple[int, int]:
        """Returns the total and the usable bytes of the volume of a directory; -1 if unknown."""


def _named(error: OSError, path: str) -> OSError:
    """Returns the error with the path of its file."""
    error.filename = path
    return error


def _joined(fd: int, pieces: Sequence[Data], position: int) -> int:
    return os.pwrite(fd, b"".join(pieces), position)


_pwritev: Callable[[int, Sequence[Data], int], int] = getattr(os, "pwritev", _joined)  # not every system has it


class OsHandle:
    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path

    def read_at(self, position: int, length: int) -> bytes:
        try:
            data = os.pread(self.fd, length, position)
            if len(data) == length or not data:
                return data
            parts, got = [data], len(data)  # a signal or a limit of the kernel interrupted the read
            while got < length and (data := os.pread(self.fd, length - got, position + got)):
                parts.append(data)
                got += len(data)
        except OSError as error:
            raise _named(error, self.path) from None
        return b"".join(parts)

    def write_at(self, position: int, data: Data) -> None:
        try:
            written = os.pwrite(self.fd, data, position)
            total = len(data)
            while written < total:
                more = os.pwrite(self.fd, memoryview(data)[written:], position + written)
                if not more:
                    raise OSError(errno.EIO, "nothing was written")
                written += more
        except OSError as error:
            raise _named(error, self.path) from None

    def write_all_at(self, position: int, pieces: Sequence[Data]) -> None:
        if len(pieces) == 1:
            return self.write_at(position, pieces[0])
        for start in range(0, len(pieces), PIECES_AT_ONCE):
            some = pieces[start : start + PIECES_AT_ONCE]
            total = sum(map(len, some))
            try:
                written = _pwritev(self.fd, some, position)
            except OSError as error:
                raise _named(error, self.path) from None
            if written < total:  # a signal or a limit of the kernel interrupted it
                self.write_at(position + written, memoryview(b"".join(some))[written:])
            position += total
        return None

    def fileno(self) -> int:
        return self.fd

    def size(self) -> int:
        try:
            return os.fstat(self.fd).st_size
        except OSError as error:
            raise _named(error, self.path) from None

    def truncate(self, size: int) -> None:
        try:
            os.ftruncate(self.fd, size)
        except OSError as error:
            raise _named(error, self.path) from None

    def sync(self) -> None:
        try:
            os.fsync(self.fd)
        except OSError as error:
            raise _named(error, self.path) from None

    def close(self) -> None:
        os.close(self.fd)


def _open_at_once(path: str, flags: int) -> int:
    """Opens without blocking, even if the file is a FIFO without a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _check_regular(fd: int, path: str, closes: bool = True) -> None:
    """Raises OSError for a FIFO, a device or a directory instead of a file;
    a FIFO would accept writes and keep nothing.
    """
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        if closes:
            os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", path)


class OsFiles:
    """The file system of the machine. New files and directories are private to their owner.

    `reserve` descriptors are kept for file operations when connections have used up all others; `refill` reopens them.
    """

    def __init__(self, reserve: int = 0) -> None:
        self._reserve_size = reserve
        self._reserve: list[int] = []
        self.refill()

    def refill(self) -> None:
        """Reopens descriptors of the reserve, as far as descriptors are available."""
        with contextlib.suppress(OSError):
            while len(self._reserve) < self._reserve_size:
                self._reserve.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def _with_descriptor(self, call: Callable[[], T]) -> T:
        """Calls `call`, which opens a file; if no descriptor is left, frees those of the reserve first."""
        while True:
            try:
                return call()
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self._reserve:
                    raise
                os.close(self._reserve.pop())

    def open(self, path: str, create: bool = False) -> OsHandle:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        fd = self._with_descriptor(lambda: os.open(path, flags, 0o600))
        _check_regular(fd, path)
        return OsHandle(fd, path)

    def exists(self, path: str) -> bool:
        try:
            os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, directory: str) -> list[str]:
        return sorted(self._with_descriptor(lambda: os.listdir(directory)))

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path, 0o700)
        except OSError:  # it exists, or one above it does not
            os.makedirs(path, mode=0o700, exist_ok=True)

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        from shutil import rmtree

        self._with_descriptor(lambda: rmtree(path))

    def read(self, path: str) -> bytes:
        with self._with_descriptor(lambda: open(path, "rb", opener=_open_at_once)) as file:
            _check_regular(file.fileno(), path, closes=False)
            try:
                return file.read()
            except OSError as error:
                raise _named(error, path) from None

    def replace(self, path: str, data: bytes, durable: bool = True) -> None:
        temporary = path + ".tmp"
        try:
            with self._with_descriptor(
                lambda: open(temporary, "wb", opener=lambda p, flags: os.open(p, flags, 0o600))
            ) as file:
                file.write(data)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            raise _named(error, temporary) from None
        os.replace(temporary, path)
        if durable:
            self.sync_directory(os.path.dirname(path))

    def create(self, path: str, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = OsHandle(self._with_descriptor(lambda: os.open(path, flags, 0o600)), path)
        try:
            handle.write_at(0, data)
        finally:
            handle.close()

    def size(self, path: str) -> int:
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        return found.st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def sync_directory(self, path: str) -> None:
        fd = self._with_descriptor(lambda: os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            os.fsync(fd)
        except OSError as error:
            raise _named(error, path) from None
        finally:
            os.close(fd)

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def lock(self, path: str) -> int:
        """Holds an exclusive lock on `path` until the process ends or closes it. Raises BlockingIOError if another
        process holds it, another OSError if it cannot be locked.
        """
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            if error.errno in HELD:
                raise BlockingIOError(errno.EAGAIN, "locked by another process", path) from None
            raise _named(error, path) from None
        return fd


class HandlePool:
    """A bounded number of open files; the least recently used one is closed for the next.

    Call `open` for each use and do not keep its result: the file stays open only until the next call.
    """

    def __init__(self, files: Files, limit: int = 512) -> None:
        self.files = files
        self.limit = limit
        self.indexes = LoadedIndexes()
        self._open: OrderedDict[str, Handle] = OrderedDict()

    def open(self, path: str, create: bool = False) -> Handle:
        handle = self._open.get(path)
        if handle is not None:
            self._open.move_to_end(path)
            return handle
        while len(self._open) >= self.limit:
            self._close_oldest()
        while True:
            try:
                handle = self._open[path] = self.files.open(path, create)
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS or not self._open:
                    raise
                self._close_oldest()
            else:
                return handle

    def _close_oldest(self) -> None:
        self._open.popitem(last=False)[1].close()

    def close(self, path: str) -> None:
        handle = self._open.pop(path, None)
        if handle is not None:
            handle.close()

    def renamed(self, old: str, new: str) -> None:
        """Updates the name of an open file after it was renamed."""
        self.close(new)
        handle = self._open.pop(old, None)
        if handle is not None:
            self._open[new] = handle

    def close_under(self, directory: str) -> None:
        """Closes the open files of a directory that is about to be replaced."""
        for path in [path for path in self._open if path.startswith(directory + "/")]:
            self.close(path)

    def close_all(self) -> None:
        while self._open:
            self._open.popitem()[1].close()
