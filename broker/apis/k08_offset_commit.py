"""OffsetCommit, versions 2 to 10: a group's offsets are written.

2 to 4 a retention time of the request's own; 6 leader epochs (KIP-320); 7 static members; 8 flexible; 9 members of consumer groups
(KIP-848); 10 topics by id (KIP-848).
"""

from __future__ import annotations

from typing import Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ..context import Context
from ..grouping import client_of

TOPIC_IDS_SINCE = 10


async def handle(context: Context, request: Any) -> Any:
    from ...coordinator.group import offsets

    client, groups = client_of(context), context.broker.groups
    merge = None if _is_all_there(context, request) else Merge(context, request)
    if merge is None:
        try:
            response = await groups.write(request.group_id, lambda shard: offsets.commit(shard, client, request))
        except ApiError as error:
            return _failed(context, request, error.code)
        _hide(context, response)
        return response
    if request.topics:
        try:
            response = await groups.write(request.group_id, lambda shard: offsets.commit(shard, client, request))
            merge.take(response.topics)
        except ApiError as error:
            merge.fail(error.code)
    return merge.response


def _is_all_there(context: Context, request: Any) -> bool:
    """Completes names and ids; whether every topic and partition is there, as nearly always."""
    if not request.topics:
        return False
    image, by_id = context.broker.groups.image, context.version >= TOPIC_IDS_SINCE
    for topic in request.topics:
        if by_id:
            name, topic_id = image.topic_name(topic.topic_id), topic.topic_id
        else:
            name, topic_id = topic.name, image.topic_id(topic.name)
        if name is None or topic_id is None:
            return False
        count = image.partition_count(topic_id)
        if not all(0 <= p.partition_index < count for p in topic.partitions):
            return False
        topic.name, topic.topic_id = name, topic_id
    return True


def _hide(context: Context, response: Any) -> None:
    """A topic has a name or an id in a version, never both."""
    for topic in response.topics:
        if context.version >= TOPIC_IDS_SINCE:
            topic.name = ""
        else:
            topic.topic_id = NO_UUID


def _failed(context: Context, request: Any, code: int) -> Any:
    r = messages.OffsetCommitResponse
    response = r()
    for topic in request.topics:
        parts = [r.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code) for p in topic.partitions]
        response.topics.append(r.OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts))
    _hide(context, response)
    return response


class Merge:
    """Takes topics and partitions that are not there out of a request, and puts the answers together in its order."""

    def __init__(self, context: Context, request: Any) -> None:
        r = messages.OffsetCommitResponse
        self.response = r()
        self.by_id = context.version >= TOPIC_IDS_SINCE
        self._open: list[list[Any]] = []  # the answers that the coordinator gives, by topic
        image = context.broker.groups.image
        known = []
        for topic in request.topics:
            name, topic_id = topic.name, topic.topic_id
            if self.by_id:
                name = image.topic_name(topic_id)
            else:
                topic_id = image.topic_id(name)
            absent = int(Errors.UNKNOWN_TOPIC_ID if self.by_id else Errors.UNKNOWN_TOPIC_OR_PARTITION)
            gone = name is None or topic_id is None
            count = -1 if gone else image.partition_count(topic_id)
            out = r.OffsetCommitResponseTopic(name="" if self.by_id else name, topic_id=topic_id if self.by_id else NO_UUID)
            answers, kept = [], []
            for p in topic.partitions:
                there = 0 <= p.partition_index < count
                code = 0 if there else absent if gone else int(Errors.UNKNOWN_TOPIC_OR_PARTITION)
                answer = r.OffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                out.partitions.append(answer)
                if there:
                    answers.append(answer)
                    kept.append(p)
            self.response.topics.append(out)
            if kept:
                topic.name, topic.topic_id, topic.partitions = name, topic_id, kept
                known.append(topic)
                self._open.append(answers)
        request.topics = known

    def take(self, topics: list[Any]) -> None:
        for answers, topic in zip(self._open, topics, strict=True):
            for answer, found in zip(answers, topic.partitions, strict=True):
                answer.error_code = found.error_code

    def fail(self, code: int) -> None:
        for answers in self._open:
            for answer in answers:
                answer.error_code = code
