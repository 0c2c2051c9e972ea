"""Steps 1 to 7 of the rebalance of `ottla.classic`, and what consumers want."""

from __future__ import annotations

import re

import pytest
from ottla.classic.balance.assignment import Subscription, TopicPartition, View, range_assignment, thread_id
from ottla.classic.balance.filters import Blacklist, TopicFilter, Whitelist
from ottla.classic.balance.member import Member
from ottla.classic.balance.offsets import ZooKeeperOffsets
from ottla.classic.balance.operations import Get, Operation, Resume, Suspend
from ottla.protocol.zookeeper_paths import broker_path, consumer_path, topic_path
from ottla.protocol.zookeeper_values import ConsumerRegistration, TopicAssignment

from ..sim.balance_zookeeper import Session, ZooKeeper


@pytest.mark.parametrize(("partitions", "consumers"), [(6, 3), (4, 4), (10, 2), (5, 1)])
def test_consumer_i_gets_partitions_from_i_n_to_i_plus_1_n_minus_1(partitions: int, consumers: int) -> None:
    names = [f"c{i}" for i in range(consumers)]
    shares = range_assignment(range(partitions), names)
    n = partitions // consumers
    assert shares == {f"c{i}": list(range(i * n, (i + 1) * n)) for i in range(consumers)}


def test_what_is_left_over_goes_to_the_first() -> None:
    assert range_assignment(range(7), ["c", "a", "b"]) == {"a": [0, 1, 2], "b": [3, 4], "c": [5, 6]}


def test_consumers_that_are_more_than_the_partitions_get_none() -> None:
    assert range_assignment([0, 1], ["a", "b", "c"]) == {"a": [0], "b": [1], "c": []}
    assert range_assignment([0], []) == {}


def test_partitions_are_sorted_by_number_and_threads_as_java_sorts_text() -> None:
    assert range_assignment([10, 9, 2, 0], ["g-10", "g-9"]) == {"g-10": [0, 2], "g-9": [9, 10]}
    assert range_assignment([0, 1], ["\U0001f600", "\uffff"]) == {"\U0001f600": [0], "\uffff": [1]}


def test_each_stream_is_a_thread_of_its_own() -> None:
    consumers = {"g_a": Subscription({"t": 2}), "g_b": Subscription({"t": 1})}
    view = View(consumers, (), {"t": (0, 1, 2, 3)})
    assert view.share_of("g_a") == {("t", 0): "g_a-0", ("t", 1): "g_a-0", ("t", 2): "g_a-1"}
    assert view.share_of("g_b") == {("t", 3): thread_id("g_b", 0)}
    assert view.share_of("g_c") == {}


def test_a_group_may_mix_lists_of_topics_and_filters() -> None:
    consumers = {
        "g_a": Subscription({"x": 1}),
        "g_b": Subscription({}, Whitelist("x|y"), 1),
        "g_c": Subscription({}, Blacklist("x"), 1),
    }
    view = View(consumers, ("x", "y", "__consumer_offsets"), {"x": (0, 1), "y": (0, 1)})
    assert view.share_of("g_a") == {("x", 0): "g_a-0"}
    assert view.share_of("g_b") == {("x", 1): "g_b-0", ("y", 0): "g_b-0"}
    assert view.share_of("g_c") == {TopicPartition("y", 1): "g_c-0"}


@pytest.mark.parametrize(
    ("topics", "allowed", "refused"),
    [
        (Whitelist("a,b"), ["a", "b"], ["ab", "c"]),
        (Whitelist(" 'white.*' "), ["white", "whiter"], ["awhite"]),
        (Blacklist("a, b"), ["c", "ab"], ["a", "b"]),
    ],
)
def test_a_filter_matches_whole_names(topics: TopicFilter, allowed: list[str], refused: list[str]) -> None:
    assert all(map(topics.is_topic_allowed, allowed))
    assert not any(map(topics.is_topic_allowed, [*refused, "__consumer_offsets"]))


def test_internal_topics_can_be_had() -> None:
    assert Whitelist("__.*").is_topic_allowed("__consumer_offsets", exclude_internal_topics=False)
    assert Blacklist("x").is_topic_allowed("__consumer_offsets", exclude_internal_topics=False)


def test_a_filter_that_is_no_regular_expression_is_refused() -> None:
    with pytest.raises(re.error):
        Whitelist("*")


def test_a_subscription_is_registered_and_read_back() -> None:
    for wanted in (Subscription({"t": 2}), Subscription({}, Whitelist("a.*"), 3), Subscription({}, Blacklist("a"), 1)):
        found = Subscription.of(ConsumerRegistration.decode(wanted.registration(5).encode()))
        assert found.streams_of(("a", "b"), True) == wanted.streams_of(("a", "b"), True)
    two = ConsumerRegistration({"a": 1, "b": 1}, "white_list", 0)
    with pytest.raises(ValueError, match="one regular expression"):
        Subscription.of(two)


def test_a_topic_that_is_made_during_a_rebalance_is_shared_with_those_whose_filter_matches() -> None:
    """It was not among the topics when they were read, and is there when its partitions are."""
    zookeeper, session = ZooKeeper(), Session()
    zookeeper.create(broker_path(1), b"", None)
    zookeeper.create(consumer_path("g", "g_b"), Subscription({}, Whitelist("t"), 1).registration(0).encode(), None)
    steps = Member("g", "g_a", Subscription({"t": 1}), ZooKeeperOffsets("g"), 0).rebalance()
    operation: Operation = next(steps)
    while not isinstance(operation, Resume):
        if operation == Get(topic_path("t"), watch=True):
            zookeeper.create(topic_path("t"), TopicAssignment({0: (1,), 1: (1,)}).encode((0, 8, 2)), None)
        operation = steps.send({} if isinstance(operation, Suspend) else zookeeper.do(operation, session))
    assert operation.starts == {("t", 0): ("g_a-0", None)}
