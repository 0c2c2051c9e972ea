"""Programs of Kafka Streams (`tests/clients/java/StreamsPrograms.java`), which share one JVM."""

from __future__ import annotations

import base64
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from queue import Empty, Queue
from threading import Lock, Thread

from ..oracle.kafka import program

WITHIN_SECONDS = 400.0  # a step of a program has 110
Action = Callable[[str], str]
"""Does what a program asks for, and returns the answer. Its argument is what follows the action's name."""


class ProgramFailed(AssertionError):
    """A program failed: its stack, and the end of its application's log."""


class Programs:
    """The JVM. Programs may run beside each other: a run is a thread of it."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="streams-")
        command = program("streams", "StreamsPrograms", Path(self._directory.name, "classes"))
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._lock = Lock()
        self._said: dict[str, Queue[str]] = {}
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, _, words = line.rstrip("\n").partition(" ")
            self._said[name].put(words)
        for queue in self._said.values():
            queue.put("failed " + base64.b64encode(b"the JVM ended").decode())

    def _tell(self, *words: str) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(" ".join(words) + "\n")
            self._process.stdin.flush()

    def run(self, name: str, run_id: str, servers: str, actions: Mapping[str, Action], **options: str) -> None:
        """Runs a program until it ends. `run_id` is its application id. Raises ProgramFailed."""
        said = self._said[run_id] = Queue()
        given = {"servers": servers, "state": self._directory.name, **options}
        self._tell("run", name, run_id, *(f"{key}={value}" for key, value in given.items()))
        while True:
            try:
                kind, _, words = said.get(timeout=WITHIN_SECONDS).partition(" ")
            except Empty:
                raise ProgramFailed(f"{run_id} says nothing for {WITHIN_SECONDS:g} s") from None
            if kind == "ask":
                action, _, argument = words.partition(" ")
                self._tell("reply", run_id, actions[action](argument))
            elif kind == "ok":
                return
            else:
                raise ProgramFailed(base64.b64decode(words).decode(errors="replace"))

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()
        self._directory.cleanup()
