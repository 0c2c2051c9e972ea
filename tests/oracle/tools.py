"""Kafka's command-line tools, run one after another in one JVM, which starts and compiles once for all tests."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
from pathlib import Path
from threading import Lock, Timer
from typing import IO

from .kafka import program

STACK_SECONDS = 20  # how long Java has to write the stacks of its threads


class _Tools:
    """The process of `java/Tools.java`, which starts with the first tool."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._classes = Path()
        atexit.register(self.stop)

    def run(self, words: list[str], within: float) -> tuple[int, str, str]:
        """Runs a tool. `words`: its class, the standard input and its arguments. Returns the exit code, the standard
        output and the standard error. Raises TimeoutExpired, with the stacks of all threads.
        """
        with self._lock:
            return self._run(words, within)

    def _run(self, words: list[str], within: float) -> tuple[int, str, str]:
        process = self._process or self._start()
        stacks: list[str] = []
        timer = Timer(within, _end_with_stacks, [process, stacks])
        timer.start()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(len(words).to_bytes(4, "big") + b"".join(map(_text, words)))
            process.stdin.flush()
            code = _number(process.stdout)
            return code, _read(process.stdout), _read(process.stdout)
        except (EOFError, BrokenPipeError):
            self.stop()
            assert stacks, f"the JVM ended with code {process.returncode}"
            error = subprocess.TimeoutExpired(words, within)
            error.add_note(stacks[0])
            raise error from None
        finally:
            timer.cancel()

    def _start(self) -> subprocess.Popen[bytes]:
        self._classes = Path(tempfile.mkdtemp(prefix="oracle-tools-"))
        command = program("tools", "Tools", self._classes)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        return self._process

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
            shutil.rmtree(self._classes, ignore_errors=True)


def _end_with_stacks(process: subprocess.Popen[bytes], stacks: list[str]) -> None:
    try:
        command = ["jcmd", str(process.pid), "Thread.print"]
        stacks.append(
            subprocess.run(command, capture_output=True, text=True, timeout=STACK_SECONDS, check=False).stdout
        )
    except subprocess.TimeoutExpired:
        stacks.append("Java does not write the stacks of its threads")
    process.kill()


def _text(value: str) -> bytes:
    data = value.encode()
    return len(data).to_bytes(4, "big") + data


def _number(stream: IO[bytes]) -> int:
    data = stream.read(4)
    if len(data) < 4:
        raise EOFError
    return int.from_bytes(data, "big", signed=True)


def _read(stream: IO[bytes]) -> str:
    return stream.read(_number(stream)).decode(errors="replace")


_tools = _Tools()


def stop() -> None:
    _tools.stop()


def tool(
    name: str, *arguments: str, stdin: str | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Runs one of Kafka's command-line tools, by class name below `org.apache.kafka.tools` or in full."""
    full = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
    code, out, error = _tools.run([full, stdin or "", *arguments], timeout)
    return subprocess.CompletedProcess([full, *arguments], code, out, error)
