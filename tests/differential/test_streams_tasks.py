"""Streams groups, told the same stories by ottla and by Apache Kafka: how tasks are assigned."""

from __future__ import annotations

from typing import Any

import pytest

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import SETTINGS, Application, R, configure, describe, info, part, same_records, source

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)

# partitions of two topics, standby replicas, and the processes of the members in the order in which they come
CASES = {
    "one-process": (5, 3, 0, "aaa"),
    "three-processes": (5, 3, 0, "abc"),
    "uneven-processes": (7, 4, 0, "aaba"),
    "a-standby": (4, 2, 1, "abc"),
    "a-standby-and-one-process": (3, 2, 1, "aa"),
    "two-standbys": (5, 3, 2, "abcd"),
    "two-standbys-and-two-processes": (4, 4, 2, "abab"),
    "more-members-than-tasks": (1, 1, 1, "abcd"),
}


def started(pair: Pair, group: str, first: int, second: int, standbys: int) -> Application:
    """An application with a subtopology that has state and one that has none; its internal topic exists."""
    for name, count in ((f"{group}-1", first), (f"{group}-2", second), (f"{group}-log", first)):
        source(pair, name, count)
    configure(pair, group, streams_num_standby_replicas=str(standbys))
    return Application(pair, group, part("0", f"{group}-1", changelogs=[info(f"{group}-log")]), part("1", f"{group}-2"))


@pytest.mark.parametrize("case", CASES)
def test_tasks_go_to_members_that_come_and_leave(pair: Pair, case: str) -> None:
    first, second, standbys, processes = CASES[case]
    app = started(pair, f"ta-{case}", first, second, standbys)
    members = [f"m{number}" for number in range(1, len(processes) + 1)]
    for member, process in zip(members, processes, strict=True):
        app.join(member, process_id=process)
    app.settle()
    describe(pair, app.group)
    app.leave("m1")
    app.settle()
    describe(pair, app.group)
    app.join("m9", process_id=processes[0])
    app.settle(2)
    app.leave("m2")
    app.settle()
    describe(pair, app.group)
    same_records(pair, app.group)


@pytest.mark.parametrize("kind", ["active_tasks", "standby_tasks", "warmup_tasks"])
def test_a_subtopology_that_is_named_twice_fails_a_member_that_moves(pair: Pair, kind: str) -> None:
    """Kafka makes a map of the tasks that a member has only while these are not those of its target."""
    app = started(pair, f"tw-{kind}", 3, 1, 0)
    app.join("m1", process_id="a")
    app.settle()
    none: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
    twice = none | {kind: [R.TaskIds(subtopology_id="0", partitions=[number]) for number in (0, 0)]}

    def ask() -> None:
        request = R(group_id=app.group, member_id="m1", member_epoch=app.epochs["m1"], **twice)
        pair.ask("StreamsGroupHeartbeat", 1, request)

    ask()
    app.join("m2", process_id="b")
    ask()
    describe(pair, app.group)
    app.settle()
    ask()
    same_records(pair, app.group)
    assert pair.errors("StreamsGroupHeartbeat") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def test_tasks_go_where_their_state_is(pair: Pair) -> None:
    app = started(pair, "to", 4, 1, 1)
    app.join("m1", process_id="a")
    app.join("m2", process_id="b")
    app.settle()
    for member, base in (("m1", 5), ("m2", 50)):
        offsets = [R.TaskOffset(subtopology_id="0", partition=number, offset=base + number) for number in range(4)]
        app.beat(member, task_offsets=offsets, task_end_offsets=offsets)
    app.join("m3", process_id="c")
    app.settle()
    describe(pair, "to")
    app.leave("m2")
    app.settle()
    describe(pair, "to")
    same_records(pair, "to")


def test_standbys_come_and_go_with_the_configuration(pair: Pair) -> None:
    app = started(pair, "tn", 3, 2, 0)
    for member, process in (("m1", "a"), ("m2", "b"), ("m3", "b")):
        app.join(member, process_id=process)
    app.settle()
    for count in ("2", "1", "0"):
        configure(pair, "tn", streams_num_standby_replicas=count)
        app.settle()
        describe(pair, "tn")
    same_records(pair, "tn")


ZONES = {"apart": "abab", "together": "aabb", "one-alone": "aaab", "some-untagged": "a-b-"}


@pytest.mark.parametrize("zones", ZONES)
def test_tags_of_racks_do_not_move_standby_tasks(pair: Pair, zones: str) -> None:
    """The assignor of Kafka 4.4 looks neither at the tags of clients nor at their racks: with tags that standby tasks
    should be spread over, tasks go where they go without. A member that misses a tag is told so.
    """

    def settled(group: str, tags: str) -> dict[str, Any]:
        app = started(pair, group, 4, 2, 2)
        if tags:
            configure(pair, group, streams_rack_aware_assignment_tags=tags)
        for number, zone in enumerate(ZONES[zones], 1):
            pairs = [] if zone == "-" else [R.KeyValue(key="zone", value=zone), R.KeyValue(key="cluster", value="x")]
            app.join(f"m{number}", process_id=f"p{number}", rack_id=f"rack-{zone}", client_tags=pairs)
        app.settle()
        app.leave("m1")
        app.settle()
        members = describe(pair, group).groups[0].members
        same_records(pair, group)
        return {one.member_id: one.assignment for one in members}

    plain = settled(f"tp-{zones}", "")
    assert plain == settled(f"tq-{zones}", "zone,cluster") == settled(f"tr-{zones}", "zone")
    assert any(one.standby_tasks for one in plain.values())
