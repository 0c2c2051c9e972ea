"""Makes again the data directories of Kafkas with ZooKeeper that the tests of `ottla adopt` read: `python -m
tests.oracle.record_old_directories [VERSION ...]`.

`old-kafka-VERSION.tar.xz` holds `clean`, after an end in order, and `killed`, after more records and a kill;
`described.txt` is what the release's own `kafka-topics --describe` said, `zookeeper.json` what ZooKeeper held, and
`truth.json` what clients read.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer
from kazoo.client import KazooClient
from ottla.protocol import legacy, records
from ottla.protocol import messages as m
from ottla.protocol.compression import GZIP, LZ4, NONE, SNAPPY
from ottla.protocol.legacy import Message
from ottla.protocol.records import MAGIC_AT, Record, Template
from ottla.protocol.trees import tree

from ..support.poll import until
from ..support.wire import Wire
from .kafka import tool
from .old_kafka import OldKafka

DATA = Path(__file__).parents[1] / "support" / "data"
SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "log.index.size.max.bytes": 4096,
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.dedupe.buffer.size": 4_000_000,
    "log.cleaner.threads": 1,
    "log.delete.delay.ms": 3_600_000,
    "group.initial.rebalance.delay.ms": 0,
    "controlled.shutdown.enable": "false",
    "delete.topic.enable": "true",
}
PACE_S = 0.05


class Release(NamedTuple):
    """The versions of requests, and of messages, that the latest clients of a release send."""

    magic: int
    produce: int
    fetch: int
    commit: int
    has_groups: bool = True
    has_transactions: bool = False
    older: str = ""  # a `message.format.version` before the release's own


RELEASES = {
    "0.8.2.2": Release(0, 0, 0, 1, has_groups=False),
    "0.10.2.2": Release(1, 2, 3, 2, older="0.9.0"),
    "0.11.0.3": Release(2, 3, 4, 3, has_transactions=True, older="0.10.1"),
    "1.1.1": Release(2, 3, 4, 3, has_transactions=True, older="0.10.2"),
    "2.8.2": Release(2, 3, 11, 8, has_transactions=True, older="0.9.0"),
    "3.9.1": Release(2, 3, 11, 8, has_transactions=True),
}


class Story:
    """What happens on a broker."""

    def __init__(self, kafka: OldKafka, release: Release, zookeeper: KazooClient) -> None:
        self.kafka, self.release, self.zookeeper = kafka, release, zookeeper
        self.offsets: dict[str, dict[str, int]] = {}
        self.committed: list[str] = []

    def topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Makes a topic as tools of those years did, and waits until it is led."""
        config = {key.replace("_", "."): value for key, value in configs.items()}
        self._put(f"/config/topics/{name}", {"version": 1, "config": config})
        self._put(f"/brokers/topics/{name}", {"version": 1, "partitions": {str(n): [1] for n in range(partitions)}})
        r = m.MetadataRequest

        def is_led() -> bool:
            with Wire(self.kafka.bootstrap_servers) as wire:
                (found,) = wire.ask("Metadata", 0, r(topics=[r.MetadataRequestTopic(name=name)])).topics
            led = [one for one in found.partitions if one.leader_id == 1 and not one.error_code]
            return not found.error_code and len(led) == partitions

        until(is_led, f"{name} is led", every=PACE_S)

    def _put(self, path: str, value: object) -> None:
        self.zookeeper.ensure_path(path.rpartition("/")[0])
        self.zookeeper.create(path, json.dumps(value).encode())

    def produce(self, name: str, *pairs: tuple[bytes | None, bytes | None], partition: int = 0, codec: int = 0) -> None:
        now = int(time.time() * 1000)
        if self.release.magic == records.MAGIC:
            made = [Record(key, value, now + n) for n, (key, value) in enumerate(pairs)]
            data = bytes(records.encode(made, Template(codec=codec)))
        else:
            old = [Message(n, key, value, self.release.magic, now + n) for n, (key, value) in enumerate(pairs)]
            data = legacy.encode(old, codec)
        r = m.ProduceRequest
        part = r.PartitionProduceData(index=partition, records=data)
        request = r(acks=-1, timeout_ms=5000, topic_data=[r.TopicProduceData(name=name, partition_data=[part])])

        def is_done() -> bool:
            with Wire(self.kafka.bootstrap_servers) as wire:
                reply = wire.ask("Produce", self.release.produce, request)
            return not reply.responses[0].partition_responses[0].error_code

        until(is_done, f"{name} takes records", every=PACE_S)

    def commit(self, group: str, topic: str, offset: int, **fields: Any) -> None:
        """Commits an offset of partition 0; `fields`: others of the request."""
        r = m.OffsetCommitRequest
        version = self.release.commit if "retention_time_ms" not in fields else 2
        of_version = tree("OffsetCommitRequest", version).at("topics.partitions").cls
        part = of_version(partition_index=0, committed_offset=offset, committed_metadata=f"by {group}")
        if version == 1:
            part.commit_timestamp = -1
        named = r.OffsetCommitRequestTopic(name=topic, partitions=[part])
        request = r(group_id=group, **{"generation_id_or_member_epoch": -1, **fields}, topics=[named])
        f = m.FindCoordinatorRequest

        def is_done() -> bool:
            with Wire(self.kafka.bootstrap_servers) as wire:
                if wire.ask("FindCoordinator", 0, f(key=group)).error_code:
                    return False
                return not wire.ask("OffsetCommit", version, request).topics[0].partitions[0].error_code

        until(is_done, f"{group} commits", every=PACE_S)
        self.offsets.setdefault(group, {})[f"{topic}-0"] = offset

    def member(self, group: str, topic: str, leaves: bool) -> None:
        """A consumer that joins, commits, and leaves or stays."""
        j, s = m.JoinGroupRequest, m.SyncGroupRequest
        self.commit(group, topic, 1)
        subscription = b"\0\0" + b"\0\0\0\1" + len(topic).to_bytes(2, "big") + topic.encode() + b"\xff\xff\xff\xff"
        protocol = j.JoinGroupRequestProtocol(name="range", metadata=subscription)
        with Wire(self.kafka.bootstrap_servers) as wire:
            joined = wire.ask(
                "JoinGroup",
                1,
                j(
                    group_id=group,
                    session_timeout_ms=30_000,
                    rebalance_timeout_ms=30_000,
                    protocol_type="consumer",
                    protocols=[protocol],
                ),
            )
            assert joined.error_code == 0, joined
            mine = {"generation_id": joined.generation_id, "member_id": joined.member_id}
            part = b"\0\0\0\1\0\0\0\0"
            assignment = b"\0\0" + b"\0\0\0\1" + len(topic).to_bytes(2, "big") + topic.encode() + part + b"\xff" * 4
            given = s.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)
            assert wire.ask("SyncGroup", 0, s(group_id=group, **mine, assignments=[given])).error_code == 0
            self.commit(group, topic, 3, generation_id_or_member_epoch=joined.generation_id, member_id=joined.member_id)
            if leaves:
                leave = m.LeaveGroupRequest(group_id=group, member_id=joined.member_id)
                assert wire.ask("LeaveGroup", 0, leave).error_code == 0

    def transactions(self, ends: bool) -> None:
        """One that is committed, one that is aborted, and unless it `ends` one that stays open."""
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers, "transactional.id": "writer"})
        producer.init_transactions(60)
        for kind in ("committed", "aborted", "committed", "open")[: 3 if ends else 4]:
            producer.begin_transaction()
            for _ in range(3):
                value = f"{kind} {len(self.committed)}"
                producer.produce("exact", value, "k", 0)
                self.committed += [value] if kind == "committed" else []
            producer.flush(60)
            if kind != "open":
                (producer.commit_transaction if kind == "committed" else producer.abort_transaction)(60)

    def begin(self) -> None:
        self.topic("plain", 2, segment_bytes="400", retention_ms="900000000")
        self.topic("packed", compression_type="producer")
        self.topic("kept", cleanup_policy="compact", segment_bytes="600", min_cleanable_dirty_ratio="0.01")
        self.topic("defaults")
        codecs = (NONE, GZIP, SNAPPY, LZ4)
        for n in range(12):
            self.produce("plain", (b"k%d" % n, b"value %d" % n * 5), (None, b"second"), partition=n % 2)
            self.produce("kept", (b"k%d" % (n % 3), b"%d" % n * 60))
        self.produce("plain", (b"empty", None), (b"", b""))
        self.produce("defaults", (None, b"only"))
        for n, codec in enumerate(codecs):
            self.produce("packed", *((b"%d" % i, b"%d of %d" % (i, n)) for i in range(5)), codec=codec)
        self.commit("simple", "plain", 5)
        self.commit("simple", "packed", 7)
        if self.release.older:
            self.topic("older", message_format_version=self.release.older)
            self.produce("older", (b"a", b"1"), (b"b", b"2"), codec=GZIP)
            self.produce("older", (b"a", b"3"))
        if self.release.has_groups:
            self.commit("expiring", "plain", 2, retention_time_ms=1000)
            self.member("classic", "plain", leaves=True)
        if self.release.magic:
            self.topic("stamped", message_timestamp_type="LogAppendTime")
            self.produce("stamped", (b"a", b"1"), codec=GZIP)
        if self.release.has_transactions:
            self.topic("exact")
            self.transactions(ends=True)
            self.topic("gone")
            self.zookeeper.create("/admin/delete_topics/gone")
            until(lambda: list(self.kafka.data_directory.glob("gone-0.*-delete")), "gone is marked", every=PACE_S)
            until(lambda: not self.zookeeper.exists("/brokers/topics/gone"), "gone is forgotten", every=PACE_S)
        checkpoint = self.kafka.data_directory / "cleaner-offset-checkpoint"
        until(lambda: checkpoint.exists() and "kept 0" in checkpoint.read_text(), "kept is cleaned", every=PACE_S)

    def go_on(self) -> None:
        for n in range(3):
            self.produce("plain", (b"later", b"%d" % n))
        self.produce("packed", (b"later", b"1"), (b"later", b"2"), codec=GZIP)
        self.commit("simple", "plain", 6)
        if self.release.has_groups:
            self.member("classic", "plain", leaves=False)
        if self.release.has_transactions:
            self.transactions(ends=False)

    def truth(self) -> dict[str, Any]:
        """What clients read, and what was committed."""
        topics = [name for name in self.zookeeper.get_children("/brokers/topics") if not name.startswith("__")]
        counts = {
            name: len(json.loads(self.zookeeper.get(f"/brokers/topics/{name}")[0])["partitions"]) for name in topics
        }
        read = {f"{name}-{n}": self.read(name, n) for name in sorted(topics) for n in range(counts[name])}
        return {"records": read, "offsets": self.offsets, "committed": list(self.committed)}

    def read(self, name: str, partition: int) -> list[list[Any]]:
        """Offset, key, value and timestamp of every record; -1 where it has none."""
        found: list[list[Any]] = []
        r = m.FetchRequest
        offset = 0
        with Wire(self.kafka.bootstrap_servers) as wire:
            while True:
                wanted = r.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
                topic = r.FetchTopic(topic=name, partitions=[wanted])
                request = r(replica_id=-1, max_wait_ms=0, max_bytes=1 << 20, topics=[topic])
                (part,) = wire.ask("Fetch", self.release.fetch, request).responses[0].partitions
                assert not part.error_code, part
                some = [one for one in _records(bytes(part.records)) if one[0] >= offset]
                if not some and offset >= part.high_watermark:
                    return found
                found += [[at, _text(key), _text(value), ms] for at, key, value, ms, is_data in some if is_data]
                offset = some[-1][0] + 1 if some else part.high_watermark


def _records(data: bytes) -> list[tuple[int, bytes | None, bytes | None, int, bool]]:
    if len(data) > MAGIC_AT and data[MAGIC_AT] == records.MAGIC:
        return [
            (one.offset, one.key, one.value, one.timestamp, not at.header.is_control)
            for at in records.batches(data)
            for one in records.decode(data, at)
        ]
    return [(one.offset, one.key, one.value, one.timestamp, True) for one in legacy.decode(data)]


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def dumped(zookeeper: KazooClient, path: str = "/") -> dict[str, str]:
    """Returns what ZooKeeper holds, by path."""
    found = {path: (zookeeper.get(path)[0] or b"").decode()}
    for name in sorted(zookeeper.get_children(path)):
        if (path, name) != ("/", "zookeeper"):
            found |= dumped(zookeeper, f"{path.rstrip('/')}/{name}")
    return found


def record(version: str, directory: Path) -> None:
    release = RELEASES[version]
    truth: dict[str, Any] = {}
    with OldKafka(version, SETTINGS) as kafka:
        zookeeper = KazooClient(kafka.zookeeper)
        zookeeper.start()
        try:
            until(lambda: zookeeper.exists("/brokers/ids/1"), "the broker is registered", every=PACE_S)
            story = Story(kafka, release, zookeeper)
            story.begin()
            truth["clean"] = json.loads(json.dumps(story.truth()))
            (directory / "described.txt").write_text(described(kafka))
            (directory / "zookeeper.json").write_text(json.dumps(dumped(zookeeper), indent=1))
            kafka.stop_broker()
            _copy(kafka.data_directory, directory / "clean")
            until(lambda: not zookeeper.exists("/brokers/ids/1"), "the broker is forgotten", every=PACE_S)
            kafka.start_broker()
            until(lambda: zookeeper.exists("/brokers/ids/1"), "the broker is registered again", every=PACE_S)
            story.go_on()
            truth["killed"] = story.truth()
            kafka.stop_broker(signal.SIGKILL)
            _copy(kafka.data_directory, directory / "killed")
        finally:
            zookeeper.stop()
            zookeeper.close()
    (directory / "truth.json").write_text(json.dumps(truth))


def described(kafka: OldKafka) -> str:
    """What `kafka-topics --describe` says; from 3.0 on it asks the broker."""
    if kafka.version < "3":
        return kafka.tool("kafka.admin.TopicCommand", "--zookeeper", kafka.zookeeper, "--describe")
    return tool("TopicCommand", "--bootstrap-server", kafka.bootstrap_servers, "--describe").stdout


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".lock"))


def main() -> None:
    DATA.mkdir(exist_ok=True)
    for version in sys.argv[1:] or RELEASES:
        with tempfile.TemporaryDirectory() as name:
            record(version, Path(name))
            target = DATA / f"old-kafka-{version}.tar.xz"
            with tarfile.open(target, "w:xz") as archive:
                for one in sorted(Path(name).iterdir()):
                    archive.add(one, one.name)
        print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
