"""The target assignment of a streams group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...format import CoordinatorRecord
from ...shard import Result
from .. import target_assignment
from ..assignment_work import Candidate, Work
from ..assignors import Spec, Steps
from ..modern import with_changed
from ..state import ShardState
from . import sticky
from .configured import ConfiguredTopology
from .group import StreamsGroup
from .member import StreamsMember
from .records import RECORDS
from .statuses import Code, Status
from .sticky import TaskMember, TaskSpec
from .tasks import NO_TASKS, Tasks

STANDBYS, RACK_TAGS = "num.standby.replicas", "rack.aware.assignment.tags"
TASK_COST = 5  # of a task beside that of a partition of a consumer group
DELAYED_AT_FIRST = Status(Code.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay.")
DELAYED_BY_INTERVAL = Status(Code.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")


def configs_of(shard: ShardState, group_id: str) -> dict[str, str]:
    """Returns the configurations that matter to the assignor, as the group's record has them."""
    found = {STANDBYS: str(shard.env.group_config(group_id, "streams.num.standby.replicas"))}
    tags = shard.env.group_config(group_id, "streams.rack.aware.assignment.tags")
    if tags:
        found[RACK_TAGS] = ",".join(tags)
    return found


def await_others(shard: ShardState, group: StreamsGroup) -> None:
    """The first members of a group give others time to join, before tasks are assigned."""
    key = ("gather", group.id)
    delay_ms = shard.env.group_config(group.id, "streams.initial.rebalance.delay.ms")
    if group.is_empty and delay_ms > 0 and shard.timers.get(key) is None:
        shard.schedule(key, delay_ms)


def assign(
    shard: ShardState,
    group: StreamsGroup,
    epoch: int,
    member: StreamsMember,
    replaced: StreamsMember | None,
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
    records: list[CoordinatorRecord],
    statuses: list[Status],
) -> tuple[int, Tasks]:
    """Returns the epoch of the target assignment and the member's part of it; computes the target again if that is due.
    Raises ApiError.
    """
    if shard.timers.get(("gather", group.id)) is not None:
        statuses.append(DELAYED_AT_FIRST)
        return group.assignment_epoch, NO_TASKS
    if group.assignment_epoch < epoch and group.id not in shard.assigning:
        if target_assignment.is_due(shard, group, epoch):
            members = with_changed(group.in_order(), member, {replaced.id} if replaced is not None else ())
            work = _work(group, epoch, members, configured, configs)
            assignment = target_assignment.assign(shard, group, work, records)
            if assignment is not None:
                return epoch, assignment.get(member.id, NO_TASKS)
        else:
            statuses.append(DELAYED_BY_INTERVAL)
    return group.assignment_epoch, group.target_of(member)


def _work(
    group: StreamsGroup,
    epoch: int,
    members: Iterable[StreamsMember],
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
) -> Work[Tasks]:
    by_id = {member.id: member for member in members}
    candidates = [Candidate(m.id, m.instance_id, m.rack_id, frozenset(), {}) for m in by_id.values()]
    standbys = int(configs.get(STANDBYS, "0"))

    def steps(spec: Spec) -> Steps[Mapping[str, Tasks]]:
        if not configured.is_ready or configured.subtopologies is None:
            return sticky.nothing(list(spec.members))
        of_members = {name: _as_seen(group, by_id[name]) for name in spec.members}
        sizes = {name: (one.tasks, one.is_stateful) for name, one in configured.subtopologies.items()}
        return sticky.steps(TaskSpec(of_members, sizes, standbys))

    return Work(RECORDS, epoch, candidates, steps, size=TASK_COST * configured.task_count * (1 + standbys))


def _as_seen(group: StreamsGroup, member: StreamsMember) -> TaskMember:
    return TaskMember(member.process_id, member.assigned, group.heard.offsets_of(member.id).has)


def work_for(shard: ShardState, group: StreamsGroup) -> Work[Tasks]:
    """Describes the assignment that the group needs now."""
    assert group.configured is not None
    return _work(group, group.epoch, group.in_order(), group.configured, group.assignment_configs)


def begin(shard: ShardState, group: StreamsGroup) -> Result:
    """The timer `assign` ended. A group that was new then gets its topology configured by the next heartbeat, which
    sets the timer again.
    """
    if group.configured is None:
        return Result()
    return target_assignment.begin(shard, group, work_for)


def gathered(shard: ShardState, group: StreamsGroup) -> Result:
    """The timer `gather` ended: the members that came meanwhile get their tasks."""
    if group.is_empty or group.configured is None or not target_assignment.is_due(shard, group, group.epoch):
        return Result()
    records: list[CoordinatorRecord] = []
    target_assignment.assign(shard, group, work_for(shard, group), records)
    return Result(records)
