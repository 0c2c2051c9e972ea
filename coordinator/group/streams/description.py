"""StreamsGroupDescribe: a streams group as of a committed offset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...hashing import java_order
from ..state import ShardState
from . import sticky
from .configured import ConfiguredSubtopology, ConfiguredTopology
from .group import StreamsGroup
from .member import StreamsMember
from .sticky import Offsets
from .tasks import NO_TASKS, Tasks, by_subtopology
from .topology import InternalTopic, Topology

if TYPE_CHECKING:
    _Response = messages.StreamsGroupDescribeResponse
    Described = tuple[_Response.DescribedGroup, Iterator[_Response.Member]]


def describe(shard: ShardState, group_id: str, as_of: int) -> Described:
    """Returns a group without its members, and an iterator of the members, which may be used after the group has
    changed: there may be thousands. Raises ApiError(GROUP_ID_NOT_FOUND).
    """
    r = messages.StreamsGroupDescribeResponse
    group = shard.existing_of(StreamsGroup, group_id, as_of)
    topology = group.topology_as_of(as_of)
    if topology is None:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    epoch, assignment_epoch = group.epochs(as_of)
    described = r.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(as_of),
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=sticky.NAME,
        topology=_topology(topology, group.configured_as_of(as_of)),
    )
    found = [
        (member, group.targets.get(member.id, NO_TASKS, as_of), group.heard.offsets_of(member.id))
        for member in group.in_order(as_of)
    ]
    return described, (_member(member, target, offsets.has, offsets.ends) for member, target, offsets in found)


def _topology(
    topology: Topology, configured: ConfiguredTopology | None
) -> messages.StreamsGroupDescribeResponse.Topology:
    """The topology with the numbers of partitions if all its topics are there, otherwise as it was given."""
    r = messages.StreamsGroupDescribeResponse
    if configured is not None and configured.is_ready and configured.subtopologies is not None:
        parts = [_configured(name, one) for name, one in configured.subtopologies.items()]
    else:
        parts = [
            _subtopology(one.id, one.sources, one.sinks, one.repartitions, one.changelogs, in_order=False)
            for one in sorted(topology.subtopologies.values(), key=lambda one: one.id)
        ]
    return r.Topology(epoch=topology.epoch, subtopologies=parts)


def _configured(name: str, one: ConfiguredSubtopology) -> messages.StreamsGroupDescribeResponse.Subtopology:
    return _subtopology(
        name,
        dict.fromkeys(one.sources),
        dict.fromkeys(one.sinks),
        one.repartitions.values(),
        one.changelogs.values(),
        in_order=True,
    )


def _subtopology(
    name: str,
    sources: Iterable[str],
    sinks: Iterable[str],
    repartitions: Iterable[InternalTopic],
    changelogs: Iterable[InternalTopic],
    in_order: bool,
) -> messages.StreamsGroupDescribeResponse.Subtopology:
    """`in_order`: configurations are in the order of a Java HashMap."""
    r = messages.StreamsGroupDescribeResponse

    def topics(of: Iterable[InternalTopic]) -> list[messages.StreamsGroupDescribeResponse.TopicInfo]:
        return [_topic(topic, in_order) for topic in sorted(of, key=lambda topic: topic.name)]

    return r.Subtopology(
        subtopology_id=name,
        source_topics=sorted(sources),
        repartition_sink_topics=sorted(sinks),
        repartition_source_topics=topics(repartitions),
        state_changelog_topics=topics(changelogs),
    )


def _topic(topic: InternalTopic, in_order: bool) -> messages.StreamsGroupDescribeResponse.TopicInfo:
    r = messages.StreamsGroupDescribeResponse
    configs = list(topic.configs)
    if in_order:
        values = dict(configs)
        configs = [(key, values[key]) for key in java_order(values)]
    return r.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[r.KeyValue(key=key, value=value) for key, value in configs],
    )


def _member(
    member: StreamsMember, target: Tasks, offsets: Offsets, ends: Offsets
) -> messages.StreamsGroupDescribeResponse.Member:
    r = messages.StreamsGroupDescribeResponse
    endpoint = member.endpoint
    return r.Member(
        member_id=member.id,
        member_epoch=member.epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else r.Endpoint(host=endpoint[0], port=endpoint[1]),
        client_tags=[r.KeyValue(key=key, value=member.client_tags[key]) for key in java_order(member.client_tags)],
        task_offsets=_offsets(offsets),
        task_end_offsets=_offsets(ends),
        assignment=_assignment(member.assigned.plain()),
        target_assignment=_assignment(target),
    )


def _offsets(of: Offsets) -> list[messages.StreamsGroupDescribeResponse.TaskOffset]:
    r = messages.StreamsGroupDescribeResponse
    return [
        r.TaskOffset(subtopology_id=name, partition=number, offset=offset)
        for (name, number), offset in sorted(of.items())
    ]


def _assignment(tasks: Tasks) -> messages.StreamsGroupDescribeResponse.Assignment:
    r = messages.StreamsGroupDescribeResponse

    def ids(of: Iterable[tuple[str, int]]) -> list[messages.StreamsGroupDescribeResponse.TaskIds]:
        return [r.TaskIds(subtopology_id=name, partitions=numbers) for name, numbers in by_subtopology(of).items()]

    return r.Assignment(
        active_tasks=ids(tasks.active), standby_tasks=ids(tasks.standby), warmup_tasks=ids(tasks.warmup)
    )
