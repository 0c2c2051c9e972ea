"""The step that takes a member of a streams group nearer to its target assignment (KIP-1071).

A member first gives up what its target has not, and reports that it has done so. It gets a task once no other process
runs it, and a copy once no other member of its own process has that task. A member keeps its copy of a task until it
runs that task itself, and one kind of copy becomes another at once.
"""

from __future__ import annotations

from dataclasses import replace

from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...timeline import TimelineDict
from ..state import ShardState
from .group import NOBODY, StreamsGroup
from .member import STABLE, UNRELEASED_TASKS, UNREVOKED_TASKS, StreamsMember
from .records import current_record
from .tasks import NOTHING_HELD, HeldTasks, Task, Tasks


def reconcile(
    shard: ShardState,
    group: StreamsGroup,
    member: StreamsMember,
    target_epoch: int,
    target: Tasks,
    owned: Tasks | None,
    records: list[CoordinatorRecord],
) -> StreamsMember:
    """Returns the member after its next step; adds its record if it changes. `owned`: the tasks that the member says
    that it has. Raises ApiError(FENCED_MEMBER_EPOCH).
    """
    if member.is_reconciled_to(target_epoch):
        return member
    after = Reconciliation(group, member, target_epoch, target, owned).next()
    if after == member:
        return member
    records.append(current_record(group.id, after))
    if after.state == UNREVOKED_TASKS:
        await_revocation(shard, group, after)
    else:
        shard.cancel(("rebalance", group.id, after.id))
    return after


def await_revocation(shard: ShardState, group: StreamsGroup, member: StreamsMember) -> None:
    """A member that must give up tasks has to report that in time."""
    shard.schedule(("rebalance", group.id, member.id), member.rebalance_timeout_ms, member.epoch)


class Reconciliation:
    """The next step of one member towards its target."""

    def __init__(
        self, group: StreamsGroup, member: StreamsMember, target_epoch: int, target: Tasks, owned: Tasks | None
    ) -> None:
        self.group = group
        self.member = member
        self.target_epoch = target_epoch
        self.target = target
        self.owned = owned

    def next(self) -> StreamsMember:
        """Returns the member after the step. Raises ApiError(FENCED_MEMBER_EPOCH)."""
        member = self.member
        if member.state == STABLE:
            return member if member.epoch == self.target_epoch else self._towards_target(member.epoch)
        if member.state == UNREVOKED_TASKS:
            return member if self._still_owns(member.revoking) else self._towards_target(member.epoch + 1)
        if member.state == UNRELEASED_TASKS:
            return self._towards_target(member.epoch)
        if self.owned is None or not self.owned.is_empty:
            raise ApiError(
                Errors.FENCED_MEMBER_EPOCH,
                "The streams group member is in a unknown state. The member must abandon all its tasks and rejoin.",
            )
        return self._towards_target(self.target_epoch)

    def _still_owns(self, tasks: HeldTasks) -> bool:
        owned = self.owned
        if owned is None:
            return True
        return bool(owned.active & tasks.active.keys() or owned.standby & tasks.standby or owned.warmup & tasks.warmup)

    # which tasks are free

    def _has_copy(self, places: TimelineDict[Task, frozenset[str]], task: Task) -> bool:
        """Whether a member of this process has a copy of the task."""
        return self.member.process_id in places.get(task, NOBODY)

    def _runs_here(self, task: Task) -> bool:
        return self.group.active.get(task) == self.member.process_id

    def _is_free(self, task: Task) -> bool:
        """Whether the member may run a task."""
        mine, group = self.member.assigned, self.group
        if task in group.active:
            return False
        has_copies = self._has_copy(group.standby, task) and task not in mine.standby
        return not has_copies and not (self._has_copy(group.warmup, task) and task not in mine.warmup)

    def _may_stand_by(self, task: Task) -> bool:
        mine, group = self.member.assigned, self.group
        if self._runs_here(task) and task not in mine.active:
            return False
        if self._has_copy(group.standby, task):
            return False
        return not (self._has_copy(group.warmup, task) and task not in mine.warmup)

    def _may_warm_up(self, task: Task) -> bool:
        mine, group = self.member.assigned, self.group
        if self._runs_here(task) or self._has_copy(group.warmup, task):
            return False
        return not (self._has_copy(group.standby, task) and task not in mine.standby)

    # the step

    def _towards_target(self, epoch: int) -> StreamsMember:
        mine, target = self.member.assigned, self.target
        active = {task: since for task, since in mine.active.items() if task in target.active}
        standby, warmup = mine.standby & target.standby, mine.warmup & target.warmup
        wanted = target.active - mine.active.keys(), target.standby - mine.standby, target.warmup - mine.warmup
        runs = frozenset(task for task in wanted[0] if self._is_free(task))
        stands = frozenset(task for task in wanted[1] if self._may_stand_by(task))
        warms = frozenset(task for task in wanted[2] if self._may_warm_up(task))
        waits = (runs, stands, warms) != wanted
        # a task that the member runs becomes a copy at once, and one kind of copy the other
        demoted = stands & (mine.active.keys() | mine.warmup)
        warmed = warms & mine.standby
        standby, stands, warmup, warms = standby | demoted, stands - demoted, warmup | warmed, warms - warmed
        revoking = HeldTasks(
            {task: since for task, since in mine.active.items() if task not in target.active},
            mine.standby - target.standby - warmed - target.active,
            mine.warmup - target.warmup - demoted - target.active,
        )
        must_revoke = not revoking.is_empty and self._still_owns(revoking)
        promoted = runs if not must_revoke else frozenset[Task]()
        standby |= (mine.standby & target.active) - promoted
        warmup |= (mine.warmup & target.active) - promoted
        if must_revoke:
            return self._moved(epoch, UNREVOKED_TASKS, HeldTasks(active, standby, warmup), revoking)
        active.update(dict.fromkeys(sorted(runs), self.target_epoch))
        held = HeldTasks(active, standby | stands, warmup | warms)
        return self._moved(self.target_epoch, UNRELEASED_TASKS if waits else STABLE, held, NOTHING_HELD)

    def _moved(self, epoch: int, state: int, assigned: HeldTasks, revoking: HeldTasks) -> StreamsMember:
        return replace(
            self.member,
            epoch=epoch,
            previous_epoch=self.member.epoch,
            state=state,
            assigned=assigned,
            revoking=revoking,
        )
