"""The records of streams groups: how they are made, and how they are replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ....protocol import messages
from ...format import CoordinatorRecord
from ..assignment_work import TargetRecords
from ..modern_replay import Replay, replay_assignment, replayed_group
from ..state import ShardState
from .group import StreamsGroup
from .member import StreamsMember
from .tasks import NO_TASKS, NOTHING_HELD, HeldTasks, Task, Tasks, by_subtopology, flat
from .topology import Topology, stored, topology_of

if TYPE_CHECKING:
    CurrentValue = messages.StreamsGroupCurrentMemberAssignmentValue
    TargetValue = messages.StreamsGroupTargetAssignmentMemberValue


def metadata_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """The record of what a member says about itself."""
    v = messages.StreamsGroupMemberMetadataValue
    value = v(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        client_tags=[v.KeyValue(key=key, value=text) for key, text in sorted(member.client_tags.items())],
    )
    if member.endpoint is not None:
        value.user_endpoint = v.Endpoint(host=member.endpoint[0], port=member.endpoint[1])
    return messages.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.id), value


def group_record(
    group: StreamsGroup,
    epoch: int,
    hash_of_metadata: int,
    validated_epoch: int,
    configs: Mapping[str, str],
    of_descriptions: tuple[int, int] | None = None,
) -> CoordinatorRecord:
    """The record of the group's epochs. `of_descriptions`: other `description_epochs` than the group's."""
    v = messages.StreamsGroupMetadataValue
    described, undescribed = group.description_epochs if of_descriptions is None else of_descriptions
    return messages.StreamsGroupMetadataKey(group_id=group.id), v(
        epoch=epoch,
        metadata_hash=hash_of_metadata,
        validated_topology_epoch=validated_epoch,
        last_assignment_configs=[v.LastAssignmentConfig(key=key, value=text) for key, text in sorted(configs.items())],
        stored_description_topology_epoch=described,
        failed_description_topology_epoch=undescribed,
    )


def topology_record(group_id: str, topology: Topology) -> CoordinatorRecord:
    return messages.StreamsGroupTopologyKey(group_id=group_id), stored(topology)


def assignment_record(group_id: str, epoch: int, timestamp_ms: int) -> CoordinatorRecord:
    value = messages.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=timestamp_ms
    )
    return messages.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value


def target_record(group_id: str, member_id: str, target: Tasks) -> CoordinatorRecord:
    v = messages.StreamsGroupTargetAssignmentMemberValue

    def ids(tasks: frozenset[Task]) -> list[TargetValue.TaskIds]:
        return [v.TaskIds(subtopology_id=name, partitions=of) for name, of in by_subtopology(tasks).items()]

    key = messages.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return key, v(active_tasks=ids(target.active), standby_tasks=ids(target.standby), warmup_tasks=ids(target.warmup))


def current_record(group_id: str, member: StreamsMember) -> CoordinatorRecord:
    """The record of a member's current assignment."""
    v = messages.StreamsGroupCurrentMemberAssignmentValue

    def ids(tasks: frozenset[Task]) -> list[CurrentValue.TaskIds]:
        return [v.TaskIds(subtopology_id=name, partitions=of) for name, of in by_subtopology(tasks).items()]

    def with_epochs(tasks: Mapping[Task, int]) -> list[CurrentValue.TaskIds]:
        return [
            v.TaskIds(subtopology_id=name, partitions=of, assignment_epochs=[tasks[name, number] for number in of])
            for name, of in by_subtopology(tasks).items()
        ]

    key = messages.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id)
    return key, v(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=with_epochs(member.assigned.active),
        standby_tasks=ids(member.assigned.standby),
        warmup_tasks=ids(member.assigned.warmup),
        active_tasks_pending_revocation=with_epochs(member.revoking.active),
        standby_tasks_pending_revocation=ids(member.revoking.standby),
        warmup_tasks_pending_revocation=ids(member.revoking.warmup),
    )


def member_tombstones(group_id: str, member_id: str) -> list[CoordinatorRecord]:
    """The records that take a member out of its group."""
    m = messages
    return [
        (m.StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (m.StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (m.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


RECORDS: TargetRecords[Tasks] = TargetRecords(target_record, assignment_record, NO_TASKS)


# replay


def replay_group(
    shard: ShardState, key: messages.StreamsGroupMetadataKey, value: messages.StreamsGroupMetadataValue | None
) -> None:
    group = replayed_group(shard, StreamsGroup, key.group_id, value)
    if group is None:
        return
    if value is None:
        shard.groups.pop(key.group_id)
    else:
        group.set_state(value)


def replay_topology(
    shard: ShardState, key: messages.StreamsGroupTopologyKey, value: messages.StreamsGroupTopologyValue | None
) -> None:
    group = replayed_group(shard, StreamsGroup, key.group_id, value)
    if group is None:
        return
    topology = None if value is None else topology_of(value)
    group.set_topology(topology)
    if topology is not None:
        shard.note_topics(key.group_id, topology.required)


def replay_member(
    shard: ShardState,
    key: messages.StreamsGroupMemberMetadataKey,
    value: messages.StreamsGroupMemberMetadataValue | None,
) -> None:
    group = replayed_group(shard, StreamsGroup, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.remove_member(key.member_id)
        return
    endpoint = value.user_endpoint
    group.set_member(
        replace(
            group.members.get(key.member_id) or StreamsMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
            client_tags={one.key: one.value for one in value.client_tags},
        )
    )


def replay_target(
    shard: ShardState, key: messages.StreamsGroupTargetAssignmentMemberKey, value: TargetValue | None
) -> None:
    group = replayed_group(shard, StreamsGroup, key.group_id, value)
    if group is None:
        return
    if value is None:
        group.targets.pop(key.member_id)
    else:
        group.targets[key.member_id] = Tasks(
            flat(value.active_tasks), flat(value.standby_tasks), flat(value.warmup_tasks)
        )


def replay_current(
    shard: ShardState, key: messages.StreamsGroupCurrentMemberAssignmentKey, value: CurrentValue | None
) -> None:
    group = replayed_group(shard, StreamsGroup, key.group_id, value)
    if group is None:
        return
    member = group.members.get(key.member_id)
    if value is not None:
        epoch = value.member_epoch
        assigned = HeldTasks(
            _with_epochs(value.active_tasks, epoch), flat(value.standby_tasks), flat(value.warmup_tasks)
        )
        revoking = HeldTasks(
            _with_epochs(value.active_tasks_pending_revocation, epoch),
            flat(value.standby_tasks_pending_revocation),
            flat(value.warmup_tasks_pending_revocation),
        )
        group.set_member(
            replace(
                member or StreamsMember(key.member_id),
                epoch=epoch,
                previous_epoch=value.previous_member_epoch,
                state=value.state,
                assigned=assigned,
                revoking=revoking,
            )
        )
    elif member is not None:
        gone = replace(member, epoch=-1, previous_epoch=-1, assigned=NOTHING_HELD, revoking=NOTHING_HELD)
        group.set_member(gone)


def _with_epochs(named: Iterable[CurrentValue.TaskIds], default: int) -> dict[Task, int]:
    """Returns the tasks of a record with their epochs; the member's own epoch stands in for missing epochs."""
    found: dict[Task, int] = {}
    for one in named:
        epochs = one.assignment_epochs
        if epochs is None or len(epochs) != len(one.partitions):
            epochs = [default] * len(one.partitions)
        found.update(
            ((one.subtopology_id, number), epoch) for number, epoch in zip(one.partitions, epochs, strict=True)
        )
    return found


REPLAYS: dict[str, Replay] = {
    "StreamsGroupMetadataKey": replay_group,
    "StreamsGroupTopologyKey": replay_topology,
    "StreamsGroupMemberMetadataKey": replay_member,
    "StreamsGroupTargetAssignmentMetadataKey": partial(replay_assignment, StreamsGroup),
    "StreamsGroupTargetAssignmentMemberKey": replay_target,
    "StreamsGroupCurrentMemberAssignmentKey": replay_current,
}
