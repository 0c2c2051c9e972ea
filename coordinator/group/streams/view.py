"""What is shown of a streams group (KIP-1071): tasks beside targets, and what each member must do. A task is shown as
a partition of its subtopology; the name of a copy says that it is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from ..events import TopicPartitionsView
from ..state import ShardState
from ..view import GroupMemberView, KindView, Steps, WaitView, in_steps, remaining_ms, timers, wait
from . import sticky
from .group import StreamsGroup
from .member import LEAVE_STATIC_EPOCH, STABLE, UNRELEASED_TASKS, UNREVOKED_TASKS, StreamsMember
from .tasks import Task, Tasks, by_subtopology

STATES = {STABLE: "stable", UNREVOKED_TASKS: "must give up tasks", UNRELEASED_TASKS: "waits for tasks"}
TIMERS = {"session": "session", "revocation": "rebalance"}
"""Of a member: the names that are shown, and those in the keys of the shard's timers."""


def summary(group: StreamsGroup) -> tuple[str, int]:
    """State and epoch."""
    return group.state_name(), group.epoch


def view(shard: ShardState, group: StreamsGroup) -> Steps[KindView]:
    """Returns the group as it is now."""
    members = list(group.members.values())
    targets = [group.target_of(member) for member in members]
    epoch, assignment_epoch = group.epochs()
    inputs = sorted(group.topology.by_input) if group.topology is not None else []
    owners: dict[Task, str] = {}
    state = group.state_name()

    def note(member: StreamsMember) -> None:
        for held in (member.assigned, member.revoking):
            owners.update(dict.fromkeys(held.active, member.id))

    def described() -> Iterator[GroupMemberView]:
        for member, target in zip(members, targets, strict=True):
            yield GroupMemberView(
                member=member.id,
                protocol=group.kind,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                client_id=member.client_id,
                client_host=member.client_host,
                state="away" if member.epoch == LEAVE_STATIC_EPOCH else STATES.get(member.state, "unknown"),
                epoch=member.epoch,
                previous_epoch=member.previous_epoch,
                topics=inputs,
                regex=None,
                assignors=[],
                assigned=shown(member.assigned.plain()),
                target=shown(target),
                revoking=shown(member.revoking.plain()),
                awaited=[
                    {"topic": name, "partition": number, "held_by": owners.get((name, number))}
                    for name, number in sorted(target.active - member.assigned.active.keys())
                ],
                timers=timers(shard, ((name, (key, group.id, member.id)) for name, key in TIMERS.items())),
            )

    yield from in_steps(members, note)
    return KindView(
        group=group.id,
        kind=group.kind,
        state=state,
        protocol_type=group.protocol_type,
        epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor=sticky.NAME,
        leader=None,
        pending=[],
        regexes=[],
        timers=timers(shard, [("assignment", ("assign", group.id)), ("initial delay", ("gather", group.id))]),
        waits=chain(list(_waits_of_group(shard, group)), _waits(shard, group.id, members, assignment_epoch)),
        members=described(),
    )


def shown(tasks: Tasks) -> list[TopicPartitionsView]:
    """Tasks by subtopology, sorted."""

    def of(kind: str, some: Iterable[Task]) -> list[TopicPartitionsView]:
        return [
            TopicPartitionsView(topic=name + kind, partitions=numbers) for name, numbers in by_subtopology(some).items()
        ]

    return [*of("", tasks.active), *of(" standby", tasks.standby), *of(" warmup", tasks.warmup)]


def _waits_of_group(shard: ShardState, group: StreamsGroup) -> Iterator[WaitView]:
    if group.is_empty:
        return
    if group.configured is not None and group.configured.missing:
        yield wait(None, "initialize")
    if group.epoch > group.assignment_epoch:
        gathering = remaining_ms(shard, ("gather", group.id))
        if gathering is not None:
            yield wait(None, "gather", gathering)
        else:
            yield wait(None, "assign", remaining_ms(shard, ("assign", group.id)))


def _waits(shard: ShardState, group_id: str, members: list[StreamsMember], epoch: int) -> Iterator[WaitView]:
    for member in members:
        session = remaining_ms(shard, ("session", group_id, member.id))
        if member.epoch == LEAVE_STATIC_EPOCH:
            yield wait(member.id, "rejoin", session, shown(member.assigned.plain()))
        elif member.state == UNREVOKED_TASKS:
            owed = shown(member.revoking.plain())
            yield wait(member.id, "revoke", remaining_ms(shard, ("rebalance", group_id, member.id)), owed)
        elif member.epoch != epoch:
            yield wait(member.id, "heartbeat", session)
