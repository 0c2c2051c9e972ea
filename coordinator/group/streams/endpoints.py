"""Where the state of each partition can be asked: the endpoints of members for interactive queries (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...hashing import java_order
from ..environment import TopicImage
from .configured import ConfiguredTopology
from .group import StreamsGroup
from .member import StreamsMember
from .tasks import Task, in_reply_order


def partitions_by_endpoint(
    group: StreamsGroup,
    member: StreamsMember,
    replaced: StreamsMember | None,
    configured: ConfiguredTopology,
    image: TopicImage,
) -> list[messages.StreamsGroupHeartbeatResponse.EndpointToPartitions]:
    """Returns the partitions of each member that has an endpoint. `member` is that of the request, as it will be, and
    comes last. Raises ApiError(UNKNOWN_SERVER_ERROR): the topology has no tasks yet.
    """
    gone = {member.id, *([replaced.id] if replaced is not None else [])}
    members = [*(one for one in group.members.values() if one.id not in gone), member]
    return [_partitions_of(one, configured, image) for one in members if one.endpoint is not None]


def _partitions_of(
    member: StreamsMember, configured: ConfiguredTopology, image: TopicImage
) -> messages.StreamsGroupHeartbeatResponse.EndpointToPartitions:
    r = messages.StreamsGroupHeartbeatResponse
    assert member.endpoint is not None
    host, port = member.endpoint
    held = member.assigned
    return r.EndpointToPartitions(
        user_endpoint=r.Endpoint(host=host, port=port),
        active_partitions=_partitions(held.active, configured, image),
        standby_partitions=_partitions(held.standby | held.warmup, configured, image),
    )


def _partitions(
    tasks: Iterable[Task], configured: ConfiguredTopology, image: TopicImage
) -> list[messages.StreamsGroupHeartbeatResponse.TopicPartition]:
    """Returns the partitions of the source topics of tasks."""
    r = messages.StreamsGroupHeartbeatResponse
    if configured.subtopologies is None:
        raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
    found = []
    for subtopology, numbers in in_reply_order(tasks):
        one = configured.subtopologies.get(subtopology)
        if one is None:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
        for topic in java_order(dict.fromkeys((*one.sources, *one.repartitions))):
            topic_id = image.topic_id(topic)
            if topic_id is None:
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR)
            count = image.partition_count(topic_id)
            partitions = [number for number in numbers if number < count]
            if partitions:
                found.append(r.TopicPartition(topic=topic, partitions=partitions))
    return found
