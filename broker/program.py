"""A program that works beside the broker, in a process of its own: what would take the loop too long.

It is a module of ottla, and takes a stream of bytes. It ends when the stream ends, so it does not outlive its broker
for long, however that ends. It stays in the broker's session: Linux gives each session the same share of a processor
(autogroups), whatever the priority of a process in it, so that a program with a session of its own would take as much
from the broker's clients as they have.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

READ_BYTES: Final = 1 << 20
PIPE_BYTES: Final = 1 << 20  # more than that only root may ask for
FULL_SECONDS: Final = 0.002  # until a full pipe is tried again
_SET_PIPE_SIZE: Final = 1031  # F_SETPIPE_SZ of Linux
_START: Final = (
    "import sys; from importlib import import_module; sys.path.append(sys.argv[1]); "
    "import_module(sys.argv[2]).main(sys.argv[3:])"
)


class Program(Protocol):
    """A program that was started."""

    def take(self, data: memoryview) -> int:
        """Gives it bytes, and does not wait: returns how many it took. Raises OSError if it has ended."""

    def read(self) -> bytes | None:
        """Returns what it has sent, and does not wait; None if it has ended and nothing more comes. Only of a program
        that answers.
        """

    def end(self) -> None:
        """No more bytes come: it ends when it has done with those that it has."""

    def kill(self) -> None:
        """Ends it at once."""

    def has_ended(self) -> bool: ...

    def finish(self, rest: Iterable[memoryview], seconds: float) -> bool:
        """Gives it the rest, and waits until it has ended; returns False if it has not in this time. Raises OSError if
        it had ended before.
        """


class Child:
    """A program in a process. `module`: has a function `main`. `answers`: whether it sends something. Raises OSError if
    it cannot be started.
    """

    def __init__(self, module: str, arguments: Sequence[str], descriptors: Sequence[int], answers: bool) -> None:
        package = str(sys.modules[__name__.partition(".")[0]].__file__)  # this one
        place = str(Path(package).resolve().parents[1])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, place, module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if answers else subprocess.DEVNULL,
            pass_fds=tuple(descriptors),
            process_group=0,  # Ctrl-C ends the broker, and the broker ends this
        )
        assert self._process.stdin is not None
        self._stdin = self._process.stdin
        os.set_blocking(self._stdin.fileno(), False)
        self._stdout = self._process.stdout
        if self._stdout is not None:
            os.set_blocking(self._stdout.fileno(), False)
        if sys.platform == "linux":
            import fcntl

            with suppress(OSError):  # the user's pipes may be at their limit; a smaller one works, too
                fcntl.fcntl(self._stdin, _SET_PIPE_SIZE, PIPE_BYTES)

    def take(self, data: memoryview) -> int:
        try:
            return os.write(self._stdin.fileno(), data)
        except BlockingIOError:
            return 0

    def read(self) -> bytes | None:
        if self._stdout is None or self._stdout.closed:
            return None
        try:
            data = os.read(self._stdout.fileno(), READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self._stdout.close()
        return data or None

    def end(self) -> None:
        self._stdin.close()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._stdin.close()
        if self._stdout is not None:
            self._stdout.close()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def finish(self, rest: Iterable[memoryview], seconds: float) -> bool:
        until = time.perf_counter() + seconds
        for one in rest:
            data = one
            while data and time.perf_counter() < until:
                taken = self.take(data)
                data = data[taken:]
                if not taken:
                    time.sleep(FULL_SECONDS)
        self.end()
        try:
            self._process.wait(max(0.0, until - time.perf_counter()))
        except subprocess.TimeoutExpired:
            return False
        return True
