"""Files of lines that are appended to, and rotated when they are full."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

MODE = 0o600


class LogFile:
    """A file that is appended to, and rotated when it is full. Raises OSError if it cannot be opened. `head`: makes the
    first line of what is written to each file. `descriptor`: of the file, if it is open already.
    """

    def __init__(
        self,
        path: str,
        max_bytes: int,
        backups: int,
        head: Callable[[], bytes] | None = None,
        descriptor: int | None = None,
    ) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.backups = backups
        self.head = head
        self._needs_head = head is not None
        self._open(descriptor)

    def _open(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            # a pipe without a reader is an error; do not wait for one
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, MODE)
        self.descriptor = descriptor
        found = os.fstat(descriptor)
        self.is_regular = stat.S_ISREG(found.st_mode)
        self.size = found.st_size
        if self.is_regular:
            os.fchmod(descriptor, MODE)

    def write(self, lines: list[bytes]) -> None:
        """Appends whole lines; rotates first if the file would become too large. Raises OSError."""
        block: list[bytes] = []
        for line in lines:
            if self.is_regular and 0 <= self.max_bytes < self.size + len(line) and self.size:
                self._put(block)
                block = []
                self._rotate()
            if self._needs_head and self.head is not None:
                self._needs_head = False
                head = self.head()
                block.append(head)
                self.size += len(head)
            block.append(line)
            self.size += len(line)
        self._put(block)

    def _put(self, block: list[bytes]) -> None:
        rest = memoryview(b"".join(block))
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]

    def _rotate(self) -> None:
        """Renames the full file and creates a new one. The old descriptor is closed last, so that there is always one
        to write to.
        """
        full = self.descriptor
        if os.path.exists(self.path):  # else someone has moved it, or the new one could not be created before
            self._set_aside()
        self._needs_head = self.head is not None
        self._open()
        os.close(full)

    def _set_aside(self) -> None:
        if not self.backups:
            return os.unlink(self.path)
        for number in range(self.backups - 1, 0, -1):
            if os.path.exists(f"{self.path}.{number}"):
                os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        os.replace(self.path, f"{self.path}.1")

    def close(self) -> None:
        os.close(self.descriptor)
