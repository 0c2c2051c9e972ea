"""A real Apache Kafka 4.4.0 on loopback: one KRaft node, for tests, benchmarks and `make oracle`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ottla.storage.checkpoints import uuid_to_text

from ..support.ports import free_port
from .jars import HERE, classpath, home, jar_folder, jar_lock

if TYPE_CHECKING:
    from .brokers import SharedBroker

START_SECONDS_MAX = 120.0
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=error:stderr")
LOG4J = f"-Dlog4j2.configurationFile={HERE / 'log4j2.yaml'}"
JAVA_TOOL_OPTIONS = "JAVA_TOOL_OPTIONS"  # the variable with options of each Java that starts
TOOL = "org.apache.kafka.tools.TopicCommand"
FEW_PARTITIONS: dict[str, object] = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4,
}
"""Of coordinators' topics, for Kafkas that live for seconds, of which 50 partitions of each topic would take half."""
PROGRAMS = (HERE.parent / "clients" / "java", HERE / "java")


def java(
    part: str,
    *arguments: str,
    heap: str = "-Xmx512M",
    classes: Path | None = None,
    quick: bool = True,
) -> list[str]:
    """A command line that runs a class of the oracle's jars, or of `classes`.

    `quick`: for little work. Java compiles less well and takes classes out of an archive, which the first one to end
    makes that has its classes out of the jars alone.
    """
    path = classpath(part) if classes is None else f"{classpath(part)}:{classes}"
    return [
        "java",
        heap,
        *(_quick(part, classes is None) if quick else ()),
        LOG4J,
        "-cp",
        path,
        *arguments,
    ]


def _archive(part: str) -> Path:
    return jar_folder(part) / "classes.jsa"


def _quick(part: str, makes_archive: bool) -> list[str]:
    archive = _archive(part)
    if part == "tools" and not archive.exists():
        _archive_tools(archive)
    if archive.exists():
        return [*QUICK, f"-XX:SharedArchiveFile={archive}"]
    # Java refuses to archive classes that lie in directories
    return [*QUICK, *([f"-XX:ArchiveClassesAtExit={archive}"] if makes_archive else [])]


def _archive_tools(archive: Path) -> None:
    """Makes the archive of the tools, whose JVMs are killed or have classes of their own: a tool that finds no broker
    loads most of what others load.
    """
    with jar_lock("tools"), tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        if archive.exists():  # another process was faster
            return
        made, settings = Path(folder, archive.name), Path(folder, "at-once.properties")
        settings.write_text("default.api.timeout.ms=20\nrequest.timeout.ms=10\n")
        words = ["--list", "--bootstrap-server", "127.0.0.1:1", "--command-config", str(settings)]
        command = ["java", *QUICK, f"-XX:ArchiveClassesAtExit={made}", LOG4J, "-cp", classpath("tools"), TOOL, *words]
        subprocess.run(command, capture_output=True, timeout=120, check=False)
        if made.exists():  # not every Java can make one
            made.rename(archive)


def program(part: str, name: str, classes: Path, heap: str = "-Xmx1G") -> list[str]:
    """Compiles a program of one of the `java` folders against the oracle's jars; the command line that runs it."""
    _compile(part, name, classes)
    return java(part, name, heap=heap, classes=classes)


def _compile(part: str, name: str, classes: Path) -> None:
    """Copies the classes of a program, which is compiled once until a source of its folder or a jar changes: javac
    takes as much as many a program.
    """
    source = next(found for folder in PROGRAMS if (found := folder / f"{name}.java").exists())
    digest = hashlib.sha256(" ".join(sorted(jar.name for jar in jar_folder(part).glob("*.jar"))).encode())
    for one in sorted(source.parent.glob("*.java")):
        digest.update(one.name.encode() + one.read_bytes())
    kept = home() / "programs" / f"{part}-{name}-{digest.hexdigest()[:16]}"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as fresh:
            _javac(part, source, Path(fresh, "classes"))
            with contextlib.suppress(OSError):  # another process was faster
                Path(fresh, "classes").rename(kept)
    shutil.copytree(kept, classes, dirs_exist_ok=True)


def _javac(part: str, source: Path, classes: Path) -> None:
    subprocess.run(
        [
            "javac",
            "-J-XX:TieredStopAtLevel=1",
            "-d",
            str(classes),
            "-cp",
            classpath(part),
            "-implicit:class",
            "-sourcepath",
            str(source.parent),
            str(source),
        ],
        check=True,
        timeout=120,
    )


def tool(
    name: str, *arguments: str, stdin: str | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Runs one of Kafka's command-line tools in a JVM of its own, for figures; tests share a JVM (`oracle.tools`)."""
    full = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
    return subprocess.run(
        java("tools", full, *arguments), input=stdin, capture_output=True, text=True, timeout=timeout, check=False
    )


class Kafka:
    """A Kafka as a context manager. `directory` may hold the data of an earlier one, or of ottla.

    `quick`: to be there sooner; not for figures, whose Kafka is as its users start it. `plugin`: a class of the `java`
    folders that it can load. `own_process`: it can be killed and paused, and has a log. Without it a quick one shares a
    JVM with others, if it needs no plugin, no `java_options` and no JAVA_TOOL_OPTIONS.
    """

    def __init__(
        self,
        settings: dict[str, object] | None = None,
        directory: Path | None = None,
        *,
        formatted: bool = False,
        quick: bool = True,
        plugin: str = "",
        own_process: bool = False,
    ) -> None:
        self.plugin = plugin
        self.own_process = own_process
        self.directory = directory or Path(tempfile.mkdtemp(prefix="oracle-"))
        self._temporary = directory is None
        self.settings = settings or {}
        self.formatted = formatted
        self.quick = quick
        self.java_options: tuple[str, ...] = ()
        self.port = free_port()
        self.controller_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._shared: SharedBroker | None = None
        self.start_seconds = 0.0

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def data_directory(self) -> Path:
        return self.directory / "data"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None or self._shared is not None

    def _write_properties(self) -> Path:
        values: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data_directory,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            **self.settings,
        }
        path = self.directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        return path

    def _format(self, *arguments: str) -> None:
        from .brokers import format_storage  # which runs a program of this module

        format_storage("-t", uuid_to_text(b"oracle-oracle-01"), *arguments)

    def start(self) -> Kafka:
        self.directory.mkdir(parents=True, exist_ok=True)
        properties = self._write_properties()
        if not self.formatted:
            self._format("--standalone", "-c", str(properties))
            self.formatted = True
        began = time.monotonic()
        if self._can_share:
            from .brokers import SharedBroker  # which runs a program of this module

            self._shared = SharedBroker(properties)
        else:
            self._start_process(properties)
        self.start_seconds = time.monotonic() - began
        return self

    @property
    def _can_share(self) -> bool:
        """The first broker has a process of its own anyway, which writes the archive of classes at its end."""
        special = self.own_process or self.plugin or self.java_options or JAVA_TOOL_OPTIONS in os.environ
        return self.quick and not special and _archive("broker").exists()

    def _start_process(self, properties: Path) -> None:
        classes = self.directory / "classes" if self.plugin else None
        if classes is not None:
            _compile("broker", self.plugin, classes)
        log = self.directory / "kafka.log"
        ends = time.monotonic() + START_SECONDS_MAX
        with log.open("wb") as out:
            program, *arguments = java(
                "broker", "kafka.Kafka", str(properties), heap="-Xmx1G", classes=classes, quick=self.quick
            )
            self._process = subprocess.Popen(
                [program, *self.java_options, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        while "Kafka Server started" not in log.read_text(errors="replace"):
            if self._process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"Kafka did not start:\n{log.read_text(errors='replace')[-4000:]}")
            time.sleep(0.02)  # another process's log can only be polled

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends the broker, by other signals than SIGTERM only one in a process of its own."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None
        if self._shared is not None:
            assert how is signal.SIGTERM, "a broker that shares its process can only be stopped"
            self._shared.stop()
            self._shared = None

    def end(self) -> None:
        """Ends the broker in the quickest way: its data are removed."""
        self.stop(signal.SIGTERM if self._process is None else signal.SIGKILL)

    def __enter__(self) -> Kafka:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # What a temporary broker would write at its end is removed; the first one also writes the archive of classes.
        if self._temporary and _archive("broker").exists():
            self.end()
        else:
            self.stop()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)


def main() -> None:
    with Kafka(own_process=True) as kafka:
        print(
            f"Apache Kafka 4.4.0 answers at {kafka.bootstrap_servers}; data in {kafka.data_directory}; Ctrl-C ends it",
            flush=True,
        )
        try:
            signal.pause()
        except KeyboardInterrupt:
            sys.exit(0)


if __name__ == "__main__":
    main()
