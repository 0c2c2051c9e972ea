"""OffsetFetch, versions 1 to 10: returns committed offsets of groups.

**Versions**
- 2 all topics, and an error of the group
- 5 leader epochs (KIP-320)
- 6 flexible
- 7 stable offsets only (KIP-447)
- 8 several groups (KIP-709)
- 9 members of consumer groups (KIP-848)
- 10 topic ids (KIP-848)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...coordinator.group.offsets.fetch import Work, fetch
from ...coordinator.security.acls import Operation, ResourceType
from ...coordinator.shard import Result
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ...protocol.schema import NO_UUID
from ...protocol.structs import Struct
from ..error_places import COORDINATOR, ITSELF, Place, array, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..steps import Pace, paced

if TYPE_CHECKING:
    from ...coordinator.group.environment import TopicImage

    WantedGroup = messages.OffsetFetchRequest.OffsetFetchRequestGroup
    WantedTopic = messages.OffsetFetchRequest.OffsetFetchRequestTopics
    Group = messages.OffsetFetchResponse.OffsetFetchResponseGroup
    Topic = messages.OffsetFetchResponse.OffsetFetchResponseTopics

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "groups.group_id", Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "groups.topics.name", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS, TOPICS)
STEP_GROUPS = 100
STEP_PARTITIONS = 2000  # that are encoded in the turn in which they were read
GROUP_ERROR_SINCE = 2
SEVERAL_SINCE = 8
TOPIC_IDS_SINCE = 10
WHOLE_GROUP = COORDINATOR + codes("INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED")
_GROUPS = array("groups", "groups", group="group_id")
_OF_GROUPS = (
    array("topics", "topics", topic="name", topic_id="topic_id"),
    array("partitions", "partition_indexes", partition=("partition_index", ITSELF)),
)
PARTITIONS = Place(
    "each partition",
    codes("UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED UNSTABLE_OFFSET_COMMIT UNKNOWN_TOPIC_ID"),
    (
        array("topics", "topics", topic="name"),
        array("partitions", "partition_indexes", partition=("partition_index", ITSELF)),
    ),
    others=(("committed_offset", -1),),
)
ERRORS = (
    replace(PARTITIONS, errors=WHOLE_GROUP + PARTITIONS.errors, until=GROUP_ERROR_SINCE - 1),
    Place(
        "the whole",
        WHOLE_GROUP,
        since=GROUP_ERROR_SINCE,
        until=SEVERAL_SINCE - 1,
    ),
    replace(PARTITIONS, since=GROUP_ERROR_SINCE, until=SEVERAL_SINCE - 1, of_whole=False),
    Place(
        "each group",
        WHOLE_GROUP + codes("UNKNOWN_MEMBER_ID GROUP_ID_NOT_FOUND STALE_MEMBER_EPOCH"),
        (_GROUPS,),
        since=SEVERAL_SINCE,
    ),
    replace(PARTITIONS, levels=(_GROUPS, *_OF_GROUPS), since=SEVERAL_SINCE, of_whole=False),
)


async def handle(context: Context, request: messages.OffsetFetchRequest) -> messages.OffsetFetchResponse:
    r = messages.OffsetFetchResponse
    if context.version >= SEVERAL_SINCE:
        answers, pace = Answers(context, STEP_GROUPS), Pace(context.broker.turn, STEP_PARTITIONS)
        groups = answers.array("groups")
        for group in request.groups:
            found = await _fetch(context, group, request.require_stable)
            if pace.is_over(sum(1 + len(topic.partitions) for topic in found.topics)):
                await pace.rest()  # encoding many offsets takes as long as reading them
            await answers.add("groups", found)
        return r(groups=groups)
    q, pace = messages.OffsetFetchRequest, Pace(context.broker.turn)
    topics = request.topics
    asked = q.OffsetFetchRequestGroup(
        group_id=request.group_id,
        member_id=None,
        member_epoch=-1,
        topics=None
        if topics is None
        else [q.OffsetFetchRequestTopics(name=t.name, partition_indexes=t.partition_indexes) for t in topics],
    )
    if pace.is_over(len(topics or ())):
        await pace.rest()
    found = await _fetch(context, asked, request.require_stable)
    if pace.is_over(len(found.topics)):
        await pace.rest()
    return _single(context, found)


def _single(context: Context, found: Group) -> messages.OffsetFetchResponse:
    """Converts the reply to versions with one group."""
    r = messages.OffsetFetchResponse
    topics = []
    for t in found.topics:
        parts = [
            r.OffsetFetchResponsePartition(
                partition_index=p.partition_index,
                committed_offset=p.committed_offset,
                committed_leader_epoch=p.committed_leader_epoch,
                metadata=p.metadata,
                error_code=p.error_code,
            )
            for p in t.partitions
        ]
        topics.append(r.OffsetFetchResponseTopic(name=t.name, partitions=parts))
    return r(topics=topics, error_code=found.error_code)


async def _fetch(context: Context, asked: WantedGroup, require_stable: bool) -> Group:
    """Returns the response for one group; topics with unknown ids keep their positions in it."""
    if not GROUPS.allows(context, asked.group_id):
        return _group_error(context, asked, GROUPS.code)
    image = context.broker.groups.image
    unknown = []
    if context.version >= TOPIC_IDS_SINCE and asked.topics is not None:
        for topic in asked.topics:
            topic.name = image.topic_name(topic.topic_id) or ""
        unknown = [t for t in asked.topics if not t.name]
        wanted = messages.OffsetFetchRequest.OffsetFetchRequestGroup(
            group_id=asked.group_id,
            member_id=asked.member_id,
            member_epoch=asked.member_epoch,
            topics=[t for t in asked.topics if t.name],
        )
    else:
        wanted = asked
    denied: list[WantedTopic] = []
    if wanted.topics is not None and context.authorizer is not None:
        wanted.topics, denied = await TOPICS.parted(context, wanted.topics)
    try:
        found = await _of_coordinator(context, wanted, require_stable)
    except ApiError as error:
        return _group_error(context, asked, error.code)
    if wanted.topics is None and context.authorizer is not None:
        found.topics, _ = await TOPICS.parted(context, found.topics)
    if context.version >= TOPIC_IDS_SINCE:
        found.topics = [t for t in found.topics if _with_id(t, image)]
        found.topics += [_failed(t, Errors.UNKNOWN_TOPIC_ID) for t in unknown]
    if not found.error_code:
        found.topics += [_failed(t, TOPICS.code, named=context.version < TOPIC_IDS_SINCE) for t in denied]
    return found


def _with_id(topic: Topic, image: TopicImage) -> bool:
    """Sets the name of a topic from its id; returns False if the topic does not exist."""
    topic.topic_id = image.topic_id(topic.name) or NO_UUID
    topic.name = ""
    return bool(topic.topic_id != NO_UUID)


async def _of_coordinator(context: Context, asked: WantedGroup, require_stable: bool) -> Group:
    found = await _read(context, asked, require_stable)
    return found if isinstance(found, Struct) else await paced(context.broker.turn, found, 1)


async def _read(context: Context, asked: WantedGroup, require_stable: bool) -> Group | Work:
    groups = context.broker.groups
    if not require_stable:
        return groups.read(asked.group_id, lambda shard, as_of: fetch(shard, asked, as_of))
    try:
        return await groups.write(
            asked.group_id, "fetch-offsets", lambda shard: Result(reply=fetch(shard, asked, None))
        )
    except ApiError as error:
        # Kafka returns this error here, which makes clients look for the coordinator again
        raise ApiError(Errors.NOT_COORDINATOR) if error.code == Errors.COORDINATOR_NOT_AVAILABLE else error from None


def _failed(topic: WantedTopic, code: int, *, named: bool = True) -> Topic:
    """Returns the part of the reply for a topic with an error; with its name, or only with its id."""
    r = messages.OffsetFetchResponse
    parts = [
        r.OffsetFetchResponsePartitions(
            partition_index=i, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=int(code)
        )
        for i in topic.partition_indexes
    ]
    return r.OffsetFetchResponseTopics(
        name=(topic.name or "") if named else "", topic_id=topic.topic_id, partitions=parts
    )


def _group_error(context: Context, asked: WantedGroup, code: int) -> Group:
    r = messages.OffsetFetchResponse
    if context.version >= GROUP_ERROR_SINCE:
        return r.OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    return r.OffsetFetchResponseGroup(group_id=asked.group_id, topics=[_failed(t, code) for t in asked.topics or ()])
