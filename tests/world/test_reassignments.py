"""Partitions move to other replicas: new ones catch up, the old ones leave, and the leader with them (KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from ottla.broker.later import Later, drive
from ottla.coordinator.metadata.state import BROKER, TOPIC
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, produce_message
from ..support.node_world import cluster, configure, create, happens, produce, records, state
from ..support.topic_world import set_policy
from ..support.world import World

a, ls = m.AlterPartitionReassignmentsRequest, m.ListPartitionReassignmentsRequest


@pytest.fixture
def w() -> World:
    return cluster()


def move(w: World, replicas: Sequence[int] | None, topic: str = "two", version: int = 1, **options: Any) -> str:
    """Asks for the replicas of a topic's first partition; None cancels. Returns the error."""
    parts = [a.ReassignablePartition(partition_index=0, replicas=None if replicas is None else list(replicas))]
    request = a(topics=[a.ReassignableTopic(name=topic, partitions=parts)], timeout_ms=10_000, **options)
    one = w.ask("AlterPartitionReassignments", version, request).responses[0].partitions[0]
    return Errors(one.error_code).name


def listed(w: World, topics: Any = None) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    """The replicas of each partition that is reassigned, those that are added, and those that are removed."""
    found = w.ask("ListPartitionReassignments", 0, ls(topics=topics, timeout_ms=10_000))
    return {
        (topic.name, one.partition_index): (one.replicas, one.adding_replicas, one.removing_replicas)
        for topic in found.topics
        for one in topic.partitions
    }


def replicas(w: World, topic: str = "two") -> tuple[list[int], list[int], int, int]:
    """The replicas, those in sync, the leader and its epoch."""
    wanted = m.MetadataRequest.MetadataRequestTopic(name=topic)
    one = w.ask("Metadata", 12, m.MetadataRequest(topics=[wanted])).topics[0].partitions[0]
    return one.replica_nodes, one.isr_nodes, one.leader_id, one.leader_epoch


def ends(w: World, topic: str = "two") -> dict[int, int]:
    partition = w.broker.partitions.get(topic, 0)
    assert partition.replica_set is not None
    views = partition.replica_set.views(partition.end_offset, partition.follower.replicated)
    return {node: end for node, end, _ in views}


def test_new_replicas_join_and_old_ones_leave(w: World) -> None:
    assert produce(w, 3, topic="two").error_code == 0
    assert move(w, [1, 2]) == "NONE"
    w.pass_ms(1)
    assert replicas(w) == ([1, 2], [1, 2], 1, 1)
    assert (listed(w), records(w, 1, topic="two")) == ({}, [b"v"])


def test_one_replica_becomes_three_and_one_again(w: World) -> None:
    for value in (b"1", b"2"):
        assert produce(w, 3, topic="one", value=value).error_code == 0
    assert move(w, [3, 1, 2], "one") == "NONE"
    w.pass_ms(1)
    assert replicas(w, "one") == ([3, 1, 2], [1, 2, 3], 3, 0)
    assert move(w, [2], "one") == "NONE"
    w.pass_ms(1)
    assert replicas(w, "one") == ([2], [2], 2, 1)
    assert records(w, 2, topic="one") == [b"1", b"2"]
    assert produce(w, 3, topic="one").error_code == Errors.NOT_LEADER_OR_FOLLOWER
    assert produce(w, 2, topic="one").error_code == 0


def test_another_order_of_the_same_replicas_is_there_at_once(w: World) -> None:
    assert move(w, [2, 3]) == "NONE"
    assert replicas(w) == ([2, 3], [3, 2], 3, 0)


def test_a_reassignment_waits_for_the_new_replica(w: World) -> None:
    assert produce(w, 3, topic="two").error_code == 0
    set_policy(w, "two", "held")
    assert move(w, [1, 3]) == "NONE"
    w.pass_ms(60_000)
    assert listed(w) == {("two", 0): ([1, 3, 2], [1], [2])}
    assert listed(w, [ls.ListPartitionReassignmentsTopics(name="two", partition_indexes=[0, 9])]) == listed(w)
    assert listed(w, [ls.ListPartitionReassignmentsTopics(name="one", partition_indexes=[0])]) == {}
    assert ends(w) == {1: 0, 3: 1, 2: 1}
    set_policy(w, "two", "immediate")
    w.pass_ms(1)
    assert (listed(w), replicas(w)) == ({}, ([1, 3], [1, 3], 3, 1))


def test_a_new_replica_has_the_log_after_the_lag_of_the_policy(w: World) -> None:
    assert produce(w, 3, topic="two").error_code == 0
    set_policy(w, "two", "lag=500ms")
    assert move(w, [3, 2, 1]) == "NONE"
    w.pass_ms(499)
    assert (ends(w)[1], replicas(w)[1]) == (0, [3, 2])
    w.pass_ms(2)
    assert (ends(w)[1], replicas(w)[1]) == (1, [1, 2, 3])


def test_a_reassignment_can_be_cancelled(w: World) -> None:
    assert move(w, None) == "NO_REASSIGNMENT_IN_PROGRESS"
    assert produce(w, 3, topic="two").error_code == 0
    happens(w, "hold", 1)
    before = replicas(w)
    assert move(w, [1]) == "NONE"
    assert listed(w) == {("two", 0): ([1, 2, 3], [1], [2, 3])}
    assert move(w, None) == "NONE"
    assert (listed(w), replicas(w)[0], replicas(w)[2]) == ({}, [2, 3], before[2])
    happens(w, "release", 1)
    assert produce(w, 3, topic="two").error_code == 0


def test_a_reassignment_can_be_changed_while_it_goes_on(w: World) -> None:
    assert produce(w, 3, topic="two").error_code == 0
    happens(w, "hold", 1)
    assert move(w, [1, 3]) == "NONE"
    assert listed(w) == {("two", 0): ([1, 3, 2], [1], [2])}
    assert move(w, [1]) == "NONE"
    assert listed(w) == {("two", 0): ([1, 2, 3], [1], [2, 3])}
    assert move(w, [2, 3]) == "NONE"
    assert listed(w) == {("two", 0): ([2, 3, 1], [1], [1])}, "what was added is only given up by a cancellation"
    assert move(w, None) == "NONE"
    assert (listed(w), replicas(w)[0]) == ({}, [2, 3])


def test_only_the_new_replicas_have_to_be_in_sync(w: World) -> None:
    """If more replicas leave than come, all that stay."""
    create(w, "u", [1, 2])
    create(w, "v", [1, 2, 3])
    happens(w, "stop", 2)
    assert [move(w, [1, 2, 3], "u"), move(w, [2, 1], "v")] == ["NONE", "NONE"]
    w.pass_ms(1)
    assert (listed(w), replicas(w, "u")[0]) == ({("v", 0): ([2, 1, 3], [], [3])}, [1, 2, 3])


def test_it_waits_for_a_node_that_is_stopped_and_ends_when_that_starts(w: World) -> None:
    assert produce(w, 3, topic="two").error_code == 0
    happens(w, "stop", 1)
    assert move(w, [1]) == "NONE"
    w.pass_ms(60_000)
    assert listed(w) == {("two", 0): ([1, 2, 3], [1], [2, 3])}
    happens(w, "begin", 1)
    w.pass_ms(1)
    assert (listed(w), replicas(w)[:3]) == ({}, ([1], [1], 1))
    assert records(w, 1, topic="two") == [b"v"]


def test_what_cannot_be_is_refused(w: World) -> None:
    for wrong in ([], [9], [1, 1], [-1]):
        assert move(w, wrong) == "INVALID_REPLICA_ASSIGNMENT"
    assert move(w, [1], "nope") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert move(w, [1], allow_replication_factor_change=False) == "INVALID_REPLICATION_FACTOR"
    assert move(w, [1, 2], allow_replication_factor_change=False) == "NONE"
    w.pass_ms(1)
    assert replicas(w)[0] == [1, 2]


def test_a_cancellation_is_refused_if_it_needs_an_unclean_election(w: World) -> None:
    """All replicas in sync are new ones: the old one has stopped."""
    assert produce(w, 3, topic="one").error_code == 0
    happens(w, "stop", 2)
    assert move(w, [1, 2], "one") == "NONE"
    w.pass_ms(1)
    assert listed(w) == {("one", 0): ([1, 2, 3], [1, 2], [3])}
    happens(w, "stop", 3)
    assert state(w, name="one")[2] == [1]
    assert move(w, None, "one") == "INVALID_REPLICA_ASSIGNMENT"
    configure(w, TOPIC, "one", unclean_leader_election_enable="true")
    assert move(w, None, "one") == "NONE"
    assert (listed(w), replicas(w, "one")[0]) == ({}, [3])


def test_a_producer_with_acks_all_is_answered_when_the_leader_stays(w: World) -> None:
    """The epoch changes when a replica leaves, and the leader does not."""
    happens(w, "hold", 2)
    before, w.dispatcher = w.dispatcher, w.dispatchers[3]
    answer = w.send("Produce", 10, produce_message("two", batch(b"v"), 0, -1, 120_000))
    w.dispatcher = before
    assert not answer.done
    assert move(w, [3]) == "NONE"
    w.pass_ms(1)
    assert replicas(w) == ([3], [3], 3, 1)
    assert answer.reply.responses[0].partition_responses[0].error_code == 0


def test_a_reassignment_outlives_a_restart(w: World) -> None:
    assert produce(w, 3, topic="two").error_code == 0
    set_policy(w, "two", "held")
    assert move(w, [1, 3]) == "NONE"
    before = listed(w)
    assert w.broker.stop() is None
    again = World(w.files, 1, ottla_nodes="3", ottla_high_watermark="held")
    assert listed(again) == before == {("two", 0): ([1, 3, 2], [1], [2])}
    set_policy(again, "two", "immediate")
    again.pass_ms(100)
    assert (listed(again), replicas(again)[0]) == ({}, [1, 3])


def test_a_new_replica_goes_on_after_a_restart_with_what_it_has(w: World) -> None:
    for _ in range(20):
        assert produce(w, 3, topic="two", value=bytes(100_000)).error_code == 0
    configure(w, BROKER, "3", leader_replication_throttled_rate="500000")
    configure(w, TOPIC, "two", leader_replication_throttled_replicas="0:3")
    assert move(w, [3, 2, 1]) == "NONE"
    w.pass_ms(2000)
    before = ends(w)[1]
    assert 0 < before < 20
    assert w.broker.stop() is None
    again = World(w.files, 1, ottla_nodes="3", ottla_high_watermark="two:held")
    assert (ends(again)[1], replicas(again)[1]) == (before, [3, 2])
    set_policy(again, "two", "immediate")
    again.pass_ms(60_000)
    assert (ends(again)[1], replicas(again)[1]) == (20, [1, 2, 3])


def test_a_deleted_topic_is_not_reassigned(w: World) -> None:
    happens(w, "hold", 1)
    assert produce(w, 3, topic="two").error_code == 0
    assert move(w, [1]) == "NONE"
    w.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["two"], timeout_ms=1000))
    assert listed(w) == {}


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_throttles_bound_how_fast_a_new_replica_catches_up(w: World, side: str) -> None:
    value = bytes(100_000)
    for _ in range(50):
        assert produce(w, 3, topic="two", value=value).error_code == 0
    node = 3 if side == "leader" else 1
    configure(w, BROKER, str(node), **{f"{side}_replication_throttled_rate": "1000000"})
    configure(w, TOPIC, "two", **{f"{side}_replication_throttled_replicas": f"0:{node}"})
    assert move(w, [3, 2, 1]) == "NONE"
    seen = []
    for _ in range(4):
        w.pass_ms(1000)
        seen.append(ends(w)[1])
    assert 0 < seen[0] < seen[1] < seen[2] < seen[3] < 50
    assert replicas(w)[1] == [3, 2]
    assert produce(w, 3, topic="two").error_code == 0, "those in sync are not throttled"
    w.pass_ms(3000)
    assert (ends(w)[1], replicas(w)[1]) == (51, [1, 2, 3])


def throttled(rate: int, **settings: str) -> World:
    """A topic of ten batches of 100,000 bytes, whose new replica on node 1 is throttled by its leader, node 3."""
    w = cluster(**settings)
    for _ in range(10):
        assert produce(w, 3, topic="two", value=bytes(100_000)).error_code == 0
    configure(w, BROKER, "3", leader_replication_throttled_rate=str(rate))
    configure(w, TOPIC, "two", leader_replication_throttled_replicas="*")
    assert move(w, [3, 2, 1]) == "NONE"
    w.pass_ms(100)
    return w


def test_a_replica_gets_as_much_at_once_as_it_may_fetch() -> None:
    """replica.fetch.max.bytes"""
    assert ends(throttled(100_000))[1] == 10, "1 MiB"
    small = throttled(100_000, replica_fetch_max_bytes="250000")
    assert ends(small)[1] == 2, "whole batches within the limit"
    small.pass_ms(2600)
    assert ends(small)[1] == 4


@pytest.mark.parametrize(("limit", "batches"), [(0.1, 1), (1, 1), (2, 2), (2.5, 2), (80, 80)])
def test_a_replica_gets_whole_batches_however_small_they_are(limit: float, batches: int) -> None:
    """Kafka's TopicCommandTest: with replica.fetch.max.bytes=1 it gets one batch of a hundred bytes, and waits."""
    size = len(batch(b"v"))
    w = cluster(replica_fetch_max_bytes=str(int(limit * size)))
    for _ in range(100):
        assert produce(w, 3, topic="two").error_code == 0
    configure(w, BROKER, "3", leader_replication_throttled_rate="1")
    configure(w, TOPIC, "two", leader_replication_throttled_replicas="*")
    assert move(w, [3, 2, 1]) == "NONE"
    w.pass_ms(100)
    assert (ends(w)[1], listed(w)) == (batches, {("two", 0): ([3, 2, 1], [1], [])})


@pytest.mark.parametrize(
    ("settings", "window_ms"), [({}, 11_000), ({"num": "5"}, 5_000), ({"size_seconds": "2"}, 22_000)]
)
def test_what_was_sent_is_forgotten_after_the_window(settings: dict[str, str], window_ms: int) -> None:
    """replication.quota.window.num, replication.quota.window.size.seconds"""
    own = {f"replication_quota_window_{name}": value for name, value in settings.items()}
    w = throttled(1, replica_fetch_max_bytes="100", **own)
    assert ends(w)[1] == 1
    w.pass_ms(window_ms - 200)
    assert ends(w)[1] == 1
    w.pass_ms(200)
    assert ends(w)[1] == 2


def test_a_throttle_that_is_taken_away_throttles_no_more(w: World) -> None:
    create(w, "slow", [3], leader_replication_throttled_replicas="*")
    for _ in range(50):
        assert produce(w, 3, topic="slow", value=bytes(100_000)).error_code == 0
    configure(w, BROKER, "3", leader_replication_throttled_rate="0")
    assert move(w, [3, 1], "slow") == "NONE"
    seen = []
    for _ in range(2):
        seen += [ends(w, "slow")[1]]
        w.pass_ms(11_000)
    assert 0 < seen[0] < seen[1] < 50, "a piece for each window, as in Kafka"
    assert replicas(w, "slow")[1] == [3]
    configure(w, BROKER, "3", leader_replication_throttled_rate="100000000")
    w.pass_ms(1000)
    assert (ends(w, "slow")[1], replicas(w, "slow")[1]) == (50, [1, 3])


def test_partitions_move_to_a_node_that_was_added_and_from_one_that_was_removed(w: World) -> None:
    lives = w.broker.node_lives
    assert produce(w, 3, topic="two").error_code == 0
    added = drive(lives.add())
    until_done(w, added)
    assert move(w, [4, 3]) == "NONE"
    w.pass_ms(1)
    assert (listed(w), replicas(w)[0], sorted(replicas(w)[1])) == ({}, [4, 3], [3, 4])
    until_done(w, drive(lives.remove(lives.find(4))))
    assert replicas(w)[0] == [4, 3]
    assert move(w, [3, 1]) == "NONE"
    w.pass_ms(1)
    assert (listed(w), replicas(w)[:3]) == ({}, ([3, 1], [1, 3], 3))
    assert records(w, 3, topic="two") == [b"v"]


def until_done(w: World, later: Later[Any]) -> None:
    for _ in range(100):
        w.broker.turn.settle()
        if later.done:
            later.get()
            return
        w.pass_ms(1)
    raise AssertionError("not within 100 ms")


def test_replicas_that_left_stay_eligible_as_in_kafka(w: World) -> None:
    """So the one that is left cannot lead after a crash, until somebody asks for an unclean election."""
    create(w, "safe", [1, 2], min_insync_replicas="2")
    assert move(w, [3], "safe") == "NONE"
    w.pass_ms(1000)
    assert (replicas(w, "safe")[:3], state(w, 0, "safe")[3]) == (([3], [3], 3), [1, 2])
    happens(w, "kill", 3)
    w.pass_ms(60_000)
    happens(w, "begin", 3)
    assert (state(w, 0, "safe")[0], state(w, 0, "safe")[2:4]) == (-1, ([], [1, 2]))
    e = m.ElectLeadersRequest
    wanted = [e.TopicPartitions(topic="safe", partitions=[0])]
    elected = w.ask("ElectLeaders", 2, e(election_type=1, topic_partitions=wanted, timeout_ms=1000))
    assert elected.replica_election_results[0].partition_result[0].error_code == 0
    assert (state(w, 0, "safe")[0], state(w, 0, "safe")[2:4]) == (3, ([3], []))


def test_the_replicas_of_the_first_partition_bound_how_many_must_be_in_sync(w: World) -> None:
    """As in Kafka: the other partitions of the topic have eligible replicas by it."""
    for name in ("uneven", "even"):
        create(w, name, [1, 2], [1, 2], min_insync_replicas="2")
    assert move(w, [1], "uneven") == "NONE"
    w.pass_ms(1000)
    happens(w, "stop", 2)
    assert state(w, 1, "uneven")[2:4] == ([1], [])
    assert state(w, 1, "even")[2:4] == ([1], [2])
