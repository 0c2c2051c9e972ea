"""Three brokers of Apache Kafka 4.4.0 and a controller."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType

from ..support.poll import until
from .kafka import START_SECONDS_MAX, Kafka, java

CONTROLLER_ID = 100


class _Part(Kafka):
    """One of the cluster's. `controller`: that of the cluster; None for the controller itself."""

    def __init__(
        self, node: int, directory: Path, controller: _Part | None, settings: dict[str, object], own_process: bool
    ) -> None:
        super().__init__(settings, directory, own_process=own_process)
        self.node = node
        self.controller = controller

    def _write_properties(self) -> Path:
        controller = self.controller or self
        values: dict[str, object] = {
            "process.roles": "broker" if self.controller else "controller",
            "node.id": self.node,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller.controller_port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data_directory,
            **self.settings,
        }
        if self.controller is None:
            values["listeners"] = f"CONTROLLER://127.0.0.1:{self.controller_port}"
        else:
            values["listeners"] = f"PLAINTEXT://127.0.0.1:{self.port}"
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def start(self) -> Kafka:
        if not self.formatted:
            properties = self._write_properties()
            self._format(*(["--standalone"] if self.controller is None else []), "-c", str(properties))
            self.formatted = True
        return super().start()


class KafkaCluster:
    """A context manager. `settings`: of all brokers and of the controller; `racks`: of the brokers; `own_processes`:
    the brokers that can be killed and paused, too (None: all of them).
    """

    def __init__(
        self,
        settings: dict[str, object],
        nodes: int = 3,
        racks: Sequence[str] = (),
        *,
        own_processes: Collection[int] | None = None,
    ) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="oracle-"))
        own = range(1, nodes + 1) if own_processes is None else own_processes
        self._controller = _Part(CONTROLLER_ID, self._directory / "controller", None, settings, own_process=False)
        self.parts = {
            node: _Part(node, self._directory / str(node), self._controller, settings, node in own)
            for node in range(1, nodes + 1)
        }
        for part, rack in zip(self.parts.values(), racks, strict=False):
            part.settings = {**part.settings, "broker.rack": rack}

    def __enter__(self) -> KafkaCluster:
        self._controller.start()
        for part in self.parts.values():
            part.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in (*self.parts.values(), self._controller):
            part.end()
        shutil.rmtree(self._directory, ignore_errors=True)

    def address(self, node: int) -> str:
        return self.parts[node].bootstrap_servers

    def restart(self) -> None:
        """Stops what runs, the controller last, and starts all."""
        for part in (*self.parts.values(), self._controller):
            part.stop()
        self.__enter__()

    def happens(self, what: str, node: int) -> None:
        """`stop`, `kill`, `start`, `pause` or `resume`."""
        part = self.parts[node]
        if what == "start":
            part.start()
        elif what == "resume":
            os.kill(part.pid, signal.SIGCONT)
        elif what == "pause":
            os.kill(part.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, part.pid, os.WSTOPPED)  # until the last of its threads has stopped
        else:
            part.stop(signal.SIGTERM if what == "stop" else signal.SIGKILL)


class HandedOver:
    """Kafka on directories that `ottla handover` made, as they are: each node with its own server.properties."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.directories: dict[int, Path] = {}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> HandedOver:
        self.directories = {int(one.name.removeprefix("node-")): one for one in self._directory.iterdir()}
        for node, directory in self.directories.items():
            with (directory / "kafka.log").open("ab") as log:
                command = java("broker", "kafka.Kafka", str(directory / "server.properties"), heap="-Xmx512M")
                self._processes[node] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            for node in self.directories:
                until(lambda n=node: self._has_started(n), f"node {node} starts", START_SECONDS_MAX, every=0.05)  # type: ignore[misc]
        except BaseException:
            self.stop(signal.SIGKILL)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stops the nodes. With SIGTERM they need `controlled.shutdown.enable=false`: the last of them would wait five
        minutes for a quorum that is gone.
        """
        for process in self._processes.values():
            process.send_signal(how)
        for process in self._processes.values():
            process.wait()
        self._processes.clear()

    def kill(self, node: int) -> None:
        """Ends a node at once; the others go on."""
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    def log(self, node: int) -> str:
        return (self.directories[node] / "kafka.log").read_text(errors="replace")

    def address(self, node: int) -> str:
        lines = (self.directories[node] / "server.properties").read_text().splitlines()
        (listeners,) = (line.partition("=")[2] for line in lines if line.startswith("advertised.listeners="))
        return listeners.split(",")[0].partition("://")[2]

    def data(self, node: int) -> Path:
        return self.directories[node] / "data"

    def _has_started(self, node: int) -> bool:
        assert self._processes[node].poll() is None, f"node {node} did not start:\n{self.log(node)[-4000:]}"
        return "Kafka Server started" in self.log(node)
