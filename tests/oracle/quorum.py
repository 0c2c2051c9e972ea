"""Three processes of Apache Kafka 4.4.0 that are brokers and controllers in one."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType

from ottla.storage.checkpoints import uuid_to_text

from ..support.ports import free_port
from ..support.relays import Relays, name_of, write_hosts
from .cluster import KafkaCluster
from .kafka import Kafka


class _Voter(Kafka):
    """A broker that is one of several controllers. `at`: the controllers' ports by node."""

    def __init__(self, node: int, directory: Path, at: Mapping[int, int], settings: dict[str, object]) -> None:
        super().__init__(settings, directory, own_process=True)
        self.node = node
        self.at = at
        self.controller_port = at[node]

    def _write_properties(self) -> Path:
        values: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "controller.quorum.bootstrap.servers": ",".join(
                f"{self.host_of(node)}:{port}" for node, port in self.at.items()
            ),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "log.dirs": self.data_directory,
            **self.settings,
        }
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    @property
    def ports_of_others(self) -> tuple[int, ...]:
        """Those that other nodes connect to."""
        return self.port, self.controller_port

    def host_of(self, node: int) -> str:
        """Where the controllers reach each other."""
        return "127.0.0.1"

    def format(self) -> None:
        voters = ",".join(f"{node}@{self.host_of(node)}:{port}:{_directory_id(node)}" for node, port in self.at.items())
        self._format("-c", str(self._write_properties()), "--initial-controllers", voters)
        self.formatted = True


class _Relayed(_Voter):
    """One that is reached by the others through relays, and by clients without them."""

    def __init__(
        self, node: int, directory: Path, at: Mapping[int, int], settings: dict[str, object], clients: str
    ) -> None:
        """`clients`: the security protocol of their listener."""
        super().__init__(node, directory, at, settings)
        self.broker_port = free_port()
        listeners = {clients: self.port, "BROKER": self.broker_port, "CONTROLLER": self.controller_port}
        self.settings = {
            **settings,
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
            "advertised.listeners": ",".join(
                f"{name}://{'127.0.0.1' if name == clients else name_of(node)}:{port}"
                for name, port in listeners.items()
            ),
            "listener.security.protocol.map": f"{clients}:{clients},BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "BROKER",
        }
        self.java_options = (f"-Djdk.net.hosts.file={self.directory / 'hosts'}",)

    @property
    def ports_of_others(self) -> tuple[int, ...]:
        return self.broker_port, self.controller_port

    def host_of(self, node: int) -> str:
        return name_of(node)

    def _write_properties(self) -> Path:
        path = super()._write_properties()
        write_hosts(self.directory / "hosts", self.node, self.at)
        return path


def _directory_id(node: int) -> str:
    return uuid_to_text(bytes(range(node, node + 16)))


Kind = Callable[[int, Path, Mapping[int, int], dict[str, object]], _Voter]


class KafkaQuorum(KafkaCluster):
    """Three nodes of which each is a broker and a controller (kraft.version 1)."""

    def __init__(self, settings: dict[str, object], nodes: int = 3, kind: Kind = _Voter) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="oracle-"))
        at = {node: free_port() for node in range(1, nodes + 1)}
        self._voters = {node: kind(node, self._directory / str(node), at, settings) for node in at}

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


class PartedQuorum(KafkaQuorum):
    """Three nodes, as `KafkaQuorum`, whose network can be parted; clients reach all of them."""

    def __init__(self, settings: dict[str, object], nodes: int = 3, clients: str = "PLAINTEXT") -> None:
        """`clients`: the security protocol of their listeners."""
        super().__init__(settings, nodes, partial(_Relayed, clients=clients))
        self._relays = Relays({node: voter.ports_of_others for node, voter in self._voters.items()})

    def __enter__(self) -> PartedQuorum:
        self._relays.__enter__()
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._relays.__exit__(kind, error, trace)

    def controller_address(self, node: int) -> tuple[str, int]:
        """Where the other nodes reach the controller at a node."""
        return name_of(node), self._voters[node].controller_port

    def part(self, *sides: Collection[int]) -> None:
        """Nodes reach those on their own side alone."""
        self._relays.part(sides)

    def join(self) -> None:
        """All nodes reach each other."""
        self._relays.join()
