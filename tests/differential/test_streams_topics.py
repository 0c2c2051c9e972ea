"""Streams groups, told the same stories by ottla and by Apache Kafka: topologies and the topics that they need."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import (
    SETTINGS,
    R,
    beat,
    describe,
    info,
    join,
    known,
    part,
    same_records,
    source,
    tasks,
)
from ..support.stories.topics import creatable, create

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


def _chains(t: str) -> dict[str, tuple[Any, ...]]:
    """Topologies whose repartition topics follow from each other, and topics that do not fit."""
    return {
        "a-chain": (
            part("0", f"{t}three", sinks=[f"{t}c1"]),
            part("1", repartitions=[info(f"{t}c1")], sinks=[f"{t}c2"]),
            part("2", f"{t}two", repartitions=[info(f"{t}c2")], sinks=[f"{t}c3"]),
            part("3", repartitions=[info(f"{t}c3")], changelogs=[info(f"{t}c-log")]),
        ),
        "a-chain-backwards": (
            part("0", repartitions=[info(f"{t}c1")], changelogs=[info(f"{t}c-log")]),
            part("1", repartitions=[info(f"{t}c2")], sinks=[f"{t}c1"]),
            part("2", f"{t}two", repartitions=[info(f"{t}c3")], sinks=[f"{t}c2"]),
            part("3", f"{t}three", sinks=[f"{t}c3"]),
        ),
        "a-loop": (
            part("0", repartitions=[info(f"{t}l1")], sinks=[f"{t}l2"]),
            part("1", repartitions=[info(f"{t}l2")], sinks=[f"{t}l1"]),
            part("2", f"{t}two"),
        ),
        "a-loop-with-a-start": (
            part("0", f"{t}three", repartitions=[info(f"{t}l1")], sinks=[f"{t}l2"]),
            part("1", repartitions=[info(f"{t}l2")], sinks=[f"{t}l1"]),
        ),
        "never-written": (part("0", f"{t}two", repartitions=[info(f"{t}n1")]),),
        "never-written-but-fixed": (
            part("0", f"{t}two", repartitions=[info(f"{t}n1", 4)], changelogs=[info(f"{t}n-log")]),
        ),
        "existing-repartition-topic": (
            part("0", f"{t}two", sinks=[f"{t}three"]),
            part("1", repartitions=[info(f"{t}three", 3)]),
        ),
        "existing-topic-is-too-large": (
            part("0", f"{t}two", sinks=[f"{t}three"]),
            part("1", repartitions=[info(f"{t}three")]),
        ),
        "existing-changelog-is-too-small": (part("0", f"{t}three", changelogs=[info(f"{t}two")]),),
        "many-internal-topics": (
            part("0", f"{t}two", changelogs=[info(f"{t}many-{number}", segment_bytes="100000") for number in range(7)]),
        ),
        "no-partitions": (part("0", f"{t}two", repartitions=[info(f"{t}neg", -1)]),),
        "two-stores-of-a-name": (part("0", f"{t}two", changelogs=[info(f"{t}same"), info(f"{t}same")]),),
        "nothing": (),
    }


def topologies(t: str) -> dict[str, tuple[Any, ...]]:
    """Topologies over topics of two and of three partitions, whose names begin with `t`."""
    return {
        "copartitioned": (part("0", f"{t}two", f"{t}two-b", together=[([0, 1], [])]),),
        "not-copartitioned": (part("0", f"{t}two", f"{t}three", f"{t}two-b", together=[([0, 1, 2], [])]),),
        "copartitioned-with-flexible": (
            part("0", f"{t}two", sinks=[f"{t}f1"]),
            part("1", f"{t}three", repartitions=[info(f"{t}f1")], together=[([0], [0])]),
        ),
        "copartitioned-with-fixed": (
            part("0", f"{t}two", sinks=[f"{t}x4"]),
            part("1", f"{t}three", repartitions=[info(f"{t}x4", 4)], together=[([0], [0])]),
        ),
        "two-flexible": (
            part("0", f"{t}two", sinks=[f"{t}f1"]),
            part("1", f"{t}three", sinks=[f"{t}f2"]),
            part(
                "2",
                repartitions=[info(f"{t}f1"), info(f"{t}f2")],
                together=[([], [0, 1])],
                changelogs=[info(f"{t}log")],
            ),
        ),
        "flexible-and-fixed": (
            part("0", f"{t}two", sinks=[f"{t}f1", f"{t}x5"]),
            part("2", repartitions=[info(f"{t}f1"), info(f"{t}x5", 5)], together=[([], [0, 1])]),
        ),
        "two-fixed": (
            part("0", f"{t}two", sinks=[f"{t}x4", f"{t}x5"]),
            part("2", repartitions=[info(f"{t}x4", 4), info(f"{t}x5", 5)], together=[([], [0, 1])]),
        ),
        "fixed-elsewhere": (
            part("0", f"{t}two", sinks=[f"{t}f1", f"{t}x4", f"{t}x5"]),
            part("1", repartitions=[info(f"{t}f1")], together=[([], [0])]),
            part("2", repartitions=[info(f"{t}x4", 4)]),
            part("3", repartitions=[info(f"{t}x5", 5)]),
        ),
        **_chains(t),
    }


@pytest.mark.parametrize("case", topologies(""))
def test_topologies(pair: Pair, case: str) -> None:
    """A member is told what is wrong with its topology, or which of its internal topics do not exist yet."""
    group = f"tt-{case}"
    names = {f"{group}-two": 2, f"{group}-two-b": 2, f"{group}-three": 3}
    create(pair, *(creatable(name, count) for name, count in names.items()))
    known(pair, *names)
    join(pair, group, *topologies(f"{group}-")[case])
    describe(pair, group)
    same_records(pair, group)


def test_internal_topics_that_cannot_be_created(pair: Pair) -> None:
    source(pair, "tf", 2)
    logs = [info("tf-a", factor=3), info("tf-b", nonsense="1"), info("tf-c", factor=7), info("tf-d", factor=9)]
    join(pair, "tf", part("0", "tf", changelogs=logs))
    request = R(group_id="tf", member_id="m1", member_epoch=2)

    def tells(reply: Any) -> bool:
        return bool(reply.status) and "and 1 more" in reply.status[0].status_detail

    pair.until("StreamsGroupHeartbeat", 1, request, tells)


def test_topics_that_go_and_come_back(pair: Pair) -> None:
    for name in ("tg", "tg-b"):
        source(pair, name, 2)
    join(pair, "tg", part("0", "tg", "tg-b"))
    pair.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["tg-b"], timeout_ms=10_000))
    request = R(group_id="tg", member_id="m1", member_epoch=2)
    pair.until("StreamsGroupHeartbeat", 1, request, lambda reply: bool(reply.status) or reply.error_code != 0)
    beat(pair, "tg", 3, has=tasks(s0=[0, 1]))
    beat(pair, "tg", 3, has=[])
    describe(pair, "tg")
    source(pair, "tg-b", 3)
    for epoch in (3, 4, 5):
        beat(pair, "tg", epoch)
    describe(pair, "tg")
    same_records(pair, "tg")


def test_partitions_are_added(pair: Pair) -> None:
    source(pair, "tp", 2)
    join(pair, "tp", part("0", "tp"))
    r = m.CreatePartitionsRequest
    pair.ask(
        "CreatePartitions",
        3,
        r(topics=[r.CreatePartitionsTopic(name="tp", count=4, assignments=None)], timeout_ms=10_000),
    )
    request = R(group_id="tp", member_id="m1", member_epoch=2)
    pair.until("StreamsGroupHeartbeat", 1, request, lambda reply: bool(reply.active_tasks))
    beat(pair, "tp", 3, has=tasks(s0=[0, 1, 2, 3]))
    describe(pair, "tp")
    same_records(pair, "tp")


def test_the_first_internal_topic_that_does_not_fit_is_named(pair: Pair) -> None:
    """Of names in one bucket of Java's hash table, that of the repartition topic was put there before."""
    changelog, repartition = "gr-collide-2-changelog", "gr-collide-2-repartition"
    for name, count in (("gr-collide", 3), (changelog, 2), (repartition, 2)):
        source(pair, name, count)
    reading = part("0", "gr-collide", sinks=[repartition])
    joining = part("1", "gr-collide", repartitions=[info(repartition)], changelogs=[info(changelog)])
    reply = join(pair, "collide", reading, joining)
    assert reply.status[0].status_detail.startswith(f"Existing topic {repartition} has")
