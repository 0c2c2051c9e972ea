"""The partitions of the members of a streams group, by the endpoints where their state can be asked (KIP-1071).

A member asks again after each change of another one, so the partitions of each member are kept until they change: else
a group with 1,000 members would compute a million of them after each change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ....protocol import messages
from ....protocol.errors import ApiError, Errors
from ...hashing import java_order
from ..environment import TopicImage
from .configured import ConfiguredTopology
from .member import StreamsMember
from .tasks import HeldTasks, Task, in_reply_order

if TYPE_CHECKING:
    Named = list[messages.StreamsGroupHeartbeatResponse.TopicPartition]
    Place = messages.StreamsGroupHeartbeatResponse.EndpointToPartitions


class _Held(NamedTuple):
    """The partitions of the tasks that a member has."""

    assigned: HeldTasks
    active: Named
    standby: Named


class KnownPartitions:
    """The partitions of the members of a group as they were told last, for one topology and version of the metadata."""

    __slots__ = ("_configured", "_held", "_image_version")

    def __init__(self) -> None:
        self._configured: ConfiguredTopology | None = None
        self._image_version = -1
        self._held: dict[str, _Held] = {}  # by the id of a member

    def places(self, members: list[StreamsMember], configured: ConfiguredTopology, image: TopicImage) -> list[Place]:
        """Returns the endpoints of members, which all have one, with their partitions. Forgets other members."""
        if configured is not self._configured or image.version != self._image_version:
            self._configured, self._image_version, self._held = configured, image.version, {}
        before = self._held
        self._held = {}  # if there is an error, too
        for one in members:
            held = before.get(one.id)
            if held is None or held.assigned != one.assigned:
                held = _held_by(one.assigned, configured, image)
            self._held[one.id] = held
        return [_place(one, self._held[one.id]) for one in members]


def _held_by(assigned: HeldTasks, configured: ConfiguredTopology, image: TopicImage) -> _Held:
    return _Held(
        assigned,
        _partitions(assigned.active, configured, image),
        _partitions(assigned.standby | assigned.warmup, configured, image),
    )


def _place(member: StreamsMember, held: _Held) -> Place:
    """Makes an object for one reply: what encodes a large one replaces its lists."""
    r = messages.StreamsGroupHeartbeatResponse
    assert member.endpoint is not None
    host, port = member.endpoint
    return r.EndpointToPartitions(
        user_endpoint=r.Endpoint(host=host, port=port),
        active_partitions=held.active,
        standby_partitions=held.standby,
    )


def _partitions(tasks: Iterable[Task], configured: ConfiguredTopology, image: TopicImage) -> Named:
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
