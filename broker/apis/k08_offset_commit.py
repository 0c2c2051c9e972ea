"""OffsetCommit, versions 2 to 10: a group's offsets are written.

2 to 4 a retention time of the request's own; 6 leader epochs (KIP-320); 7 static members; 8 flexible; 9 members of consumer groups
(KIP-848); 10 topics by id (KIP-848).
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..context import Context
from ..grouping import client_of

TOPIC_IDS_SINCE = 10


async def handle(context: Context, request: Any) -> Any:
    from ...coordinator.group import offsets

    image = context.broker.groups.image
    refused: dict[int, int] = {}
    known = []
    for place, topic in enumerate(request.topics):
        if context.version >= TOPIC_IDS_SINCE:
            name = image.topic_name(topic.topic_id)
            if name is None:
                refused[place] = int(Errors.UNKNOWN_TOPIC_ID)
                continue
            topic.name = name
        else:
            topic_id = image.topic_id(topic.name)
            if topic_id is None:
                refused[place] = int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
                continue
            topic.topic_id = topic_id
        known.append(topic)
    asked, request.topics = request.topics, known
    if not known and asked:
        return _merged(context, asked, refused, [])
    try:
        client = client_of(context)
        response = await context.broker.groups.write(request.group_id, lambda shard: offsets.commit(shard, client, request))
        return _merged(context, asked, refused, response.topics)
    except ApiError as error:
        return _merged(context, asked, refused | {place: error.code for place in range(len(asked)) if place not in refused}, [])


def _merged(context: Context, asked: list[Any], refused: dict[int, int], answered: list[Any]) -> Any:
    """The answers in the order of the request: what was refused before the coordinator saw it, and what it said of the rest."""
    r = messages.OffsetCommitResponse
    response, rest = r(), iter(answered)
    for place, topic in enumerate(asked):
        code = refused.get(place)
        if code is None:
            out = next(rest)
        else:
            parts = [r.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code) for p in topic.partitions]
            out = r.OffsetCommitResponseTopic(partitions=parts)
        by_id = context.version >= TOPIC_IDS_SINCE
        out.name, out.topic_id = ("", topic.topic_id) if by_id else (topic.name, bytes(16))
        response.topics.append(out)
    return response
