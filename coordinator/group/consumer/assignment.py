"""The target assignment of a consumer group."""

from __future__ import annotations

from collections.abc import Iterable

from ...format import CoordinatorRecord
from ...shard import Result
from .. import target_assignment
from ..assignment_work import Candidate, Work
from ..environment import Target
from ..modern import with_changed
from ..state import ShardState
from .group import ConsumerGroup
from .member import Member
from .records import RECORDS
from .subscription import Subscribed


def assign(
    shard: ShardState,
    group: ConsumerGroup,
    subscribed: Subscribed,
    member: Member,
    changed: Member,
    records: list[CoordinatorRecord],
) -> tuple[int, Target]:
    """Returns the epoch of the target assignment and the member's part of it; computes the target again if that is due.
    Raises ApiError.

    A member whose subscription did not raise the group's epoch is left out where it is asked whether all are alike, as
    in Kafka: one that joins with an empty subscription.
    """
    epoch, topics = subscribed.epoch, subscribed.topics
    if target_assignment.is_due(shard, group, epoch):
        assignor = group.preferred_assignor(shard.assignors.default, member, changed)
        alike = group.are_alike() if topics is None else group.are_alike_after(member, changed, topics)
        work = _work(shard, group, epoch, _with(group, changed), assignor, alike)
        assignment = target_assignment.assign(shard, group, work, records)
        if assignment is not None:
            return epoch, assignment.get(changed.id, {})
    return group.assignment_epoch, group.target_of(changed)


def _work(
    shard: ShardState, group: ConsumerGroup, epoch: int, members: Iterable[Member], name: str, alike: bool
) -> Work[Target]:
    candidates = [
        Candidate(m.id, m.instance_id, m.rack_id, group.subscription_of(m), group.target_of(m)) for m in members
    ]
    steps = shard.assignors.steps_of(name)
    function = shard.assignors.by_name(name) if steps is None else None
    return Work(RECORDS, epoch, candidates, steps, function, homogeneous=alike)


def work_for(shard: ShardState, group: ConsumerGroup) -> Work[Target]:
    """Describes the assignment that the group needs now."""
    assignor = group.preferred_assignor(shard.assignors.default)
    return _work(shard, group, group.epoch, group.in_order(), assignor, group.are_alike())


def _with(group: ConsumerGroup, changed: Member) -> list[Member]:
    """Returns the members of the group with `changed` in the place of its former self, or at the end instead of the
    static member that it replaces.
    """
    replaced = group.static_members.get(changed.instance_id) if changed.instance_id is not None else None
    return with_changed(group.in_order(), changed, {replaced})


def begin(shard: ShardState, group: ConsumerGroup) -> Result:
    """The timer `assign` ended."""
    return target_assignment.begin(shard, group, work_for)
