"""The reply to a heartbeat of a streams group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ....protocol import messages
from ..environment import Client
from ..modern_pace import heartbeat_interval_ms
from ..state import ShardState
from .assignment import RACK_TAGS
from .configured import ConfiguredTopology
from .endpoints import partitions_by_endpoint
from .group import StreamsGroup
from .member import STABLE, StreamsMember
from .statuses import Code, Status
from .tasks import Task, in_reply_order

TAGS_SINCE = RECOVERY_LAG_SINCE = 1


class Outcome(NamedTuple):
    """What a heartbeat decided. `replaced`: the static member whose place the member takes."""

    before: StreamsMember
    after: StreamsMember
    replaced: StreamsMember | None
    configured: ConfiguredTopology
    configs: Mapping[str, str]
    statuses: list[Status]


def reply(
    shard: ShardState,
    group: StreamsGroup,
    client: Client,
    request: messages.StreamsGroupHeartbeatRequest,
    outcome: Outcome,
) -> messages.StreamsGroupHeartbeatResponse:
    """Raises ApiError(UNKNOWN_SERVER_ERROR): partitions of endpoints are due, and the topology has no tasks yet."""
    r = messages.StreamsGroupHeartbeatResponse
    before, after = outcome.before, outcome.after
    lag = shard.env.group_config(group.id, "streams.acceptable.recovery.lag")
    response = r(
        member_id=after.id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=_interval_ms(shard, group, outcome),
        task_offset_interval_ms=shard.env.group_config(group.id, "streams.task.offset.interval.ms"),
        acceptable_recovery_lag=lag,
    )
    changed = before.assigned != after.assigned
    if request.member_epoch == 0 or changed:
        response.active_tasks = _ids(after.assigned.active)
        response.standby_tasks = _ids(after.assigned.standby)
        response.warmup_tasks = _ids(after.assigned.warmup)
    _add_endpoints(shard, group, request, outcome, changed, response)
    statuses = [*outcome.statuses, *_statuses(group, client, outcome)]
    response.status = [r.Status(status_code=int(one.code), status_detail=one.detail) for one in statuses]
    return response


def _interval_ms(shard: ShardState, group: StreamsGroup, outcome: Outcome) -> int:
    problem, after = outcome.configured.problem, outcome.after
    if problem is not None and problem.code == Code.MISSING_SOURCE_TOPICS:
        # Kafka Streams gives up if source topics are not there after two intervals: no shorter one than Kafka's
        return int(shard.env.group_config(group.id, "streams.heartbeat.interval.ms"))
    return heartbeat_interval_ms(shard, group, after.state == STABLE and after.epoch >= group.assignment_epoch)


def _ids(tasks: Iterable[Task]) -> list[messages.StreamsGroupHeartbeatResponse.TaskIds]:
    r = messages.StreamsGroupHeartbeatResponse
    return [r.TaskIds(subtopology_id=name, partitions=of) for name, of in in_reply_order(tasks)]


def _add_endpoints(
    shard: ShardState,
    group: StreamsGroup,
    request: messages.StreamsGroupHeartbeatRequest,
    outcome: Outcome,
    changed: bool,
    response: messages.StreamsGroupHeartbeatResponse,
) -> None:
    after = outcome.after
    if outcome.before.endpoint != after.endpoint or (changed and after.endpoint is not None):
        group.heard.endpoint_epoch += 1
    if group.heard.endpoint_epoch != request.endpoint_information_epoch:
        response.partitions_by_user_endpoint = partitions_by_endpoint(
            group, after, outcome.replaced, outcome.configured, shard.env.image
        )
    if group.id in shard.groups:
        response.endpoint_information_epoch = group.heard.endpoint_epoch


def _statuses(group: StreamsGroup, client: Client, outcome: Outcome) -> Iterable[Status]:
    if outcome.configured.problem is not None:
        yield outcome.configured.problem
    shutdown_by = group.heard.shutdown_by
    if shutdown_by is not None:
        yield Status(
            Code.SHUTDOWN_APPLICATION,
            f"Streams group member {shutdown_by} encountered a fatal error and requested a shutdown for the "
            "entire application.",
        )
    tags = outcome.configs.get(RACK_TAGS, "")
    if client.version >= TAGS_SINCE and tags:
        absent = [tag for tag in tags.split(",") if tag not in outcome.after.client_tags]
        if absent:
            yield Status(
                Code.MISSING_CLIENT_TAGS,
                f"Missing required client tags for rack-aware standby assignment: [{', '.join(absent)}]. Configure "
                "them via 'client.tag.<tagKey>' in your Streams config.",
            )
