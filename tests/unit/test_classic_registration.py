"""The five steps in which a consumer of `ottla.classic` registers, as Kafka 0.8 documents them, over a model of a
ZooKeeper: registers itself, watches the consumers, the brokers and, with a filter, the topics, and rebalances.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from ottla.classic.balance.assignment import Subscription, TopicPartition
from ottla.classic.balance.filters import Blacklist, TopicFilter, Whitelist
from ottla.classic.balance.member import Member
from ottla.classic.balance.offsets import ZooKeeperOffsets
from ottla.classic.balance.operations import Create, Operation, Resume, Suspend
from ottla.protocol.zookeeper_paths import broker_path, consumer_path, owner_path, topic_path
from ottla.protocol.zookeeper_values import ConsumerRegistration, TopicAssignment

from ..sim.balance_zookeeper import Session, ZooKeeper

ONE_STREAM = Subscription({"t": 1})
ASSIGNED = TopicAssignment({0: (1,), 1: (1,)}).encode((0, 8, 2))


def cluster() -> ZooKeeper:
    """A broker, and a topic with two partitions."""
    zookeeper = ZooKeeper()
    zookeeper.create(broker_path(1), b"", None)
    zookeeper.create(topic_path("t"), ASSIGNED, None)
    return zookeeper


@dataclass
class Consumer:
    """A member of group `g`, and what it did."""

    zookeeper: ZooKeeper
    name: str = "g_a"
    wanted: Subscription = ONE_STREAM

    def __post_init__(self) -> None:
        self.session = Session()
        self.done: list[Operation] = []
        self.member = Member("g", self.name, self.wanted, ZooKeeperOffsets("g"), 1234)

    def rebalances(self) -> bool:
        """Does what is due; returns whether it has its share."""
        steps = self.member.rebalance()
        answer: object = None
        try:
            while True:
                operation = steps.send(answer)
                self.done.append(operation)
                answer = {} if isinstance(operation, Suspend) else None
                if not isinstance(operation, Suspend | Resume):
                    answer = self.zookeeper.do(operation, self.session)
        except StopIteration as end:
            return bool(end.value)

    def hears_of(self) -> int:
        """Returns how many watches have fired since it was asked last; the member is notified of them."""
        count, self.session.told_of = self.session.told_of, 0
        if count:
            self.member.notified()
        return count

    @property
    def owns(self) -> set[int]:
        owners = {index: self.zookeeper.nodes.get(owner_path("g", "t", index)) for index in (0, 1)}
        return {index for index, one in owners.items() if one is not None and one[1] is self.session}


def at_rest(wanted: Subscription = ONE_STREAM) -> Consumer:
    """A consumer that has registered, rebalanced, and heard of what it did itself."""
    consumer = Consumer(cluster(), wanted=wanted)
    assert consumer.rebalances()
    consumer.hears_of()
    assert consumer.rebalances()
    assert consumer.hears_of() == 0
    return consumer


def test_step_1_it_registers_itself_in_the_consumer_id_registry_before_anything_else() -> None:
    consumer = Consumer(cluster())
    consumer.rebalances()
    first = next(one for one in consumer.done if not isinstance(one, Suspend))
    assert isinstance(first, Create)
    assert first.path == consumer_path("g", "g_a") == "/consumers/g/ids/g_a"
    value, owner = consumer.zookeeper.nodes[first.path]
    assert owner is consumer.session  # it is ephemeral
    assert ConsumerRegistration.decode(value) == ConsumerRegistration({"t": 1}, "static", 1234)


def test_step_2_it_watches_the_consumer_ids_for_consumers_that_join_and_leave() -> None:
    consumer = at_rest()
    other = Consumer(consumer.zookeeper, "g_b")
    other.rebalances()
    assert consumer.hears_of() == 1
    assert (consumer.member.is_due, consumer.rebalances()) == (True, True)
    assert consumer.owns == {0}
    consumer.zookeeper.expire(other.session)
    assert consumer.hears_of() == 1
    assert consumer.rebalances()
    assert consumer.owns == {0, 1}


def test_step_3_it_watches_the_broker_ids() -> None:
    consumer = at_rest()
    consumer.zookeeper.create(broker_path(2), b"", None)
    assert consumer.hears_of() == 1
    consumer.rebalances()
    consumer.zookeeper.remove(broker_path(2))
    assert consumer.hears_of() == 1
    assert consumer.member.is_due


@pytest.mark.parametrize("wanted", [Whitelist("t|new"), Blacklist("other")])
def test_step_4_with_a_filter_it_watches_the_topics(wanted: TopicFilter) -> None:
    consumer = at_rest(wanted=Subscription({}, wanted, 1))
    consumer.zookeeper.create(topic_path("new"), ASSIGNED, None)
    assert consumer.hears_of() == 1
    assert consumer.rebalances()
    assert {topic for topic, _ in consumer.member.share} == {"t", "new"}


def test_step_4_without_a_filter_it_does_not_watch_the_topics() -> None:
    consumer = at_rest()
    Consumer(consumer.zookeeper, "g_b", Subscription({}, Whitelist("t"), 1)).rebalances()
    assert consumer.hears_of()
    consumer.rebalances()  # it reads the topics, which another one's filter may match
    consumer.hears_of()
    consumer.zookeeper.create(topic_path("new"), ASSIGNED, None)
    assert consumer.hears_of() == 0


def test_step_5_it_forces_itself_to_rebalance() -> None:
    consumer = Consumer(cluster())
    assert consumer.member.is_due  # no watch has fired
    assert consumer.rebalances()
    assert consumer.owns == {0, 1}
    assert consumer.done[-1] == Resume({TopicPartition("t", index): ("g_a-0", None) for index in (0, 1)})
