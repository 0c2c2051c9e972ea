"""Assignments of large groups, which are computed between other requests, and what a user's assignor sees (KIP-848,
KIP-1263).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from ottla.broker.group.coordinators import GroupCoordinators
from ottla.coordinator.group import target_assignment
from ottla.coordinator.group.assignors import PARTITIONS_PER_STEP, MemberSpec, Spec, Steps, finished, simple, uniform
from ottla.coordinator.group.assignors import range as range_assignor
from ottla.coordinator.group.consumer.group import ConsumerGroup
from ottla.coordinator.hashing import java_order, java_order_steps
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..sim import groups as sim_groups
from ..support.group_world import beat, given, world, written
from ..support.seeds import in_turn, spans
from ..support.world import World, replayed

ALL = [0, 1, 2, 3]


# the assignors, in steps


def subscriptions(members: int, topics: int, homogeneous: bool) -> Spec:
    names = [bytes([1, n]) * 8 for n in range(topics)]
    found = {
        f"m{n}": MemberSpec(None, None, frozenset(t for i, t in enumerate(names) if homogeneous or (i + n) % 2), {})
        for n in range(members)
    }
    return Spec(found, dict.fromkeys(names, 3), homogeneous)


def of_share(spec: Spec) -> Steps[Any]:
    return simple.steps(spec, {t: frozenset(range(n)) for t, n in spec.partition_counts.items()})


def lines_by_step(steps: Iterator[None]) -> list[int]:
    """How many lines of Python each step runs."""
    counts: list[int] = []

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        counts[-1] += event == "line"
        return trace

    before = sys.gettrace()
    try:
        while True:
            counts.append(0)
            sys.settrace(trace)
            try:
                next(steps)
            except StopIteration:
                return counts
            finally:
                sys.settrace(before)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("steps", [uniform.steps, range_assignor.steps, of_share], ids=["uniform", "range", "simple"])
@pytest.mark.parametrize("homogeneous", [True, False])
def test_a_step_is_linear_where_the_whole_is_members_times_topics(
    steps: Callable[[Spec], Steps[Any]], homogeneous: bool
) -> None:
    members, topics = 200, 100
    counts = lines_by_step(steps(subscriptions(members, topics, homogeneous)))
    assert len(counts) > topics
    assert max(counts) < 15 * (members + topics + PARTITIONS_PER_STEP) < members * topics, (
        "no step visits every topic of every member"
    )


def test_a_step_of_a_share_group_looks_at_some_of_what_few_members_have() -> None:
    names = [n.to_bytes(16, "big") for n in range(2000)]
    target = {name: frozenset(range(3)) for name in names}
    members = {f"m{n}": MemberSpec(None, None, frozenset(names), target) for n in range(4)}
    counts = lines_by_step(of_share(Spec(members, dict.fromkeys(names, 3), homogeneous=True)))
    assert max(counts) < 2 * 3 * len(names), "more than to sort the partitions of one member"


def test_the_order_of_java_is_the_same_in_steps() -> None:
    names = [f"member-{n}" for n in range(1000)]
    assert finished(java_order_steps(names)) == java_order(names)
    assert len(list(java_order_steps(names))) == 1000 // 64


# what a user's assignor sees


USERS = """
seen = []

def by_rack(spec):
    seen.append(spec)
    by_name = sorted(spec.topics.items(), key=lambda one: one[1].name)
    found = {member: {} for member in spec.members}
    for topic_id, topic in by_name:
        for partition, racks in enumerate(topic.partition_racks):
            near = [i for i, one in spec.members.items() if one.rack_id in racks] or list(spec.members)
            found[near[partition % len(near)]].setdefault(topic_id, set()).add(partition)
    return found

def broken(spec):
    raise RuntimeError("out of ideas")
"""


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of a user's own, on the path."""
    (tmp_path / "users_assignors.py").write_text(USERS)
    monkeypatch.syspath_prepend(tmp_path)
    import users_assignors  # type: ignore[import-not-found]

    yield users_assignors
    del sys.modules["users_assignors"]


NAMES = "uniform,users_assignors:by_rack,users_assignors:broken"


def test_a_users_assignor_sees_topic_names_and_racks(users: Any) -> None:
    w = world(broker_rack="here", group_consumer_assignors=NAMES)
    beat(w, "far", 0, "t", rack_id="there", server_assignor="users_assignors:by_rack", instance_id="static")
    near = beat(w, "near", 0, "t", rack_id="here", server_assignor="users_assignors:by_rack")
    assert near.reply.error_code == 0
    spec = users.seen[-1]
    ((topic_id, topic),) = spec.topics.items()
    assert topic_id == w.broker.image.topics["t"].id
    assert (topic.name, topic.partition_racks) == ("t", (frozenset(("here",)),) * 4)
    assert spec.partition_counts == {topic_id: 4}
    assert {i: (one.instance_id, one.rack_id) for i, one in spec.members.items()} == {
        "far": ("static", "there"),
        "near": (None, "here"),
    }
    assert spec.members["far"].target == {topic_id: frozenset(ALL)}
    assert spec.assigned()[topic_id, 2] == "far"
    group = w.broker.groups.host("g").shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.targets["near"] == {topic_id: frozenset(ALL)}, "all partitions are in its rack"


# large groups


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is a large one."""
    monkeypatch.setattr(target_assignment, "LARGE", -1)


def shard_of(w: World) -> Any:
    return w.broker.groups.host("g").shard


def targets(w: World) -> dict[str, list[int]]:
    return {i: sorted(p for of in target.values() for p in of) for i, target in shard_of(w).groups["g"].targets.items()}


def test_members_hear_of_a_large_groups_assignment_with_a_later_heartbeat(large: None) -> None:
    w = world()
    first = beat(w, "m1", 0, "t")
    assert (first.reply.member_epoch, given(first), first.reply.heartbeat_interval_ms) == (1, [], 100)
    w.pass_ms(1)
    again = beat(w, "m1", 1)
    assert (again.reply.member_epoch, given(again)) == (2, ALL)
    kinds = [name for name, _ in written(w)]
    epochs = ["ConsumerGroupMemberMetadata", "ConsumerGroupMetadata", "ConsumerGroupCurrentMemberAssignment"]
    assert kinds == [
        *epochs,
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupTargetAssignmentMetadata",
        "ConsumerGroupCurrentMemberAssignment",
    ]


def test_a_large_groups_assignment_stays_in_the_heartbeat_where_that_is_asked(large: None) -> None:
    w = world(group_consumer_assignor_offload_enable="false")
    assert given(beat(w, "m1", 0, "t")) == ALL


def test_a_large_share_groups_assignment_too(large: None) -> None:
    w = world()
    request = m.ShareGroupHeartbeatRequest(group_id="g", member_id="m1", member_epoch=0, subscribed_topic_names=["t"])
    for _ in range(10):
        reply = w.ask("ShareGroupHeartbeat", 1, request)
        request.member_epoch = reply.member_epoch
        w.pass_ms(200)
    assert [p for t in reply.assignment.topic_partitions for p in t.partitions] == ALL


class Held:
    """Assignments that are in the making until a test lets them go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[GroupCoordinators, Iterator[None]]] = []
        self.run = GroupCoordinators.in_steps
        monkeypatch.setattr(GroupCoordinators, "in_steps", lambda owner, steps: self.steps.append((owner, steps)))

    def go_on(self, steps: int | None = None) -> None:
        """So many steps of those that wait, or all."""
        for owner, waiting in self.steps[:]:
            if steps is None:
                self.steps.remove((owner, waiting))
                owner.turn.event(lambda owner=owner, waiting=waiting: self.run(owner, waiting))  # type: ignore[misc]
            else:
                for _ in range(steps):
                    next(waiting)


@pytest.fixture
def held(large: None, monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


def begun(w: World, *members: str) -> None:
    for one in members:
        assert beat(w, one, 0, "t", instance_id=f"i-{one}").reply.error_code == 0
    w.pass_ms(1)


def test_members_come_and_leave_while_an_assignment_is_made(held: Held) -> None:
    w = world()
    begun(w, "m1", "m2", "m3")
    held.go_on(2)
    assert beat(w, "m4", 0, "t").reply.member_epoch == 1
    assert beat(w, "m2", -1).reply.error_code == 0
    assert beat(w, "m3", -2, instance_id="i-m3").reply.error_code == 0
    back = beat(w, "m3b", 0, "t", instance_id="i-m3")
    assert (back.reply.error_code, given(back)) == (0, [])
    w.pass_ms(1)
    assert len(held.steps) == 1, "one at a time"
    held.go_on()
    found = targets(w)
    assert sorted(found) == ["m1", "m3b"], "who left has none, who came waits, who replaced another has its target"
    assert not set(found["m1"]) & set(found["m3b"])
    group = shard_of(w).groups["g"]
    assert group.assignment_epoch == 4 < group.epoch
    beat(w, "m1", 1)
    w.pass_ms(1)
    held.go_on()
    found = targets(w)
    assert sorted(p for of in found.values() for p in of) == ALL
    assert sorted(found) == ["m1", "m3b", "m4"]
    assert group.assignment_epoch == group.epoch
    assert not shard_of(w).assigning
    host = w.broker.groups.host("g")
    fresh = replayed(
        type(host.shard)(type(host.shard.timeline)(), type(host.shard.timers)(), host.shard.env, host.shard.assignors),
        host,
    )
    again = fresh.groups["g"]
    assert isinstance(again, ConsumerGroup)
    assert dict(again.targets.items()) == dict(group.targets.items())


def test_nothing_is_installed_in_a_group_that_ended_or_a_shard_that_moved(held: Held) -> None:
    w = world()
    begun(w, "m1")
    beat(w, "m1", -1)
    assert w.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == 0
    begun(w, "m2")
    assert len(held.steps) == 1, "the first group's is under way"
    held.go_on()
    assert targets(w) == {}
    beat(w, "m2", 1)
    w.pass_ms(1)
    partition = w.broker.groups.host("g").partition
    before = written(w)
    w.broker.turn.event(lambda: w.broker.groups.reload(partition))
    held.go_on()
    assert written(w) == before, "an assignment that was made for a shard that is gone"
    assert beat(w, "m2", 1).reply.error_code == 0
    w.pass_ms(1)
    held.go_on()
    assert targets(w) == {"m2": ALL}


def test_targets_of_many_members_are_written_in_parts(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_assignment, "MEMBERS_PER_WRITE", 1)
    w = world()
    begun(w, "m1", "m2", "m3")
    held.go_on()
    assert sorted(map(len, targets(w).values())) == [1, 1, 2]
    last = [name for name, _ in written(w)][-4:]
    assert last == ["ConsumerGroupTargetAssignmentMember"] * 3 + ["ConsumerGroupTargetAssignmentMetadata"]


def test_a_users_assignor_of_a_large_group_runs_in_a_thread_and_its_failure_is_the_next_heartbeats(
    large: None, users: Any
) -> None:
    w = world(group_consumer_assignors=NAMES)
    assert given(beat(w, "m1", 0, "t", server_assignor="users_assignors:by_rack")) == []
    assert not users.seen, "the timer has not begun"
    w.pass_ms(2)
    assert given(beat(w, "m1", 1)) == ALL
    assert beat(w, "m1", 2, server_assignor="users_assignors:broken").reply.error_code == 0
    assert beat(w, "m2", 0, "t").reply.error_code == 0
    w.pass_ms(2)
    failed = beat(w, "m1", 2)
    assert failed.reply.error_code == Errors.UNKNOWN_SERVER_ERROR
    assert failed.reply.error_message.endswith("users_assignors:broken: out of ideas")
    assert beat(w, "m1", 2).reply.error_code == 0, "and is tried again"
    w.pass_ms(2)
    assert beat(w, "m1", 2, server_assignor="uniform").reply.error_code == 0
    w.pass_ms(2)
    assert beat(w, "m1", 2).reply.error_code == 0
    assert sorted(map(len, targets(w).values())) == [2, 2]


@pytest.mark.parametrize("seeds", in_turn(spans(30_000, 40, quick=4, each=9)))
def test_histories_under_trouble_hold_where_every_group_is_large(
    large: None, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """Each step of an assignment is an input event of its own, some milliseconds after the one before."""

    def in_steps(owner: GroupCoordinators, steps: Iterator[None]) -> None:
        def step() -> None:
            if next(steps, steps) is not steps:
                owner.turn.later(3, step)

        step()

    monkeypatch.setattr(GroupCoordinators, "in_steps", in_steps)
    for seed in seeds:
        sim_groups.run(seed)
