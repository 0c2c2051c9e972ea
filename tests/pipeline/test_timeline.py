"""Who owned what, record by record: no Spark, no Java."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from ottla.pipeline.jobs.rebalances import Steps
from ottla.pipeline.jobs.timeline import Change, Rebalance, Timeline
from ottla.protocol import codec
from ottla.protocol import messages as m
from pyspark.sql.streaming.tws_tester import TwsTester

A, B = "member-a", "member-b"
TOPIC = "00" * 15 + "07"


def metadata(epoch: int) -> tuple[str, Any, Any]:
    return "ConsumerGroupMetadata", {"group_id": "g"}, {"epoch": epoch}


def member(name: str) -> tuple[str, Any, Any]:
    return "ConsumerGroupMemberMetadata", {"group_id": "g", "member_id": name}, {"client_id": f"client of {name}"}


def target(epoch: int) -> tuple[str, Any, Any]:
    return "ConsumerGroupTargetAssignmentMetadata", {"group_id": "g"}, {"assignment_epoch": epoch}


def current(
    name: str, epoch: int, *partitions: int, pending: tuple[int, ...] = (), state: int = 0
) -> tuple[str, Any, Any]:
    value = {
        "member_epoch": epoch,
        "state": state,
        "assigned_partitions": [{"topic_id": TOPIC, "partitions": list(partitions)}],
    }
    value["partitions_pending_revocation"] = [{"topic_id": TOPIC, "partitions": list(pending)}]
    return "ConsumerGroupCurrentMemberAssignment", {"group_id": "g", "member_id": name}, value


def gone(name: str) -> list[tuple[str, Any, Any]]:
    key = {"group_id": "g", "member_id": name}
    return [("ConsumerGroupCurrentMemberAssignment", key, None), ("ConsumerGroupMemberMetadata", key, None)]


FIRST = [member(A), metadata(2), target(2), current(A, 2, 0, 1)]


def fed(timeline: Timeline, *records: tuple[str, Any, Any], at: int) -> list[Any]:
    return [step for record in records for step in timeline.feed(*record, at)]


def test_a_first_member_gets_everything() -> None:
    steps = fed(Timeline(), *FIRST, at=100)
    assert steps == [
        Change(100, 2, TOPIC, 0, A, f"client of {A}"),
        Change(100, 2, TOPIC, 1, A, f"client of {A}"),
        Rebalance(2, 100, 100, 1, 2, 0),
    ]


def test_what_happens_in_one_millisecond_is_told_step_by_step() -> None:
    steps = fed(Timeline(), *FIRST, *gone(A), at=100)
    owners = [(step.time_ms, step.partition, step.owner) for step in steps if isinstance(step, Change)]
    assert owners == [(100, 0, A), (100, 1, A), (100, 0, None), (100, 1, None)]
    assert Rebalance(2, 100, 100, 1, 2, 0) in steps


def test_a_partition_belongs_to_its_owner_until_it_is_given_back() -> None:
    timeline = Timeline()
    fed(timeline, *FIRST, at=100)
    assert (
        fed(
            timeline,
            member(B),
            metadata(3),
            target(3),
            current(A, 2, 0, pending=(1,), state=1),
            current(B, 3, state=2),
            at=200,
        )
        == []
    )
    assert fed(timeline, current(A, 3, 0), at=250) == [Change(250, 3, TOPIC, 1, None, None)]
    assert fed(timeline, current(B, 3, 1), at=300) == [
        Change(300, 3, TOPIC, 1, B, f"client of {B}"),
        Rebalance(3, 200, 300, 2, 2, 1),
    ]


def test_what_a_member_leaves_behind_moves() -> None:
    timeline = Timeline()
    fed(timeline, *FIRST, member(B), metadata(3), target(3), current(A, 3, 0), current(B, 3, 1), at=100)
    steps = fed(timeline, *gone(A), metadata(4), target(4), current(B, 4, 0, 1), at=200)
    assert steps == [
        Change(200, 3, TOPIC, 0, None, None),
        Change(200, 4, TOPIC, 0, B, f"client of {B}"),
        Rebalance(4, 200, 200, 1, 2, 1),
    ]


def test_a_group_that_is_deleted_owns_nothing() -> None:
    timeline = Timeline()
    fed(timeline, *FIRST, at=100)
    assert fed(timeline, ("ConsumerGroupMetadata", {"group_id": "g"}, None), at=300) == [
        Change(300, 2, TOPIC, 0, None, None),
        Change(300, 2, TOPIC, 1, None, None),
    ]


def test_a_streams_group_tells_its_tasks() -> None:
    """A member that has its target is in state 1, and one that must give up tasks in state 2."""

    def held(name: str, epoch: int, state: int, *tasks: int, pending: tuple[int, ...] = ()) -> tuple[str, Any, Any]:
        value: dict[str, Any] = {"member_epoch": epoch, "state": state}
        value["active_tasks"] = [{"subtopology_id": "0", "partitions": list(tasks)}]
        value["active_tasks_pending_revocation"] = [{"subtopology_id": "0", "partitions": list(pending)}]
        return "StreamsGroupCurrentMemberAssignment", {"group_id": "g", "member_id": name}, value

    def begins(epoch: int, name: str) -> list[tuple[str, Any, Any]]:
        of_consumers = [member(name), metadata(epoch), target(epoch)]
        return [(type_.replace("Consumer", "Streams"), key, value) for type_, key, value in of_consumers]

    timeline = Timeline()
    steps = fed(timeline, *begins(2, A), held(A, 2, 1, 0, 1), at=100)
    assert (timeline.kind, steps[-1]) == ("streams", Rebalance(2, 100, 100, 1, 2, 0))
    assert fed(timeline, *begins(3, B), held(A, 2, 2, 0, pending=(1,)), held(B, 3, 3), at=200) == []
    assert fed(timeline, held(A, 3, 1, 0), at=250) == [Change(250, 3, "0", 1, None, None)]
    assert fed(timeline, held(B, 3, 1, 1), at=300) == [
        Change(300, 3, "0", 1, B, f"client of {B}"),
        Rebalance(3, 200, 300, 2, 2, 1),
    ]


def assigned(*partitions: int) -> str:
    a = m.ConsumerProtocolAssignment
    message = a(assigned_partitions=[a.TopicPartition(topic="t", partitions=list(partitions))])
    return codec.build("ConsumerProtocolAssignment", 1, message, bytearray(b"\0\1")).hex()


def generation(number: int, since: int, **members: str) -> tuple[str, Any, Any]:
    rows = [{"member_id": name, "client_id": "c", "assignment": data} for name, data in members.items()]
    return "GroupMetadata", {"group": "g"}, {"generation": number, "current_state_timestamp": since, "members": rows}


def test_a_classic_group_tells_whole_generations() -> None:
    timeline = Timeline()
    assert fed(timeline, generation(1, 90, a=assigned(0, 1)), at=100) == [
        Change(100, 1, "t", 0, "a", "c"),
        Change(100, 1, "t", 1, "a", "c"),
        Rebalance(1, 90, 100, 1, 2, 0),
    ]
    assert fed(timeline, generation(2, 190, a=assigned(0), b=assigned(1)), at=200) == [
        Change(200, 2, "t", 1, "b", "c"),
        Rebalance(2, 190, 200, 2, 2, 1),
    ]
    assert fed(timeline, generation(2, 190, a=assigned(0), b=assigned(1)), at=300) == [], (
        "the same generation, written again"
    )


@pytest.mark.parametrize("bytes_", ["", "00", "0001ffffffff", "0000000000017fff"])
def test_an_assignment_that_is_not_the_consumers_protocol_owns_nothing(bytes_: str) -> None:
    steps = fed(Timeline(), generation(1, -1, a=bytes_), at=100)
    assert steps == [Rebalance(1, 100, 100, 1, 0, 0)]


def test_a_timeline_is_kept_between_the_parts_of_a_stream() -> None:
    whole, parts = Timeline(), Timeline()
    records = [
        *FIRST,
        member(B),
        metadata(3),
        target(3),
        current(A, 3, 0),
        current(B, 3, 1),
        *gone(A),
        metadata(4),
        target(4),
        current(B, 4, 0, 1),
    ]
    expected, found = [], []
    for n, record in enumerate(records):
        expected += whole.feed(*record, n)
        found += parts.feed(*record, n)
        parts = Timeline.loads(parts.dumps())
    assert found == expected


def test_the_processor_of_streams_keeps_each_groups_state() -> None:
    """Out of order within a part of the stream, and in two parts."""
    import json

    def rows(records: list[tuple[str, Any, Any]], since: int) -> pd.DataFrame:
        made = [
            {"group": "g", "partition": 0, "offset": since + n, "timeMs": 1000 * (since + n), "type": type_,
             "key": json.dumps(key), "value": None if value is None else json.dumps(value)}
            for n, (type_, key, value) in enumerate(records)
        ]  # fmt: skip
        return pd.DataFrame(made[::-1])

    tester = TwsTester(Steps())
    first: Any = tester.testInPandas("g", rows(FIRST, 0))
    assert list(first["step"]) == ["owner", "owner", "rebalance"]
    second: Any = tester.testInPandas("g", rows([*gone(A), metadata(3)], 4))
    assert list(second["step"]) == ["owner", "owner", "rebalance"]
    assert list(second["movedPartitions"])[-1] == 0
    assert [None if pd.isna(one) else one for one in second["owner"]] == [None, None, None]
