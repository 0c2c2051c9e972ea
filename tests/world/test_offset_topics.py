"""Replies of the offset APIs to requests that name partitions that do not exist: those first, each topic once (Kafka's
`Builder.merge`).
"""

from __future__ import annotations

from typing import Any

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.world import World

UNKNOWN = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
ASKED = [("t", [0, 5]), ("gone", [1]), ("t", [-1]), ("empty", [])]
FOUND = [("t", [(5, UNKNOWN), (-1, UNKNOWN), (0, 0)]), ("gone", [(1, UNKNOWN)]), ("empty", [])]


def world() -> World:
    made = World(offsets_topic_num_partitions="1")
    made.pass_ms(1_000)
    r = m.CreateTopicsRequest
    made.ask(
        "CreateTopics",
        5,
        r(topics=[r.CreatableTopic(name="t", num_partitions=1, replication_factor=1)], timeout_ms=10_000),
    )
    made.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]))
    return made


def told(reply: Any) -> list[tuple[str, list[tuple[int, int]]]]:
    return [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in reply.topics]


def commit(w: World, asked: list[tuple[str, list[int]]] = ASKED) -> Any:
    r = m.OffsetCommitRequest
    topics = [
        r.OffsetCommitRequestTopic(
            name=name,
            partitions=[r.OffsetCommitRequestPartition(partition_index=i, committed_offset=1) for i in indexes],
        )
        for name, indexes in asked
    ]
    return w.ask("OffsetCommit", 8, r(group_id="g", generation_id_or_member_epoch=-1, topics=topics))


def test_offset_commit_answers_what_does_not_exist_first() -> None:
    assert told(commit(world())) == FOUND


def test_offset_commit_answers_a_topic_that_is_named_twice_once() -> None:
    asked = [("t", [0]), ("gone", [1]), ("t", [0])]
    assert told(commit(world(), asked)) == [("gone", [(1, UNKNOWN)]), ("t", [(0, 0), (0, 0)])]


def test_offset_delete_answers_what_does_not_exist_first() -> None:
    w = world()
    commit(w)
    r = m.OffsetDeleteRequest
    topics = [
        r.OffsetDeleteRequestTopic(
            name=name, partitions=[r.OffsetDeleteRequestPartition(partition_index=i) for i in indexes]
        )
        for name, indexes in ASKED
    ]
    assert told(w.ask("OffsetDelete", 0, r(group_id="g", topics=topics))) == FOUND
