"""Checks of a StreamsGroupHeartbeat that are the same for every group."""

from __future__ import annotations

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from .member import LEAVE_STATIC_EPOCH


def check_request(request: messages.StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError(INVALID_REQUEST or STREAMS_INVALID_TOPOLOGY)."""
    topology, epoch = request.topology, request.member_epoch
    if topology is not None and any(one.source_topic_regex for one in topology.subtopologies):
        raise ApiError(Errors.INVALID_REQUEST, "Regular expressions for source topics are not supported yet.")
    texts = (
        ("MemberId", request.member_id),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    for name, text in texts:
        _refuse_if(text is not None and not text.strip(), f"{name} can't be empty.")
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if epoch == 0:
        _check_joining(request)
    elif epoch == LEAVE_STATIC_EPOCH:
        _refuse_if(request.instance_id is None, "InstanceId can't be null.")
    else:
        text = f"MemberEpoch is {epoch}, but must be greater than or equal to -2."
        _refuse_if(epoch < LEAVE_STATIC_EPOCH, text)
    is_partial = any(one is None for one in tasks) and any(one is not None for one in tasks)
    _refuse_if(is_partial, "If one task-type is non-null, all must be non-null.")
    _refuse_if(epoch != 0 and topology is not None, "Topology can only be provided when (re-)joining.")


def _check_joining(request: messages.StreamsGroupHeartbeatRequest) -> None:
    _refuse_if(request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request.")
    tasks = (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    )
    for name, of in tasks:
        _refuse_if(of is None or bool(of), f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        raise ApiError(Errors.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
    for one in request.topology.subtopologies:
        for topic in one.state_changelog_topics:
            if topic.partitions != 0:
                text = (
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}."
                )
                raise ApiError(Errors.STREAMS_INVALID_TOPOLOGY, text)


def check_named_once(request: messages.StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError(UNKNOWN_SERVER_ERROR): a member names a subtopology twice among the tasks that it has, from which
    Kafka cannot make a map.
    """
    active, standby, warmup = request.active_tasks, request.standby_tasks, request.warmup_tasks
    if active is None or standby is None or warmup is None:
        return
    for tasks in (active, standby, warmup):
        if len({one.subtopology_id for one in tasks}) < len(tasks):
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)


def _refuse_if(wrong: bool, message: str) -> None:
    if wrong:
        raise ApiError(Errors.INVALID_REQUEST, message)
