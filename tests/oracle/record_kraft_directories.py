"""Makes again the data directories of Kafkas with KRaft before 4.0 that the tests of `ottla takeover` and `ottla adopt`
read: `python -m tests.oracle.record_kraft_directories [NAME ...]`.

`old-kraft-NAME.tar.xz` holds a directory for each node, and `truth.json`, what clients read. Nodes were broker and
controller in one (`clean` after an end in order, `killed` after a kill), or apart. Of a migration from ZooKeeper,
`begun` is a broker before anything was copied, `migrating` one with ZooKeeper in a cluster that KRaft controls, and
`migrated` the same with KRaft.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from ottla.protocol import messages as m

from ..support.poll import until
from ..support.ports import free_port
from ..support.wire import Closed, Wire
from .old_kafka import OldKafka
from .record_old_directories import DATA, PACE_S, RELEASES, SETTINGS, Release, Story

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
TOPICS = {"plain": 2, "packed": 1}
LISTENERS = {
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
OF_ONE: dict[str, object] = {**SETTINGS, "offsets.topic.replication.factor": 1}
CONTROLLER = 3000


class Kraft(OldKafka):
    """Nodes with KRaft; none starts by itself."""

    def __init__(self, version: str) -> None:
        super().__init__(version, {**OF_ONE, **LISTENERS})
        self.controller_port = free_port()
        self.cluster_id = CLUSTER_ID

    def __enter__(self) -> Kraft:
        self._write_log4j()
        return self

    def start(self, node: int, roles: str, more: Mapping[str, object] | None = None, *, formats: bool = True) -> None:
        """Starts a node, after its directory was formatted."""
        ports = {"broker": ("PLAINTEXT", self.port), "controller": ("CONTROLLER", self.controller_port)}
        named = [ports[one] for one in roles.split(",")]
        values: dict[str, object] = {
            **self.settings,
            "process.roles": roles,
            "node.id": node,
            "controller.quorum.voters": f"{CONTROLLER if roles != 'broker,controller' else node}@127.0.0.1:"
            f"{self.controller_port}",
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in named),
            "log.dirs": self.directory / f"node-{node}",
            **(more or {}),
        }
        if formats:
            file = self.directory / "format.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
            self.tool("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", str(file))
        self._start("kafka.Kafka", values, named[0][1])


class Told(Story):
    """What happens on brokers whose topics are made by requests."""

    def __init__(self, kafka: OldKafka, release: Release) -> None:
        self.kafka, self.release = kafka, release
        self.offsets, self.committed = {}, []

    def topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        r = m.CreateTopicsRequest
        given = [r.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
        wanted = r.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=given)

        def is_made() -> bool:
            with Wire(self.kafka.bootstrap_servers) as wire:
                reply = wire.ask("CreateTopics", 5, r(topics=[wanted], timeout_ms=5000))
            return reply.topics[0].error_code in (0, 36)

        until(is_made, f"{name} is made", every=PACE_S)

    def tell(self, has_quotas: bool) -> None:
        self.topic("plain", 2, segment_bytes="2000", retention_ms="900000000")
        self.topic("packed", message_timestamp_difference_max_ms="999999999")
        for n in range(12):
            self.produce("plain", (b"k%d" % n, b"value %d" % n * 5), (None, b"second"), partition=n % 2)
        self.produce("packed", *((b"%d" % n, b"packed") for n in range(5)), codec=1)
        self.commit("simple", "plain", 5)
        self.commit("simple", "packed", 3)
        if has_quotas:
            r = m.AlterClientQuotasRequest
            one = r.EntryData(entity=[r.EntityData(entity_type="user", entity_name="u")])
            one.ops = [r.OpData(key="producer_byte_rate", value=1000.0)]
            with Wire(self.kafka.bootstrap_servers) as wire:
                assert not wire.ask("AlterClientQuotas", 0, r(entries=[one])).entries[0].error_code

    def awake(self) -> None:
        """Waits until the broker, which has started again, takes requests."""

        def answers() -> bool:
            try:
                with Wire(self.kafka.bootstrap_servers) as wire:
                    return bool(wire.ask("Metadata", 5, m.MetadataRequest(topics=None)).topics)
            except (Closed, OSError):
                return False

        until(answers, "the broker answers", every=PACE_S)

    def _read(self, name: str, partition: int) -> tuple[list[list[Any]]] | None:
        try:
            return (self.read(name, partition),)
        except AssertionError:  # it is not led yet
            return None

    def said(self) -> dict[str, Any]:
        names = [(name, n) for name, count in TOPICS.items() for n in range(count)]
        read = {f"{name}-{n}": until(partial(self._read, name, n), f"{name}-{n} is led")[0] for name, n in names}
        return {"records": read, "offsets": self.offsets}


def _stopped(kafka: OldKafka, to: Path, by: signal.Signals = signal.SIGTERM) -> None:
    """Ends the node that started last, and keeps what it left in `to`, which is named as its directory."""
    kafka.stop_broker(by)
    shutil.copytree(kafka.directory / to.name, to, ignore=shutil.ignore_patterns(".lock"))


def combined(version: str, to: Path) -> dict[str, Any]:
    with Kraft(version) as kafka:
        kafka.start(1, "broker,controller")
        story = Told(kafka, RELEASES["2.8.2"])
        story.tell(has_quotas=version > "3")
        truth = {"clean": json.loads(json.dumps(story.said()))}
        _stopped(kafka, to / "clean" / "node-1")
        if version < "3":  # a preview, which does not answer after a second start
            return truth
        kafka.start(1, "broker,controller", formats=False)
        story.awake()
        story.produce("plain", (b"later", b"1"), (b"later", b"2"))
        story.commit("simple", "plain", 6)
        truth["killed"] = story.said()
        _stopped(kafka, to / "killed" / "node-1", signal.SIGKILL)
    return truth


def apart(version: str, to: Path) -> dict[str, Any]:
    with Kraft(version) as kafka:
        kafka.start(CONTROLLER, "controller")
        kafka.start(1, "broker")
        story = Told(kafka, RELEASES["2.8.2"])
        story.tell(has_quotas=True)
        truth = {"clean": story.said()}
        _stopped(kafka, to / "clean" / "node-1")
        _stopped(kafka, to / "clean" / f"node-{CONTROLLER}")
    return truth


def migration(version: str, to: Path) -> dict[str, Any]:
    """From ZooKeeper to KRaft: a broker of the old kind fills its directory, and its cluster is migrated."""
    truth: dict[str, Any] = {}
    with Kraft(version) as kafka:
        zookeeper = kafka.zookeeper
        kafka.start_zookeeper()
        old = {"broker.id": 1, "log.dirs": kafka.directory / "node-1", "zookeeper.connect": zookeeper}
        old |= {"listeners": f"PLAINTEXT://127.0.0.1:{kafka.port}", **OF_ONE, "inter.broker.protocol.version": "3.9"}
        kafka._start("kafka.Kafka", old, kafka.port)
        story = Told(kafka, RELEASES["2.8.2"])
        story.tell(has_quotas=True)
        truth["begun"] = json.loads(json.dumps(story.said()))
        kafka.stop_broker()
        client = KazooClient(zookeeper)
        client.start()
        try:
            until(lambda: not client.exists("/brokers/ids/1"), "the broker is forgotten", every=PACE_S)
            migrates = {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": zookeeper}
            kafka.cluster_id = json.loads(client.get("/cluster/id")[0])["id"]
            kafka.start(CONTROLLER, "controller", migrates)
            old |= {"controller.quorum.voters": f"{CONTROLLER}@127.0.0.1:{kafka.controller_port}", **LISTENERS}
            old["zookeeper.metadata.migration.enable"] = "true"
            client.create("/brokers/ids/2", _registration(kafka), ephemeral=True)  # it waits for this one
            kafka._start("kafka.Kafka", old, kafka.port)
            metadata = kafka.directory / "node-1" / "__cluster_metadata-0"
            until(lambda: any(one.stat().st_size for one in metadata.glob("*.log")), "it has begun", within=60)
            story.awake()
            _stopped(kafka, to / "begun" / "node-1")
            until(lambda: not client.exists("/brokers/ids/1"), "the broker is forgotten", every=PACE_S)
            client.delete("/brokers/ids/2")
            kafka._start("kafka.Kafka", old, kafka.port)
            until(lambda: _is_by_kraft(client), "KRaft's controller leads", within=60, every=PACE_S)
            story.awake()
            story.produce("plain", (b"migrating", b"1"))
            story.commit("simple", "plain", 6)
            truth["migrating"] = json.loads(json.dumps(story.said()))
            _stopped(kafka, to / "migrating" / "node-1")
            kafka.start(1, "broker", formats=False)
            story.awake()
            story.produce("plain", (b"migrated", b"1"))
            story.commit("simple", "plain", 7)
            truth["migrated"] = story.said()
            _stopped(kafka, to / "migrated" / "node-1")
            _stopped(kafka, to / "migrated" / f"node-{CONTROLLER}")
        finally:
            client.stop()
            client.close()
    return truth


def _registration(kafka: OldKafka) -> bytes:
    """What another broker of the cluster, which does not take part in the migration, would register."""
    where = {"host": "127.0.0.1", "port": kafka.port + 1, "endpoints": [f"PLAINTEXT://127.0.0.1:{kafka.port + 1}"]}
    named = {"listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "features": {}, "jmx_port": -1}
    return json.dumps({**where, **named, "timestamp": "1795600000000", "version": 5}).encode()


def _is_by_kraft(client: KazooClient) -> bool:
    data = client.get("/controller")[0]
    return int(json.loads(data).get("kraftControllerEpoch", -1)) >= 0


NAMES: dict[str, tuple[Callable[[str, Path], dict[str, Any]], str]] = {
    "2.8.2": (combined, "2.8.2"),
    "3.0.2": (combined, "3.0.2"),
    "3.1.2": (combined, "3.1.2"),
    "3.2.3": (combined, "3.2.3"),
    "3.3.2": (combined, "3.3.2"),
    "3.4.1": (combined, "3.4.1"),
    "3.5.2": (combined, "3.5.2"),
    "3.6.2": (apart, "3.6.2"),
    "3.7.2": (combined, "3.7.2"),
    "3.8.1": (apart, "3.8.1"),
    "3.9.1": (combined, "3.9.1"),
    "migration": (migration, "3.9.1"),
}


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        make, version = NAMES[name]
        with tempfile.TemporaryDirectory() as directory:
            truth = make(version, Path(directory))
            (Path(directory) / "truth.json").write_text(json.dumps(truth))
            target = DATA / f"old-kraft-{name}.tar.xz"
            with tarfile.open(target, "w:xz") as archive:
                for one in sorted(Path(directory).iterdir()):
                    archive.add(one, one.name)
        print(f"{target.name}: {target.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
