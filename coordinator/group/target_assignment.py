"""New target assignments of modern groups: at once for small groups,
in steps for large ones (KIP-848, KIP-932, KIP-1263).

A small group's assignment is computed within the heartbeat that makes it due, as in Kafka 4.4. Where there is more to
do than `LARGE`, and `consumer.assignor.offload.enable` or `share.assignor.offload.enable` is true (the default), the
heartbeat is answered with the last target, as it is while the assignment interval has not passed, and the assignment is
computed between other requests. A later heartbeat brings it to the member. Meanwhile members come, change and leave:

- One assignment of a group is computed at a time, for the group's epoch and from its members at the first step. It is
  installed although the group's epoch may be higher by then; the next heartbeat begins the next one.
- A member that left gets no target, and one that came waits for the next assignment. A static member that was replaced
  under its instance id gets the target of the one before.
- Nothing is installed in a group that ended, or that has a newer assignment, or in a shard that was unloaded.

Targets of many members are written a hundred members at a time. The last write brings every target that still
differs, with the epoch of the assignment: a group that was interrupted before has its old assignment epoch, and is
assigned again. Until then targets are of two assignments, which gives no partition two owners: a member gets one only
when no one owns it (`Reconciliation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from ...protocol.errors import ApiError, Errors
from ..format import CoordinatorRecord
from ..hashing import java_order_steps, set_order_steps
from ..shard import Result
from .assignment_work import Failure, Work
from .assignors import AssignorFailed, MemberSpec, Spec, Steps, TopicSpec, finished
from .modern import AnyModernGroup, ModernGroup
from .state import ShardState

LARGE = 10_000  # subscriptions and partitions that are assigned within a heartbeat at most: some milliseconds of work
MEMBER_COST = 10  # of a member, whose target is compared, written and replayed, beside that of a subscription
MEMBERS_PER_WRITE = 100
M = TypeVar("M", bound=AnyModernGroup)
Member = TypeVar("Member")
T = TypeVar("T")  # what it is to have


def is_due(shard: ShardState, group: AnyModernGroup, epoch: int) -> bool:
    """Whether an assignment for the group's epoch is missing, none is being computed, and the interval between two
    assignments has passed.
    """
    if group.assignment_epoch >= epoch or group.id in shard.assigning:
        return False
    interval_ms = shard.env.group_config(group.id, f"{group.kind}.assignment.interval.ms")
    return group.may_be_assigned(shard.env.now_ms(), interval_ms)


def assign(
    shard: ShardState, group: ModernGroup[Member, T], work: Work[T], records: list[CoordinatorRecord]
) -> Mapping[str, T] | None:
    """Adds the records of a new assignment; None if it is computed between other requests, which begins with the timer
    `assign`. Raises ApiError(UNKNOWN_SERVER_ERROR).
    """
    failure = shard.assignor_failures.pop(group.id, None)
    if failure is not None and failure.epoch == work.epoch:
        raise _failed(work.epoch, failure.reason)
    if _is_large(shard, work) and shard.env.group_config(group.id, f"{group.kind}.assignor.offload.enable"):
        shard.schedule(("assign", group.id), 0)
        return None
    try:
        spec = finished(_spec(shard, work))
        assignment = work.function(spec) if work.steps is None else finished(work.steps(spec))  # type: ignore[misc]
    except AssignorFailed as error:
        raise _failed(work.epoch, str(error)) from None
    instances = {one.id: one.instance_id for one in work.candidates}
    for member_id in spec.members:
        target, now_id = (
            assignment.get(member_id, work.records.nothing),
            group.current_id(member_id, instances[member_id]),
        )
        if now_id is None or group.targets.get(now_id) != target:
            records.append(work.records.of_member(group.id, member_id, target))
    records.append(work.records.of_group(group.id, work.epoch, shard.env.now_ms()))
    return assignment


def _failed(epoch: int, reason: str) -> ApiError:
    return ApiError(
        Errors.UNKNOWN_SERVER_ERROR, f"Failed to compute a new target assignment for epoch {epoch}: {reason}"
    )


def _is_large(shard: ShardState, work: Work[T]) -> bool:
    size = work.size + sum(MEMBER_COST + len(one.names) for one in work.candidates)
    if size > LARGE:
        return True
    image = shard.env.image
    for name in frozenset[str]().union(*(one.names for one in work.candidates)):
        topic_id = image.topic_id(name)
        size += image.partition_count(topic_id) if topic_id is not None else 0
    return size > LARGE


def _spec(shard: ShardState, work: Work[T]) -> Steps[Spec]:
    """Returns the assignor's input. Each topic is looked up once: a later change raises the group's epoch again."""
    image = shard.env.image
    ids: dict[str, bytes | None] = {}
    counts: dict[bytes, int] = {}
    topics: dict[bytes, TopicSpec] = {}
    subscriptions: dict[frozenset[str], frozenset[bytes]] = {}
    by_id = {one.id: one for one in work.candidates}
    members: dict[str, MemberSpec] = {}
    first_topics: list[bytes] = []
    for member_id in (yield from java_order_steps(by_id)):
        one = by_id[member_id]
        if one.names not in subscriptions:
            for name in sorted(one.names - ids.keys()):
                topic_id = ids[name] = image.topic_id(name)
                if topic_id is not None:
                    counts[topic_id] = image.partition_count(topic_id)
                    if work.function is not None:
                        topics[topic_id] = TopicSpec(name, tuple(image.partition_racks(topic_id)))
                        yield
            subscriptions[one.names] = frozenset(found for name in one.names if (found := ids[name]) is not None)
        if not members:
            in_order = yield from set_order_steps(sorted(one.names))
            first_topics = [found for name in in_order if (found := ids[name]) is not None]
        members[member_id] = MemberSpec(one.instance_id, one.rack_id, subscriptions[one.names], one.target)
        yield
    return Spec(members, counts, work.homogeneous, topics, first_topics)


# between other requests


def begin(shard: ShardState, group: M, work_for: Callable[[ShardState, M], Work[T]]) -> Result:
    """The timer `assign` ended. The heartbeat that set it may have failed, or the assignment may exist by now."""

    def start() -> None:
        if shard.groups.get(group.id) is not group:
            return
        if group.id not in shard.assigning and group.assignment_epoch < group.epoch:
            shard.assigning[group.id] = group
            shard.env.in_steps(_begun(shard, group, work_for))

    shard.journal.after(start)
    return Result()


def _begun(shard: ShardState, group: M, work_for: Callable[[ShardState, M], Work[T]]) -> Iterator[None]:
    """Describes the assignment at its first step, for which other groups may have had to wait, and computes it."""
    if shard.assigning.get(group.id) is not group:
        return
    del shard.assigning[group.id]
    if shard.groups.get(group.id) is group and group.assignment_epoch < group.epoch:
        work = shard.assigning[group.id] = work_for(shard, group)
        yield
        yield from _computed(shard, group, work)


def _computed(shard: ShardState, group: AnyModernGroup, work: Work[T]) -> Iterator[None]:
    """Computes the assignment and installs it, as long as it is wanted."""
    steps = _assignment(shard, group, work)
    try:
        while _is_wanted(shard, group, work):
            try:
                next(steps)
            except StopIteration:
                return
            yield
    except AssignorFailed as error:
        shard.assignor_failures[group.id] = Failure(work.epoch, str(error))
        _end(shard, group, work)
    except Exception:
        _end(shard, group, work)
        raise
    _end(shard, group, work)


def _assignment(shard: ShardState, group: AnyModernGroup, work: Work[T]) -> Steps[None]:
    spec = yield from _spec(shard, work)
    if work.steps is not None:
        assignment = yield from work.steps(spec)
        yield from _installed(shard, group, work, list(spec.members), assignment)
        return
    function = work.function
    assert function is not None

    def done(found: Mapping[str, T] | None, error: BaseException | None) -> None:
        shard.env.in_steps(_computed_elsewhere(shard, group, work, list(spec.members), found, error))

    shard.env.background(lambda: function(spec), done)


def _computed_elsewhere(
    shard: ShardState,
    group: AnyModernGroup,
    work: Work[T],
    order: list[str],
    found: Mapping[str, T] | None,
    error: BaseException | None,
) -> Iterator[None]:
    """A user's function returned in its thread."""
    if not _is_wanted(shard, group, work):
        _end(shard, group, work)
    elif found is None:
        shard.assignor_failures[group.id] = Failure(work.epoch, str(error))
        _end(shard, group, work)
    else:
        yield from _installed(shard, group, work, order, found)


def _is_wanted(shard: ShardState, group: AnyModernGroup, work: Work[T]) -> bool:
    is_there = shard.assigning.get(group.id) is work and shard.groups.get(group.id) is group
    return is_there and group.assignment_epoch < work.epoch <= group.epoch


def _end(shard: ShardState, group: AnyModernGroup, work: Work[T]) -> None:
    if shard.assigning.get(group.id) is work:
        del shard.assigning[group.id]


def _installed(
    shard: ShardState,
    group: AnyModernGroup,
    work: Work[T],
    order: list[str],
    assignment: Mapping[str, T],
) -> Steps[None]:
    instances = {one.id: one.instance_id for one in work.candidates}

    def targets(members: Iterable[str]) -> list[CoordinatorRecord]:
        """The targets that differ, of members that are still in the group."""
        records = []
        for member_id in members:
            target, now_id = (
                assignment.get(member_id, work.records.nothing),
                group.current_id(member_id, instances[member_id]),
            )
            if now_id is not None and group.targets.get(now_id) != target:
                records.append(work.records.of_member(group.id, now_id, target))
        return records

    def some(members: list[str]) -> Result:
        return Result(targets(members) if _is_wanted(shard, group, work) else [])

    def all_that_are_left() -> Result:
        wanted = _is_wanted(shard, group, work)
        _end(shard, group, work)
        if not wanted:
            return Result()
        shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
        return Result([*targets(order), work.records.of_group(group.id, work.epoch, shard.env.now_ms())])

    for start in range(0, len(order) - MEMBERS_PER_WRITE, MEMBERS_PER_WRITE):
        members = order[start : start + MEMBERS_PER_WRITE]
        shard.write("update-targets", lambda members=members: some(members))  # type: ignore[misc]
        yield
    shard.write("update-targets", all_that_are_left)
