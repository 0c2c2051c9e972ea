"""Three brokers of Apache Kafka 4.4.0 and a controller, each a process."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from ottla.storage.checkpoints import uuid_to_text

from .kafka import Kafka, java

CONTROLLER_ID = 100


class _Part(Kafka):
    """One process of the cluster. `controller`: that of the cluster; None for the controller itself."""

    def __init__(self, node: int, directory: Path, controller: _Part | None, settings: dict[str, object]) -> None:
        super().__init__(settings, directory)
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
            command = ["format", "-t", uuid_to_text(b"oracle-oracle-01"), "-c", str(properties)]
            if self.controller is None:
                command.insert(1, "--standalone")
            subprocess.run(
                java("broker", "kafka.tools.StorageTool", *command, is_typical=False),
                check=True,
                capture_output=True,
                timeout=120,
            )
            self.formatted = True
        return super().start()


class KafkaCluster:
    """A context manager. `settings`: of all brokers and of the controller."""

    def __init__(self, settings: dict[str, object], nodes: int = 3) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="oracle-"))
        self._controller = _Part(CONTROLLER_ID, self._directory / "controller", None, settings)
        self.parts = {
            node: _Part(node, self._directory / str(node), self._controller, settings) for node in range(1, nodes + 1)
        }

    def __enter__(self) -> KafkaCluster:
        self._controller.start()
        for part in self.parts.values():
            part.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in (*self.parts.values(), self._controller):
            part.stop(signal.SIGKILL)
        shutil.rmtree(self._directory, ignore_errors=True)

    def address(self, node: int) -> str:
        return self.parts[node].bootstrap_servers

    def happens(self, what: str, node: int) -> None:
        """`stop`, `kill` or `start`."""
        part = self.parts[node]
        if what == "start":
            part.start()
        else:
            part.stop(signal.SIGTERM if what == "stop" else signal.SIGKILL)
