"""What is done for many groups is done in steps, between which other requests are answered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ottla.broker.group import coordinators, room
from ottla.broker.group.coordinators import GroupCoordinators
from ottla.coordinator.group import deletion, target_assignment
from ottla.coordinator.group import shard as group_shard
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.group_world import beat, commit, given, shard, world
from ..support.world import World

HOUR_MS, DAY_MS = 3_600_000, 86_400_000


def simple_groups(w: World, count: int) -> None:
    for number in range(count):
        assert not commit(w, 5, group=f"g{number}").reply.topics[0].partitions[0].error_code


def of_one_partition(**settings: str) -> World:
    return world(4, offsets_topic_num_partitions="1", **settings)


def test_groups_expire_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Iterator[None]] = []
    monkeypatch.setattr(GroupCoordinators, "in_steps", lambda owner, steps: held.append(steps))
    w = of_one_partition(offsets_retention_minutes="60", offsets_retention_check_interval_ms=str(DAY_MS))
    count = 2 * deletion.STEP_GROUPS + 1
    simple_groups(w, count)
    w.pass_ms(DAY_MS)
    left = [count - deletion.STEP_GROUPS]
    assert len(shard(w).groups) == left[0]
    simple_groups(w, 1)
    for _ in held[0]:
        w.broker.turn.settle()
        left.append(len(shard(w).groups))
    assert left[:3] == [count - deletion.STEP_GROUPS, 2, 1]
    assert list(shard(w).groups) == ["g0"], "who came back meanwhile stays"
    assert list(shard(w).offsets.by_group) == ["g0"]


def test_a_shard_of_many_groups_is_loaded_in_steps_until_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_shard, "STEP_GROUPS", 2)
    w = of_one_partition()
    simple_groups(w, 5)
    assert list(shard(w).on_loaded(0)) == [None, None], "pauses"
    host = w.broker.groups.hosts[0]
    monkeypatch.setattr("ottla.broker.shards.host.LOAD_STEP_NS", -1)
    w.broker.turn.event(lambda: w.broker.groups.reload(host.partition))
    answer = commit(w, 6, group="g0")
    assert answer.reply.topics[0].partitions[0].error_code in (
        Errors.NOT_COORDINATOR,
        Errors.COORDINATOR_LOAD_IN_PROGRESS,
    )
    w.pass_ms(1)
    simple_groups(w, 5)


def test_members_are_counted_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "STEP_GROUPS", 2)
    w = of_one_partition(ottla_group_members_max="6")
    for number in range(5):
        assert beat(w, "m", 0, "t", group=f"g{number}").reply.error_code == 0
    w.pass_ms(room.RECOUNT_MS)
    assert beat(w, "m", 0, "t", group="g5").reply.error_code == 0, "counted again, while this one joins"
    w.pass_ms(1)
    assert beat(w, "m", 0, "t", group="g6").reply.error_code == Errors.GROUP_MAX_SIZE_REACHED


def test_an_assignment_of_many_members_is_computed_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(target_assignment, "LARGE", 3 * (target_assignment.MEMBER_COST + 1))
    w = world()
    assert given(beat(w, "m1", 0, "t")) == [0, 1, 2, 3]
    assert given(beat(w, "m2", 0, "t")) == []
    beat(w, "m3", 0, "t")
    assert shard(w).groups["g"].assignment_epoch == 3, "three members and four partitions are too much for a heartbeat"
    w.pass_ms(1)
    assert shard(w).groups["g"].assignment_epoch == 4


def test_the_steps_of_several_groups_are_taken_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, other events wait for one step."""
    monkeypatch.setattr(coordinators, "STEP_NS", -1)
    w, taken = world(), list[str]()

    def steps(name: str, count: int) -> Iterator[None]:
        for _ in range(count):
            taken.append(name)
            w.broker.turn.soon(lambda: taken.append("other"))
            yield

    w.broker.groups.in_steps(steps("a", 2))
    w.broker.groups.in_steps(steps("b", 1))
    assert taken == ["a"]
    w.pass_ms(1)
    assert taken == ["a", "other", "a", "other", "b", "other"]


def test_groups_are_listed_as_they_were_when_the_request_came() -> None:
    w = of_one_partition()
    simple_groups(w, 600)
    listing = w.send("ListGroups", 5, m.ListGroupsRequest())
    assert not listing.done
    simple_groups(w, 601)
    w.pass_ms(1)
    assert [one.group_id for one in listing.reply.groups] == [f"g{number}" for number in range(600)]
