"""Brokers of Apache Kafka that need ZooKeeper (0.8.2.2 to 3.9.1) on loopback, and the ZooKeeper.

Their transcripts are written by hand: `OTTLA_ORACLE=record pytest tests/differential/test_earlier_releases.py`, and so
are directories that they wrote: `python -m tests.oracle.record_old_directories`.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from types import TracebackType

from ..support.poll import until
from ..support.ports import free_port
from .jars import archived, classpath

START_SECONDS_MAX = 60.0
LOG4J = """log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
"""


class OldKafka:
    """A broker as a context manager. `version`: one of those that have a pom beside this file. `zookeeper`: that of the
    broker; one of its own unless it is named. `quick`: for tests, whose brokers live for seconds; else the JVM compiles
    and collects as it does by default.
    """

    def __init__(
        self,
        version: str,
        settings: dict[str, object] | None = None,
        zookeeper: str | None = None,
        *,
        quick: bool = True,
        java_options: tuple[str, ...] = (),
    ) -> None:
        self._options = (*(("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC") if quick else ()), *java_options)
        self.version = version
        self.settings = settings or {}
        self.directory = Path(tempfile.mkdtemp(prefix="old-kafka-"))
        self.port = free_port()
        self._own_zookeeper_port = free_port() if zookeeper is None else None
        self.zookeeper = zookeeper or f"127.0.0.1:{self._own_zookeeper_port}"
        self._ids = count(2)
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> OldKafka:
        self._write_log4j()
        self.start_zookeeper()
        self.start_broker()
        return self

    def _write_log4j(self) -> None:
        (self.directory / "log4j.properties").write_text(LOG4J)

    def start_zookeeper(self) -> None:
        """Starts the ZooKeeper of its own, if it has one."""
        port = self._own_zookeeper_port
        if port is None:
            return
        zookeeper = {
            "dataDir": self.directory / "zookeeper",
            "clientPort": port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": 500,  # sessions are two of them at least
            "admin.enableServer": "false",
        }
        self._start("org.apache.zookeeper.server.quorum.QuorumPeerMain", zookeeper, port)

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    def start_broker(self) -> None:
        """Starts the broker, again if it was stopped."""
        self._start_broker(1, self.port, self.data_directory)

    def add_broker(self) -> int:
        """Starts one more broker of the cluster; returns its id."""
        broker_id = next(self._ids)
        self._start_broker(broker_id, free_port(), self.directory / f"data-{broker_id}")
        return broker_id

    def _start_broker(self, broker_id: int, port: int, data: Path) -> None:
        broker = {
            "broker.id": broker_id,
            "host.name": "127.0.0.1",
            "port": port,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": data,
            "zookeeper.connect": self.zookeeper,
            "offsets.topic.replication.factor": 1,
            **self.settings,
        }
        self._start("kafka.Kafka", broker, port)

    def stop_broker(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Ends the broker; ZooKeeper stays."""
        process = self._processes.pop()
        process.send_signal(by)
        process.wait(60)

    def tool(self, main: str, *arguments: str) -> str:
        """Runs one of the release's own tools; returns what it prints."""
        part = f"kafka-{self.version}"
        options = ("-Xmx256M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *archived(part, "tools"))
        command = ["java", *options, "-cp", classpath(part), main]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, check=True, timeout=120).stdout

    def _start(self, main: str, values: dict[str, object], port: int) -> None:
        """Starts a program with a properties file, and waits until it listens."""
        properties = self.directory / f"{main}.properties"
        properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        command = [
            *("java", "-Xmx512M", *self._options),
            *archived(f"kafka-{self.version}", main.rpartition(".")[2]),
            f"-Dlog4j.configuration=file:{self.directory / 'log4j.properties'}",
            "-Dzookeeper.jmx.log4j.disable=true",  # 1.1.1 comes without what that needs
            *("-cp", classpath(f"kafka-{self.version}"), main, str(properties)),
        ]
        with (self.directory / f"{main}.log").open("wb") as out:
            self._processes.append(subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL))

        def listens() -> bool:
            assert self._processes[-1].poll() is None, (self.directory / f"{main}.log").read_text()[-2000:]
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        until(listens, f"{main} listens", within=START_SECONDS_MAX, every=0.1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
        shutil.rmtree(self.directory, ignore_errors=True)
