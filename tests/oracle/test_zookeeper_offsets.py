"""Offsets move from ZooKeeper to a broker and back: by Kafka 0.8.2.2's own consumers, step by step as its documentation
has it, and by `ottla offsets`; on a Kafka 0.8.2.2, and on an ottla in its place.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from ottla.classic import Producer, ProducerConfig, ProducerData, StringEncoder
from ottla.classic.balance.assignment import TopicPartition
from ottla.classic.cluster import Cluster, addresses
from ottla.classic.offset_manager import OffsetManager
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.classic_group import Group, Printer, Traffic, end_of, shares
from ..support.poll import until
from ..support.ports import free_port
from ..support.wire import Wire
from .conftest import PARTITIONS
from .installations import Installation
from .zookeeper import ZooKeeperServer

pytestmark = [pytest.mark.slow, pytest.mark.oracle]
ZOOKEEPER: dict[str, Any] = {"offsets_storage": "zookeeper"}
KAFKA: dict[str, Any] = {"offsets_storage": "kafka", "dual_commit_enabled": False}
BOTH: dict[str, Any] = {"offsets_storage": "kafka", "dual_commit_enabled": True}


class Stored:
    """The offsets of a group, of one topic, in both places."""

    def __init__(self, kafka: Installation, group: str, topic: str) -> None:
        self.kafka, self.group, self.topic = kafka, group, topic
        self.zookeeper = KazooClient(kafka.zookeeper)
        self.zookeeper.start()
        self._cluster = Cluster(lambda: addresses(kafka.bootstrap_servers), "", 30)
        self._manager = OffsetManager(self._cluster, group, 20, 0.1)

    def close(self) -> None:
        self.zookeeper.stop()
        self.zookeeper.close()
        self._cluster.close()

    def in_zookeeper(self) -> dict[int, int]:
        path = f"/consumers/{self.group}/offsets/{self.topic}"
        try:
            return {
                int(name): int(self.zookeeper.get(f"{path}/{name}")[0]) for name in self.zookeeper.get_children(path)
            }
        except NoNodeError:
            return {}

    def at_broker(self) -> dict[int, int]:
        found = self._manager.fetch([TopicPartition(self.topic, index) for index in range(PARTITIONS)])
        assert found is not None
        return {place.partition: offset for place, offset in found.items()}

    def set_in_zookeeper(self, partition: int, offset: int) -> None:
        path = f"/consumers/{self.group}/offsets/{self.topic}/{partition}"
        self.zookeeper.ensure_path(path)
        self.zookeeper.set(path, b"%d" % offset)

    def set_at_broker(self, partition: int, offset: int) -> None:
        assert self._manager.commit({TopicPartition(self.topic, partition): offset})


@pytest.fixture
def stored(kafka: Installation, request: pytest.FixtureRequest) -> Iterator[Stored]:
    """Of a group whose name is that of the test, and of its topic."""
    name = request.function.__name__.removeprefix("test_")
    found = Stored(kafka, name, f"{name}-t")
    yield found
    found.close()


def test_four_steps_and_the_way_back(kafka: Installation, theirs: Printer, stored: Stored, tmp_path: Path) -> None:
    """Two consumers are restarted one after the other at each step, while messages are written. None is lost. The way
    back begins with the offsets in both places: Kafka 0.8.2 commits to ZooKeeper alone where that is the storage,
    whatever `dual.commit.enabled` says.
    """
    name, topic = stored.group, stored.topic
    traffic = Traffic(kafka.bootstrap_servers, topic)
    traffic.start()
    group = Group(name, kafka.zookeeper, f"{name}-.*", theirs, tmp_path)
    zookeeper = stored.zookeeper
    running: list[str] = []

    def roll(step: str, **settings: Any) -> None:
        """Each is healthy before the next one is restarted: one that leaves during a rebalance takes long for it."""
        for consumer in ("a", "b"):
            if len(running) == 2:
                group.they_leave(running.pop(0))
            group.theirs(f"{step}-{consumer}", **settings)
            running.append(f"{step}-{consumer}")
            shares(zookeeper, name, topic, **dict.fromkeys(running, PARTITIONS // len(running)))
            for one in running:
                group.they_read(one)

    def grows(offsets: Any) -> None:
        before = sum(offsets().values())
        until(lambda: sum(offsets().values()) > before, "offsets are committed", within=40, every=0.02)

    roll("old", **ZOOKEEPER)
    grows(stored.in_zookeeper)
    assert stored.at_broker() == {}
    roll("dual", **BOTH)
    grows(stored.at_broker)
    grows(stored.in_zookeeper)
    roll("new", **KAFKA)
    left = stored.in_zookeeper()
    grows(stored.at_broker)
    assert stored.in_zookeeper() == left
    roll("back", **BOTH)
    grows(stored.in_zookeeper)
    roll("last", **ZOOKEEPER)
    left = stored.at_broker()
    grows(stored.in_zookeeper)
    assert stored.at_broker() == left
    group.they_leave(running.pop(0))
    shares(zookeeper, name, topic, **{running[0]: PARTITIONS})
    group.they_read(running[0])
    traffic.end()
    written = sum(end_of(kafka.bootstrap_servers, topic, one) for one in range(PARTITIONS))
    until(lambda: len(group.read()) >= written, "everything is read", within=40, every=0.02)
    group.they_leave(running[0])
    assert sum(stored.in_zookeeper().values()) == written


def send(kafka: Installation, topic: str, count: int) -> None:
    """Sends so many messages to one partition."""
    config = ProducerConfig(kafka.bootstrap_servers, request_required_acks=1, message_send_max_retries=50)
    with Producer[str, bytes](config, key_encoder=StringEncoder()) as producer:
        producer.send(ProducerData(topic, [b"v"] * count, key="a"))


PARTITION = 1  # of the key above: 97 % 6


def test_the_larger_offset(kafka: Installation, theirs: Printer, stored: Stored, tmp_path: Path) -> None:
    """It is taken while consumers commit to both, wherever it is."""

    def read_from(offset: int, end: int, **settings: Any) -> None:
        """Lets a consumer read up to an offset."""
        own = Group(stored.group, kafka.zookeeper, f"{stored.group}-.*", theirs, tmp_path)
        own.theirs("c", **settings)
        until(lambda: (stored.topic, PARTITION, end - 1) in own.read(), f"offset {end - 1} is read", every=0.02)
        own.they_leave("c")
        assert sorted(own.read()) == [(stored.topic, PARTITION, one) for one in range(offset, end)]

    send(kafka, stored.topic, 20)
    stored.set_in_zookeeper(PARTITION, 5)
    read_from(5, 20, **BOTH)
    assert stored.in_zookeeper()[PARTITION] == stored.at_broker()[PARTITION] == 20
    send(kafka, stored.topic, 20)
    stored.set_in_zookeeper(PARTITION, 30)
    read_from(30, 40, **BOTH)
    send(kafka, stored.topic, 20)
    stored.set_at_broker(PARTITION, 50)
    read_from(50, 60, **BOTH)
    send(kafka, stored.topic, 20)
    stored.set_in_zookeeper(PARTITION, 70)
    read_from(60, 80, **KAFKA)
    assert (stored.in_zookeeper()[PARTITION], stored.at_broker()[PARTITION]) == (70, 80)


def carry(way: str, zookeeper: str, servers: str, group: str, *more: str, code: int = 0) -> str:
    """Runs `ottla offsets`; returns what it prints."""
    command = [sys.executable, "-m", "ottla", "offsets", way, "-z", zookeeper, "-b", servers, *more, group]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_offsets_are_carried(kafka: Installation, theirs: Printer, stored: Stored, tmp_path: Path) -> None:
    """What the command writes is where 0.8.2.2's consumers go on."""

    def carried(way: str, *more: str, code: int = 0) -> str:
        return carry(way, kafka.zookeeper, kafka.bootstrap_servers, stored.group, *more, code=code)

    assert f"group {stored.group} has no offsets in ZooKeeper" in carried("import", code=1)
    send(kafka, stored.topic, 20)
    stored.set_in_zookeeper(PARTITION, 5)
    stored.set_in_zookeeper(PARTITIONS, 7)
    plan = json.loads(carried("import", "--dry-run", "--json"))
    assert plan == {
        "executed": False,
        "offsets": [
            {"topic": stored.topic, "partition": PARTITION, "offset": 5, "before": None, "action": "set"},
            {"topic": stored.topic, "partition": PARTITIONS, "offset": 7, "before": None, "action": "no partition"},
        ],
    }
    assert stored.at_broker() == {}
    assert f"group {stored.group} has no offsets at the broker" in carried("export", code=1)
    assert carried("import").endswith("1 of 2 offsets set\n")
    assert stored.at_broker() == {PARTITION: 5}

    group = Group(stored.group, kafka.zookeeper, f"{stored.group}-.*", theirs, tmp_path)
    group.theirs("c", **KAFKA)
    for way in ("import", "export"):
        words = f"group {stored.group} is active: consumers {stored.group}_c are registered in ZooKeeper"
        assert words in carried(way, code=1)
    until(lambda: (stored.topic, PARTITION, 19) in group.read(), "it has read all", every=0.02)
    group.they_leave("c")
    assert sorted(group.read()) == [(stored.topic, PARTITION, one) for one in range(5, 20)]

    assert carried("import").endswith("0 of 2 offsets set\n")  # the broker's is larger
    assert stored.at_broker()[PARTITION] == 20
    assert carried("export", "--dry-run").endswith(f"{PARTITIONS} of {PARTITIONS} offsets would be set\n")
    assert stored.in_zookeeper()[PARTITION] == 5
    assert carried("export").endswith(f"{PARTITIONS} of {PARTITIONS} offsets set\n")
    assert stored.in_zookeeper()[PARTITION] == 20
    stored.set_in_zookeeper(PARTITION, 3)
    assert carried("import", "--overwrite").endswith(f"1 of {PARTITIONS + 1} offsets set\n")
    assert stored.at_broker()[PARTITION] == 3


@pytest.mark.parametrize("release", ["0.9", "0.10.2", "4.4"])
def test_a_group_with_members_at_the_broker_is_refused(zookeeper_server: ZooKeeperServer, release: str) -> None:
    """On brokers that are not in this ZooKeeper, of releases that say it each in another way."""
    path = f"/elsewhere-{release}/consumers/g/offsets/t/0"
    zookeeper_server.client.create(path, b"3", makepath=True)
    place = f"{zookeeper_server.address}/elsewhere-{release}"
    with Broker({"ottla.emulate": release, "group.initial.rebalance.delay.ms": 0}, lab=False) as broker:
        servers = broker.bootstrap_servers
        with Wire(servers) as wire:
            asked = m.FindCoordinatorRequest(key="g")
            until(lambda: not wire.ask("FindCoordinator", 0, asked).error_code, "there is a coordinator")
            r = m.JoinGroupRequest
            protocols = [r.JoinGroupRequestProtocol(name="range", metadata=b"")]
            member = r(group_id="g", session_timeout_ms=30_000, protocol_type="consumer", protocols=protocols)
            assert wire.ask("JoinGroup", 0, member).error_code == 0
            for way in ("import", "export"):
                assert "group g is active: its state at the broker is " in carry(way, place, servers, "g", code=1)


def test_what_cannot_be_reached_or_read_is_said(zookeeper_server: ZooKeeperServer) -> None:
    zookeeper_server.client.create("/said/consumers/g/offsets/t/0", b"x", makepath=True)
    place, nowhere = f"{zookeeper_server.address}/said", f"127.0.0.1:{free_port()}"
    with Broker(lab=False) as broker:
        servers = broker.bootstrap_servers
        assert "offsets/t/0: the value is not an offset" in carry("import", place, servers, "g", code=1)
        assert "is not host:port" in carry("import", place, "here", "g", code=2)
        with ThreadPoolExecutor() as both:  # each waits
            absent = both.submit(carry, "import", nowhere, servers, "g", code=1)
            assert "Connection refused" in carry("import", place, nowhere, "g", code=1)
            assert f"ZooKeeper at {nowhere}: " in absent.result()
