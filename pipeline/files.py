"""Access to the files of a data directory: on this machine, or anywhere that fsspec supports."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, NoReturn

from ..protocol.buffers import Data
from ..storage.layout import DELETED, SWAP

_ZEROS = bytes(1 << 16)  # comparing is faster than stripping
PADDING = 8  # bytes that must follow the last record, so that whole words can be read


def is_directory(path: str) -> bool:
    """Whether a path is taken for one of a directory, as all URLs are."""
    return "://" in path or os.path.isdir(path)


class Files:
    """Reads the files below `root`, a path or a URL.
    Raises OSError like `open`; finds deleted segments under their new names.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._remote: Any = None
        if "://" in root:
            try:
                import fsspec
            except ImportError:
                raise ImportError(f"reading {root} needs fsspec, which is not installed: pip install fsspec") from None
            self._remote, self.root = fsspec.core.url_to_fs(self.root)

    def names(self, directory: str = "") -> list[str]:
        """Returns the names in a directory below the root, in order."""
        path = self.path(directory)
        if self._remote is None:
            return sorted(os.listdir(path))
        if not self._remote.isdir(path):
            raise FileNotFoundError(path)
        return sorted(one.rstrip("/").rpartition("/")[2] for one in self._remote.ls(path, detail=False))

    def of_kind(self, directory: str, kind: str) -> list[str]:
        """Returns the names of the files or directories in a directory, in order.
        Pipes, sockets and dangling links are neither.
        """
        path = self.path(directory)
        if self._remote is None:
            is_kind = os.DirEntry.is_file if kind == "file" else os.DirEntry.is_dir
            with os.scandir(path) as found:
                return sorted(one.name for one in found if is_kind(one))
        if not self._remote.isdir(path):
            raise FileNotFoundError(path)
        return sorted(
            one["name"].rstrip("/").rpartition("/")[2]
            for one in self._remote.ls(path, detail=True)
            if one["type"] == kind
        )

    def is_directory(self) -> bool:
        """Whether the root is a directory."""
        return os.path.isdir(self.root) if self._remote is None else bool(self._remote.isdir(self.root))

    def sizes(self, below: bool = True) -> dict[str, dict[str, int]]:
        """Returns the files of the root and, with `below`, of the directories below it: by directory, relative to the
        root and with a slash at its end, the sizes by name. Links to directories are not followed.
        """
        made: dict[str, dict[str, int]] = {}
        for directory, name, size in self._found(below):
            made.setdefault(directory, {})[name] = size
        return made

    def _found(self, below: bool) -> Iterator[tuple[str, str, int]]:
        if self._remote is None:
            for path, directories, names in os.walk(self.root, onerror=_raised):
                directories.sort()
                directory = "" if path == self.root else f"{os.path.relpath(path, self.root)}/"
                for name in sorted(names):
                    if os.path.isfile(whole := os.path.join(path, name)):
                        yield directory, name, os.path.getsize(whole)
                if not below:
                    return
            return
        for path, about in sorted(self._remote.find(self.root, maxdepth=None if below else 1, detail=True).items()):
            directory, slash, name = path.removeprefix(self.root).lstrip("/").rpartition("/")
            yield directory + slash, name, int(about["size"] or 0)

    def open(self, name: str) -> IO[bytes]:
        """Opens a file, to read it from its beginning."""
        path = self.path(name)
        if self._remote is None:
            return open(path, "rb")
        file: IO[bytes] = self._remote.open(path, "rb")
        return file

    def path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def size(self, name: str) -> int:
        """Returns the size of a file in bytes."""
        path = self.path(name)
        return os.path.getsize(path) if self._remote is None else int(self._remote.size(path))

    def size_or_deleted(self, name: str) -> int:
        """Like `size`; finds a file that waits for its deletion, as `part` does."""
        try:
            return self.size(name)
        except FileNotFoundError:
            return self.size(name + self._latest_suffix(name))

    def whole(self, name: str) -> bytes:
        """Reads a small file; returns no bytes if it does not exist."""
        try:
            if self._remote is not None:
                return bytes(self._remote.cat_file(self.path(name)))
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def whole_of_segment(self, name: str, log: str) -> bytes:
        """Like `whole`, of a file beside the log of a segment: the broker renames both before it removes them, first
        the log, and puts a cleaned segment into its place, first the log.
        """
        found = self.whole(name)
        if found or self._remote is not None:
            return found
        if os.path.exists(self.path(log)):
            return self.whole(name + SWAP) or self.whole(name)
        try:
            return self.whole(name + self._latest_suffix(log))
        except FileNotFoundError:
            return b""

    def _latest_suffix(self, name: str) -> str:
        """Returns the suffix of a file that waits for its deletion: of several that had this name, of the one that was
        renamed last. The others lack what the cleaner has merged since, and have what it has removed. Raises
        FileNotFoundError.
        """
        directory, _, plain = name.rpartition("/")
        form = re.compile(rf"{re.escape(plain)}((?:\.[0-9]+)?{re.escape(DELETED)})")
        suffixes = [found[1] for one in self.names(directory) if (found := form.fullmatch(one))]
        if not suffixes:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self.path(name))
        return max(suffixes, key=lambda suffix: self._renamed(name + suffix, suffix))

    def _renamed(self, name: str, suffix: str) -> tuple[int, int]:
        """Orders files by when they were renamed, and by their numbers where that is not known."""
        number = int(suffix[1 : -len(DELETED)] or 0)
        if self._remote is not None:
            return 0, number
        with suppress(FileNotFoundError):
            return os.stat(self.path(name)).st_ctime_ns, number
        return -1, number

    def entries(self, name: str, entry_bytes: int) -> bytes:
        """Reads a file of entries without the zeros at its end, which are many where it was allocated in advance;
        returns no bytes if it does not exist.
        """
        data = self.whole(name) if self._remote is not None else self._data(name, entry_bytes)
        end = len(data)
        while end > len(_ZEROS) and data[end - len(_ZEROS) : end] == _ZEROS:
            end -= len(_ZEROS)
        begin = max(0, end - len(_ZEROS))
        return data[: _rounded(begin + len(data[begin:end].rstrip(b"\0")), entry_bytes)]

    def _data(self, name: str, entry_bytes: int) -> bytes:
        """Reads a file as far as something was written, up to the end of an entry."""
        try:
            with open(self.path(name), "rb", buffering=0) as file:
                return os.pread(file.fileno(), _rounded(_data_end(file.fileno()), entry_bytes), 0)
        except FileNotFoundError:
            return b""

    def is_zero(self, name: str, start: int, end: int) -> bool:
        """Whether a part of a file has only zeros."""
        for at in range(start, end, len(_ZEROS)):
            data, size = self.part(name, at, min(end, at + len(_ZEROS)))
            if data[:size] != _ZEROS[:size]:
                return False
        return True

    def part(self, name: str, start: int, end: int) -> tuple[Data, int]:
        """Returns the bytes from `start` on, and how many of them belong to the range;
        up to PADDING more bytes follow.
        """
        try:
            data = self._part(name, start, end + PADDING)
        except FileNotFoundError:
            data = self._part(name + self._latest_suffix(name), start, end + PADDING)
        return data, min(len(data), end - start)

    def _part(self, name: str, start: int, end: int) -> Data:
        if self._remote is None:
            return _copied(self.path(name), start, end)
        data: Data = self._remote.cat_file(self.path(name), start=start, end=end)
        return data


def _copied(path: str, start: int, end: int) -> memoryview:
    """Returns a copy of a part of a file. Memory that is mapped to a file would end the process (SIGBUS) if the broker
    cuts the file while it is read, as a follower does where its leader changes.
    """
    import numpy as np  # traces are read without it

    with open(path, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        data, filled = np.empty(max(0, min(end, size) - start), np.uint8).data, 0
        file.seek(start)
        while filled < len(data) and (got := file.readinto(data[filled:])):
            filled += got
    return data[:filled]


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _data_end(file: int) -> int:
    """Returns where the last data of a file end. What follows was never written, and takes no space on the disk."""
    end = 0
    try:
        while True:
            end = os.lseek(file, os.lseek(file, end, os.SEEK_DATA), os.SEEK_HOLE)
    except OSError as error:
        if error.errno != errno.ENXIO:  # the file system does not know, or the file cannot be read
            return os.fstat(file).st_size
    return end


def _raised(error: OSError) -> NoReturn:
    raise error
