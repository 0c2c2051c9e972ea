"""A broker for tests: a process of its own on a free port, which ends with the test.

from ottla.testing import Broker

with Broker() as broker:
    client = connect(broker.bootstrap_servers)
"""

from __future__ import annotations

import atexit
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from .clock import Clock
from .lab_client import Lab

START_SECONDS_MAX = 30.0
STOP_SECONDS_MAX = 120.0  # one with very many partitions takes seconds


class BrokerFailed(RuntimeError):
    """The broker did not start or stop; the message contains its log."""


class Broker:
    """A broker process as a context manager.

    `settings`: values by configuration key, such as `{"num.partitions": 3}`. `directory`: where the broker keeps its
    data; by default a temporary directory, which `close` removes. `lab`: whether to open the HTTP API. A broker that is
    not closed is closed when the program ends, unless a signal ends it.

    `bootstrap_servers` is the address for clients, with commas between those of several nodes (`ottla.nodes`), and
    `lab_url` the URL of the HTTP API; both are empty before `start`.
    `lab` is the API: `broker.lab.hold("orders")`, `broker.lab.get("topics/orders")`.
    """

    _process_group: int | None = None  # 0 is one of its own, which no signal to the group of this process reaches

    def __init__(
        self,
        settings: dict[str, object] | None = None,
        *,
        directory: str | os.PathLike[str] | None = None,
        lab: bool = True,
    ) -> None:
        self.settings = dict(settings or {})
        self._temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-")) if directory is None else Path(directory)
        self.bootstrap_servers = ""
        self.lab_url = ""
        self._with_lab = lab
        self._process: subprocess.Popen[bytes] | None = None
        log, path = tempfile.mkstemp(prefix="ottla-", suffix=".log")
        os.close(log)
        self._log_path = Path(path)
        self._owner = os.getpid()
        atexit.register(self._end)

    @property
    def data_directory(self) -> Path:
        """The Kafka data directory (`log.dirs`), inside of `directory`."""
        return self.directory / "data"

    @property
    def pid(self) -> int:
        """The process id; RuntimeError before `start` and after `stop`."""
        if self._process is None:
            raise RuntimeError("the broker is not running: call start() first")
        return self._process.pid

    @property
    def lab(self) -> Lab:
        """The HTTP API. RuntimeError before `start`, and for a broker without it."""
        if not self.lab_url:
            raise RuntimeError("the broker has no HTTP API: call start() first, and do not set lab=False")
        token = self.settings.get("ottla.lab.token")
        return Lab(self.lab_url, None if token is None else str(token))

    @property
    def clock(self) -> Clock:
        """The broker's clock: `broker.clock.freeze()`, `broker.clock.advance("45s")`. RuntimeError as for `lab`."""
        return Clock(self.lab)

    @property
    def log(self) -> str:
        """What the broker wrote to stderr since the first start."""
        return self._log_path.read_text(errors="replace")

    def start(self) -> Self:
        """Starts the broker and returns when it answers. Raises BrokerFailed; RuntimeError if it is running."""
        if self.running:
            raise RuntimeError("the broker is running already: call stop() or kill() first")
        if self._process is not None:  # it has ended by itself
            self._reap()
        self.directory.mkdir(parents=True, exist_ok=True)
        command = self._command()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KAFKA_")}
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                process_group=self._process_group,
            )
        self._read_announcement()
        return self

    def _command(self) -> list[str]:
        settings: dict[str, object] = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": self.data_directory,
            **self.settings,
        }
        if self.bootstrap_servers:
            settings = self._where_it_was(settings)
        command = [sys.executable, "-m", "ottla", "serve", "--announce", *(["--lab", "0"] if self._with_lab else [])]
        return command + [f"{key}={value}" for key, value in settings.items()]

    def _where_it_was(self, settings: dict[str, object]) -> dict[str, object]:
        """Returns the settings of a restart: each node listens at the port where clients expect it."""
        advertised = str(settings.get("advertised.listeners", ":0")).partition(",")[0]
        if not advertised.endswith(":0"):  # it may listen at another port than it advertises
            return settings
        first, comma, others = str(settings["listeners"]).partition(",")
        host = first.rpartition(":")[0]
        port, *ports = (one.rpartition(":")[2] for one in self.bootstrap_servers.split(","))
        found = {**settings, "listeners": f"{host}:{port}{comma}{others}"}
        if not comma:  # the ports of other listeners are not known
            second, count = int(str(settings.get("node.id", 1))) + 1, int(str(settings.get("ottla.nodes", 1)))
            for node, port in zip(range(second, second + count - 1), ports, strict=False):
                if f"ottla.node.{node}.advertised.listeners" not in settings:
                    found.setdefault(f"ottla.node.{node}.listeners", f"{host}:{port}")
        return found

    def _read_announcement(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        out = self._process.stdout
        ready, _, _ = select.select([out], [], [], START_SECONDS_MAX)
        line = out.readline().decode().split() if ready else []
        if not line:
            if not ready:
                self._process.kill()
            code = self._reap()
            raise BrokerFailed(f"the broker did not start (exit code {code}):\n{self.log}")
        self.bootstrap_servers = line[0]
        self.lab_url = line[1] if len(line) > 1 else ""

    def stop(self) -> int:
        """Stops the broker cleanly (SIGTERM); returns its exit code. Raises BrokerFailed, and kills the broker, if it
        takes longer than two minutes; RuntimeError before `start`, and after `stop` or `kill`.
        """
        if self._process is None:
            raise RuntimeError("the broker is not running: call start() first")
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerFailed(f"the broker did not stop within {STOP_SECONDS_MAX} s:\n{self.log}") from None
        return self._reap()

    def kill(self) -> None:
        """Kills the broker (SIGKILL), like a crash."""
        if self._process is not None:
            self._process.kill()
            self._reap()

    def _reap(self) -> int:
        assert self._process is not None
        process, self._process = self._process, None
        code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return code

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:  # the message has the log
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end(self) -> None:
        """Closes the broker with the program, but not with a copy that the program has forked."""
        if self._owner == os.getpid():
            self.close()

    def close(self) -> None:
        """Stops the broker, and removes the directory if it is a temporary one. Raises BrokerFailed as `stop`."""
        try:
            if self._process is not None:
                self.stop()
        finally:
            if self._temporary:
                shutil.rmtree(self.directory, ignore_errors=True)
            self._log_path.unlink(missing_ok=True)
            atexit.unregister(self._end)  # which would keep it in memory
