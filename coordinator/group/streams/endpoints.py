"""Where the state of each partition can be asked: the endpoints of members for interactive queries (KIP-1071)."""

from __future__ import annotations

from ....protocol import messages
from ..environment import TopicImage
from .configured import ConfiguredTopology
from .group import StreamsGroup
from .member import StreamsMember


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
    return group.heard.partitions.places([one for one in members if one.endpoint is not None], configured, image)
