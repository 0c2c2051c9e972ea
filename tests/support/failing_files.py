"""Files in memory of which chosen calls fail, as those of a disk that goes bad or of a process without descriptors."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from typing import Any

from .memory_files import MemFiles, MemHandle


@dataclass
class Fault:
    """`operation` fails on files whose name ends with `ending`, `left` times."""

    operation: str  # open, read, write, sync, rename, remove, names, size, exists, modified, make, remove_tree, lock
    ending: str
    error_number: int = errno.EIO
    left: int = 1 << 30
    hits: int = 0


class FailingHandle(MemHandle):
    __slots__ = ("path",)

    files: FailingFiles

    def __init__(self, files: FailingFiles, path: str, handle: MemHandle) -> None:
        super().__init__(files, handle.inode)
        self.path = path

    def read_at(self, position: int, length: int) -> bytes:
        self.files.meet("read", self.path)
        return super().read_at(position, length)

    def write_at(self, position: int, data: Any) -> None:
        self.files.meet("write", self.path)
        super().write_at(position, data)

    def truncate(self, size: int) -> None:
        self.files.meet("write", self.path)
        super().truncate(size)

    def sync(self) -> None:
        self.files.meet("sync", self.path)
        super().sync()


class FailingFiles(MemFiles):
    """Without a fault it is as MemFiles; it counts the syncs of every path."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[Fault] = []
        self.synced: list[str] = []
        self.met: set[tuple[str, str]] = set()  # every operation and the path of its file

    def fail(self, operation: str, ending: str, error_number: int = errno.EIO, times: int = 1 << 30) -> Fault:
        fault = Fault(operation, ending, error_number, times)
        self.faults.append(fault)
        return fault

    def meet(self, operation: str, path: str) -> None:
        if operation == "sync":
            self.synced.append(path)
        self.met.add((operation, path))
        name = path.removesuffix(".tmp")
        for fault in self.faults:
            if fault.operation == operation and fault.left and name.endswith(fault.ending):
                fault.left -= 1
                fault.hits += 1
                raise OSError(fault.error_number, os.strerror(fault.error_number), path)

    def open(self, path: str, create: bool = False) -> MemHandle:
        self.meet("open", path)
        return FailingHandle(self, path, super().open(path, create))

    def read(self, path: str) -> bytes:
        self.meet("read", path)
        return super().read(path)

    def lock(self, path: str) -> int:
        self.meet("lock", path)
        self.open(path, create=True)
        return 0

    def make_directory(self, path: str) -> None:
        self.meet("make", path)
        super().make_directory(path)

    def remove_tree(self, path: str) -> None:
        self.meet("remove_tree", path)
        super().remove_tree(path)

    def modified_ms(self, path: str) -> int:
        self.meet("modified", path)
        return super().modified_ms(path)

    def names(self, directory: str) -> list[str]:
        self.meet("names", directory)
        return super().names(directory)

    def size(self, path: str) -> int:
        self.meet("size", path)
        return super().size(path)

    def exists(self, path: str) -> bool:
        self.meet("exists", path)
        return super().exists(path)

    def rename(self, old: str, new: str) -> None:
        self.meet("rename", old)
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self.meet("remove", path)
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self.meet("sync", path)
        super().sync_directory(path)
