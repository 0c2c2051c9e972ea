"""Rebalances of real clients with exact assignments, where clients agree on them; coordinators that move under
traffic.
"""

from __future__ import annotations

import subprocess
import threading
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ottla.testing import Broker

from ..oracle.kafka import program
from ..support.librdkafka import PROTOCOLS, fill, fresh, member, poll_until

pytestmark = pytest.mark.slow


def topics(broker: Broker, *counts: int) -> list[str]:
    """Topics with names in the order of their letters."""
    prefix = uuid.uuid4().hex[:8]
    names = [f"{prefix}-{letter}" for letter in "ABC"[: len(counts)]]
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(n, c, 1) for n, c in zip(names, counts, strict=True)]).values():
        future.result()
    return names


def settled(broker: Broker, names: list[str], count: int, sizes: list[int], **more: Any) -> list[Consumer]:
    """A group of `count` members, polled until their shares have these sizes."""
    group = f"s-{uuid.uuid4().hex[:8]}"
    members = [member(broker, group, "classic", **more) for _ in range(count)]
    for one in members:
        one.subscribe(names)
    poll_until(lambda: sorted((len(m.assignment()) for m in members), reverse=True) == sizes, *members)
    return members


def shares(members: list[Consumer]) -> list[list[tuple[str, int]]]:
    """Who has what, the greatest share first, topics by their letters."""
    found = [sorted((p.topic[-1], p.partition) for p in m.assignment()) for m in members]
    return sorted(found, key=lambda share: (-len(share), share))


def close(members: list[Consumer]) -> None:
    for one in members:
        one.close()


def test_range_gives_each_topic_out_in_ranges_and_the_first_member_more(broker: Broker) -> None:
    members = settled(broker, topics(broker, 10, 10), 3, [8, 6, 6], partition_assignment_strategy="range")
    assert shares(members) == [
        [(t, p) for t in "AB" for p in (0, 1, 2, 3)],
        [(t, p) for t in "AB" for p in (4, 5, 6)],
        [(t, p) for t in "AB" for p in (7, 8, 9)],
    ]
    close(members)


def test_round_robin_deals_all_topics_out_in_turn(broker: Broker) -> None:
    members = settled(broker, topics(broker, 5, 5), 3, [4, 3, 3], partition_assignment_strategy="roundrobin")
    assert shares(members) == [
        [("A", 0), ("A", 3), ("B", 1), ("B", 4)],
        [("A", 1), ("A", 4), ("B", 2)],
        [("A", 2), ("B", 0), ("B", 3)],
    ]
    close(members)


def test_sticky_moves_only_what_the_one_that_left_had(broker: Broker) -> None:
    """The text's lists are wrong, its sense is right: who stays keeps all of its own."""
    members = settled(broker, topics(broker, 5, 4), 3, [3, 3, 3], partition_assignment_strategy="cooperative-sticky")
    before = [{(p.topic, p.partition) for p in m.assignment()} for m in members]
    members.pop(1).close()
    poll_until(lambda: sum(len(m.assignment()) for m in members) == 9, *members)
    after = [{(p.topic, p.partition) for p in m.assignment()} for m in members]
    assert before[0] <= after[0]
    assert before[2] <= after[1]
    assert sorted(map(len, after)) == [4, 5]
    close(members)


@pytest.mark.oracle
def test_kafkas_own_consumers_move_pause_and_commit_as_the_examples_say(tmp_path: Path) -> None:
    """Eager stickiness, unequal subscriptions, two members becoming three without a pause, commitAsync. The program
    prints the pauses.
    """
    command = program("tools", "GroupScenarios", tmp_path)
    with Broker() as broker:
        done = subprocess.run(
            [*command, broker.bootstrap_servers], capture_output=True, text=True, timeout=300, check=False
        )
    print(done.stdout)
    assert done.stdout.split()[-1:] == ["ok"], (done.stdout + done.stderr)[-4000:]


def read(one: Consumer, count: int) -> list[int]:
    seen: list[int] = []
    poll_until(lambda: len(seen) >= count, one, seen=seen)
    return seen


COMMITS: list[tuple[str, dict[str, Any], Callable[[Consumer], Any], int]] = [
    ("a crash between processing and commit: all is read again", {}, lambda c: None, 0),
    ("a crash after commitSync: nothing is", {}, lambda c: c.commit(asynchronous=False), 10),
    (
        "auto-commit had no time yet: all is read again",
        {"enable_auto_commit": True, "auto_commit_interval_ms": 600_000},
        lambda c: None,
        0,
    ),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("what", "more", "commit", "from_offset"), COMMITS, ids=[c[0] for c in COMMITS])
def test_commit_strategies(
    broker: Broker, protocol: str, what: str, more: dict[str, Any], commit: Callable[[Consumer], Any], from_offset: int
) -> None:
    topic, group = fresh(broker, 1), f"c-{uuid.uuid4().hex[:8]}"
    fill(broker, topic, 10, partitions=1)
    crashing = member(broker, group, protocol, group_instance_id="me", **more)
    crashing.subscribe([topic])
    assert sorted(read(crashing, 10)) == list(range(10))
    commit(crashing)
    (at,) = crashing.committed([TopicPartition(topic, 0)])
    assert max(at.offset, 0) == from_offset
    fill(broker, topic, 10, partitions=1)
    again = Consumer({**_base(broker, group), "enable.auto.commit": False})
    again.assign([TopicPartition(topic, 0)])
    first = again.poll(20)
    assert first is not None
    assert first.offset() == from_offset, what
    again.close()
    crashing.close()


def _base(broker: Broker, group: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "log_level": 2,
    }


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_auto_commit_at_the_end_keeps_what_was_read(broker: Broker, protocol: str) -> None:
    topic, group = fresh(broker, 1), f"a-{uuid.uuid4().hex[:8]}"
    fill(broker, topic, 10, partitions=1)
    one = member(broker, group, protocol, enable_auto_commit=True)
    one.subscribe([topic])
    read(one, 10)
    one.close()
    again = Consumer(_base(broker, group))
    (at,) = again.committed([TopicPartition(topic, 0)])
    assert at.offset == 10
    again.close()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_coordinators_that_move_under_traffic_lose_nothing(protocol: str) -> None:
    """The shards of all groups unload and load again and again while two members read, commit and are rebalanced."""
    with Broker() as broker:
        topic, group = fresh(broker), "moving"
        stop = threading.Event()
        moves = 0

        def move() -> None:
            nonlocal moves
            body, headers = b'{"topic": "__consumer_offsets"}', {"Content-Type": "application/json"}
            while not stop.wait(0.15):
                urllib.request.urlopen(
                    urllib.request.Request(f"{broker.lab_url}/v1/reload", body, headers), timeout=60
                ).close()
                moves += 1

        members = [member(broker, group, protocol) for _ in range(2)]
        for one in members:
            one.subscribe([topic])
        poll_until(lambda: all(len(one.assignment()) == 2 for one in members), *members)
        mover = threading.Thread(target=move)
        mover.start()
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
        for n in range(2000):
            producer.produce(topic, b"%d" % n, partition=n % 4)
        producer.flush(60)
        seen: list[int] = []
        poll_until(lambda: set(seen) == set(range(2000)) and moves > 5, *members, seen=seen)
        stop.set()
        mover.join()
        poll_until(lambda: all(len(one.assignment()) == 2 for one in members), *members)
        for one in members:
            one.commit(asynchronous=False)
        found = members[0].committed([TopicPartition(topic, n) for n in range(4)])
        assert [p.offset for p in found] == [500] * 4
        close(members)
