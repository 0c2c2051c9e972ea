"""`ottla compare` between ottla and Kafka: clients of others find no difference beyond the rules."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.testing import Broker

from ..support import compared_work
from ..support.compared import Compared, assert_same, compared
from ..support.poll import until
from ..support.wire import Wire
from .kafka import Kafka, program

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
SETTINGS: dict[str, object] = {
    "group.initial.rebalance.delay.ms": 500,  # in which members that begin at once all join, on both brokers
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}


@pytest.fixture(scope="module", params=[(0, 1), (1, 0)], ids=["ottla first", "Kafka first"])
def order(request: pytest.FixtureRequest) -> tuple[int, int]:
    found: tuple[int, int] = request.param
    return found


def coordinate(servers: str) -> None:
    """Waits until a broker's coordinators are loaded: of two new brokers one is sooner, and says so."""
    with Wire(servers) as wire:

        def is_found(key_type: int) -> bool:
            asked = m.FindCoordinatorRequest(coordinator_keys=["first"], key_type=key_type)
            return bool(wire.ask("FindCoordinator", 4, asked).coordinators[0].error_code == 0)

        def group() -> bool:
            asked = m.DescribeGroupsRequest(groups=["first"])
            return wire.ask("DescribeGroups", 5, asked).groups[0].error_code in (0, Errors.GROUP_ID_NOT_FOUND)

        def transaction() -> bool:
            asked = m.DescribeTransactionsRequest(transactional_ids=["first"])
            found = wire.ask("DescribeTransactions", 0, asked).transaction_states[0].error_code
            return bool(found == Errors.TRANSACTIONAL_ID_NOT_FOUND)

        for key_type in (0, 1):
            until(partial(is_found, key_type), "a coordinator", every=0.02)
        until(group, "the coordinator of groups is loaded", every=0.02)
        until(transaction, "the coordinator of transactions is loaded", every=0.02)


@pytest.fixture(scope="module")
def pair(order: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """The addresses of both, in their order. Both are new, because programs have fixed names of topics: those of one
    program are not those of another.
    """
    with Broker({"ottla.group.settle": False, **SETTINGS}, lab=False) as ours, Kafka(SETTINGS) as kafka:
        servers = ours.bootstrap_servers, kafka.bootstrap_servers
        for one in servers:
            coordinate(one)
        yield servers[order[0]], servers[order[1]]


@pytest.fixture
def proxy(pair: tuple[str, str]) -> Iterator[Compared]:
    with compared(*pair) as found:
        yield found


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "of-" + "".join(one if one.isalnum() else "-" for one in request.node.name)


def test_librdkafka(proxy: Compared, name: str) -> None:
    servers = {"bootstrap.servers": proxy.bootstrap_servers, "log_level": 0}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(name, 4, 1, config={"retention.ms": "600000"})])[name].result()
    producer = Producer({**servers, "enable.idempotence": True, "compression.type": "lz4"})
    for n in range(200):
        producer.produce(name, b"%d" % n, b"%d" % n, partition=n % 4, headers=[("h", b"x")])
    assert producer.flush(60) == 0
    for protocol in ("classic", "consumer"):
        group = f"{name}-{protocol}"
        config = {**servers, "group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer(config)
        consumer.subscribe([name])
        read = 0

        def is_read(consumer: Consumer = consumer) -> bool:
            nonlocal read
            read += len(consumer.consume(200 - read, 1.0))
            return read == 200

        until(is_read, "all records")
        consumer.commit(asynchronous=False)
        consumer.close()
    writer = Producer({**servers, "transactional.id": name})
    writer.init_transactions(60)
    for end in (writer.commit_transaction, writer.abort_transaction, writer.commit_transaction):
        writer.begin_transaction()
        writer.produce(name, b"in a transaction", partition=0)
        end(60)
    admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, name)])
    admin.list_offsets({TopicPartition(name, 1): OffsetSpec.latest()})[TopicPartition(name, 1)].result()
    admin.delete_topics([name])[name].result()
    proxy.end()
    assert_same(proxy, "Produce", "Fetch", "JoinGroup", "ConsumerGroupHeartbeat", "EndTxn", "DeleteTopics")


def run_java(proxy: Compared, folder: Path, clients: str, *arguments: str) -> None:
    part = "streams" if clients == "ReplayedClients" else "tools"
    command = [*program(part, clients, folder), proxy.bootstrap_servers, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]
    proxy.end()


def test_java(proxy: Compared, tmp_path: Path) -> None:
    run_java(proxy, tmp_path, "PlainClients")
    assert_same(proxy, "Metadata", "Produce", "Fetch")


@pytest.mark.parametrize("order", [(0, 1)], ids=["ottla first"], indirect=True, scope="module")
def test_java_in_transactions(proxy: Compared, tmp_path: Path) -> None:
    run_java(proxy, tmp_path, "TransactionClients", "one at a time")
    assert_same(proxy, "InitProducerId", "Produce", "TxnOffsetCommit", "EndTxn", "JoinGroup", "ConsumerGroupHeartbeat")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_share_partitions(proxy: Compared, protocol: str) -> None:
    compared_work.share_partitions(proxy.bootstrap_servers, protocol)
    proxy.end()
    assert_same(proxy, "JoinGroup" if protocol == "classic" else "ConsumerGroupHeartbeat", "OffsetCommit")


def test_members_of_a_share_group_get_the_same_records(proxy: Compared) -> None:
    compared_work.share_records(proxy.bootstrap_servers)
    proxy.end()
    assert_same(proxy, "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")


def test_a_java_member_of_a_share_group(proxy: Compared, tmp_path: Path) -> None:
    run_java(proxy, tmp_path, "ReplayedClients", "share")
    assert_same(proxy, "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")
