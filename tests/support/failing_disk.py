"""A disk that fails under a real broker process: `failing_disk.c` is preloaded into it."""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.testing import Broker

SIZE, HITS_AT = 4096, 2048
SOURCE = Path(__file__).with_suffix(".c")


def compile_into(directory: Path) -> Path:
    """Compiles the library; returns its path."""
    library = directory / "failing_disk.so"
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE)]
    subprocess.run([*command, "-ldl", "-lpthread"], check=True, timeout=60)
    return library


class FailingDisk:
    """Sets which calls of the library fail. Without `fail` all of them work."""

    def __init__(self, library: Path, control: Path) -> None:
        self.library = library
        self.path = control
        control.write_bytes(bytes(SIZE))
        with control.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), SIZE)
        self.heal()

    def fail(self, call: str, pattern: str, error_number: int, times: int = 1 << 30) -> None:
        """From now on `call`, one of those of `failing_disk.c`, fails on files whose path matches the shell pattern."""
        self._write(f"{call} {error_number} {times} {pattern}")

    def heal(self) -> None:
        self._write("none 0 0 none")

    def _write(self, line: str) -> None:
        self._control[HITS_AT : HITS_AT + 4] = bytes(4)
        self._control[: len(line) + 1] = line.encode() + b"\0"

    @property
    def hits(self) -> int:
        """How many calls have failed since `fail`."""
        return int(struct.unpack_from("i", self._control, HITS_AT)[0])

    @contextmanager
    def under(self, broker: Broker) -> Iterator[Broker]:
        """Starts a broker on this disk; it is ended afterwards."""
        added = {"LD_PRELOAD": str(self.library), "FAILING_DISK": str(self.path)}
        os.environ.update(added)
        try:
            broker.start()
        finally:
            for name in added:
                del os.environ[name]
        try:
            yield broker
        finally:
            broker.kill()  # nothing happens if it has ended
