"""The verdict on well-known clients: `python -m tests.clients.verdicts [NAME...]` (`make verdicts`).

Each client does its plain work on a broker of its own, which examines it and writes a trace; the report is the same by
both. What is found goes into `docs/reference/clients.json`, and with the findings of `verdict_findings.yaml` into the
page beside it. With names only those clients are examined again.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
from ottla.verdict.from_trace import examine
from ottla.verdict.report import ClientReport, Together

from ottla.testing import Broker
from ottla.traces.reading import read

from ..oracle.jars import jar_paths
from ..oracle.kafka import program
from ..support.poll import until
from . import plain_work
from .verdict_page import DATA, PAGE, Examined, findings, page

HERE = Path(__file__).parent
SETTINGS: dict[str, object] = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
    "group.share.min.record.lock.duration.ms": 1000,
}
JAVA = ("PlainClients", "GroupClients", "TransactionClients", "ShareClients")
NODE = ("kafkajs.js", "groups.js", "transactions.js")
SECONDS = 300


class Client(NamedTuple):
    """A client that is examined. `software`: what it calls itself in ApiVersions; others that its programs use are left
    out. `needs`: commands.
    """

    name: str
    language: str
    software: str
    version: Callable[[], str]
    work: Callable[[Broker, Path], None]
    needs: tuple[str, ...] = ()


def _run(command: list[str], cwd: Path | None = None) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-3000:]


def _java(broker: Broker, directory: Path) -> None:
    for name in JAVA:
        _run([*program("broker", name, directory), broker.bootstrap_servers])


def _go(what: str) -> Callable[[Broker, Path], None]:
    def work(broker: Broker, directory: Path) -> None:
        built = directory / "clients"
        subprocess.run(["go", "build", "-o", str(built), "."], cwd=HERE / "go", check=True, timeout=SECONDS)
        _run([str(built), broker.bootstrap_servers, what])

    return work


def _node(broker: Broker, directory: Path) -> None:
    programs = shutil.copytree(HERE / "node", directory / "node")
    install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(install, cwd=programs, check=True, capture_output=True, timeout=SECONDS)
    for name in NODE:
        _run(["node", name, broker.bootstrap_servers], programs)


def _in_python(work: Callable[[Broker], None]) -> Callable[[Broker, Path], None]:
    return lambda broker, directory: work(broker)


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


CLIENTS = (
    Client("Java", "Java", "apache-kafka-java", _java_version, _java, ("java", "mvn")),
    Client("librdkafka", "C", "confluent-kafka-python", _librdkafka_version, _in_python(plain_work.librdkafka)),
    Client("kcat", "C", "librdkafka", _kcat_version, _in_python(plain_work.kcat), ("kcat",)),
    Client("franz-go", "Go", "kgo", _go_version("github.com/twmb/franz-go"), _go("franz-work"), ("go",)),
    Client("sarama", "Go", "sarama", _go_version("github.com/IBM/sarama"), _go("sarama-work"), ("go",)),
    Client("kafkajs", "JavaScript", "unknown", _node_version, _node, ("node", "npm")),
    Client("aiokafka", "Python", "unknown", _python_version("aiokafka"), _in_python(plain_work.aiokafka)),
    Client(
        "kafka-python", "Python", "kafka-python", _python_version("kafka-python"), _in_python(plain_work.kafka_python)
    ),
)


def timeless(reports: Iterable[ClientReport]) -> list[Any]:
    """Reports without times, in the order of their clients: a trace sees an event a moment earlier."""
    found = json.loads(
        json.dumps(list(reports)), object_hook=lambda one: {k: v for k, v in one.items() if k != "at_ms"}
    )
    return sorted(found, key=lambda one: (one["client_id"] or "", one["software"], one["software_version"]))


def report(client: Client, directory: Path) -> list[ClientReport]:
    """Lets a client do its work; returns what is found, which is the same live and by the trace."""
    trace = directory / "trace.jsonl"
    with Broker({**SETTINGS, "ottla.trace": str(trace)}) as broker:
        broker.lab.post("verdict")
        client.work(broker, directory)
        found: list[list[ClientReport]] = []

        def is_equal() -> bool:
            """All connections are closed, and all of the trace is written."""
            found[:] = [broker.lab.get("verdict")["clients"], list(examine(read(trace)).report())]
            return timeless(found[0]) == timeless(found[1])

        until(is_equal, f"the report on {client.name} is the same live and by the trace", every=0.2)
    return [one for one in found[0] if one["software"] == client.software]


def examined(client: Client) -> Examined:
    with tempfile.TemporaryDirectory() as directory:
        together = Together()
        for one in report(client, Path(directory)):
            together.add(one)
    return Examined(
        name=client.name,
        language=client.language,
        version=client.version(),
        rules={one["id"]: _outcome(one["outcome"], one["severity"]) for one in together.reports()},
        failures={one["id"]: one["failures"][0]["words"] for one in together.reports() if one["failures"]},
    )


def _outcome(outcome: str, severity: str) -> str:
    return "warning" if outcome == "failed" and severity == "warning" else outcome


def main(names: list[str]) -> None:
    before = {one["name"]: one for one in json.loads(DATA.read_text())} if DATA.exists() else {}
    for client in CLIENTS:
        missing = [one for one in client.needs if shutil.which(one) is None]
        if missing:
            print(f"{client.name}: left as it is, because {' and '.join(missing)} is not here")
        elif not names or client.name in names:
            before[client.name] = found = examined(client)
            print(client.name, found["version"], *(f"\n  {id}: {words}" for id, words in found["failures"].items()))
    data = [before[one.name] for one in CLIENTS if one.name in before]
    DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(data, findings()))


if __name__ == "__main__":
    main(sys.argv[1:])
