"""What is done for many groups is done in steps, between which other requests are answered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle

import pytest
from ottla.broker.group import coordinators, room
from ottla.broker.group.coordinators import GroupCoordinators
from ottla.broker.shards.loader import log_entries
from ottla.broker.steps import STEP_ELEMENTS
from ottla.coordinator.group import deletion, target_assignment
from ottla.coordinator.group import shard as group_shard
from ottla.coordinator.group.consumer.leaving import FEW, MembersGone
from ottla.coordinator.group.consumer.records import member_tombstones
from ottla.coordinator.group.format import GroupFormat
from ottla.coordinator.shard import Result
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.failing_appends import fail_appends
from ..support.group_world import beat, commit, given, join, shard, sync, world
from ..support.step_work import longest_step_of
from ..support.world import Answer, World

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


@pytest.mark.long
def test_groups_are_listed_as_they_were_when_the_request_came() -> None:
    w = of_one_partition()
    simple_groups(w, 600)
    listing = w.send("ListGroups", 5, m.ListGroupsRequest())
    assert not listing.done
    simple_groups(w, 601)
    w.pass_ms(1)
    assert sorted(one.group_id for one in listing.reply.groups) == sorted(f"g{number}" for number in range(600))


def held_steps(monkeypatch: pytest.MonkeyPatch) -> list[Iterator[None]]:
    """What the coordinators do in steps, from now on left to the test."""
    held: list[Iterator[None]] = []
    monkeypatch.setattr(GroupCoordinators, "in_steps", lambda owner, steps: held.append(steps))
    return held


def joined(w: World, count: int) -> list[Answer]:
    """So many members of a classic group whose first round has ended."""
    answers = [join(w, version=3) for _ in range(count)]
    w.pass_ms(300)
    return answers


def test_members_get_the_replies_of_a_round_one_after_another_whatever_happens_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w, held = world(), held_steps(monkeypatch)
    answers = joined(w, 4)
    replies = held[0]
    next(replies)
    assert [one.done for one in answers] == [True, False, False, False]
    leader = answers[0].reply.member_id
    waiting = list(shard(w).groups["g"].members)[1:]
    r = m.LeaveGroupRequest
    leaving = w.send("LeaveGroup", 3, r(group_id="g", members=[r.MemberIdentity(member_id=waiting[0])]))
    assert leaving.reply.members[0].error_code == 0
    newcomer = join(w, version=3)
    next(replies)
    assert sync(w, waiting[0], 1).reply.error_code == Errors.UNKNOWN_MEMBER_ID
    again = [join(w, member, version=3) for member in (leader, *waiting[1:])]
    assert shard(w).groups["g"].generation == 2, "the next round has ended, too"
    assert list(replies) == [None, None]
    assert [(one.reply.member_id, one.reply.generation_id, one.reply.leader) for one in answers[1:]] == [
        (member, 1, leader) for member in waiting
    ]
    assert len(answers[0].reply.members) == 4
    assert not any(one.done for one in (*again, newcomer))
    assert list(held[1]) == [None] * 4
    assert {one.reply.generation_id for one in (*again, newcomer)} == {2}
    assert len(again[0].reply.members) == 4


def test_members_get_their_assignments_one_after_another_though_a_new_round_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w = world()
    members = [one.reply.member_id for one in joined(w, 3)]
    held = held_steps(monkeypatch)
    answers = [sync(w, member, 1) for member in members[1:]]
    answers.append(sync(w, members[0], 1, **{member: member.encode() for member in members}))
    (replies,) = held
    assert not any(one.done for one in answers)
    join(w, version=3)
    assert shard(w).groups["g"].state.value == "PreparingRebalance"
    assert list(replies) == [None] * 3
    assert {one.reply.assignment.decode() for one in answers} == set(members)


def test_replies_of_a_round_do_not_depend_on_the_writes_of_others_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    w, held = world(), held_steps(monkeypatch)
    answers = joined(w, 3)
    fail_appends(w, w.broker.groups.host("g").partition)
    record = shard(w).groups["g"].record({})
    other = w.broker.groups.write("g", "of-another", lambda shard: Result([record], replay=False))
    assert list(held[0]) == [None] * 3, "while its batch is open"
    w.broker.turn.settle()
    assert other.error is not None
    assert [one.reply.generation_id for one in answers] == [1, 1, 1]


def test_groups_learn_of_changed_topics_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    w = of_one_partition()
    for number in range(3):
        assert beat(w, "m", 0, "t", group=f"g{number}").reply.member_epoch == 2
        beat(w, "m", 2, group=f"g{number}")
    monkeypatch.setattr(group_shard, "STEP_GROUPS", 1)
    held = held_steps(monkeypatch)
    r = m.CreatePartitionsRequest
    asked = r(topics=[r.CreatePartitionsTopic(name="t", count=5, assignments=None)], timeout_ms=1000)
    assert w.ask("CreatePartitions", 3, asked).results[0].error_code == 0
    (steps,) = held
    next(steps)
    assert [beat(w, "m", 2, group=f"g{number}").reply.member_epoch for number in range(3)] == [3, 2, 2]
    leaving = beat(w, "m", -1, group="g1")
    assert leaving.reply.member_epoch == -1
    assert list(steps) == [None, None]
    assert beat(w, "m", 2, group="g2").reply.member_epoch == 3


def test_groups_are_described_as_they_are_when_their_turn_comes() -> None:
    w = of_one_partition()
    names = [f"g{number}" for number in range(600)]
    simple_groups(w, 600)
    describing = w.send("DescribeGroups", 6, m.DescribeGroupsRequest(groups=names))
    assert not describing.done
    for _ in range(len(names) // STEP_ELEMENTS + 3):  # they are put in order, and the first ones are described
        w.schedule.take_next()()
    deleted = w.send("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[names[0], names[-1]]))
    while not describing.done:
        w.schedule.take_next()()
    w.pass_ms(1)
    assert [one.error_code for one in deleted.reply.results] == [0, 0]
    found = {one.group_id: (one.error_code, one.group_state) for one in describing.reply.groups}
    assert list(found) == names
    assert found["g0"] == found["g1"] == (0, "Empty"), "described before"
    assert found["g599"] == (Errors.GROUP_ID_NOT_FOUND, "Dead")


def test_groups_are_deleted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deletion, "STEP_GROUPS", 2)
    w = of_one_partition()
    simple_groups(w, 5)
    names = [f"g{number}" for number in range(5)]
    answer = w.send("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[*names, "absent"]))
    while len(shard(w).groups) > 3:
        w.schedule.take_next()()
    assert not answer.done
    assert beat(w, "m", 0, "t", group="g4").reply.error_code == 0
    w.pass_ms(1)
    codes = {one.group_id: one.error_code for one in answer.reply.results}
    assert codes == dict.fromkeys(names[:4], 0) | {"g4": Errors.NON_EMPTY_GROUP, "absent": Errors.GROUP_ID_NOT_FOUND}
    assert list(shard(w).groups) == ["g4"]


def test_offsets_of_a_deleted_topic_are_deleted_for_some_groups_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.coordinator.group.offsets.deletion.STEP_GROUPS", 2)
    w = of_one_partition()
    simple_groups(w, 5)
    held = held_steps(monkeypatch)
    r = m.DeleteTopicsRequest
    assert (
        not w.ask("DeleteTopics", 6, r(topics=[r.DeleteTopicState(name="t")], timeout_ms=1000)).responses[0].error_code
    )
    by_group = shard(w).offsets.by_group
    left = []
    for _ in held[0]:
        w.broker.turn.settle()
        left.append([name for name, of in by_group.items() if len(of)])
        if len(left) == 1:  # a topic of the same name has other offsets
            c = m.CreateTopicsRequest
            again = c.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            assert not w.ask("CreateTopics", 5, c(topics=[again], timeout_ms=1000)).topics[0].error_code
            assert not commit(w, 7, group="g4").reply.topics[0].partitions[0].error_code
    assert left == [["g2", "g3", "g4"], ["g4"], ["g4"]]


def test_a_member_that_beats_leaves_nothing_to_the_garbage_collector() -> None:
    """Its timer is moved: thousands of new ones would all be looked at in one step."""
    w = of_one_partition()
    epoch = beat(w, "m", 0, "t").reply.member_epoch
    timers, key = shard(w).timers, ("session", "g", "m")
    timer = timers.get(key)
    assert timer is not None
    before = timer.deadline_ms
    w.pass_ms(1000)
    assert not beat(w, "m", epoch).reply.error_code
    assert timers.get(key) is timer
    assert timer.deadline_ms == before + 1000


def members_left(w: World, count: int, lengths: Iterable[int]) -> list[str]:
    """Has members join a consumer group, and all but one leave it with one request; returns who left."""
    ids = [f"m{number}".ljust(length, "-") for number, length in zip(range(count), cycle(lengths), strict=False)]
    for one in ("stays", *ids):
        assert not beat(w, one, 0, "t").reply.error_code
    w.pass_ms(10_000)
    r = m.LeaveGroupRequest
    asked = [r.MemberIdentity(member_id=one) for one in (*ids, "absent", ids[0])]
    reply = w.ask("LeaveGroup", 5, r(group_id="g", members=asked)).members
    assert [one.member_id for one in reply if one.error_code == Errors.UNKNOWN_MEMBER_ID] == ["absent"]
    return ids


@pytest.mark.parametrize("lengths", [(36,), (5, 200)])
def test_members_that_leave_at_once_are_one_change_of_the_group_and_stay_away(lengths: tuple[int, ...]) -> None:
    """As in Kafka: three tombstones for each, in one batch with the group's new epoch."""
    w = of_one_partition()
    ids = members_left(w, FEW + 1, lengths)
    expected = [GroupFormat().encode(record).key for one in ids for record in member_tombstones("g", one)]
    log = w.broker.groups.hosts[0].partition.open_log()
    written = [entry.record for entry in log_entries(log) if entry.record is not None]
    keys = [one.key for one in written[-len(expected) - 1 :] if one.value is None]
    assert keys == expected
    assert all(one.value is None for one in written[-len(expected) - 1 : -1])
    before = shard(w).groups["g"]
    assert list(before.members) == ["stays"]
    w.broker.turn.event(lambda: w.broker.groups.reload(w.broker.groups.hosts[0].partition))
    w.pass_ms(100)
    loaded = shard(w).groups["g"]
    assert list(loaded.members) == list(loaded.targets) == ["stays"]
    for name in ("topics", "targets", "owner_epochs", "assignor_votes", "regex_counts", "static_members"):
        assert dict(getattr(loaded, name).items()) == dict(getattr(before, name).items()), name


@pytest.mark.long
def test_many_members_leave_with_little_work() -> None:
    w, count = of_one_partition(), 300
    ids = [f"m{number}".ljust(36, "-") for number in range(count)]
    for one in ids:
        beat(w, one, 0, "t")
    r = m.LeaveGroupRequest
    request = r(group_id="g", members=[r.MemberIdentity(member_id=one) for one in ids])
    assert longest_step_of(w, "LeaveGroup", 5, request) < 600 * count
    assert not len(shard(w).groups["g"].members)


def test_a_timeline_tells_of_each_member_that_leaves_with_others() -> None:
    gone = MembersGone("g", ["a", "b"])
    assert [one.key for one in gone.told()] == [
        GroupFormat().encode(record).key for one in "ab" for record in member_tombstones("g", one)
    ]
