"""Groups of `ottla.classic` over a model of a ZooKeeper: consumers join, leave and die, sessions expire, connections
are lost with or without what was asked for, watches are told of late, brokers and topics come.

Two consumers never hand out records of a partition, except one whose session is over and who has not heard of it.
When all is quiet, each partition has its owner, and everything was handed out: once, if all left in order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Sequence

from ottla.classic.balance import assignment, offsets, operations
from ottla.classic.balance.assignment import Subscription, TopicPartition
from ottla.classic.balance.filters import Blacklist, Whitelist
from ottla.classic.balance.member import Member
from ottla.classic.balance.operations import (
    CommitToKafka,
    Create,
    FetchFromKafka,
    Lost,
    Resume,
    SessionExpired,
    Suspend,
)
from ottla.protocol.zookeeper_paths import BROKER_TOPICS, broker_path, consumer_path, owner_path, topic_path
from ottla.protocol.zookeeper_values import TopicAssignment

from ..support.bugs import Bug
from .balance_zookeeper import Session, ZooKeeper

GROUP = "g"
TOPICS = ("a", "b", "c1", "c2")
MOVES = 250
QUIET_STEPS_MAX = 20_000
BUGS: tuple[Bug, ...] = (
    (assignment, "range_assignment", "(index < more)", "(index <= more)"),
    (operations, "delete_own", "if node is not None and node.is_mine:", "if node is not None:"),
    (operations, "create", "return node is not None and node.is_mine", "return node is not None"),
    (offsets.DualOffsets, "fetch", "max(found", "min(found"),
    (Member, "rebalance", "self.is_due = self.is_due or not done", "self.is_due = not done"),
    (Member, "expired", "self._is_registered = False", "self._claims"),
    (Member, "_registered", "yield from suspend()", "self._claims"),
    (Member, "_seen", "children(consumers_path(self.group), watch=True)", "children(consumers_path(self.group))"),
    (Member, "_seen", "children(BROKER_IDS, watch=True)", "children(BROKER_IDS)"),
    (Member, "_seen", "watch=self._subscription.filter is not None", "watch=False"),
    (Member, "_seen", "get(topic_path(topic), watch=True)", "get(topic_path(topic))"),
    (Member, "_stopped", "self._uncommitted.clear()", "self._claims"),
    (Member, "_stopped", "self._uncommitted.update((yield from suspend()))", "yield from suspend()"),
    (Member, "_released", "yield from delete_own(", "yield from get("),
    (Member, "_claimed", "self._claims.add(one)", "self._claims"),
)


class Consumer:
    """A connector as the simulator plays it: it drives a member, and its streams hand out one record at a time."""

    def __init__(self, sim: History, name: str, wanted: Subscription) -> None:
        self.sim, self.name = sim, name
        self.session = self.owning = Session()  # the second: in which it claimed what the streams hand out
        self.member = Member(GROUP, name, wanted, sim.chance.choice(sim.storages), 0)
        self.wanted = wanted
        self.running: Generator[operations.Operation, object, bool] | None = None
        self.asked: operations.Operation | None = None
        self.streams: dict[TopicPartition, tuple[str, int]] = {}  # the thread and the next offset
        self.is_leaving = self.is_at_end = self.is_gone = False

    def begin(self) -> None:
        """Starts what has to be done next, if nothing is being done."""
        self.is_at_end = self.is_leaving
        if self.is_leaving:
            self._drive(self.member.leave())
        elif self.member.is_due:
            self._drive(self.member.rebalance())
        elif self.sim.chance.random() < 0.1 and self.sim.is_troubled:
            self._drive(self.member.commit({one: offset for one, (_, offset) in self.streams.items()}))

    def _drive(self, steps: Generator[operations.Operation, object, bool]) -> None:
        self.running = steps
        self._go_on(None)

    def _go_on(self, answer: object) -> None:
        assert self.running is not None
        try:
            self.asked = self.running.throw(answer) if isinstance(answer, Exception) else self.running.send(answer)
        except StopIteration as ended:
            self.running = self.asked = None
            if self.is_at_end and ended.value:
                self.is_gone = True
                self.sim.zookeeper.expire(self.session)  # its client ends it

    def step(self) -> None:
        """Does the operation that is asked for."""
        if self.running is None:
            self.begin()
            return
        operation, sim = self.asked, self.sim
        match operation:
            case Suspend():
                answer: object = {one: offset for one, (_, offset) in self.streams.items()}
                self.streams = {}
            case Resume(starts):
                assert not self.streams
                self.streams = {one: (thread, offset or 0) for one, (thread, offset) in starts.items()}
                self.owning, answer = self.session, None
            case CommitToKafka(given):
                answer = sim.chance.random() >= sim.trouble
                if answer or sim.chance.random() < 0.5:
                    sim.kafka.update(given)
            case FetchFromKafka(partitions):
                known = {one: sim.kafka[one] for one in partitions if one in sim.kafka}
                answer = known if sim.chance.random() >= sim.trouble else None
            case _:
                answer = self._asked_of_zookeeper(operation)
        self._go_on(answer)

    def _asked_of_zookeeper(self, operation: object) -> object:
        sim = self.sim
        if not self.session.is_alive:
            self.session = Session()
            return SessionExpired()
        if isinstance(operation, Create) and operation.path == consumer_path(GROUP, self.name):
            assert not self.streams, f"{self.name} registers while it consumes"
        if sim.chance.random() >= sim.trouble:
            return sim.zookeeper.do(operation, self.session)
        if sim.chance.random() < 0.5:
            sim.zookeeper.do(operation, self.session)
        sim.zookeeper.disconnect(self.session)
        return Lost()

    def hear(self) -> None:
        """Is told of a watch, or of the end of its session."""
        if not self.session.is_alive and self.running is None:
            self.session = Session()
            self.member.expired()
        elif self.session.told_of:
            self.session.told_of = 0
            self.member.notified()

    def consume(self) -> None:
        """Hands out a record."""
        ready = [one for one, (_, offset) in self.streams.items() if offset < self.sim.ends[one]]
        if not ready:
            return
        one = self.sim.chance.choice(sorted(ready))
        thread, offset = self.streams[one]
        if self.owning.is_alive:
            owner = self.sim.zookeeper.nodes.get(owner_path(GROUP, one.topic, one.partition))
            assert owner == (thread.encode(), self.session), f"{self.name} consumes {one}, which {owner} owns"
        self.streams[one] = thread, offset + 1
        self.sim.handed_out[one, offset] += 1

    @property
    def is_quiet(self) -> bool:
        return self.running is None and not (self.member.is_due or self.session.told_of) and self.session.is_alive


class History:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.zookeeper = ZooKeeper()
        self.kafka: dict[TopicPartition, int] = {}
        self.ends: Counter[TopicPartition] = Counter()
        self.handed_out: Counter[tuple[TopicPartition, int]] = Counter()
        self.consumers: list[Consumer] = []
        self.dead: list[Session] = []  # of consumers that were killed
        self.is_troubled = True
        self.is_orderly = self.chance.random() < 0.5
        self.trouble = self.chance.choice((0.0, 0.02, 0.1))
        zookeeper, dual = offsets.ZooKeeperOffsets(GROUP), offsets.DualOffsets(GROUP)
        self.storages: Sequence[offsets.Storage] = self.chance.choice(
            ((zookeeper,), (offsets.KafkaOffsets(),), (zookeeper, dual), (offsets.KafkaOffsets(), dual))
        )  # the consumers of a group that moves have one of two, while they are restarted
        self.joined = 0
        self.zookeeper.create(BROKER_TOPICS, b"", None)
        if self.chance.random() < 0.8:
            self.change_brokers()

    def change_brokers(self) -> None:
        path = broker_path(self.chance.randrange(3))
        if not self.zookeeper.create(path, b"", None) and len(self.zookeeper.children("/brokers/ids")) > 1:
            self.zookeeper.remove(path)

    def change_topics(self) -> None:
        """Makes a topic, or adds a partition."""
        topic = self.chance.choice(TOPICS)
        count = 1 + sum(one.topic == topic for one in self.ends)
        if count == 1:
            count = self.chance.randint(1, 5)
        for partition in range(count):
            self.ends[TopicPartition(topic, partition)] += 0
        value = TopicAssignment(dict.fromkeys(range(count), (0,))).encode((0, 8, 2))
        self.zookeeper.do(operations.Put(topic_path(topic), value), Session())

    def join(self) -> None:
        self.joined += 1
        wanted = self.chance.choice(
            (
                Subscription({"a": self.chance.randint(1, 3), "b": 1}),
                Subscription({"c1": 1, "a": 1}),
                Subscription({}, Whitelist("c.*, a"), self.chance.randint(1, 2)),
                Subscription({}, Blacklist("b"), 1),
            )
        )
        self.consumers.append(Consumer(self, f"g_host-{self.joined}", wanted))

    def end_one(self) -> None:
        """A consumer leaves, is killed, or loses its session."""
        one = self.chance.choice(self.consumers)
        if self.is_orderly or self.chance.random() < 0.4:
            one.is_leaving = True
        elif self.chance.random() < 0.5:
            self.zookeeper.expire(one.session)
        else:
            self.dead.append(one.session)
            self.consumers.remove(one)

    def move(self) -> None:
        self.consumers = [one for one in self.consumers if not one.is_gone]
        dice = self.chance.random()
        if dice < 0.02 or not self.consumers:
            if len(self.consumers) < 5:
                self.join()
        elif dice < 0.035:
            self.end_one()
        elif dice < 0.05:
            self.chance.choice((self.change_topics, self.change_brokers))()
        elif dice < 0.06 and self.dead:
            self.zookeeper.expire(self.dead.pop())
        elif dice < 0.15 and self.ends:
            self.ends[self.chance.choice(sorted(self.ends))] += self.chance.randint(1, 3)
        else:
            for _ in range(self.chance.choice((1, 1, 40))):  # sometimes they come to rest
                self.let_act(self.chance.choice(self.consumers))

    def let_act(self, one: Consumer) -> None:
        self.chance.choices((one.step, one.hear, one.consume), (6, 1, 2))[0]()

    def settle(self) -> None:
        """No more trouble: all that was begun ends."""
        self.is_troubled, self.trouble = False, 0.0
        if not self.zookeeper.children("/brokers/ids"):
            self.change_brokers()
        for session in self.dead:
            self.zookeeper.expire(session)
        if not self.consumers or all(one.is_leaving for one in self.consumers):
            self.join()
        for _ in range(QUIET_STEPS_MAX):
            self.consumers = [one for one in self.consumers if not one.is_gone]
            busy = [one for one in self.consumers if one.is_leaving or not one.is_quiet]
            if not busy:
                break
            self.let_act(self.chance.choice(busy))
        else:
            raise AssertionError("the group does not come to rest")
        for one in self.consumers:
            for _ in range(sum(self.ends.values())):
                one.consume()

    def check(self) -> None:
        topics = {one.topic for one in self.ends}
        for topic in sorted(topics):
            threads = []
            for one in self.consumers:
                count = one.wanted.streams_of(topics, True).get(topic, 0)
                threads += [f"{one.name}-{i}".encode() for i in range(count)]
            partitions = [one.partition for one in self.ends if one.topic == topic]
            paths = [owner_path(GROUP, topic, partition) for partition in sorted(partitions)]
            owners = [self.zookeeper.nodes[path][0] for path in paths if path in self.zookeeper.nodes]
            assert len(owners) == (len(paths) if threads else 0), f"{topic} has {owners} for {len(paths)}"
            assert owners == sorted(owners), f"{topic} is shared out to {owners}"
            counts = sorted(owners.count(thread) for thread in threads)
            assert not counts or counts[-1] - counts[0] <= 1, f"{topic} is shared out unevenly: {counts}"
            if threads:
                self.check_records(topic)

    def check_records(self, topic: str) -> None:
        for one in sorted(self.ends):
            for offset in range(self.ends[one]) if one.topic == topic else ():
                count = self.handed_out[one, offset]
                assert count, f"{one} offset {offset} was never handed out"
                assert count == 1 or not self.is_orderly, f"{one} offset {offset} was handed out {count} times"


def run(seed: int) -> None:
    history = History(seed)
    try:
        for _ in range(MOVES):
            history.move()
        history.settle()
        history.check()
    except AssertionError as error:
        raise AssertionError(f"seed {seed}: {error}") from error
