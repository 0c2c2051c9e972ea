"""What members of groups do through a proxy of `ottla compare`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from confluent_kafka import AcknowledgeType, Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import messages as m

from .poll import until
from .share_session import configure
from .wire import Wire

RECORDS = 60


def filled(servers: str, topic: str, partitions: int) -> None:
    common: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 2}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    producer = Producer(common)
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % partitions)
    assert producer.flush(60) == 0


def share_partitions(servers: str, protocol: str, name: str = "") -> None:
    """Three members begin at once; then one leaves, and the others take over. `name`: of the topic and the group."""
    topic = name or f"of-{protocol}"
    filled(servers, topic, 6)
    config: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 2, "auto.offset.reset": "earliest"}
    config.update({"group.id": topic, "group.protocol": protocol})
    if protocol == "classic":
        config["heartbeat.interval.ms"] = 300
    members = [Consumer({**config, "client.id": f"m{number}"}) for number in range(3)]
    for member in members:
        member.subscribe([topic])
    read: Counter[bytes] = Counter()

    def work(of: list[Consumer], each: int) -> bool:
        for member in of:
            for message in member.consume(20, 0.1):
                assert not message.error()
                read[message.value() or b""] += 1
        return len(read) == RECORDS and all(len(member.assignment()) == each for member in of)

    until(lambda: work(members, 2), "all records, with two partitions each")
    own = members[0].assignment()[0].partition
    members[0].commit(offsets=[TopicPartition(topic, own, 5)], asynchronous=False)
    members.pop().close()
    until(lambda: work(members, 3), "three partitions each")
    for member in members:
        member.close()


def share_records(servers: str) -> None:
    """Two members of a share group take all records: some are given back first, and one is rejected."""
    filled(servers, "parcels", 2)
    with Wire(servers) as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["parcels"]))
        configure(wire, "parcels", "share.auto.offset.reset", "earliest")
    take_parcels(servers, RECORDS)


def take_parcels(servers: str, records: int) -> None:
    """Two members of librdkafka take all records: some are given back first, and one is rejected.
    `records`: how many there are.
    """
    config: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 2, "group.id": "parcels"}
    explicit: dict[str, Any] = {**config, "share.acknowledgement.mode": "explicit"}
    seen: Counter[bytes] = Counter()
    with ShareConsumer(explicit) as one, ShareConsumer(explicit) as other:
        for member in (one, other):
            member.subscribe(["parcels"])

        def is_done() -> bool:
            for member in (one, other):
                for message in member.poll(0.1):
                    seen[message.value()] += 1
                    number = int(message.value())
                    kind = AcknowledgeType.REJECT if number == 7 else AcknowledgeType.ACCEPT
                    if number % 10 == 3 and seen[message.value()] < 3:
                        kind = AcknowledgeType.RELEASE
                    member.acknowledge(message, kind)
                member.commit_sync(60)
            return len(seen) == records and all(seen[b"%d" % number] == 3 for number in range(3, records, 10))

        until(is_done, "all records are taken")


def prepare(a: str, b: str, topic: str) -> None:
    """A topic and a share group in two brokers; the third record of B is another one."""
    for servers, third in ((a, b"3"), (b, b"another")):
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
        producer = Producer({"bootstrap.servers": servers, "log_level": 2})
        for value in (b"1", b"2", third):
            producer.produce(topic, value, timestamp=1)
        assert producer.flush(60) == 0
        with Wire(servers) as wire:
            wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=[topic]))
            configure(wire, topic, "share.auto.offset.reset", "earliest")


def take(servers: str, topic: str) -> None:
    """Takes three records."""
    config: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 2, "group.id": topic}
    with ShareConsumer(config) as one:
        one.subscribe([topic])
        found: list[Any] = []

        def has_all() -> bool:
            found.extend(one.poll(0.2))
            return len(found) == 3

        until(has_all, "three records")


def visit_nodes(servers: str, topic: str) -> None:
    """A client of a cluster: a topic of all nodes, one that is made because it is asked for, groups and transactions
    with several coordinators.
    """
    common: dict[str, Any] = {"bootstrap.servers": servers, "log_level": 2}
    admin = AdminClient(common)
    admin.create_topics([NewTopic(topic, 6, 2)])[topic].result()
    for number in range(3):
        producer = Producer({**common, "transactional.id": f"{topic}-{number}"})
        producer.init_transactions(60)
        producer.begin_transaction()
        for partition in range(6):
            producer.produce(topic, b"%d" % number, partition=partition)
        producer.commit_transaction(60)
    producer = Producer(common)
    producer.produce(f"{topic}-made-by-metadata", b"x")
    assert producer.flush(60) == 0
    for number in range(3):
        config = {**common, "group.id": f"{topic}-{number}", "auto.offset.reset": "earliest"}
        consumer = Consumer(config)
        consumer.subscribe([topic])
        read = 0

        def has_read(consumer: Consumer = consumer) -> bool:
            nonlocal read
            for message in consumer.consume(20, 0.1):
                assert not message.error()
                read += 1
            return read == 18

        until(has_read, "all records")
        consumer.commit(asynchronous=False)
        consumer.close()
