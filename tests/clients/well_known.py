"""Eight well-known clients: what each is called, where its version is found, and the programs in which it works."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import confluent_kafka
from ottla.verdict.rule import Examination

from ottla.testing import Broker

from ..oracle.jars import jar_paths
from ..oracle.kafka import program
from . import plain_troubles, plain_work

HERE: Final = Path(__file__).parent
JAVA: Final = ("PlainClients", "GroupClients", "TransactionClients", "ShareClients", "TroubledClients")
NODE: Final = ("kafkajs.js", "groups.js", "transactions.js", "troubles.js")
SECONDS: Final = 300
NO_NEW_GROUPS: Final[Mapping[Examination, str]] = {
    "consumer-group": "no groups of KIP-848",
    "share-group": "no share groups",
}
NO_MEMBER: Final = ("ending-member",)
NO_STATIC_MEMBER: Final = ("ending-static", *NO_MEMBER)  # or none whose heartbeats say so
Command = list[str]


@dataclass(frozen=True)
class Client:
    """A client that is examined. `software`: what it calls itself in ApiVersions; others that its programs use are left
    out. `work`: does its plain work. `prepared`: makes the program for examinations in a folder, and returns its
    command (`examined/program.py`). `lacks`: examinations for which it has nothing, and what; `lacks_endings`: works
    of `endings.py` for which it has nothing. `needs`: commands.
    """

    name: str
    language: str
    software: str
    version: Callable[[], str]
    work: Callable[[Broker, Path], None]
    prepared: Callable[[Path], Command]
    lacks: Mapping[Examination, str] = field(default_factory=dict)
    lacks_endings: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def _run(command: Command, cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-3000:]


def _java(broker: Broker, directory: Path) -> None:
    for name in JAVA:
        _run([*program("broker", name, directory), broker.bootstrap_servers])


def _java_examined(directory: Path) -> Command:
    return program("broker", "ExaminedClients", directory)


def _go(what: str) -> Callable[[Broker, Path], None]:
    def work(broker: Broker, directory: Path) -> None:
        _run([*_go_built(directory), broker.bootstrap_servers, what])

    return work


def _go_built(directory: Path) -> Command:
    built = directory / "clients"
    subprocess.run(["go", "build", "-o", str(built), "."], cwd=HERE / "go", check=True, timeout=SECONDS)
    return [str(built)]


def _go_examined(what: str) -> Callable[[Path], Command]:
    return lambda directory: [*_go_built(directory), "examined", what]


def _node(broker: Broker, directory: Path) -> None:
    programs = _node_installed(directory)
    for name in NODE:
        _run(["node", name, broker.bootstrap_servers], programs)


def _node_installed(directory: Path) -> Path:
    programs = directory / "node"
    if programs.exists():
        return programs
    shutil.copytree(HERE / "node", programs)
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(install, cwd=programs, check=True, capture_output=True, timeout=SECONDS)
    return programs


def _node_examined(directory: Path) -> Command:
    return ["node", str(_node_installed(directory) / "examined.js")]


def _in_python(*works: Callable[[Broker], None]) -> Callable[[Broker, Path], None]:
    def all_of_it(broker: Broker, directory: Path) -> None:
        for work in works:
            work(broker)

    return all_of_it


def _python_examined(module: str) -> Callable[[Path], Command]:
    return lambda directory: [sys.executable, "-m", f"tests.clients.examined.{module}"]


def _java_version() -> str:
    (found,) = (one for one in jar_paths("broker") if one.name.startswith("kafka-clients-"))
    return found.stem.removeprefix("kafka-clients-")


def _go_version(module: str) -> Callable[[], str]:
    def version() -> str:
        (found,) = re.findall(rf"^\s+{re.escape(module)} v(\S+)$", (HERE / "go" / "go.mod").read_text(), re.MULTILINE)
        return str(found)

    return version


def _node_version() -> str:
    return str(json.loads((HERE / "node" / "package.json").read_text())["dependencies"]["kafkajs"])


def _librdkafka_version() -> str:
    return f"{confluent_kafka.libversion()[0]} (confluent-kafka {importlib.metadata.version('confluent-kafka')})"


def _kcat_version() -> str:
    said = subprocess.run(["kcat", "-V"], capture_output=True, text=True, timeout=60, check=False).stdout
    found = re.search(r"Version (\S+).*librdkafka (\d+\.\d+\.\d+)", said, re.DOTALL)
    assert found is not None, said
    return f"{found[1]} (librdkafka {found[2]})"


def _python_version(name: str) -> Callable[[], str]:
    return lambda: importlib.metadata.version(name)


CLIENTS: Final = (
    Client("Java", "Java", "apache-kafka-java", _java_version, _java, _java_examined, needs=("java", "mvn")),
    Client(
        "librdkafka",
        "C",
        "confluent-kafka-python",
        _librdkafka_version,
        _in_python(plain_work.librdkafka, plain_troubles.librdkafka),
        _python_examined("of_librdkafka"),
    ),
    Client(
        "kcat",
        "C",
        "librdkafka",
        _kcat_version,
        _in_python(plain_work.kcat, plain_troubles.kcat),
        _python_examined("of_kcat"),
        NO_NEW_GROUPS,
        NO_MEMBER,
        needs=("kcat",),
    ),
    Client(
        "franz-go",
        "Go",
        "kgo",
        _go_version("github.com/twmb/franz-go"),
        _go("franz-work"),
        _go_examined("franz"),
        needs=("go",),
    ),
    Client(
        "sarama",
        "Go",
        "sarama",
        _go_version("github.com/IBM/sarama"),
        _go("sarama-work"),
        _go_examined("sarama"),
        NO_NEW_GROUPS,
        NO_MEMBER,
        needs=("go",),
    ),
    Client(
        "kafkajs",
        "JavaScript",
        "unknown",
        _node_version,
        _node,
        _node_examined,
        NO_NEW_GROUPS,
        NO_STATIC_MEMBER,
        needs=("node", "npm"),
    ),
    Client(
        "aiokafka",
        "Python",
        "unknown",
        _python_version("aiokafka"),
        _in_python(plain_work.aiokafka, plain_troubles.aiokafka),
        _python_examined("of_aiokafka"),
        NO_NEW_GROUPS,
        NO_STATIC_MEMBER,
    ),
    Client(
        "kafka-python",
        "Python",
        "kafka-python",
        _python_version("kafka-python"),
        _in_python(plain_work.kafka_python, plain_troubles.kafka_python),
        _python_examined("of_kafka_python"),
        NO_NEW_GROUPS,
        NO_MEMBER,
    ),
)
