"""Where a data directory lies: on this machine, or wherever fsspec reaches."""

from __future__ import annotations

import mmap
import os
from typing import Any

from ..storage.layout import DELETED
from .decode import PADDING


class Files:
    """Reads the files below `root`, which is a path or a URL. OSError as from `open`; a renamed, deleted segment is still found."""

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._remote: Any = None
        if "://" in root:
            try:
                import fsspec
            except ImportError:
                raise ImportError(f"{root} is read with fsspec, which is not installed: pip install fsspec") from None
            self._remote, self.root = fsspec.core.url_to_fs(self.root)

    def names(self, directory: str = "") -> list[str]:
        """What lies in a directory below the root, in order."""
        path = self.path(directory)
        if self._remote is None:
            return sorted(os.listdir(path))
        if not self._remote.isdir(path):
            raise FileNotFoundError(path)
        return sorted(one.rstrip("/").rpartition("/")[2] for one in self._remote.ls(path, detail=False))

    def path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def size(self, name: str) -> int:
        """Bytes of a file."""
        path = self.path(name)
        return os.path.getsize(path) if self._remote is None else int(self._remote.size(path))

    def whole(self, name: str) -> bytes:
        """A small file; nothing where there is none."""
        try:
            if self._remote is not None:
                return bytes(self._remote.cat_file(self.path(name)))
            with open(self.path(name), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def part(self, name: str, start: int, end: int) -> tuple[Any, int]:
        """The bytes from `start` on, and how many of them are what was asked for; up to PADDING more follow."""
        for each in (name, name + DELETED):
            try:
                if self._remote is not None:
                    data: Any = self._remote.cat_file(self.path(each), start=start, end=end + PADDING)
                else:
                    data = self._mapped(self.path(each), start, end)
            except FileNotFoundError:
                continue
            return data, min(len(data), end - start)
        raise FileNotFoundError(self.path(name))

    def _mapped(self, path: str, start: int, end: int) -> memoryview:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if start >= size:
                return memoryview(b"")
            whole = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
        whole.madvise(mmap.MADV_SEQUENTIAL)
        return memoryview(whole)[start : end + PADDING]
