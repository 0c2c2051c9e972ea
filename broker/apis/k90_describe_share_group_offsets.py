"""DescribeShareGroupOffsets, versions 0 and 1: returns the start offsets of share groups (KIP-932).

**Behaviour**
- Without topics the reply contains all share-partitions that the group has initialized.
- A topic that is named several times is in the reply once, with its partitions in order.
- A partition below 0 of a topic that exists, or a group without a name, fails all of its group.

**Versions**
- 1 lag (KIP-1226)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...coordinator.group.share import share_partitions
from ...coordinator.security.acls import Operation, ResourceType
from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..error_places import COORDINATOR, ITSELF, Place, Text, array, codes
from ..net.answers import Answers
from ..net.context import Context
from ..security.authorization import Check, Refusal
from ..share_groups import STEP_KEYS, each, keys_of
from ..steps import Pace
from ._groups import OF_COORDINATOR

if TYPE_CHECKING:
    from ...coordinator.share.state import PartitionState

    WantedGroup = messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    WantedTopic = messages.DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestTopic
    Group = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
    Topic = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
    Partition = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition

GROUPS = Check(Operation.DESCRIBE, ResourceType.GROUP, "groups.group_id", Refusal.ELEMENT)
TOPICS = Check(Operation.DESCRIBE, ResourceType.TOPIC, "groups.topics.topic_name", Refusal.ELEMENT)
AUTHORIZATION = (GROUPS, TOPICS)


NO_OFFSET, NO_LAG = -1, -1
MOST = 1 << 63
_GROUPS = array("groups", "groups", group="group_id")
ERRORS = (
    Place(
        "each group",
        COORDINATOR
        + codes("INVALID_GROUP_ID GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUEST GROUP_ID_NOT_FOUND"),
        (_GROUPS,),
        text=Text.OWN_OR_OF_CODE,
    ),
    Place(
        "each partition",
        codes("UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER TOPIC_AUTHORIZATION_FAILED KAFKA_STORAGE_ERROR"),
        (
            _GROUPS,
            array("topics", "topics", topic="topic_name"),
            array("partitions", "partitions", partition=("partition_index", ITSELF)),
        ),
        others=(("start_offset", -1),),
        text=Text.OWN_OR_OF_CODE,
        of_whole=False,
    ),
)


async def handle(
    context: Context,
    request: messages.DescribeShareGroupOffsetsRequest,
) -> messages.DescribeShareGroupOffsetsResponse:
    answers, pace = Answers(context), Pace(context.turn, STEP_KEYS)
    groups = answers.array("groups")
    for group in request.groups:
        await answers.add("groups", await _describe(context, pace, group))
    return messages.DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe(context: Context, pace: Pace, wanted: WantedGroup) -> Group:
    r = messages.DescribeShareGroupOffsetsResponse
    out = r.DescribeShareGroupOffsetsResponseGroup(group_id=wanted.group_id)
    try:
        context.broker.share_partitions.check_enabled()
        GROUPS.require(context, wanted.group_id)
        out.topics = await (
            _all(context, pace, wanted.group_id)
            if wanted.topics is None
            else _named(context, pace, wanted.group_id, wanted.topics)
        )
    except ApiError as error:
        error.put_into(out, with_default=error.code in OF_COORDINATOR)
    return out


async def _all(context: Context, pace: Pace, group_id: str) -> list[Topic]:
    broker = context.broker
    found = broker.groups.read(
        group_id, lambda shard, as_of: share_partitions.initialized_partitions(shard, group_id, as_of)
    )
    return [
        await _topic(context, pace, group_id, name, topic_id, sorted(partitions))
        for topic_id, partitions in found.items()
        if (name := broker.image.topic_names.get(topic_id)) is not None and TOPICS.allows(context, name)
    ]


async def _named(context: Context, pace: Pace, group_id: str, topics: list[WantedTopic]) -> list[Topic]:
    r = messages.DescribeShareGroupOffsetsResponse
    known: dict[str, tuple[bytes, list[int]]] = {}
    unknown, refused = [], []
    lookups = Pace(context.turn)
    for topic in topics:
        if lookups.is_over():
            await lookups.rest()
        if not TOPICS.allows(context, topic.topic_name):
            refused.append(_refused(topic))
            continue
        found = context.broker.topic(topic.topic_name)
        if found is not None:
            if not group_id or min(topic.partitions, default=-1) < 0:
                raise ApiError(Errors.UNKNOWN_SERVER_ERROR, default_message(Errors.UNKNOWN_SERVER_ERROR))
            known.setdefault(topic.topic_name, (found.id, []))[1].extend(topic.partitions)
        else:
            parts = [
                r.DescribeShareGroupOffsetsResponsePartition(partition_index=p, start_offset=NO_OFFSET)
                for p in topic.partitions
            ]
            unknown.append(r.DescribeShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=parts))
    told = [
        await _topic(context, pace, group_id, name, topic_id, sorted(set(partitions)))
        for name, (topic_id, partitions) in known.items()
    ]
    return told + unknown + refused


def _refused(topic: WantedTopic) -> Topic:
    r, error = messages.DescribeShareGroupOffsetsResponse, ApiError(TOPICS.code)
    parts = [
        r.DescribeShareGroupOffsetsResponsePartition(partition_index=p, start_offset=NO_OFFSET)
        for p in topic.partitions
    ]
    return r.DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, partitions=[error.put_into(part) for part in parts]
    )


async def _topic(
    context: Context, pace: Pace, group_id: str, name: str, topic_id: bytes, partitions: list[int]
) -> Topic:
    r = messages.DescribeShareGroupOffsetsResponse
    states, _ = await each(
        context.broker,
        keys_of(group_id, {topic_id: partitions}),
        context.broker.share_partitions.persister.once.summary,
        pace,
    )
    found = {key.partition: state for key, state in states.items()}
    parts = [_partition(context, name, index, found.get(index)) for index in partitions]
    return r.DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=parts)


def _partition(context: Context, topic: str, index: int, state: PartitionState | None) -> Partition:
    out = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition(
        partition_index=index, start_offset=NO_OFFSET
    )
    if state is None:
        return out
    out.leader_epoch, out.start_offset = state.leader_epoch, state.start_offset
    if state.start_offset == NO_OFFSET or state.complete_count == -1:
        return out
    try:
        partition = context.broker.partitions.get(topic, index)
        partition.open_log()
        lag = partition.high_watermark - state.start_offset - state.complete_count
        # any start offset may have been written; the subtraction overflows as in Java
        out.lag = (lag + MOST) % (2 * MOST) - MOST
    except ApiError as error:
        error.put_into(out)
        out.start_offset, out.leader_epoch = 0, 0
    return out
