"""Brokers of Kafka 4.4.0 in one JVM, which starts and compiles once for all tests: a broker is there with a fraction of
what one takes that has a JVM of its own. They can be stopped, and not killed. The directories of all brokers are
formatted there, too.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from threading import Lock

from .kafka import JAVA_TOOL_OPTIONS, START_SECONDS_MAX, program

STOP_SECONDS_MAX = 120.0
FORMAT_SECONDS_MAX = 120.0
LOG_CHARACTERS = 4000


class _Brokers:
    """The process of `java/Brokers.java`, which starts with the first broker, and again where it has ended."""

    def __init__(self) -> None:
        self._lock = Lock()  # brokers of a cluster start beside each other
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = Path()
        self._port = 0
        atexit.register(self.stop)

    def port(self) -> int:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.stop()
                self._start()
            return self._port

    def _start(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="oracle-brokers-"))
        command = program("broker", "Brokers", self._directory / "classes", "-Xmx2G")
        with (self._directory / "log").open("wb") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={key: value for key, value in os.environ.items() if key != JAVA_TOOL_OPTIONS},
                process_group=0,  # Ctrl-C is for the tests, which stop their brokers
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the JVM of brokers did not start:\n{self.log()}"
        self._port = int(line)

    def log(self) -> str:
        return (self._directory / "log").read_text(errors="replace")[-LOG_CHARACTERS:]

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()
            shutil.rmtree(self._directory, ignore_errors=True)


_brokers = _Brokers()


def _ask(*words: str) -> socket.socket:
    asked = socket.create_connection(("127.0.0.1", _brokers.port()))
    texts = [word.encode() for word in words]
    asked.sendall(_number(len(texts)) + b"".join(_number(len(text)) + text for text in texts))
    return asked


def _number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def _succeeds(asked: socket.socket, what: str, within: float) -> None:
    """Raises RuntimeError, with what went wrong."""
    asked.settimeout(within)
    try:
        failure = _read(asked, int.from_bytes(_read(asked, 4), "big")).decode()
    except OSError as error:
        failure = f"{type(error).__name__}: {error}"
    if failure:
        asked.close()
        raise RuntimeError(f"{what}:\n{failure}\n{_brokers.log()}")


def _read(asked: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not (part := asked.recv(size - len(data))):
            raise ConnectionError("the JVM has ended")
        data += part
    return data


class SharedBroker:
    """A broker or controller that has started with this server.properties. Raises RuntimeError: it has not."""

    def __init__(self, properties: Path) -> None:
        self._asked = _ask("start", str(properties))
        _succeeds(self._asked, "Kafka did not start", START_SECONDS_MAX)

    def stop(self) -> None:
        with self._asked:
            self._asked.shutdown(socket.SHUT_WR)
            _succeeds(self._asked, "Kafka did not stop", STOP_SECONDS_MAX)


def format_storage(*arguments: str) -> None:
    """Formats the directories of a broker: `kafka-storage.sh format` with these arguments."""
    with _ask("format", *arguments) as asked:
        _succeeds(asked, "Kafka's directories were not formatted", FORMAT_SECONDS_MAX)


def stop() -> None:
    """Ends the JVM with all brokers in it."""
    _brokers.stop()
