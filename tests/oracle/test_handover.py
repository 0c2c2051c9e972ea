"""ottla with one node becomes a cluster of three nodes of Apache Kafka, whose clients stay where they are: everything
that was there is there, and everyone goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Coroutine, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaException, Producer
from ottla.coordinator.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from ottla.protocol import messages as m

from ottla.testing import Broker

from ..support.acls import creations
from ..support.ask import create, fetch, produce
from ..support.poll import until
from ..support.ports import free_run
from ..support.scram import ScramClient, log_in
from ..support.secured import SETTINGS as SECURED
from ..support.share_session import ShareSession
from ..support.stories.streams import info, joining, part
from ..support.wire import Wire
from .cluster import HandedOver

pytestmark = [pytest.mark.oracle, pytest.mark.slow]
T = TypeVar("T")
PARTITIONS = 4
FIRST, SECOND = range(40), range(40, 60)
SHA_256 = 1
MEMBERS_STAY_MS = 1_800_000  # those that no client heartbeats for, until the last test
ACLS = [
    Acl(kind, "orders", PatternType.LITERAL, "User:erik", "*", operation, Permission.ALLOW)
    for kind, operation in ((ResourceType.TOPIC, Operation.READ), (ResourceType.GROUP, Operation.READ))
]
STREAMS = part("0", "in", sinks=["mid"]), part("1", repartitions=[info("mid", 2)], changelogs=[info("log")])


def settings(port: int) -> dict[str, object]:
    return {
        **SECURED,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{port + 1}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "delegation.token.secret.key": "one key",
        "offsets.topic.num.partitions": 3,
        "transaction.state.log.num.partitions": 3,
        "share.coordinator.state.topic.num.partitions": 3,
        "group.initial.rebalance.delay.ms": 0,
        "group.streams.initial.rebalance.delay.ms": 0,
        **{f"group.{kind}.max.session.timeout.ms": MEMBERS_STAY_MS for kind in ("share", "streams")},
        **{f"group.{kind}.session.timeout.ms": MEMBERS_STAY_MS for kind in ("share", "streams")},
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    }


class Aio:
    """aiokafka's clients in a loop of their own, which goes on while the brokers change."""

    def __init__(self, servers: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.consumer, self.producer = self.run(self._start(servers))

    async def _start(self, servers: str) -> tuple[AIOKafkaConsumer, AIOKafkaProducer]:
        consumer = AIOKafkaConsumer(
            "orders", bootstrap_servers=servers, group_id="aio", auto_offset_reset="earliest", enable_auto_commit=False
        )
        producer = AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True)
        await consumer.start()
        await producer.start()
        return consumer, producer

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    def take(self, count: int) -> list[int]:
        """Reads and commits so many records."""

        async def taken() -> list[int]:
            found = [int((await anext(self.consumer)).value) for _ in range(count)]
            await self.consumer.commit()
            return found

        return sorted(self.run(taken()))

    def close(self) -> None:
        self.run(self.consumer.stop())
        self.run(self.producer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def consumer_of(servers: str, group: str, **more: object) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 2,
            **more,
        }
    )
    consumer.subscribe(["orders"])
    return consumer


def take(consumer: Consumer, count: int) -> list[int]:
    """Reads and commits so many records; errors while the brokers change are passed over."""
    found: list[int] = []

    def is_read() -> bool:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            found.append(int(message.value() or b""))
        return len(found) == count

    until(is_read, f"{count} records are read")
    until(lambda: is_committed(consumer), "they are committed")
    return sorted(found)


def is_committed(consumer: Consumer) -> bool:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException:
        return False
    return True


def transactional(servers: str, name: str, timeout_ms: int) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": name,
            "transaction.timeout.ms": timeout_ms,
            "log_level": 2,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("ledger", name, partition=0)
    assert producer.flush(60) == 0
    return producer


def made_secure(servers: str, sasl_servers: str) -> Any:
    """Makes a user, rights, a limit, and a token, which is returned."""
    salted = hashlib.pbkdf2_hmac("sha256", b"erik-secret", b"salt", 4096)
    r, a = m.AlterUserScramCredentialsRequest, m.AlterClientQuotasRequest
    up = r.ScramCredentialUpsertion(
        name="erik", mechanism=SHA_256, iterations=4096, salt=b"salt", salted_password=salted
    )
    op = a.OpData(key="producer_byte_rate", value=5e6, remove=False)
    entry = a.EntryData(entity=[a.EntityData(entity_type="user", entity_name="erik")], ops=[op])
    with Wire(servers) as wire:
        assert not wire.ask("AlterUserScramCredentials", 0, r(upsertions=[up])).results[0].error_code
        assert not wire.ask("AlterClientQuotas", 1, a(entries=[entry])).entries[0].error_code
        assert not any(one.error_code for one in wire.ask("CreateAcls", 3, creations(ACLS)).results)
    with Wire(sasl_servers) as wire:
        wire.ask("SaslHandshake", 1, m.SaslHandshakeRequest(mechanism="PLAIN"))
        wire.ask("SaslAuthenticate", 2, m.SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"))
        return wire.ask("CreateDelegationToken", 3, m.CreateDelegationTokenRequest(max_lifetime_ms=3_600_000))


def coordinator(wire: Wire, group: str) -> str:
    """The address of a group's coordinator."""
    find = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])

    def found() -> str:
        (one,) = wire.ask("FindCoordinator", 4, find).coordinators
        return "" if one.error_code else f"{one.host}:{one.port}"

    return until(found, f"{group} has a coordinator")


def streams_group(servers: str) -> Any:
    """The members of the streams group, once it is loaded."""
    with Wire(servers) as any_node, Wire(coordinator(any_node, "app")) as wire:
        request = m.StreamsGroupDescribeRequest(group_ids=["app"])

        def described() -> Any:
            (group,) = wire.ask("StreamsGroupDescribe", 1, request).groups
            return None if group.error_code else group

        return until(described, "the group is loaded").members


def join_streams_group(servers: str) -> None:
    with Wire(servers) as wire:
        create(wire, "in", 2)
        coordinator(wire, "app")
        request = joining("app", *STREAMS, member="m1")
        until(lambda: not wire.ask("StreamsGroupHeartbeat", 1, request).error_code, "the member joins")


@dataclass
class Moved:
    """The cluster, and the clients that were connected to ottla."""

    kafka: HandedOver
    servers: str
    sasl_servers: str
    topic_ids: dict[str, bytes]
    aio: Aio
    classic: Consumer
    modern: Consumer
    producer: Producer
    kept: Producer
    token: Any
    streams: Any
    seen: dict[str, list[int]] = field(default_factory=dict)

    def led(self, topic: str, partition: int = 0) -> str:
        """The address of the leader of a partition, once it has all its replicas."""

        def found() -> str:
            with Wire(self.servers) as wire:
                reply = wire.ask("Metadata", 12, m.MetadataRequest(topics=None))
            nodes = {one.node_id: f"{one.host}:{one.port}" for one in reply.brokers}
            (parts,) = (one.partitions for one in reply.topics if one.name == topic)
            (one,) = (one for one in parts if one.partition_index == partition)
            return nodes.get(one.leader_id, "") if len(one.isr_nodes) == 3 else ""

        return until(found, f"{topic}-{partition} has a leader and three replicas in sync")


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    directory, port = tmp_path_factory.mktemp("handover"), free_run(9)
    servers, sasl_servers = f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"
    given, file, out = settings(port), directory / "ottla.properties", directory / "kafka"
    file.write_text("".join(f"{key}={value}\n" for key, value in given.items()))
    with Broker(given, directory=directory, lab=False) as broker:
        with Wire(servers) as wire:
            names = {name: PARTITIONS if name == "orders" else 1 for name in ("orders", "ledger", "shared")}
            ids = {name: create(wire, name, count, retention_ms="900000000") for name, count in names.items()}
            shared(wire, ids["shared"])
        join_streams_group(servers)
        streams, token = streams_group(servers), made_secure(servers, sasl_servers)
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 2})
        send(producer, FIRST)
        clients = Aio(servers), consumer_of(servers, "classic"), consumer_of(servers, "new", **NEW)
        one = Moved(
            HandedOver(out), servers, sasl_servers, ids, *clients, producer, transactional(servers, "kept", 120_000),
            token, streams,
        )  # fmt: skip
        lost = transactional(servers, "lost", 15_000)
        one.seen = {"aio": one.aio.take(len(FIRST)), "classic": take(one.classic, 40), "new": take(one.modern, 40)}
        broker.stop()
    arguments = ["--to", out, "--nodes", 3, "--replication-factor", 3, "-c", file, "--controller-port", port + 6]
    command = [sys.executable, "-m", "ottla", "handover", directory / "data", *arguments]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert (made.returncode, made.stderr) == (0, ""), made.stdout
    with one.kafka, closing(one.aio), closing(one.classic), closing(one.modern):
        yield one
    del lost


NEW = {"group.protocol": "consumer"}


def shared(wire: Wire, topic_id: bytes) -> None:
    """Two records of a share group are accepted, one is rejected, one is acquired, and one is not delivered yet."""
    coordinator(wire, "shared")
    session = ShareSession(wire, "shared", topic_id, 1)
    for n in range(4):
        produce(wire, "shared", b"%d" % n)
    until(session.fetch, "the records are acquired")
    session.acknowledge(0, 0, 2, [1, 1, 3])
    produce(wire, "shared", b"4")


def send(producer: Producer, numbers: range) -> None:
    for number in numbers:
        producer.produce("orders", str(number), partition=number % PARTITIONS)
    assert producer.flush(120) == 0


def test_clients_go_on_at_the_same_address(moved: Moved) -> None:
    assert moved.seen == {name: list(FIRST) for name in ("aio", "classic", "new")}
    send(moved.producer, SECOND)
    assert moved.aio.take(len(SECOND)) == list(SECOND)
    assert take(moved.classic, len(SECOND)) == list(SECOND)
    assert take(moved.modern, len(SECOND)) == list(SECOND)


def test_three_nodes_have_the_topics_their_records_and_their_configurations(moved: Moved) -> None:
    with Wire(moved.servers) as wire:
        found = {one.name: one for one in wire.ask("Metadata", 12, m.MetadataRequest(topics=None)).topics}
        r = m.DescribeConfigsRequest
        asked = r(resources=[r.DescribeConfigsResource(resource_type=2, resource_name="orders")])
        configs = {one.name: one.value for one in wire.ask("DescribeConfigs", 4, asked).results[0].configs}
    assert {name: found[name].topic_id for name in moved.topic_ids} == moved.topic_ids
    assert all(len(p.replica_nodes) == 3 for one in found.values() for p in one.partitions), "coordinators' topics, too"
    assert configs["retention.ms"] == "900000000"
    for index in range(PARTITIONS):
        with Wire(moved.led("orders", index)) as wire:
            assert fetch(wire, "orders", partition=index)[:10] == [b"%d" % n for n in range(index, 40, PARTITIONS)]


def test_an_open_transaction_is_ended_by_its_producer_or_aborted(moved: Moved) -> None:
    moved.kept.produce("ledger", "more", partition=0)
    moved.kept.commit_transaction(120)
    reader = Consumer({"bootstrap.servers": moved.servers, "group.id": "r", "auto.offset.reset": "earliest"})
    reader.subscribe(["ledger"])
    found: list[bytes | None] = []

    def are_read() -> bool:
        message = reader.poll(1)
        if message is not None and message.error() is None:
            found.append(message.value())
        return len(found) == 2

    until(are_read, "Kafka has aborted the other transaction, which held them back")
    reader.close()
    assert found == [b"kept", b"more"]


def test_a_share_group_goes_on_after_what_it_has_acknowledged(moved: Moved) -> None:
    beat = m.ShareGroupHeartbeatRequest(
        group_id="shared", member_id="m", member_epoch=0, subscribed_topic_names=["shared"]
    )

    def acquired() -> list[int]:
        """What a new session acquires; the end of its connection releases it. The member joins before it, again and
        again, so that a broker that is slow does not take it for gone.
        """
        if home.ask("ShareGroupHeartbeat", 1, beat).error_code:
            return []
        with Wire(moved.led("shared")) as wire:
            session = ShareSession(wire, "shared", moved.topic_ids["shared"], 1, is_member=True)
            return [offset for _, first, last, _ in session.fetch() for offset in range(first, last + 1)]

    with Wire(moved.servers) as any_node, Wire(coordinator(any_node, "shared")) as home:
        assert until(acquired, "the records are acquired") == [3, 4]


def test_a_streams_group_has_its_members(moved: Moved) -> None:
    assert streams_group(moved.servers) == moved.streams


def test_users_rights_limits_and_tokens_hold(moved: Moved) -> None:
    with Wire(moved.sasl_servers) as wire:
        token = ScramClient(
            "SCRAM-SHA-512", moved.token.token_id, b64encode(moved.token.hmac).decode(), extensions=",tokenauth=true"
        )
        assert log_in(wire, token, "SCRAM-SHA-512")
    with Wire(moved.servers) as wire:
        q = m.DescribeClientQuotasRequest
        component = q.ComponentData(entity_type="user", match_type=0, match="erik")
        (entry,) = wire.ask("DescribeClientQuotas", 1, q(components=[component])).entries
        assert [(one.key, one.value) for one in entry.values] == [("producer_byte_rate", 5e6)]
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "erik",
        "sasl.password": "erik-secret",
    }
    erik = consumer_of(moved.sasl_servers, "orders", **login)
    assert len(take(erik, 40)) == 40
    erik.close()
    denied = consumer_of(moved.sasl_servers, "other", **login)
    error = until(lambda: (found := denied.poll(1)) and found.error(), "the group is refused")
    assert error.name() == "GROUP_AUTHORIZATION_FAILED"
    denied.close()
