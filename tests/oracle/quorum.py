"""Three processes of Apache Kafka 4.4.0 that are brokers and controllers in one."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from ottla.storage.checkpoints import uuid_to_text

from ..support.ports import free_port
from .cluster import KafkaCluster
from .kafka import Kafka, java


class _Voter(Kafka):
    """A broker that is one of several controllers. `at`: the controllers' ports by node."""

    def __init__(self, node: int, directory: Path, at: Mapping[int, int], settings: dict[str, object]) -> None:
        super().__init__(settings, directory)
        self.node = node
        self.at = at
        self.controller_port = at[node]

    def _write_properties(self) -> Path:
        values: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.at.values()),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "log.dirs": self.data_directory,
            **self.settings,
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def format(self) -> None:
        voters = ",".join(f"{node}@127.0.0.1:{port}:{_directory_id(node)}" for node, port in self.at.items())
        command = ["format", "-t", uuid_to_text(b"oracle-oracle-01"), "-c", str(self._write_properties())]
        subprocess.run(
            java("broker", "kafka.tools.StorageTool", *command, "--initial-controllers", voters, is_typical=False),
            check=True,
            capture_output=True,
            timeout=120,
        )
        self.formatted = True


def _directory_id(node: int) -> str:
    return uuid_to_text(bytes(range(node, node + 16)))


class KafkaQuorum(KafkaCluster):
    """Three nodes of which each is a broker and a controller (kraft.version 1)."""

    def __init__(self, settings: dict[str, object], nodes: int = 3) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="oracle-"))
        at = {node: free_port() for node in range(1, nodes + 1)}
        self._voters = {node: _Voter(node, self._directory / str(node), at, settings) for node in at}

    def __enter__(self) -> KafkaQuorum:
        for voter in self._voters.values():
            voter.format()
        with ThreadPoolExecutor(len(self._voters)) as threads:  # one alone waits for the others
            list(threads.map(Kafka.start, self._voters.values()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for voter in self._voters.values():
            voter.stop(signal.SIGKILL)
        shutil.rmtree(self._directory, ignore_errors=True)

    def address(self, node: int) -> str:
        return self._voters[node].bootstrap_servers

    def happens(self, what: str, node: int) -> None:
        """`stop`, `kill` or `start`."""
        if what == "start":
            self._voters[node].start()
        else:
            self._voters[node].stop(signal.SIGTERM if what == "stop" else signal.SIGKILL)
