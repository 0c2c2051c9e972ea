"""A short working life of a broker, told by real clients: records and transactions in all codecs, groups of all
kinds.

`tell` returns the truth about it, as the clients saw it: what the pipeline finds in the data directory must be the
same.
"""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from ottla.protocol import messages as m

from ..support.ask import create
from ..support.committed import committed
from ..support.poll import until
from ..support.share_session import ShareSession, configure
from ..support.stories.streams import R, joining, part, tasks
from ..support.wire import Wire

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
ACCEPT, RELEASE, REJECT = 1, 2, 3
GROUPS = ("classic", "consumer")
READ = {"codecs": 3, "exact": 1, "mixed": 2}  # partitions of the topics whose records are in the truth
Truth = dict[str, Any]
SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 2,
    "transaction.state.log.num.partitions": 2,
    "share.coordinator.state.topic.num.partitions": 2,
    "group.share.min.record.lock.duration.ms": 1000,
    "group.consumer.min.heartbeat.interval.ms": 200,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.assignment.interval.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.assignment.interval.ms": 0,
    "log.segment.bytes": 1 << 20,
    "log.index.interval.bytes": 500,
}


def tell(servers: str) -> Truth:
    """Everything below, on a fresh broker with SETTINGS. Values are those of JSON."""
    admin = AdminClient({"bootstrap.servers": servers})
    wanted = [NewTopic("codecs", 3, 1), NewTopic("mixed", 2, 1), NewTopic("exact", 1, 1), NewTopic("work", 4, 1)]
    for made in admin.create_topics(wanted).values():
        made.result()
    for codec in CODECS:
        fill(servers, codec)
        mix(servers, codec)
    transactions(servers)
    work(servers)
    truth: Truth = {"ownership": {group: members(servers, group) for group in GROUPS}}
    truth["ownership"]["streams"] = application(servers)
    truth["shares"] = queue(servers)
    truth["offsets"] = {group: offsets(servers, group, "work") for group in GROUPS}
    truth["offsets"]["streams"] = offsets(servers, "streams", "tasks")
    truth["records"] = {topic: consumed(servers, topic, partitions) for topic, partitions in READ.items()}
    return truth


def fill(servers: str, codec: str) -> None:
    producer = Producer(
        {"bootstrap.servers": servers, "compression.type": codec, "batch.num.messages": 50, "enable.idempotence": True}
    )
    for n in range(600):
        headers = [("n", b"%d" % n), ("null", None)] if n % 4 == 0 else None
        producer.produce(
            "codecs", f"{codec}-{n}" * 3 if n % 7 else None, f"k{n % 5}" if n % 3 else None, headers=headers
        )
    assert producer.flush(60) == 0


def mix(servers: str, codec: str) -> None:
    """Records of a producer without idempotence, and of a transactional one whose second transaction is aborted."""
    settings = {"bootstrap.servers": servers, "compression.type": codec, "batch.num.messages": 15}
    plain = Producer({**settings, "enable.idempotence": False})
    exact = Producer({**settings, "transactional.id": f"mixed-{codec}"})
    exact.init_transactions(30)
    for name, end in (("committed", exact.commit_transaction), ("aborted", exact.abort_transaction)):
        exact.begin_transaction()
        for n in range(40):
            plain.produce("mixed", f"plain {codec} {name} {n}" * 4, f"{n}", n % 2)
            exact.produce("mixed", f"{codec} {name} {n}" * 4, f"{n}", n % 2, headers=[("of", codec.encode())])
        exact.flush(60)
        assert plain.flush(60) == 0
        end(30)


def transactions(servers: str) -> None:
    """Six transactions, every second one aborted, and one that stays open."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "exact"})
    producer.init_transactions(30)
    for number in range(7):
        producer.begin_transaction()
        for n in range(10):
            producer.produce("exact", f"{number}-{n}")
        producer.flush(60)
        if number < 6:
            (producer.commit_transaction if number % 2 else producer.abort_transaction)(30)


def work(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for n in range(400):
        producer.produce("work", f"{n}", partition=n % 4)
    assert producer.flush(60) == 0


def consumed(servers: str, topic: str, partitions: int) -> list[list[Any]]:
    """Partition, offset, timestamp, key, value and headers of what is committed; bytes as text."""
    found = []
    for one in committed(servers, topic, partitions):
        headers = [[name, _text(value)] for name, value in one.headers() or []]
        found.append([one.partition(), one.offset(), one.timestamp()[1], _text(one.key()), _text(one.value()), headers])
    return sorted(found, key=lambda row: row[:2])


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def members(servers: str, group: str) -> list[list[list[int]]]:
    """One member reads all of `work` and commits; a second one comes; the first goes. Returns who had which partitions,
    step by step.
    """
    first = _member(servers, group)
    seen, owned = 0, []

    def reading() -> bool:
        nonlocal seen
        seen += len(first.consume(500, 0.1))
        return seen >= 400

    until(reading, "the first member reads everything")
    first.commit(asynchronous=False)
    owned.append([_owned(first)])
    next_ms()
    second = _member(servers, group)

    def both() -> bool:
        first.poll(0.05)
        second.poll(0.05)
        return len(_owned(first)) == 2 and len(_owned(second)) == 2

    until(both, "two members have two partitions each")
    owned.append([_owned(first), _owned(second)])
    next_ms()
    first.close()

    def alone() -> bool:
        second.poll(0.05)
        return len(_owned(second)) == 4

    until(alone, "the second member has all partitions")
    owned.append([_owned(second)])
    next_ms()
    second.commit(offsets=[TopicPartition("work", 0, 70)], asynchronous=False)
    second.close()
    return owned


def _owned(member: Consumer) -> list[int]:
    return sorted(one.partition for one in member.assignment())


def _member(servers: str, group: str) -> Consumer:
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    if group == "classic":
        settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200, "partition.assignment.strategy": "range"}
    else:
        settings |= {"group.protocol": "consumer"}
    member = Consumer(settings)
    member.subscribe(["work"])
    return member


def offsets(servers: str, group: str, topic: str) -> list[list[int]]:
    """Partition, committed offset and log end of what a group committed of a topic."""
    reader = Consumer({"bootstrap.servers": servers, "group.id": group})
    found = []
    for one in reader.committed([TopicPartition(topic, n) for n in range(4)], 30):
        if one.offset >= 0:
            found.append(
                [one.partition, one.offset, reader.get_watermark_offsets(TopicPartition(topic, one.partition), 30)[1]]
            )
    reader.close()
    return found


def next_ms() -> None:
    """Waits until what comes next has a later time than what was: records have whole milliseconds, and what a member
    had for less than one cannot be told from what it never had.
    """
    settled_ms = now_ms()
    until(lambda: now_ms() > settled_ms, "what comes next has a later time")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Thread:
    """A thread of a Kafka Streams application, which has what it was given last."""

    def __init__(self, wire: Wire, name: str) -> None:
        self.wire, self.name, self.epoch = wire, name, 0
        self.owned: list[int] = []

    def beat(self) -> None:
        request = joining("streams", part("0", "tasks"), member=self.name)
        if self.epoch:
            request = R(group_id="streams", member_id=self.name, member_epoch=self.epoch)
            request.active_tasks, request.standby_tasks, request.warmup_tasks = tasks(s0=self.owned), [], []
        reply = self.wire.ask("StreamsGroupHeartbeat", 1, request)
        if reply.error_code == 0:
            self.epoch = reply.member_epoch
            if reply.active_tasks is not None:
                self.owned = [number for one in reply.active_tasks for number in one.partitions]

    def commit(self, **offsets: int) -> None:
        """Commits an offset of each partition of `tasks`: `p0=10`."""
        r = m.OffsetCommitRequest
        parts = [
            r.OffsetCommitRequestPartition(partition_index=int(name.removeprefix("p")), committed_offset=offset)
            for name, offset in offsets.items()
        ]
        request = r(group_id="streams", member_id=self.name, generation_id_or_member_epoch=self.epoch)
        request.topics = [r.OffsetCommitRequestTopic(name="tasks", partitions=parts)]
        reply = self.wire.ask("OffsetCommit", 9, request)
        assert [one.error_code for one in reply.topics[0].partitions] == [0] * len(parts)

    def leave(self) -> None:
        self.wire.ask("StreamsGroupHeartbeat", 1, R(group_id="streams", member_id=self.name, member_epoch=-1))


def application(servers: str) -> list[list[list[int]]]:
    """Like `members`, with two threads of a Kafka Streams application and its tasks."""
    with Wire(servers) as wire:
        create(wire, "tasks", 4)
        producer = Producer({"bootstrap.servers": servers})
        for n in range(40):
            producer.produce("tasks", f"{n}", partition=n % 4)
        assert producer.flush(60) == 0
        first, second = Thread(wire, "t1"), Thread(wire, "t2")

        def have(*counts: int) -> bool:
            for one in (first, second)[: len(counts)]:
                one.beat()
            return tuple(len(one.owned) for one in (first, second)[: len(counts)]) == counts

        until(lambda: have(4), "the first thread has all tasks")
        first.commit(p0=10, p1=10, p2=10, p3=10)
        owned = [[first.owned]]
        next_ms()
        until(lambda: have(2, 2), "two threads have two tasks each")
        owned.append([first.owned, second.owned])
        next_ms()
        first.leave()

        def alone() -> bool:
            second.beat()
            return len(second.owned) == 4

        until(alone, "the second thread has all tasks")
        owned.append([second.owned])
        next_ms()
        second.commit(p0=7)
        second.leave()
    return owned


def queue(servers: str) -> list[list[int]]:
    """A queue of 20 jobs: ten accepted at once, six released and accepted the second time, two rejected, the last two
    never delivered to an end.

    Returns offset, delivery count and state (2 acknowledged, 4 archived, 0 available) of those that came to one.
    """
    with Wire(servers) as wire:
        topic_id = create(wire, "jobs")
        configure(wire, "jobs", "share.record.lock.duration.ms", "60000")
        session = ShareSession(wire, "jobs", topic_id, 1)
        producer = Producer({"bootstrap.servers": servers})
        for n in range(20):
            producer.produce("jobs", f"job {n}")
        assert producer.flush(60) == 0
        acquired: list[int] = []

        def all_acquired() -> bool:
            acquired.append(session.acquired())
            return sum(acquired) >= 20

        until(all_acquired, "twenty records are acquired")
        session.acknowledge(0, 0, 9, [ACCEPT])
        session.acknowledge(0, 10, 15, [RELEASE])
        session.acknowledge(0, 16, 17, [REJECT])
        until(session.acquired, "the released records come again")
        session.acknowledge(0, 10, 15, [ACCEPT])
    return [*([n, 1, 2] for n in range(10)), *([n, 2, 2] for n in range(10, 16)), *([n, 1, 4] for n in range(16, 18))]
