"""What the pages of `ottla ui` show in tests and in the documentation: brokers with something of everything, and the
page's process.
"""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.protocol import messages as m
from ottla.protocol import records
from ottla.protocol.records import Record, Template

from ottla.testing import Broker

from .poll import until
from .share_session import ShareSession, configure
from .wire import Wire

START_SECONDS_MAX = 60.0
LONG_MS = 1_800_000
SETTINGS: dict[str, object] = {  # nothing ends by itself while a page is looked at
    "group.consumer.max.session.timeout.ms": LONG_MS,
    "group.consumer.session.timeout.ms": LONG_MS,
    "group.streams.max.session.timeout.ms": LONG_MS,
    "group.streams.session.timeout.ms": LONG_MS,
    "group.share.max.session.timeout.ms": LONG_MS,
    "group.share.session.timeout.ms": LONG_MS,
    "group.share.max.record.lock.duration.ms": LONG_MS,
    "group.share.record.lock.duration.ms": LONG_MS,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
PARTITIONS = 3


@contextmanager
def ui_process(*urls: str, **environment: str) -> Iterator[str]:
    """Runs `ottla ui` for brokers; yields its URL."""
    command = [sys.executable, "-m", "ottla", "ui", "--port", "0"]
    for url in urls:
        command += ["--broker", url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS_MAX)
        line = process.stdout.readline() if ready else ""
        assert line.startswith("ottla ui is ready: "), line
        yield line.split()[-1]
    finally:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def shop(broker: Broker) -> None:
    """Topics with records, of which some are hidden."""
    lab = broker.lab
    lab.seed(
        {"name": "orders", "partitions": PARTITIONS},
        {"name": "payments", "partitions": 2},
        {"name": "parcels"},
        {"name": "shipments"},
    )
    for number in range(48):
        value = f'{{"order": {1000 + number}, "total": "{number * 7 % 90 + 10}.50", "currency": "EUR"}}'
        headers = {"source": "shop", "trace": f"{number * 2654435761 % 2**32:08x}"}
        body = {"partition": number % PARTITIONS, "key": f"customer-{number % 7}", "value": value, "headers": headers}
        lab.post("records/orders", body)
    for number in range(12):
        lab.post("records/parcels", key=f"parcel-{number}", value=f"to customer-{number % 7}")
    for number in range(4):
        lab.post("records/payments", partition=number % 2, key=f"order-{number}", value="paid")
    lab.hold("payments", 1)
    for number in range(3):
        lab.post("records/payments", partition=1, key=f"order-{number}", value="refunded")


def join(wire: Wire, group: str, member: str, topic: str) -> int:
    """Makes a member of a consumer group; returns its epoch."""
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id=group, member_id=member, rebalance_timeout_ms=60_000, topic_partitions=[])
    request.subscribed_topic_names = [topic]

    def joined() -> Any:
        found = wire.ask("ConsumerGroupHeartbeat", 1, request)
        return found if found.error_code == 0 else None

    return int(until(joined, f"{member} joins {group}").member_epoch)


def commit(wire: Wire, group: str, topic: str, offsets: dict[int, int], member: str = "", epoch: int = -1) -> None:
    r = m.OffsetCommitRequest
    request = r(group_id=group, member_id=member, generation_id_or_member_epoch=epoch)
    parts = [r.OffsetCommitRequestPartition(partition_index=at, committed_offset=one) for at, one in offsets.items()]
    request.topics = [r.OffsetCommitRequestTopic(name=topic, partitions=parts)]
    (found,) = wire.ask("OffsetCommit", 9, request).topics
    assert {one.error_code for one in found.partitions} == {0}


def billing(wire: Wire) -> None:
    """A consumer group whose third member waits for what the others still have."""
    wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["billing"]))
    for number in (1, 2, 3):
        epoch = join(wire, "billing", f"billing-{number}", "orders")
    commit(wire, "billing", "orders", {0: 16, 1: 12, 2: 9}, "billing-3", epoch)


def nightly(wire: Wire) -> None:
    """A group without members."""
    commit(wire, "nightly", "orders", {0: 3, 1: 3, 2: 3})


def parcels(broker: Broker, wire: Wire) -> None:
    """A share group that has some records, and has accepted, released and rejected others."""
    topic_id = bytes.fromhex(broker.lab.topic("parcels")["topic_id"])
    session = ShareSession(wire, "parcels", topic_id, 1)
    until(session.acquired, "records are acquired")
    for offset, kind in ((1, 1), (2, 2), (5, 3)):
        session.acknowledge(0, offset, offset, [kind])


def counting(wire: Wire) -> None:
    """A streams group, one of whose tasks is about to move to the second member."""
    r = m.StreamsGroupHeartbeatRequest
    changelog = r.TopicInfo(name="counting-totals-changelog")
    part = r.Subtopology(subtopology_id="0", source_topics=["payments"], state_changelog_topics=[changelog])

    def beat(member: str, epoch: int, **more: Any) -> Any:
        request = r(group_id="counting", member_id=member, member_epoch=epoch, **more)
        found = wire.ask("StreamsGroupHeartbeat", 1, request)
        return found if found.error_code == 0 else None

    def joined(member: str) -> int:
        topology = r.Topology(epoch=0, subtopologies=[part])
        nothing: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
        more = {"rebalance_timeout_ms": LONG_MS, "process_id": f"process-{member}", "topology": topology}
        return int(until(lambda: beat(member, 0, **nothing, **more), f"{member} joins").member_epoch)

    configure(wire, "counting", "streams.initial.rebalance.delay.ms", "0")
    epoch = joined("counter-1")

    def is_assigned() -> bool:
        nonlocal epoch
        found = beat("counter-1", epoch)
        epoch = found.member_epoch
        return bool(found.active_tasks)

    until(is_assigned, "the internal topic is there, and the tasks are assigned")
    joined("counter-2")


def transaction(wire: Wire, name: str = "checkout") -> None:
    """A transaction that is open."""
    wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
    request = m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
    begun = until(
        lambda: None if (found := wire.ask("InitProducerId", 5, request)).error_code else found, f"{name} begins"
    )
    template = Template(
        producer_id=begun.producer_id, producer_epoch=begun.producer_epoch, base_sequence=0, transactional=True
    )
    data = bytes(records.encode([Record(b"order-9", b"reserved", int(time.time() * 1000))], template))
    r = m.ProduceRequest
    topic = r.TopicProduceData(name="orders", partition_data=[r.PartitionProduceData(index=2, records=data)])
    produce = r(transactional_id=name, acks=1, timeout_ms=5000, topic_data=[topic])
    until(
        lambda: wire.ask("Produce", 12, produce).responses[0].partition_responses[0].error_code == 0,
        "a record of the transaction is written",
    )


@contextmanager
def everything() -> Iterator[Broker]:
    """A broker with something on each page."""
    with (
        Broker(SETTINGS) as broker,
        Wire(broker.bootstrap_servers, client_id="billing-service") as wire,
        Wire(broker.bootstrap_servers, client_id="parcel-robot") as robot,
        Wire(broker.bootstrap_servers, client_id="checkout") as checkout,
    ):
        shop(broker)
        billing(wire)
        nightly(wire)
        parcels(broker, robot)
        counting(wire)
        transaction(checkout)
        yield broker
