"""What is done for all members of a large group is done in steps; the group changes as a whole or not at all."""

from __future__ import annotations

import pytest
from ottla.broker.group import coordinators
from ottla.broker.net.large_replies import STEP_ENCODED
from ottla.broker.shards.loader import log_entries
from ottla.coordinator.group import leave_group
from ottla.coordinator.group.classic import membership
from ottla.coordinator.group.classic.replies import STEP_MEMBERS
from ottla.coordinator.group.consumer import records as consumer_records
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.group.format import GroupFormat
from ottla.coordinator.group.leave_group import STEP_LEAVING
from ottla.coordinator.shard_runtime import STEP_PACKED
from ottla.protocol import messages as m
from ottla.protocol.encoded import Encoded
from ottla.protocol.errors import Errors

from ..support.event_counts import EventCounts
from ..support.failing_appends import fail_appends
from ..support.group_world import alive, beat, join, shard, sync, world
from ..support.step_work import longest_step
from ..support.world import Answer, World

pytestmark = pytest.mark.long

MEMBERS = STEP_ENCODED + 100


def joining(w: World, count: int) -> list[Answer]:
    return [join(w, version=7, group_instance_id=f"i{number}") for number in range(count)]


def stable(w: World, count: int) -> list[str]:
    """Makes a classic group of static members, each with an assignment of its own; returns their ids."""
    answers = joining(w, count)
    w.pass_ms(1000)
    ids = [one.reply.member_id for one in answers]
    assert {one.reply.generation_id for one in answers} == {1}
    sync(w, ids[0], 1, **{one: one.encode() for one in ids})
    w.pass_ms(10)
    assert described(w) == ("Stable", count)
    return ids


def leaving(*ids: tuple[str, str | None]) -> m.LeaveGroupRequest:
    r = m.LeaveGroupRequest
    return r(group_id="g", members=[r.MemberIdentity(member_id=one, group_instance_id=name) for one, name in ids])


def described(w: World) -> tuple[str, int]:
    """The state of the group, and how many members it has."""
    (group,) = w.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["g"])).groups
    return group.group_state, len(group.members)


def test_a_static_member_that_comes_back_leaves_no_assignment_of_its_old_id() -> None:
    w = world()
    stable(w, 2)
    group = shard(w).groups["g"]
    given = group.assignments[group.static_members["i1"]]
    for _ in range(3):
        join(w, version=7, group_instance_id="i1")
        w.pass_ms(10)
    assert described(w) == ("Stable", 2)
    assert set(group.assignments) == set(group.members)
    assert group.assignments[group.static_members["i1"]] == given


def test_a_round_ends_with_little_work_for_each_member(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coordinators, "STEP_NS", -1)
    w = world(group_max_size=str(MEMBERS))
    answers = joining(w, MEMBERS)
    assert longest_step(w, lambda: w.pass_ms(1000)) < 200 * MEMBERS
    assert {len(one.reply.members) for one in answers} == {0, MEMBERS}


def test_the_reply_to_the_leader_is_encoded_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world(group_max_size=str(MEMBERS))
    joining(w, MEMBERS)
    counts = EventCounts(w, monkeypatch, Encoded, "append", lambda array, element: 1)
    w.pass_ms(1000)
    assert counts.count == MEMBERS
    assert counts.most <= STEP_ENCODED


def test_the_record_is_encoded_in_steps_and_has_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    count = 2 * STEP_MEMBERS + 1
    answers = joining(w, count)
    w.pass_ms(1000)
    ids = [one.reply.member_id for one in answers]
    counts = EventCounts(w, monkeypatch, Encoded, "append", lambda array, element: 1)
    synced = sync(w, ids[0], 1, **{one: one.encode() for one in ids})
    late = sync(w, ids[1], 1)
    assert not synced.done
    host = w.broker.groups.host("g")
    expected = GroupFormat().encode(shard(w).groups["g"].record({one: one.encode() for one in ids}))
    w.pass_ms(10)
    assert (counts.count, counts.most) == (count, STEP_MEMBERS)
    assert [one.reply.assignment.decode() for one in (synced, late)] == ids[:2]
    *_, last = (entry.record for entry in log_entries(host.partition.open_log()))
    assert last is not None
    assert (last.key, last.value) == (expected.key, expected.value)
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    w.pass_ms(10)
    assert alive(w, ids[-1], 1) == 0
    assert sync(w, ids[-1], 1).reply.assignment.decode() == ids[-1]


def test_members_leave_in_steps_and_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    count = 2 * STEP_LEAVING + 1
    ids = stable(w, count)
    group = shard(w).groups["g"]
    counts = EventCounts(w, monkeypatch, membership, "_leave_one", lambda *arguments: 1)
    answer = w.send("LeaveGroup", 5, leaving(*((one, None) for one in ids[1:])))
    while not counts.count:
        w.schedule.take_next()()
    beats = w.send("Heartbeat", 4, m.HeartbeatRequest(group_id="g", generation_id=1, member_id=ids[-1]))
    while counts.count < count - 1:
        assert (group.state_name(), len(group.members), answer.done) == ("Stable", count, False)
        w.schedule.take_next()()
    w.pass_ms(10)
    assert counts.most <= STEP_LEAVING
    assert [one.error_code for one in answer.reply.members] == [0] * (count - 1)
    assert beats.reply.error_code == Errors.UNKNOWN_MEMBER_ID
    assert described(w) == ("PreparingRebalance", 1)
    assert alive(w, ids[0], 1) == Errors.REBALANCE_IN_PROGRESS
    assert dict(group.static_members) == {"i0": ids[0]}
    assert dict(group.protocol_counts) == {"range": 1}
    assert [key[2] for key in (one.key for one in shard(w).timers) if key[0] == "heartbeat"] == [ids[0]]


def test_members_whose_leaving_cannot_be_written_stay() -> None:
    w = world()
    ids = stable(w, STEP_LEAVING + 1)
    group, timers = shard(w).groups["g"], len(shard(w).timers)
    before = set(group.members), set(group.static_members.items()), dict(group.protocol_counts)
    fail_appends(w, w.broker.groups.host("g").partition)
    answer = w.ask("LeaveGroup", 5, leaving(*((one, None) for one in ids)))
    assert answer.error_code != 0
    assert (set(group.members), set(group.static_members.items()), dict(group.protocol_counts)) == before
    assert len(shard(w).timers) == timers
    assert described(w) == ("Stable", len(ids))


@pytest.mark.parametrize("step", [1, 100])
def test_members_that_leave_one_after_another_in_a_request_are_unknown_then(
    monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    monkeypatch.setattr(leave_group, "STEP_LEAVING", step)
    w = world()
    a, b, c, d = stable(w, 4)
    pending = join(w, version=9).reply.member_id
    asked = [(a, "i0"), (a, None), ("", "i0"), (b, "i0"), (b, "i2"), (b, "i1"), (a, "i3"), ("", "i2"), (c, None)]
    more = [(pending, "i0"), (pending, None), ("", None), ("", "absent"), (d, None)]
    codes = [one.error_code for one in w.ask("LeaveGroup", 5, leaving(*asked, *more)).members]
    unknown, fenced = int(Errors.UNKNOWN_MEMBER_ID), int(Errors.FENCED_INSTANCE_ID)
    assert codes[: len(asked)] == [0, unknown, unknown, unknown, fenced, 0, fenced, 0, unknown]
    assert codes[len(asked) :] == [0, unknown, unknown, unknown, 0]
    assert described(w) == ("Empty", 0)


def test_members_of_a_consumer_group_leave_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    w = world()
    count = 2 * STEP_LEAVING + 100
    ids = [f"m{number}" for number in range(count)]
    for one in ids:
        assert not beat(w, one, 0, "t").reply.error_code
    w.pass_ms(1000)
    decided = EventCounts(w, monkeypatch, ConsumerGroup, "member", lambda *arguments: 1)
    replayed = EventCounts(w, monkeypatch, consumer_records, "replay_gone", lambda shard, group, ids: len(ids))
    reply = w.ask("LeaveGroup", 5, leaving(*((one, None) for one in ids)))
    assert [one.error_code for one in reply.members] == [0] * count
    assert decided.count == replayed.count == count
    assert decided.most <= STEP_LEAVING
    assert replayed.most * 3 <= STEP_PACKED + 3 * STEP_LEAVING
    assert not len(shard(w).groups["g"].members)
