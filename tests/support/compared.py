"""`ottla compare` in a process of its own, in front of two brokers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .poll import until

END_SECONDS_MAX = 60


class Compared:
    """A running proxy. `events`: what it has printed; after `end`, `summary` has the sums and `code` the exit code."""

    def __init__(self, a: str, b: str, *options: str) -> None:
        command = [sys.executable, "-m", "ottla", "compare", a, b, "--listen", "127.0.0.1:0", "--json", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.events: list[dict[str, Any]] = []
        self.errors: list[str] = []
        assert self._process.stderr is not None
        ready = self._process.stderr.readline()
        assert "is ready" in ready, ready + self._process.stderr.read()
        self.bootstrap_servers = ready.split("=")[1].strip()
        self._readers = [threading.Thread(target=one, daemon=True) for one in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()
        self.summary: dict[str, Any] = {}
        self.code: int | None = None

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self.events.append(json.loads(line))

    def _read_errors(self) -> None:
        self.errors.extend(self._process.stderr or ())

    @property
    def differences(self) -> list[tuple[str, str]]:
        """API and path of each."""
        return [(one["api"], one["path"]) for one in list(self.events) if one["event"] == "difference"]

    def await_difference(self, api: str, path: str) -> None:
        until(lambda: (api, path) in self.differences, f"{api} {path}")

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self, *, by_itself: bool = False) -> None:
        """Ctrl-C, unless it ends by itself."""
        if self.code is None:
            if not by_itself and self._process.poll() is None:
                self.interrupt()
            self.code = self._process.wait(END_SECONDS_MAX)
            for reader in self._readers:
                reader.join(END_SECONDS_MAX)
            assert not self.errors, "".join(self.errors)[-3000:]
            self.summary = self.events[-1]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for reader in self._readers:
            reader.join(END_SECONDS_MAX)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()


@contextmanager
def compared(a: str, b: str, *options: str) -> Iterator[Compared]:
    """A proxy, ended when the block is left."""
    running = Compared(a, b, *options)
    try:
        yield running
        running.end()
    finally:
        running.kill()


def assert_same(found: Compared, *apis: str) -> None:
    """Asserts that nothing differed, and that these APIs were compared."""
    differences = [one for one in found.events if one["event"] == "difference"]
    assert not differences, json.dumps(differences, indent=1)[:6000]
    assert (found.code, found.summary["differences"]) == (0, 0)
    missing = set(apis) - set(found.summary["compared"])
    assert not missing, (missing, found.summary)
