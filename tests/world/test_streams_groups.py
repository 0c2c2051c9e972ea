"""Streams groups in a whole broker: records of Kafka, timers, large assignments, failed writes."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from ottla.coordinator.group import target_assignment
from ottla.coordinator.group.streams import configured
from ottla.coordinator.group.streams.group import StreamsGroup
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.group_world import by_kafka, own, policy, shard, world, written
from ..support.stories.streams import R, info, part, tasks, topology
from ..support.world import Answer, World


def beat(w: World, member: str, epoch: int, *parts: Any, group: str = "app", **more: Any) -> Answer:
    request = R(group_id=group, member_id=member, member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms, request.process_id = 10_000, f"p-{member}"
        request.topology = topology(*(parts or (part("0", "t"),)))
        request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
    for name, value in more.items():
        setattr(request, name, value)
    return w.send("StreamsGroupHeartbeat", 1, request)


def owned(**of: list[int]) -> dict[str, Any]:
    return {"active_tasks": tasks(**of), "standby_tasks": [], "warmup_tasks": []}


def given(answer: Answer) -> dict[str, list[int]] | None:
    """The active tasks of a reply; None where it has none."""
    found = answer.reply.active_tasks
    return None if found is None else {one.subtopology_id: one.partitions for one in found}


def group_of(w: World) -> StreamsGroup:
    found = shard(w, "app").groups["app"]
    assert isinstance(found, StreamsGroup)
    return found


def described(w: World) -> Any:
    return w.ask("StreamsGroupDescribe", 1, m.StreamsGroupDescribeRequest(group_ids=["app"])).groups[0]


def records_of_kafka() -> list[Any]:
    """A group with a member that runs a task and must give up another one."""
    v, c = m.StreamsGroupTopologyValue, m.StreamsGroupCurrentMemberAssignmentValue
    target = m.StreamsGroupTargetAssignmentMemberValue
    metadata = m.StreamsGroupMemberMetadataValue(client_id="c", process_id="p", rebalance_timeout_ms=5000)
    current = c(member_epoch=2, previous_member_epoch=1, state=2)
    current.active_tasks = [c.TaskIds(subtopology_id="0", partitions=[0], assignment_epochs=[2])]
    current.active_tasks_pending_revocation = [c.TaskIds(subtopology_id="0", partitions=[1])]
    return [
        (m.StreamsGroupMemberMetadataKey(group_id="app", member_id="m1"), metadata),
        (
            m.StreamsGroupTopologyKey(group_id="app"),
            v(epoch=1, subtopologies=[v.Subtopology(subtopology_id="0", source_topics=["t"])]),
        ),
        (m.StreamsGroupMetadataKey(group_id="app"), m.StreamsGroupMetadataValue(epoch=3, validated_topology_epoch=1)),
        (
            m.StreamsGroupTargetAssignmentMemberKey(group_id="app", member_id="m1"),
            target(active_tasks=[target.TaskIds(subtopology_id="0", partitions=[0])]),
        ),
        (
            m.StreamsGroupTargetAssignmentMetadataKey(group_id="app"),
            m.StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=3),
        ),
        (m.StreamsGroupCurrentMemberAssignmentKey(group_id="app", member_id="m1"), current),
    ]


def test_ottla_goes_on_with_a_group_that_kafka_wrote() -> None:
    w = world(2)
    by_kafka(w, *records_of_kafka(), group="app")
    w.broker.stop()
    again = World(w.files, offsets_topic_num_partitions="3")
    again.pass_ms(100)
    one = described(again)
    assert (one.group_state, one.group_epoch, one.assignment_epoch) == ("Reconciling", 3, 3)
    member = group_of(again).members["m1"]
    assert (member.state, member.epoch, dict(member.revoking.active)) == (2, 2, {("0", 1): 2})
    released = beat(again, "m1", 2, **owned(s0=[0]))
    assert (released.reply.member_epoch, given(released)) == (4, None), "the topics' hash is another one"
    assert given(beat(again, "m1", 4)) == {"0": [0, 1]}
    for keys in (records_of_kafka()[5], records_of_kafka()[3], records_of_kafka()[0]):
        by_kafka(again, (keys[0], None), group="app")
    assert described(again).group_state == "Empty"
    by_kafka(again, (records_of_kafka()[2][0], None), (records_of_kafka()[1][0], None), group="app")
    assert described(again).error_code == Errors.GROUP_ID_NOT_FOUND


def test_a_member_that_is_silent_or_keeps_its_tasks_is_removed() -> None:
    w = world(4)
    assert given(beat(w, "m1", 0)) == {"0": [0, 1, 2, 3]}
    beat(w, "m2", 0)
    assert given(beat(w, "m1", 2, **owned(s0=[0, 1, 2, 3]))) == {"0": [0, 1]}
    w.pass_ms(9_999)
    assert set(group_of(w).members) == {"m1", "m2"}
    w.pass_ms(2)
    assert set(group_of(w).members) == {"m2"}, "the time to give up tasks is over"
    w.pass_ms(45_000)
    assert group_of(w).is_empty, "the session is over"
    assert written(w, "app")[-1][0] == "StreamsGroupTargetAssignmentMetadata"


def test_a_task_is_given_when_it_is_free() -> None:
    w = world(2)
    beat(w, "m1", 0)
    beat(w, "m2", 0)
    assert given(beat(w, "m1", 2, **owned(s0=[0, 1]))) == {"0": [0]}
    assert given(beat(w, "m2", 3)) is None, "the other process still runs it"
    assert beat(w, "m1", 2, **owned(s0=[0])).reply.member_epoch == 3
    assert given(beat(w, "m2", 3)) == {"0": [1]}
    assert described(w).group_state == "Stable"


def test_members_gather_before_the_first_assignment() -> None:
    w = world(4, group_streams_initial_rebalance_delay_ms="3000")
    replies = [beat(w, member, epoch) for member in ("m1", "m2") for epoch in (0, 1)]
    assert [[status.status_code for status in one.reply.status] for one in replies] == [[5]] * 4
    w.pass_ms(3001)
    found = [given(beat(w, member, 1, **owned())) for member in ("m1", "m2")]
    assert found == [{"0": [0, 2]}, {"0": [1, 3]}]


def test_internal_topics_are_created_and_then_there_are_tasks() -> None:
    w = world(2)
    parts = part("0", "t", sinks=["r"]), part("1", repartitions=[info("r", 3)], changelogs=[info("log")])
    first = beat(w, "m1", 0, *parts).reply
    assert [(one.status_code, one.status_detail) for one in first.status] == [
        (3, "Internal topics are missing: r, log")
    ]
    w.pass_ms(100)
    assert given(beat(w, "m1", 2)) == {"0": [0, 1], "1": [0, 1, 2]}


@pytest.mark.parametrize("offload", ["true", "false"])
def test_a_large_assignment_is_computed_between_other_requests(monkeypatch: pytest.MonkeyPatch, offload: str) -> None:
    """It is for the epoch that the group had at its first step."""
    monkeypatch.setattr(target_assignment, "LARGE", 3)
    w = world(4, group_streams_assignor_offload_enable=offload)
    first = beat(w, "m1", 0)
    if offload == "true":
        assert (given(first), first.reply.member_epoch) == ({}, 1)
        beat(w, "m1", 1)
        w.pass_ms(10)
        first = beat(w, "m1", 1)
    assert (given(first), first.reply.member_epoch) == ({"0": [0, 1, 2, 3]}, 2)


def test_a_topology_has_no_more_tasks_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configured, "TASKS_MAX", 7)
    w = world(4)
    assert beat(w, "m1", 0, part("0", "t"), part("1", "t")).reply.error_code == Errors.STREAMS_INVALID_TOPOLOGY
    assert beat(w, "m1", 0).reply.error_code == 0


def test_a_heartbeat_that_is_not_written_leaves_nothing() -> None:
    w = world(2)
    beat(w, "m1", 0)
    policy(w, "held")
    waiting = beat(w, "m2", 0)
    assert not waiting.done
    assert [one.member_id for one in described(w).members] == ["m1"], "what is read is committed"
    before = len(written(w, "app"))
    beat(w, "m1", 7)
    beat(w, "m1", 2, task_offsets=[R.TaskOffset(subtopology_id="0", partition=0, offset=1)] * 2)
    assert (len(written(w, "app")), group_of(w).heard.offsets) == (before, {})


def test_what_a_member_says_counts_although_its_heartbeat_fails_and_what_a_stranger_says_does_not() -> None:
    w = world(2)
    absent = part("0", "absent")
    said: dict[str, Any] = {
        "task_offsets": [R.TaskOffset(subtopology_id="0", partition=0, offset=1)],
        "user_endpoint": R.Endpoint(host="h", port=1),  # whose partitions are due and not known
    }
    beat(w, "m1", 0, absent)
    for member, epoch in (("m1", 2), ("m2", 0)):
        assert beat(w, member, epoch, absent, **said).reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    heard = group_of(w).heard
    assert (list(heard.offsets), heard.endpoint_epoch) == (["m1"], 2)


def test_the_first_that_asks_for_the_end_is_named_although_it_is_no_member() -> None:
    w = world(2)
    beat(w, "m1", 0)
    assert beat(w, "stranger", -1, shutdown_application=True).reply.error_code == Errors.UNKNOWN_MEMBER_ID
    (status,) = beat(w, "m1", 2, shutdown_application=True).reply.status
    assert "member stranger encountered" in status.status_detail


def test_the_application_is_told_to_stop_until_its_last_member_has_left() -> None:
    w = world(2)
    beat(w, "m1", 0)
    assert [one.status_code for one in beat(w, "m1", 2, shutdown_application=True).reply.status] == [4]
    assert [one.status_code for one in beat(w, "m2", 0).reply.status] == [4]
    for member in ("m1", "m2"):
        beat(w, member, -1)
    assert beat(w, "m3", 0).reply.status == []


def test_members_are_not_hurried_while_source_topics_are_missing() -> None:
    """Kafka Streams gives up after two heartbeat intervals. In all other cases ottla asks them to come again soon."""
    w = world(2)
    missing = beat(w, "m1", 0, part("0", "absent")).reply
    assert [one.status_code for one in missing.status] == [1]
    assert missing.heartbeat_interval_ms == 5000
    assert beat(w, "m1", 0, group="other").reply.heartbeat_interval_ms == 100


def test_a_heartbeat_without_news_costs_the_same_in_a_large_group() -> None:
    def calls(count: int) -> int:
        w = world(count)
        for round_ in range(3):
            for number in range(count):
                member = f"m{number}"
                epoch = group_of(w).members[member].epoch if round_ else 0
                has: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
                if round_:
                    held = group_of(w).members[member].assigned.active
                    has["active_tasks"] = tasks(s0=sorted(number for _, number in held))
                assert beat(w, member, epoch, **has).reply.error_code == 0
        assert described(w).group_state == "Stable"
        found = 0

        def note(frame: Any, event: str, argument: Any) -> None:
            nonlocal found
            found += event == "call"

        epoch = group_of(w).epoch
        sys.setprofile(note)
        try:
            beat(w, "m0", epoch)
        finally:
            sys.setprofile(None)
        return found

    assert calls(4) == calls(40)


@pytest.mark.parametrize(("of_broker_ms", "own_ms"), [(46_000, None), (46_000, 50_000), (50_000, 46_000)])
def test_a_silent_member_is_thrown_out_after_the_groups_own_session_timeout(
    of_broker_ms: int, own_ms: int | None
) -> None:
    """The broker's, if the group has none."""
    w = world(2, group_streams_session_timeout_ms=str(of_broker_ms))
    if own_ms is not None:
        request = own("app", streams_session_timeout_ms=own_ms)
        assert w.ask("IncrementalAlterConfigs", 1, request).responses[0].error_code == 0
    epoch = beat(w, "m1", 0).reply.member_epoch
    timeout_ms = own_ms or of_broker_ms
    w.pass_ms(timeout_ms - 1)
    assert beat(w, "m1", epoch).reply.error_code == 0
    w.pass_ms(timeout_ms + 1)
    assert beat(w, "m1", epoch).reply.error_code in (Errors.UNKNOWN_MEMBER_ID, Errors.GROUP_ID_NOT_FOUND)
