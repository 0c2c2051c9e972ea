"""`ottla.classic` with a real ZooKeeper: its consumers and those of Kafka 0.8.2.2 share the partitions of a Kafka
0.8.2.2, and of an ottla in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from ottla.classic import (
    EARLIEST_TIME,
    LATEST_TIME,
    DefaultPartitioner,
    FetchRequest,
    OffsetOutOfRange,
    Producer,
    ProducerConfig,
    ProducerData,
    StringEncoder,
)
from ottla.protocol.zookeeper_values import PartitionState

from ..support.classic_group import Group, Printer, Traffic, end_of, leader_of, leaders_of, shares
from ..support.poll import until
from .conftest import PARTITIONS
from .installations import Installation

pytestmark = [pytest.mark.slow, pytest.mark.oracle]


@pytest.fixture(scope="module")
def zookeeper(kafka: Installation) -> Iterator[KazooClient]:
    client = KazooClient(kafka.zookeeper)
    client.start()
    yield client
    client.stop()
    client.close()


def begun(kafka: Installation, theirs: Printer, tmp_path: Path, name: str) -> tuple[Traffic, Group]:
    """Traffic to a topic, and a group without members that reads it, and others whose names begin like that."""
    traffic = Traffic(kafka.bootstrap_servers, f"{name}-a")
    traffic.start()
    return traffic, Group(name, kafka.zookeeper, f"{name}-.*", theirs, tmp_path)


def all_is_read(kafka: Installation, group: Group, traffic: Traffic) -> None:
    """Ends the traffic, and waits until the group has read what it wrote."""
    traffic.end()
    until(lambda: len(group.read()) >= written(kafka, *traffic.topics), "everything is read", within=40)


def test_groups_of_both_kinds_from_one_to_five_and_back(
    kafka: Installation, theirs: Printer, zookeeper: KazooClient, tmp_path: Path
) -> None:
    traffic, group = begun(kafka, theirs, tmp_path, "both")
    a = group.ours("a")
    shares(zookeeper, "both", "both-a", a=6)
    group.theirs("b")
    shares(zookeeper, "both", "both-a", a=3, b=3)
    c = group.ours("c")
    shares(zookeeper, "both", "both-a", a=2, b=2, c=2)
    group.theirs("d")
    e = group.ours("e")
    shares(zookeeper, "both", "both-a", a=2, b=1, c=1, d=1, e=1)
    traffic.topics = ("both-a", "both-b")  # the filter finds it
    shares(zookeeper, "both", "both-b", a=2, b=1, c=1, d=1, e=1)
    a.leave()
    shares(zookeeper, "both", "both-a", b=2, c=2, d=1, e=1)
    group.they_leave("b")
    c.leave()
    shares(zookeeper, "both", "both-a", d=3, e=3)
    group.they_leave("d")
    shares(zookeeper, "both", "both-b", e=6)
    all_is_read(kafka, group, traffic)
    e.leave()
    found = group.read()
    assert len(found) == written(kafka, "both-a", "both-b")
    assert set(found.values()) == {1}


def written(kafka: Installation, *topics: str) -> int:
    return sum(end_of(kafka.bootstrap_servers, topic, one) for topic in topics for one in range(PARTITIONS))


def test_a_member_is_killed_and_the_others_take_over(
    kafka: Installation, theirs: Printer, zookeeper: KazooClient, tmp_path: Path
) -> None:
    traffic, group = begun(kafka, theirs, tmp_path, "killed")
    a = group.ours("a", offsets_storage="zookeeper")
    b = group.own_process("b")
    group.theirs("c")
    shares(zookeeper, "killed", "killed-a", a=2, b=2, c=2)
    until(lambda: any(line.startswith("read b ") for line in b.lines), "b reads", every=0.02)
    b.kill()
    shares(zookeeper, "killed", "killed-a", a=3, c=3)
    all_is_read(kafka, group, traffic)
    group.they_leave("c")
    a.leave()


def test_a_session_expires_and_its_member_comes_back(
    kafka: Installation, theirs: Printer, zookeeper: KazooClient, tmp_path: Path
) -> None:
    traffic, group = begun(kafka, theirs, tmp_path, "expired")
    a = group.ours("a")
    group.theirs("b")
    shares(zookeeper, "expired", "expired-a", a=3, b=3)
    session = a.connector._zookeeper._client.client_id
    registered = zookeeper.get("/consumers/expired/ids/expired_a")[1].ephemeralOwner
    other = KazooClient(kafka.zookeeper, client_id=session)  # who knows a session can end it
    other.start()
    other.stop()
    other.close()

    def is_new() -> bool:
        found = zookeeper.exists("/consumers/expired/ids/expired_a")
        return found is not None and found.ephemeralOwner != registered

    until(is_new, "it is registered again", within=40, every=0.02)
    shares(zookeeper, "expired", "expired-a", a=3, b=3)
    all_is_read(kafka, group, traffic)
    group.they_leave("b")
    a.leave()


def test_a_group_moves_its_offsets_to_kafka_and_back(
    kafka: Installation, theirs: Printer, zookeeper: KazooClient, tmp_path: Path
) -> None:
    """Each consumer goes on where the one before it stopped, wherever that committed."""
    config = ProducerConfig(kafka.bootstrap_servers, request_required_acks=1, message_send_max_retries=50)
    group = Group("moves", kafka.zookeeper, "moves-.*", theirs, tmp_path)
    count = 0

    def more() -> None:
        nonlocal count
        with Producer[str, bytes](config, key_encoder=StringEncoder()) as producer:
            for number in range(count, count + 20):
                producer.send(ProducerData("moves-a", [b"v"], key=str(number)))
        count += 20
        until(lambda: len(group.read()) >= count, f"{count} messages are read", within=40, every=0.02)

    group.theirs("first")
    more()
    group.they_leave("first")
    for name, storage, is_dual in (
        ("second", "kafka", True),
        ("third", "kafka", False),
        ("fourth", "zookeeper", True),
        ("fifth", "zookeeper", False),
    ):
        consumer = group.ours(name, offsets_storage=storage, dual_commit_enabled=is_dual)
        more()
        consumer.leave()
    assert set(group.read().values()) == {1}
    stored = [int(zookeeper.get(f"/consumers/moves/offsets/moves-a/{i}")[0]) for i in range(PARTITIONS)]
    assert sum(stored) == count


def test_the_low_level_consumer(kafka: Installation) -> None:
    config = ProducerConfig(kafka.bootstrap_servers, request_required_acks=-1, message_send_max_retries=50)
    with Producer[bytes, bytes](config) as producer:
        producer.send(ProducerData("simple", [b"v" * 3000, b"w"], key=b"k"))
    partition = DefaultPartitioner().partition(b"k", PARTITIONS)
    with leader_of(kafka.bootstrap_servers, "simple", partition) as consumer:
        assert consumer.get_offsets_before("simple", partition, LATEST_TIME, 10) == [2, 0]
        assert consumer.get_offsets_before("simple", partition, EARLIEST_TIME, 10) == [0]
        found = consumer.fetch(FetchRequest("simple", partition, 0, 100))  # the buffer doubles
        first = next(iter(found))
        assert (first.offset, first.message.key, first.message.value) == (0, b"k", b"v" * 3000)
        leaders = leaders_of(kafka.bootstrap_servers, "simple")
        other = next(one for one in leaders if one != partition and leaders[one] == leaders[partition])
        last, end = consumer.multifetch(
            [FetchRequest("simple", partition, 1, 9999), FetchRequest("simple", other, 0, 9999)]
        )
        assert [one.message.value for one in last] == [b"w"]
        assert (list(end), end.high_watermark) == ([], 0)
        with pytest.raises(OffsetOutOfRange):
            consumer.fetch(FetchRequest("simple", partition, 3, 100))


def test_keys_go_where_kafkas_producer_sends_them(kafka: Installation, theirs: Printer) -> None:
    keys = ["a", "key-17", "\u00fcber", "polygenelubricants", "x" * 40, "0"]
    theirs.say(f"keyed {kafka.bootstrap_servers} hashed {' '.join(keys)}", "sent hashed")
    found = {}
    for partition in range(PARTITIONS):
        with leader_of(kafka.bootstrap_servers, "hashed", partition) as consumer:
            for one in consumer.fetch(FetchRequest("hashed", partition, 0, 100_000)):
                found[(one.message.value or b"").decode()] = partition
    assert found == {key: DefaultPartitioner().partition(key, PARTITIONS) for key in keys}


def test_a_broker_is_added(kafka: Installation, theirs: Printer, zookeeper: KazooClient, tmp_path: Path) -> None:
    """Partitions on it are consumed as soon as there are some."""
    group = Group("more", kafka.zookeeper, "more-.*", theirs, tmp_path)
    a = group.ours("a")
    group.theirs("b")
    added = kafka.add_broker()
    until(lambda: zookeeper.exists(f"/brokers/ids/{added}"), "it is registered", every=0.02)
    traffic = Traffic(kafka.bootstrap_servers, "more-a")
    traffic.start()
    shares(zookeeper, "more", "more-a", a=3, b=3)
    traffic.end()
    until(lambda: len(group.read()) >= traffic.count, "everything is read", within=40, every=0.02)
    group.they_leave("b")
    a.leave()
    assert len(group.read()) == traffic.count
    states = [zookeeper.get(f"/brokers/topics/more-a/partitions/{i}/state")[0] for i in range(PARTITIONS)]
    assert added in {PartitionState.decode(one).leader for one in states}
