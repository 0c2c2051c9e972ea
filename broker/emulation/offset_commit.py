"""OffsetCommit of an emulated release, versions 0 and 1.

Version 0 stores offsets in ZooKeeper, each in the node of its partition (`zookeeper.connect`). Without a ZooKeeper each
partition gets the error of a broker without it: since 3.3 UNSUPPORTED_VERSION, as with KRaft; before, that of a broker
that has lost its ZooKeeper. Version 1 is stored like the later ones, with the time of the broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..net.api import Api, Handler
from ..net.context import Context
from .releases import Release

if TYPE_CHECKING:
    from ..zookeeper.zookeeper import ZooKeeper

KRAFT_SINCE = (3, 3)


def without_zookeeper(release: Release) -> int:
    """Returns the error of requests that need ZooKeeper."""
    unknown = release.is_before(*KRAFT_SINCE)
    return int(Errors.UNKNOWN_SERVER_ERROR if unknown else Errors.UNSUPPORTED_VERSION)


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def emulated(context: Context, request: messages.OffsetCommitRequest) -> object:
        if context.version > 0:
            return handle(context, request)
        zookeeper = context.broker.zookeeper
        if zookeeper is None:
            raise ApiError(without_zookeeper(release))
        return _commit(context, request, zookeeper)

    return emulated


async def _commit(
    context: Context, request: messages.OffsetCommitRequest, zookeeper: ZooKeeper
) -> messages.OffsetCommitResponse:
    """Commits to ZooKeeper; partitions that a topic does not have too, as Kafka does."""
    r = messages.OffsetCommitResponse
    length_max = context.broker.settings.value("offset.metadata.max.bytes")
    response, offsets = r(topics=[]), dict[tuple[str, int], int]()
    for topic in request.topics:
        is_known = topic.name in context.broker.image.topics
        out = r.OffsetCommitResponseTopic(name=topic.name, partitions=[])
        response.topics.append(out)
        for part in topic.partitions:
            error = Errors.NONE
            if not is_known:
                error = Errors.UNKNOWN_TOPIC_OR_PARTITION
            elif len(part.committed_metadata or "") > length_max:
                error = Errors.OFFSET_METADATA_TOO_LARGE
            else:
                offsets[topic.name, part.partition_index] = part.committed_offset
            answer = r.OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=int(error))
            out.partitions.append(answer)
    if offsets and not await zookeeper.commit(request.group_id, offsets):
        for out in response.topics:
            for answer in out.partitions:
                if not answer.error_code:
                    answer.error_code = int(Errors.UNKNOWN_SERVER_ERROR)
    return response
