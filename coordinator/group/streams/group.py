"""A streams group (KIP-1071): its replayed state on a timeline, and the values that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...format import CoordinatorRecord
from ...timeline import Timeline, TimelineDict
from ..modern import ModernGroup
from .configured import ConfiguredTopology
from .known_partitions import KnownPartitions
from .member import StreamsMember
from .sticky import Offsets
from .tasks import NO_TASKS, HeldTasks, Task, Tasks
from .topology import Topology

NOT_READY = "NotReady"
NO_TOPOLOGY = -1  # instead of the epoch of a topology
DESCRIPTIONS = "group.streams.topology.description.plugin.class"
COMMIT_WITH_EPOCHS_SINCE = 9  # OffsetCommit
NOBODY: frozenset[str] = frozenset()


class TaskOffsets(NamedTuple):
    """What a member says of the states on its disk: the sums of the offsets that it has, and of the logs' ends."""

    has: Offsets
    ends: Offsets


NO_OFFSETS = TaskOffsets({}, {})


@dataclass(slots=True)
class Heard:
    """What members have said and is not in the log. What a request says that fails counts, too, as in Kafka.
    `shutdown_by`: the first member that asked for the end of the application.
    """

    shutdown_by: str | None = None
    offsets: dict[str, TaskOffsets] = field(default_factory=dict)
    endpoint_epoch: int = 0
    partitions: KnownPartitions = field(default_factory=KnownPartitions)

    def offsets_of(self, member_id: str) -> TaskOffsets:
        return self.offsets.get(member_id, NO_OFFSETS)

    def shut_down(self, by_member_id: str) -> None:
        """A member asks for the end of the application."""
        self.shutdown_by = self.shutdown_by or by_member_id


class StreamsGroup(ModernGroup[StreamsMember, Tasks]):
    """Members, target assignments, epochs and the topology of one group. Changed by replay only, except for what is
    not stored: the topology as it fits the topics, and what members have said.
    """

    kind: ClassVar[str] = "streams"
    __slots__ = (
        "_configs",
        "_configured",
        "_topologies",
        "active",
        "heard",
        "standby",
        "static_members",
        "warmup",
    )

    def __init__(self, group_id: str, timeline: Timeline) -> None:
        super().__init__(group_id, timeline)
        self.static_members: TimelineDict[str, str] = TimelineDict(timeline)
        # the process that runs each active task, and the processes that have copies
        self.active: TimelineDict[Task, str] = TimelineDict(timeline)
        self.standby: TimelineDict[Task, frozenset[str]] = TimelineDict(timeline)
        self.warmup: TimelineDict[Task, frozenset[str]] = TimelineDict(timeline)
        self._topologies: TimelineDict[str, Topology] = TimelineDict(timeline)  # one at most
        self._configs: TimelineDict[str, Mapping[str, str]] = TimelineDict(timeline)  # of the last assignment
        self._configured: TimelineDict[str, ConfiguredTopology] = TimelineDict(timeline)  # one at most
        self.heard = Heard()

    # the topology and the epochs

    @property
    def topology(self) -> Topology | None:
        return self._topologies.get("")

    def topology_as_of(self, as_of: int | None) -> Topology | None:
        return self._topologies.get("", None, as_of)

    def set_topology(self, topology: Topology | None) -> None:
        if topology is None:
            self._topologies.pop("")
        else:
            self._topologies[""] = topology

    @property
    def configured(self) -> ConfiguredTopology | None:
        return self._configured.get("")

    def configured_as_of(self, as_of: int | None) -> ConfiguredTopology | None:
        return self._configured.get("", None, as_of)

    def set_configured(self, configured: ConfiguredTopology) -> None:
        """A request that fails afterwards does not take this back, and those who read what is committed see it with
        the next write of the shard, as in Kafka.
        """
        self._configured[""] = configured

    @property
    def topology_epoch(self) -> int:
        return NO_TOPOLOGY if self.topology is None else self.topology.epoch

    @property
    def validated_epoch(self) -> int:
        """The epoch of the topology that fits the topics."""
        return int(self._scalars.get("validated", NO_TOPOLOGY))

    @property
    def description_epochs(self) -> tuple[int, int]:
        """The epochs of the topologies whose description was stored, and was refused (`stored_descriptions`)."""
        return self.described_epoch(), self._scalars.get("undescribed", NO_TOPOLOGY)

    def described_epoch(self, as_of: int | None = None) -> int:
        return int(self._scalars.get("described", NO_TOPOLOGY, as_of))

    @property
    def assignment_configs(self) -> Mapping[str, str]:
        """The configurations of the last assignment."""
        return self._configs.get("", {})

    def set_state(self, value: messages.StreamsGroupMetadataValue) -> None:
        self.set_epoch(value.epoch, value.metadata_hash)
        self._scalars["validated"] = value.validated_topology_epoch
        self._scalars["described"] = value.stored_description_topology_epoch
        self._scalars["undescribed"] = value.failed_description_topology_epoch
        self._configs[""] = {one.key: one.value for one in value.last_assignment_configs or ()}

    # members

    def static_member(self, instance_id: str) -> StreamsMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def current_id(self, member_id: str, instance_id: str | None) -> str | None:
        if member_id in self.members or instance_id is None:
            return super().current_id(member_id, instance_id)
        return self.static_members.get(instance_id)

    def target_of(self, member: StreamsMember) -> Tasks:
        """Returns a member's target; for a static member that replaces another one, the target of that."""
        member_id = member.id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id, member.id)
        return self.targets.get(member_id, NO_TASKS)

    def set_member(self, member: StreamsMember) -> None:
        before = self.members.get(member.id)
        if before is not None and before.instance_id != member.instance_id:
            self._drop_static(before)
        if member.instance_id is not None and self.static_members.get(member.instance_id) != member.id:
            self.static_members[member.instance_id] = member.id
        self.put_member(member.id, member)
        held = member.assigned, member.revoking, member.process_id
        if before is None or (before.assigned, before.revoking, before.process_id) != held:
            self._release(before)
            for tasks in (member.assigned, member.revoking):
                self._take(tasks, member.process_id)

    def remove_member(self, member_id: str) -> None:
        before = self.members.pop(member_id)
        if before is not None:
            self._drop_static(before)
            self._release(before)
            self.heard.offsets.pop(member_id, None)
            if self.is_empty:
                self.heard.shutdown_by = None

    def _drop_static(self, member: StreamsMember) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.id:
            self.static_members.pop(member.instance_id)

    def _release(self, member: StreamsMember | None) -> None:
        """Notes that a process no longer has the tasks of a member."""
        for tasks in (member.assigned, member.revoking) if member is not None else ():
            process = member.process_id  # type: ignore[union-attr]
            for task in tasks.active:
                if self.active.get(task) == process:
                    self.active.pop(task)
            for places, copies in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
                for task in copies:
                    left = places.get(task, NOBODY) - {process}
                    if left:
                        places[task] = left
                    else:
                        places.pop(task)

    def _take(self, tasks: HeldTasks, process: str) -> None:
        for task in tasks.active:
            self.active[task] = process
        for places, copies in ((self.standby, tasks.standby), (self.warmup, tasks.warmup)):
            for task in copies:
                places[task] = places.get(task, NOBODY) | {process}

    # state

    def is_kept(self, config: Callable[[str], object]) -> bool:
        """The description of the topology is deleted first."""
        return config(DESCRIPTIONS) is not None and self.described_epoch() != NO_TOPOLOGY

    def state_name(self, as_of: int | None = None) -> str:
        """Derived from members and epochs, and never stored. A group that does not exist is called Dead."""
        members = self.members.items(as_of)
        if not members:
            return "Empty"
        topology = self.topology_as_of(as_of)
        if topology is None or topology.epoch != self._scalars.get("validated", NO_TOPOLOGY, as_of):
            return NOT_READY
        epoch, assignment_epoch = self.epochs(as_of)
        if epoch > assignment_epoch:
            return "Assigning"
        if all(member.is_reconciled_to(assignment_epoch) for _, member in members):
            return "Stable"
        return "Reconciling"

    def is_subscribed_to(self, topic: str) -> bool:
        topology = self.topology
        return topology is not None and not self.is_empty and topic in topology.by_input

    def needs(self, topic: str) -> bool:
        topology = self.topology
        return topology is not None and topic in topology.required

    # checks

    def check_commit(self, member_id: str, epoch: int, version: int | None = None) -> StreamsMember | None:
        """Returns None if the member may commit all offsets, or the member if that depends on the partition. Raises
        ApiError. `version`: of OffsetCommit; None for a commit in a transaction.
        """
        if epoch < 0 and self.is_empty:
            return None
        member = self.member(member_id)
        if version is not None and version < COMMIT_WITH_EPOCHS_SINCE:
            raise ApiError(
                Errors.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group protocol",
            )
        if epoch == member.epoch:
            return None
        if epoch > member.epoch or self.topology is None:
            raise ApiError(Errors.STALE_MEMBER_EPOCH)
        return member

    def check_commit_of(self, member: StreamsMember, epoch: int, topic: str | None, partition: int) -> None:
        """A commit with an older epoch is valid for a task that the member has had since then. Raises ApiError."""
        subtopology = self.topology.by_input.get(topic) if self.topology is not None and topic is not None else None
        task = (subtopology or "", partition)
        assigned_at = member.assigned.active.get(task, member.revoking.active.get(task))
        if subtopology is None or assigned_at is None or epoch < assigned_at:
            raise ApiError(Errors.STALE_MEMBER_EPOCH)

    def has_readable_offsets(self, member_id: str | None, epoch: int, as_of: int | None) -> bool:
        if member_id is None:
            if epoch < 0:
                return True
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)  # as in Kafka
        member = self.members.get(member_id, None, as_of)
        if member is None:
            raise ApiError(Errors.UNKNOWN_MEMBER_ID)
        if epoch != member.epoch:
            raise ApiError(Errors.STALE_MEMBER_EPOCH)
        return True

    def tombstones(self) -> list[CoordinatorRecord]:
        m = messages
        ids = list(self.members)
        records: list[CoordinatorRecord] = []
        records += [(m.StreamsGroupCurrentMemberAssignmentKey(group_id=self.id, member_id=i), None) for i in ids]
        records += [(m.StreamsGroupTargetAssignmentMemberKey(group_id=self.id, member_id=i), None) for i in ids]
        records.append((m.StreamsGroupTargetAssignmentMetadataKey(group_id=self.id), None))
        records += [(m.StreamsGroupMemberMetadataKey(group_id=self.id, member_id=i), None) for i in ids]
        records.append((m.StreamsGroupMetadataKey(group_id=self.id), None))
        records.append((m.StreamsGroupTopologyKey(group_id=self.id), None))
        return records
