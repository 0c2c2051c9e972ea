"""OffsetFetch of an emulated release: version 0 reads offsets from ZooKeeper (`offset_commit`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat

from ...protocol import messages
from ...protocol.errors import Errors
from ..apis.k09_offset_fetch import GROUPS, TOPICS
from ..net.api import Api, Handler
from ..net.context import Context
from .offset_commit import without_zookeeper
from .releases import Release


def adapted(handle: Handler, release: Release, served: Mapping[int, Api]) -> Handler:
    def emulated(context: Context, request: messages.OffsetFetchRequest) -> object:
        return handle(context, request) if context.version > 0 else _fetch(context, request, release)

    return emulated


async def _fetch(
    context: Context, request: messages.OffsetFetchRequest, release: Release
) -> messages.OffsetFetchResponse:
    """Answers from ZooKeeper; a partition without an offset there has UNKNOWN_TOPIC_OR_PARTITION, as in Kafka."""
    asked = [(topic.name, index) for topic in request.topics or () for index in topic.partition_indexes]
    zookeeper, group = context.broker.zookeeper, request.group_id
    if not GROUPS.allows(context, group):
        return _reply(request, repeat((-1, GROUPS.code)))
    if zookeeper is None:
        return _reply(request, repeat((-1, without_zookeeper(release))))
    absent = -1, int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
    refused = {name: (-1, TOPICS.code) for name, _ in asked if not TOPICS.allows(context, name)}
    refused |= {name: absent for name, _ in asked if name not in refused and name not in context.broker.image.topics}
    found = iter(await zookeeper.committed(group, [one for one in asked if one[0] not in refused]))
    return _reply(request, (refused[name] if name in refused else next(found) or absent for name, _ in asked))


def _reply(request: messages.OffsetFetchRequest, found: Iterator[tuple[int, int]]) -> messages.OffsetFetchResponse:
    """`found`: the offset and the error of each partition, in the order of the request."""
    r = messages.OffsetFetchResponse
    topics = []
    for topic in request.topics or ():
        parts = []
        for index in topic.partition_indexes:
            offset, code = next(found)
            parts.append(
                r.OffsetFetchResponsePartition(
                    partition_index=index, committed_offset=offset, metadata="", error_code=code
                )
            )
        topics.append(r.OffsetFetchResponseTopic(name=topic.name, partitions=parts))
    return r(topics=topics)
