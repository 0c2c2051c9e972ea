"""What Kafka's command-line tools are asked of three nodes, each a broker and a controller, and what they print.

python -m tests.oracle.tool_cases     asks Apache Kafka again, and writes `recorded/tools.json`
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..support.poll import until
from .cluster_pair import Nodes
from .kafka import java
from .quorum import KafkaQuorum
from .tools import tool

RECORDED = Path(__file__).parent / "recorded" / "tools.json"
SETTINGS: dict[str, object] = {
    "auto.leader.rebalance.enable": "false",
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    "group.consumer.assignment.interval.ms": 1000,
    "group.share.assignment.interval.ms": 1000,
    "group.streams.assignment.interval.ms": 1000,
    "group.streams.initial.rebalance.delay.ms": 3000,
    "log.cleaner.threads": 1,
    "num.partitions": 1,
}
PLANS: dict[str, list[dict[str, Any]]] = {
    "moved": [{"topic": "placed", "partition": 0, "replicas": [2, 3]}],
    "unknown": [{"topic": "absent", "partition": 0, "replicas": [2, 3]}],
    "nowhere": [{"topic": "placed", "partition": 0, "replicas": [9]}],
    "twice": [{"topic": "placed", "partition": 0, "replicas": [2, 2]}],
    "one": [{"topic": "placed", "partition": 1}],
}
TOPICS, ELECTION, LOG_DIRS, CLUSTER = "TopicCommand", "LeaderElectionCommand", "LogDirsCommand", "ClusterTool"
FEATURES, QUORUM, VERSIONS = "FeatureCommand", "MetadataQuorumCommand", "BrokerApiVersionsCommand"
REASSIGN, CONFIGS = "reassign.ReassignPartitionsCommand", "kafka.admin.ConfigCommand"
PRODUCER, VERIFICATION = "ConsoleProducer", "ReplicaVerificationTool"
RECORDS = "".join(f"{key}\t{key}\n" for key in "abcdefgh")
KINDS = ("topics", "brokers", "users", "clients", "ips", "groups", "client-metrics")
CHANGES = (
    "topics --entity-name placed --add-config retention.ms=77000,segment.bytes=2000000",
    "topics --entity-name placed --add-config cleanup.policy=[compact,delete]",
    "topics --entity-name placed --delete-config segment.bytes",
    "topics --entity-name placed --delete-config segment.ms",
    "topics --entity-name placed --add-config retention.ms=soon",
    "topics --entity-name absent --add-config retention.ms=1",
    "brokers --entity-name 2 --add-config log.cleaner.backoff.ms=100",
    "brokers --entity-name 2 --add-config log.cleaner.threads=1000",
    "brokers --entity-name 2 --add-config process.roles=broker",
    "brokers --entity-name x --add-config log.cleaner.backoff.ms=100",
    "brokers --entity-default --add-config log.cleaner.backoff.ms=200",
    "broker-loggers --entity-name 2 --add-config kafka.server.KafkaApis=DEBUG",
    "broker-loggers --entity-name 2 --add-config kafka.server.KafkaApis=LOUD",
    "broker-loggers --entity-name 2 --add-config no.such.Logger=DEBUG",
    "broker-loggers --entity-default --add-config kafka.server.KafkaApis=DEBUG",
    "users --entity-name alice --add-config producer_byte_rate=1024,request_percentage=50.5",
    "users --entity-default --add-config consumer_byte_rate=2048",
    "clients --entity-name app --add-config producer_byte_rate=99",
    "clients --entity-default --add-config producer_byte_rate=98",
    "users --entity-name alice --entity-type clients --entity-name app --add-config consumer_byte_rate=77",
    "ips --entity-name 127.0.0.2 --add-config connection_creation_rate=5",
    "ips --entity-default --add-config connection_creation_rate=500",
    "groups --entity-name g --add-config consumer.session.timeout.ms=50000",
    "groups --entity-name g --add-config consumer.session.timeout.ms=1",
    "client-metrics --entity-name m --add-config metrics=*,interval.ms=5000",
    "client-metrics --entity-name m --add-config interval.ms=1",
)
SHOWN = (
    *KINDS,
    "topics --entity-name placed",
    "topics --entity-name placed --all",
    "topics --entity-name absent",
    "brokers --entity-name 1",
    "brokers --entity-name 2",
    "brokers --entity-default",
    "users --entity-name alice",
    "users --entity-default",
    "clients --entity-name app",
    "users --entity-name alice --entity-type clients --entity-name app",
    "ips --entity-name 127.0.0.2",
    "ips --entity-default",
    "groups --entity-name g",
    "groups --entity-name g --all",
    "client-metrics --entity-name m",
    "client-metrics --entity-name m --all",
)
DESCRIBED = (
    "--describe --topic placed",
    "--describe --under-replicated-partitions",
    "--describe --unavailable-partitions",
    "--describe --under-min-isr-partitions",
    "--describe --at-min-isr-partitions",
)
ELECTED = "--election-type preferred --topic placed --partition"
CASES: tuple[tuple[str, str], ...] = (
    (TOPICS, "--list"),
    (TOPICS, "--create --topic placed --replica-assignment 1:2:3,2:3:1,3:1:2 --config min.insync.replicas=2"),
    (TOPICS, "--create --topic placed --replica-assignment 1:2:3"),
    (TOPICS, "--create --topic placed --if-not-exists --replica-assignment 1:2:3"),
    (TOPICS, "--create --topic spread --partitions 3 --replication-factor 3"),
    (TOPICS, "--create --topic usual"),
    (TOPICS, "--create --topic solo --replica-assignment 2"),
    (TOPICS, "--create --topic more --replication-factor 4"),
    (TOPICS, "--create --topic none --partitions 0"),
    (TOPICS, "--create --topic a.b --replica-assignment 2"),
    (TOPICS, "--create --topic a_b"),
    (TOPICS, "--create --topic bad/name"),
    (TOPICS, "--create --topic odd --config no.such.key=1"),
    (TOPICS, "--create --topic uneven --replica-assignment 1:2,3"),
    (TOPICS, "--create --topic elsewhere --replica-assignment 9"),
    (TOPICS, "--create --topic twice --replica-assignment 1:1"),
    (TOPICS, "--list"),
    (TOPICS, "--list --topic p.*"),
    (TOPICS, "--delete --topic usual"),
    (TOPICS, "--delete --topic a.b"),
    *((TOPICS, one) for one in DESCRIBED),
    (TOPICS, "--describe --topics-with-overrides"),
    (TOPICS, "--describe --topic absent"),
    (TOPICS, "--alter --topic placed --partitions 4 --replica-assignment 1:2:3,2:3:1,3:1:2,1:3:2"),
    (TOPICS, "--alter --topic placed --partitions 4"),
    (TOPICS, "--alter --topic placed --partitions 2"),
    (TOPICS, "--alter --topic absent --partitions 2"),
    (TOPICS, "--delete --topic spread"),
    (TOPICS, "--delete --topic absent"),
    (TOPICS, "--delete --topic absent --if-exists"),
    (REASSIGN, "--list"),
    (REASSIGN, "--reassignment-json-file plan:moved --verify"),
    *((REASSIGN, f"--reassignment-json-file plan:{one} --execute") for one in ("unknown", "nowhere", "twice", "one")),
    (REASSIGN, "--reassignment-json-file plan:moved --execute"),
    ("until", "reassigned"),
    (REASSIGN, "--reassignment-json-file plan:moved --verify"),
    (REASSIGN, "--reassignment-json-file plan:moved --cancel"),
    (REASSIGN, "--topics-to-move-json-file topics:solo --broker-list 1 --generate"),
    (REASSIGN, "--topics-to-move-json-file topics:placed --broker-list 1 --generate"),
    (REASSIGN, "--topics-to-move-json-file topics:placed --broker-list 1,9 --generate"),
    (PRODUCER, "--topic placed --reader-property parse.key=true"),
    (VERIFICATION, "--topics-include placed --report-interval-ms 200"),
    (TOPICS, "--describe --topic placed"),
    (ELECTION, f"{ELECTED} 0"),
    (ELECTION, f"{ELECTED} 9"),
    (ELECTION, "--election-type preferred --topic absent --partition 0"),
    (ELECTION, "--election-type unclean --topic placed --partition 0"),
    (ELECTION, "--election-type preferred --path-to-json-file elect:1"),
    *((LOG_DIRS, f"--describe{one}") for one in ("", " --broker-list 1,3", " --topic-list placed", " --broker-list 9")),
    (LOG_DIRS, "--describe --broker-list 2 --topic-list absent"),
    (CLUSTER, "cluster-id"),
    (CLUSTER, "list-endpoints"),
    (CLUSTER, "list-endpoints --include-fenced-brokers"),
    (CLUSTER, "unregister --id 9"),
    (QUORUM, "describe --status"),
    (QUORUM, "describe --replication"),
    (QUORUM, "describe --replication --human-readable"),
    (VERSIONS, ""),
    (FEATURES, "describe"),
    (FEATURES, "describe --node-id 2"),
    (FEATURES, "version-mapping"),
    (FEATURES, "version-mapping --release-version 4.0-IV3"),
    (FEATURES, "feature-dependencies --feature transaction.version=2 --feature group.version=1"),
    (FEATURES, "upgrade --feature group.version=1"),
    (FEATURES, "upgrade --feature group.version=9"),
    (FEATURES, "upgrade --feature no.such.feature=1"),
    (FEATURES, "upgrade --feature transaction.version=2 --dry-run"),
    (FEATURES, "downgrade --feature transaction.version=1 --dry-run"),
    (FEATURES, "downgrade --feature transaction.version=1"),
    (FEATURES, "describe"),
    (FEATURES, "upgrade --feature transaction.version=2"),
    (FEATURES, "downgrade --feature metadata.version=7"),
    (FEATURES, "downgrade --release-version 4.0-IV3"),
    (FEATURES, "disable --feature share.version --dry-run"),
    (FEATURES, "disable --feature kraft.version"),
    (FEATURES, "upgrade --release-version 4.0-IV3"),
    *((CONFIGS, f"--alter --entity-type {one}") for one in CHANGES),
    *((CONFIGS, f"--describe --entity-type {one}") for one in SHOWN),
    (CONFIGS, "--alter --entity-type groups --entity-name g --delete-config consumer.session.timeout.ms"),
    (CONFIGS, "--alter --entity-type client-metrics --entity-name m --delete-config metrics,interval.ms"),
    (CONFIGS, "--alter --entity-type brokers --entity-default --delete-config log.cleaner.backoff.ms"),
    (CONFIGS, "--alter --entity-type broker-loggers --entity-name 2 --delete-config kafka.server.KafkaApis"),
    ("node", "stop 3"),
    *((TOPICS, one) for one in DESCRIBED),
    (TOPICS, "--create --topic three --replication-factor 3"),
    (TOPICS, "--create --topic two --replica-assignment 1:3"),
    (ELECTION, f"{ELECTED} 2"),
    (CLUSTER, "list-endpoints"),
    (CLUSTER, "list-endpoints --include-fenced-brokers"),
    (QUORUM, "describe --replication"),
    (LOG_DIRS, "--describe --topic-list placed"),
    (CONFIGS, "--describe --entity-type brokers"),
    ("node", "start 3"),
    ("until", "in sync"),
    (ELECTION, f"{ELECTED} 2"),
    (ELECTION, "--election-type preferred --all-topic-partitions"),
    *((TOPICS, one) for one in DESCRIBED),
    ("node", "stop 3"),
    (CLUSTER, "unregister --id 3"),
    (CLUSTER, "list-endpoints --include-fenced-brokers"),
    (TOPICS, "--describe --topic placed"),
)
SUBCOMMANDS = (CLUSTER,)  # their address comes after the word for what to do
Printed = list[str]
"""The exit code, and the lines of the standard output and the standard error."""

_LOGGED = re.compile(
    r".*the tool ended| \(org\.apache|\[?\d{4}-\d\d-\d\d|SLF4J|\s+at |\s*\.\.\. \d+ more|\t[a-z0-9.]+ = |\s*$"
)
_PLACES = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        (r"(?<=TopicId: )[\w-]{22}", "(id)"),
        (r"(?<=Cluster ID: ).*|(?<=ClusterId:).*", "(id)"),
        (r'(?<="directoryId": ")[\w-]{22}', "(id)"),
        (r'CONTROLLER://[^"]*', "(address)"),
        (r"(?<=127.0.0.1 )\d+ *", "(port) "),
        (r'(?<="log_dirs":)\[[^]]*\]', "(directories)"),
        (r"(?<=LeaderEpoch:).*|(?<=HighWatermark:).*|(?<=MaxFollowerLag:).*|(?<=MaxFollowerLagTimeMs:).*", "(number)"),
        (r"(?<=Epoch: )\d+$", "(number)"),
        (r"(?<=for partition )\S+ at offset \d+", "(one)"),
        (r"^(\d+) +\t[\w-]{22}\t\d+ +\t\d+ +\t[^\t]+\t[^\t]+\t", r"\1 (id) (numbers) "),
    )
)
_SETS = re.compile(r"(?<=Isr: )[\d,]+|(?<=Elr: )[\d,]+")


def plain(line: str, nodes: dict[str, str]) -> str:
    """A line without what differs from run to run: addresses, ids, directories, numbers of the metadata log."""
    for address, name in nodes.items():
        line = line.replace(address, name)
    if line.startswith('{"brokers"'):
        line = _directories(json.loads(line))
    for pattern, instead in _PLACES:
        line = pattern.sub(instead, line)
    return _SETS.sub(lambda found: ",".join(sorted(found[0].split(","))), line)


def _directories(found: Any) -> str:
    """What `kafka-log-dirs` prints, in order."""
    for broker in found["brokers"]:
        for one in broker["logDirs"]:
            one["logDir"] = "(directory)"
            one["partitions"].sort(key=lambda partition: str(partition["partition"]))
            for partition in one["partitions"]:
                partition["size"] = "(size)" if partition["size"] else 0
    return json.dumps(found)


class Asked:
    """The tools, and a cluster that they are run against."""

    def __init__(self, cluster: Nodes | KafkaQuorum, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.files = {f"plan:{name}": {"version": 1, "partitions": plan} for name, plan in PLANS.items()}
        self.files |= {f"topics:{name}": {"version": 1, "topics": [{"topic": name}]} for name in ("placed", "solo")}
        self.files["elect:1"] = {"partitions": [{"topic": "placed", "partition": 1}]}
        for name, value in self.files.items():
            (folder / name.replace(":", "-")).write_text(json.dumps(value))
        self.nodes = {cluster.address(node): f"node-{node}" for node in (1, 2, 3)}

    def run(self, name: str, words: str) -> tuple[int, list[str]]:
        """Returns the exit code, and what is printed."""
        if name == VERIFICATION:
            return 0, [self._verified(words.split())]
        given = [str(self.folder / one.replace(":", "-")) if one in self.files else one for one in words.split()]
        at = 1 if name in SUBCOMMANDS else 0
        done = tool(name, *given[:at], "--bootstrap-server", self.cluster.address(1), *given[at:], stdin=RECORDS)
        return done.returncode, (done.stdout + done.stderr).splitlines()

    def _verified(self, words: Sequence[str]) -> str:
        """The first report of a tool that reports until it is ended."""
        command = java(
            "tools", f"org.apache.kafka.tools.{VERIFICATION}", "--broker-list", self.cluster.address(1), *words
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            report = next((line for line in process.stdout if "max lag is" in line), "no report")
            process.kill()
        return report.strip().partition(": ")[2]  # without the time

    def printed(self, name: str, words: str) -> Printed:
        code, lines = self.run(name, words)
        found = [plain(line, self.nodes) for line in lines if not _LOGGED.match(line)]
        if name == VERSIONS:  # the nodes come in the order of a hash map
            found = "\n".join(sorted(re.split(r"\n(?=node-)", "\n".join(found)))).splitlines()
        return [f"exit {code}", *found]


def controller(asked: Asked) -> int:
    """The node of the active controller."""
    lines = asked.run(QUORUM, "describe --status")[1]
    return next(int(line.split()[1]) for line in lines if line.startswith("LeaderId:"))


def answers(asked: Asked) -> Iterator[tuple[str, Printed]]:
    """The command lines, and what they print."""
    for name, words in CASES:
        if name == "node":
            what, node = words.split()
            asked.cluster.happens(what, int(node))
        elif words == "reassigned":
            until(lambda: "No partition" in str(asked.run(REASSIGN, "--list")), "reassigned")
        elif words == "in sync":
            until(lambda: len(asked.printed(TOPICS, "--describe --under-replicated-partitions")) == 1, words)
        else:
            yield f"{name} {words}", asked.printed(name, words)


def recorded() -> tuple[int, list[tuple[str, Printed]]]:
    """The node of Kafka's controller, and what Kafka's tools print of Kafka."""
    loaded = json.loads(RECORDED.read_text())
    return loaded["controller"], [(words, lines) for words, *lines in loaded["printed"]]


def main() -> int:
    with KafkaQuorum(SETTINGS) as kafka, tempfile.TemporaryDirectory() as folder:
        asked = Asked(kafka, Path(folder))
        found = {"controller": controller(asked), "printed": [[words, *lines] for words, lines in answers(asked)]}
    RECORDED.write_text(json.dumps(found, indent=0) + "\n")
    print(f"{len(CASES)} steps")
    return 0


if __name__ == "__main__":
    sys.exit(main())
