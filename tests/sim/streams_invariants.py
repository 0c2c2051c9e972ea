"""What must hold in every moment of a streams group's history."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ottla.broker.shards.host import ShardHost
from ottla.coordinator.group.shard import GroupShard
from ottla.coordinator.group.streams.group import StreamsGroup
from ottla.coordinator.group.streams.member import STABLE, UNREVOKED_TASKS
from ottla.coordinator.timeline import Timeline
from ottla.coordinator.timers import Timers

from ..support.world import replayed

Task = tuple[str, int]
SCALARS = (
    "epoch",
    "assignment_epoch",
    "metadata_hash",
    "validated_epoch",
    "topology",
    "assignment_configs",
    "description_epochs",
)


def check_group(group: StreamsGroup) -> None:
    check_active_tasks(group)
    check_copies(group)
    for instance, member_id in group.static_members.items():
        assert group.members[member_id].instance_id == instance, f"{instance} is not {member_id}"
    assert group.assignment_epoch <= group.epoch
    for member in group.members.values():
        assert member.epoch <= group.epoch, f"{member.id} is ahead of its group"
        assert member.revoking.is_empty or member.state == UNREVOKED_TASKS, f"{member.id} is in state {member.state}"
    given = Counter(task for target in group.targets.values() for task in target.active)
    assert all(count == 1 for count in given.values()), f"a target is given twice: {given}"


def check_active_tasks(group: StreamsGroup) -> None:
    """A task has one active owner."""
    owner: dict[Task, str] = {}
    for member in group.members.values():
        for held in (member.assigned, member.revoking):
            for task in held.active:
                other = owner.setdefault(task, member.id)
                assert other == member.id, f"{other} and {member.id} own {task}"
    places = {task: group.members[member_id].process_id for task, member_id in owner.items()}
    assert places == dict(group.active.items()), "the table of processes is not what the members have"


def check_copies(group: StreamsGroup) -> None:
    """A copy is not in the process that runs the task, and no process has two."""
    copies: dict[Task, list[str]] = {}
    runs: dict[Task, str] = {}
    for member in group.members.values():
        runs.update(dict.fromkeys(member.assigned.active, member.process_id))
        runs.update({task: member.process_id for task in member.revoking.active if task not in member.assigned.standby})
        for task in (*member.assigned.standby, *(member.revoking.standby - member.assigned.standby)):
            copies.setdefault(task, []).append(member.process_id)
    for task, processes in copies.items():
        assert len(set(processes)) == len(processes), f"{task} has two copies in one of {processes}"
        assert runs.get(task) not in processes, f"{runs.get(task)} runs {task} and has a copy of it"
    assert {task: frozenset(of) for task, of in copies.items()} == dict(group.standby.items())


class Epochs:
    """The group's epochs never go back, nor those of a member."""

    def __init__(self) -> None:
        self.group = (0, 0)
        self.members: dict[str, int] = {}

    def check(self, group: StreamsGroup) -> None:
        found = group.epochs()
        if group.topology is not None and self.group[0] > found[0] and found[0] <= 2:
            self.members.clear()  # the empty group had expired
            self.group = (0, 0)
        assert found[0] >= self.group[0], f"the epoch {self.group[0]} went back to {found[0]}"
        assert found[1] >= self.group[1], f"the epoch {self.group[1]} of the assignment went back to {found[1]}"
        self.group = found
        before, self.members = self.members, {one.id: one.epoch for one in group.members.values()}
        for name, epoch in self.members.items():
            assert epoch < 0 or epoch >= before.get(name, 0), f"{name} went back to {epoch}"


def check_reply(reply: Any, instance: str | None, group: StreamsGroup | None, committed_offset: int) -> None:
    """What a reply says is committed. A static member that another one replaced leaves no trace."""
    if reply.member_epoch < 0:
        return
    member = None if group is None else group.members.get(reply.member_id, None, committed_offset)
    if member is None:
        epoch = 0 if group is None else group.epochs(committed_offset)[0]
        if group is not None and instance is not None and instance in group.static_members:
            return
        assert epoch > reply.member_epoch, f"{reply.member_id} joined at {reply.member_epoch}, which is not committed"
        return
    assert member.epoch < 0 or member.epoch >= reply.member_epoch, (
        f"{member.id} is at {member.epoch}, and was told {reply.member_epoch}"
    )
    if member.epoch == reply.member_epoch and member.state == STABLE and reply.active_tasks is not None:
        told = {(one.subtopology_id, number) for one in reply.active_tasks for number in one.partitions}
        assert told <= member.assigned.active.keys(), f"{member.id} was told of {told - member.assigned.active.keys()}"


def check_endpoints(reply: Any) -> None:
    """No partition is active at two endpoints."""
    found = Counter(
        (one.topic, number)
        for place in reply.partitions_by_user_endpoint or ()
        for one in place.active_partitions
        for number in one.partitions
    )
    assert all(count == 1 for count in found.values()), f"active at two endpoints: {found}"


def check_replay(host: ShardHost[GroupShard]) -> None:
    """What lives in memory is what the log would give."""
    fresh = replayed(GroupShard(Timeline(), Timers(), host.shard.env, host.shard.assignors), host)
    assert set(fresh.groups) == set(host.shard.groups), "other groups than in the log"
    for group_id, group in host.shard.groups.items():
        other = fresh.groups[group_id]
        assert isinstance(group, StreamsGroup)
        assert isinstance(other, StreamsGroup)
        for name in ("members", "static_members", "targets", "active", "standby", "warmup"):
            mine, theirs = dict(getattr(group, name).items()), dict(getattr(other, name).items())
            assert mine == theirs, f"{name}: {mine} lives, the log has {theirs}"
        for name in SCALARS:
            one, of_log = getattr(group, name), getattr(other, name)
            assert one == of_log, f"{name}: {one} lives, the log has {of_log}"
    for group_id, committed in host.shard.offsets.by_group.items():
        assert committed.at() == fresh.offsets.of(group_id).at(), "other offsets than in the log"
