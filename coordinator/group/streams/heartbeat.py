"""StreamsGroupHeartbeat: a member of a streams group joins or stays (KIP-1071).

1. The member is added or changed, the topology is stored if it is the first, and held against the topics that exist.
   The group's epoch is raised if that requires another assignment.
2. The target assignment is computed again if its epoch is lower than the group's epoch.
3. The member advances towards its target.

Kafka 4.4 has a place where an assignment could be refined, so that states warm up before tasks move; it changes nothing
there, and there are no warm-up tasks. Members that leave are in `leaving`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ... import epochs
from ...format import CoordinatorRecord
from ...shard import Result
from ..environment import Client
from ..metadata_hash import metadata_hash
from ..modern import replaced
from ..state import ShardState
from .assignment import assign, await_others, configs_of
from .beat import Beat
from .checks import check_named_once
from .configured import ConfiguredTopology, configure
from .group import NO_TOPOLOGY, StreamsGroup, TaskOffsets
from .leaving import LEAVES
from .member import StreamsMember
from .membership import check_room, find_member, owned_by
from .reconciliation import reconcile
from .records import group_record, metadata_record, topology_record
from .replies import Outcome, reply
from .statuses import Code, Status
from .tasks import Task
from .topology import Topology, topology_of

if TYPE_CHECKING:
    from ..classic.group import ClassicGroup

    Request = messages.StreamsGroupHeartbeatRequest

NEVER_MS = 2**31 - 1  # how long a metadata hash is valid unless a topic changes


class _Settled(NamedTuple):
    """The topology of the group after a heartbeat. `is_new`: the metadata hash differs from the group's."""

    topology: Topology
    configured: ConfiguredTopology
    metadata_hash: int
    is_new: bool

    @property
    def validated_epoch(self) -> int:
        return self.topology.epoch if self.configured.is_ready else NO_TOPOLOGY


def join_new_group(shard: ShardState, group: None, client: Client, request: Request) -> Result[Beat]:
    """The first member of a group joins. Raises ApiError."""
    if request.member_epoch != 0:
        words = f"Group {request.group_id}" if request.member_epoch in LEAVES else f"Streams group {request.group_id}"
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"{words} not found.")
    return heartbeat_after(shard, StreamsGroup(request.group_id, shard.timeline), client, request, [])


def heartbeat_of_classic(shard: ShardState, group: ClassicGroup, client: Client, request: Request) -> Result[Beat]:
    """The first member joins a group that had members of the classic protocol, and has none. Raises ApiError."""
    if request.member_epoch != 0 or not group.is_empty:
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group.id} is not a streams group.")
    records = shard.end_group(group)
    return heartbeat_after(shard, StreamsGroup(group.id, shard.timeline), client, request, records)


def heartbeat(shard: ShardState, group: StreamsGroup, client: Client, request: Request) -> Result[Beat]:
    """A member joins or stays. Raises ApiError."""
    return heartbeat_after(shard, group, client, request, [])


def heartbeat_after(
    shard: ShardState, group: StreamsGroup, client: Client, request: Request, records: list[CoordinatorRecord]
) -> Result[Beat]:
    """Like `heartbeat`, for a group that `records` create. They come first in the result."""
    joins = request.member_epoch == 0
    if joins:
        check_room(shard, group, request.member_id, request.instance_id)
    owned = owned_by(request)
    member, before = find_member(group, request, owned, records)
    changed = _updated(member, client, request)
    bump = _note_member(group, request, member, changed, records)
    statuses: list[Status] = []
    settled = _settle(shard, group, request, changed, records, statuses)
    _check_tasks(request, settled.configured)
    _note_offsets(shard, group, request)
    configs = configs_of(shard, group.id)
    bump = bump or settled.is_new or settled.validated_epoch != group.validated_epoch
    epoch = group.epoch
    if bump or configs != group.assignment_configs:
        epoch = epochs.after(epoch)
        records.append(group_record(group, epoch, settled.metadata_hash, settled.validated_epoch, configs))
        shard.counts["streams_rebalances"] += 1
        shard.moved_at_ms[group.id] = shard.env.monotonic_ms()
        group.refresh_at_ms = (shard.env.now_ms() + NEVER_MS, epoch)
    await_others(shard, group)
    target_epoch, target = assign(shard, group, epoch, changed, before, settled.configured, configs, records, statuses)
    if not changed.is_reconciled_to(target_epoch):
        check_named_once(request)
    after = reconcile(shard, group, changed, target_epoch, target, owned, records)
    shard.await_session(group, member.id)
    if request.shutdown_application:
        group.heard.shut_down(member.id)
    outcome = Outcome(member, after, before, settled.configured, configs, statuses)
    return Result(records, Beat(reply(shard, group, client, request, outcome), settled.configured.missing))


# the steps


def _updated(member: StreamsMember, client: Client, request: Request) -> StreamsMember:
    """Returns the member with what the request says about it; the same object if that is nothing new."""
    changes: dict[str, object] = {"client_id": client.id, "client_host": client.host}
    if request.instance_id is not None:
        changes["instance_id"] = request.instance_id
    if request.rack_id is not None:
        changes["rack_id"] = request.rack_id
    if request.rebalance_timeout_ms != -1:
        changes["rebalance_timeout_ms"] = request.rebalance_timeout_ms
    if request.topology is not None:
        changes["topology_epoch"] = request.topology.epoch
    if request.process_id is not None:
        changes["process_id"] = request.process_id
    if request.client_tags is not None:
        tags = {tag.key: tag.value for tag in request.client_tags}
        if len(tags) < len(request.client_tags):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        changes["client_tags"] = tags
    endpoint = request.user_endpoint
    if endpoint is not None or request.member_epoch == 0:
        changes["endpoint"] = None if endpoint is None else (endpoint.host, endpoint.port)
    return replaced(member, changes)


def _note_member(
    group: StreamsGroup,
    request: Request,
    member: StreamsMember,
    changed: StreamsMember,
    records: list[CoordinatorRecord],
) -> bool:
    """Adds the record of a member that changes. Returns whether that calls for another assignment."""
    if member == changed:
        return False
    records.append(metadata_record(group.id, changed))
    return request.instance_id is None or member.weighs() != changed.weighs()


def _settle(
    shard: ShardState,
    group: StreamsGroup,
    request: Request,
    member: StreamsMember,
    records: list[CoordinatorRecord],
    statuses: list[Status],
) -> _Settled:
    """Returns the topology with the topics that exist. Raises ApiError."""
    known = group.topology
    topology = _topology(group, request, records)
    if known is not None and member.topology_epoch < known.epoch:
        detail = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch {known.epoch}."
        )
        statuses.append(Status(Code.STALE_TOPOLOGY, detail))
    deadline, of_epoch = group.refresh_at_ms
    configured, found = group.configured, group.metadata_hash
    is_known = known is not None and configured is not None
    if not is_known or shard.env.now_ms() >= deadline or group.epoch < of_epoch:
        found = metadata_hash(topology.required, shard.env.image)
        group.refresh_at_ms = (shard.env.now_ms() + NEVER_MS, group.epoch)
    is_new = found != group.metadata_hash
    if configured is None or known is None or is_new:
        configured = configure(topology, shard.env.image)
        group.set_configured(configured)
    return _Settled(topology, configured, found, is_new)


def _topology(group: StreamsGroup, request: Request, records: list[CoordinatorRecord]) -> Topology:
    """Returns the topology of the group; adds the record of the first one. Raises ApiError."""
    known = group.topology
    if request.topology is None:
        if known is None:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        return known
    given = topology_of(request.topology)
    if known is None:
        records.append(topology_record(group.id, given))
        return given
    if known.epoch <= given.epoch and known != given:
        raise ApiError(Errors.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _check_tasks(request: Request, configured: ConfiguredTopology) -> None:
    """Raises ApiError(INVALID_REQUEST): a member has a task that the topology has not."""
    subtopologies = configured.subtopologies
    if not configured.is_ready or subtopologies is None:
        return
    for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
        for one in tasks or ():
            found = subtopologies.get(one.subtopology_id)
            if found is None:
                text = f"Subtopology {one.subtopology_id} does not exist in the topology."
                raise ApiError(Errors.INVALID_REQUEST, text)
            for number in one.partitions:
                if not 0 <= number < found.tasks:
                    text = (
                        f"Task {number} for subtopology {one.subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {found.tasks}"
                    )
                    raise ApiError(Errors.INVALID_REQUEST, text)


def _note_offsets(shard: ShardState, group: StreamsGroup, request: Request) -> None:
    """Notes what the member says of the states on its disk. Raises ApiError(INVALID_REQUEST)."""
    if request.task_offsets is None and request.task_end_offsets is None:
        return
    offsets, before = group.heard.offsets, group.heard.offsets_of(request.member_id)
    has = before.has if request.task_offsets is None else _by_task(request.task_offsets)
    ends = before.ends if request.task_end_offsets is None else _by_task(request.task_end_offsets)
    offsets[request.member_id] = TaskOffsets(has, ends)
    if request.member_id not in group.members:  # ids that do not become members leave nothing
        shard.journal.note(offsets.pop, request.member_id, None)


def _by_task(offsets: Iterable[messages.StreamsGroupHeartbeatRequest.TaskOffset]) -> dict[Task, int]:
    found: dict[Task, int] = {}
    for one in offsets:
        task = one.subtopology_id, one.partition
        if task in found:
            text = (
                f"Task offsets contain a duplicate entry for subtopology {one.subtopology_id} and partition "
                f"{one.partition}."
            )
            raise ApiError(Errors.INVALID_REQUEST, text)
        found[task] = one.offset
    return found
