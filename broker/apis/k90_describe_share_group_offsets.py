"""DescribeShareGroupOffsets, versions 0 and 1: where share groups are in their partitions (KIP-932). 1 their lag (KIP-1226).

Without topics everything that a group has begun is told.
"""

from __future__ import annotations

from typing import Any

from ...coordinator.group import share_offsets
from ...protocol import messages
from ...protocol.errors import ApiError, Errors, default_message
from ..context import Context
from ..share_groups import each, keys_of

NO_OFFSET, NO_LAG = -1, -1
MOST = 1 << 63


async def handle(context: Context, request: Any) -> Any:
    return messages.DescribeShareGroupOffsetsResponse(groups=[await _describe(context, group) for group in request.groups])


async def _describe(context: Context, wanted: Any) -> Any:
    r = messages.DescribeShareGroupOffsetsResponse
    out = r.DescribeShareGroupOffsetsResponseGroup(group_id=wanted.group_id)
    try:
        context.broker.sharing.check_enabled()
        out.topics = await (_all(context, wanted.group_id) if wanted.topics is None else _named(context, wanted))
    except ApiError as error:
        out.error_code, out.error_message = error.code, error.message
    return out


async def _all(context: Context, group_id: str) -> list[Any]:
    broker = context.broker
    found = broker.groups.read(group_id, lambda shard, as_of: share_offsets.initialized_partitions(shard, group_id, as_of))
    return [
        await _topic(context, group_id, name, topic_id, sorted(partitions))
        for topic_id, partitions in found.items()
        if (name := broker.image.topic_names.get(topic_id)) is not None
    ]


async def _named(context: Context, wanted: Any) -> list[Any]:
    r = messages.DescribeShareGroupOffsetsResponse
    known, unknown = [], []
    for topic in wanted.topics:
        found = context.broker.topic(topic.topic_name)
        if found is not None and not topic.partitions:
            raise ApiError(Errors.UNKNOWN_SERVER_ERROR, default_message(Errors.UNKNOWN_SERVER_ERROR))
        if found is not None:
            known.append(await _topic(context, wanted.group_id, topic.topic_name, found.id, topic.partitions))
        else:
            parts = [r.DescribeShareGroupOffsetsResponsePartition(partition_index=p, start_offset=NO_OFFSET) for p in topic.partitions]
            unknown.append(r.DescribeShareGroupOffsetsResponseTopic(topic_name=topic.topic_name, partitions=parts))
    return known + unknown


async def _topic(context: Context, group_id: str, name: str, topic_id: bytes, partitions: list[int]) -> Any:
    r = messages.DescribeShareGroupOffsetsResponse
    states, _ = await each(keys_of(group_id, {topic_id: partitions}), context.broker.sharing.persister.summary)
    found = {key.partition: state for key, state in states.items()}
    parts = [_partition(context, name, index, found.get(index)) for index in partitions]
    return r.DescribeShareGroupOffsetsResponseTopic(topic_name=name, topic_id=topic_id, partitions=parts)


def _partition(context: Context, topic: str, index: int, state: Any) -> Any:
    out = messages.DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_OFFSET)
    if state is None:
        return out
    out.leader_epoch, out.start_offset = state.leader_epoch, state.start_offset
    if state.start_offset == NO_OFFSET or state.complete_count == -1:
        return out
    try:
        partition = context.broker.partition(topic, index)
        partition.open_log()
        lag = partition.high_watermark - state.start_offset - state.complete_count
        out.lag = (lag + MOST) % (2 * MOST) - MOST  # any start offset may have been written, and Java's numbers go round
    except ApiError as error:
        out.error_code, out.error_message = error.code, error.text
        out.start_offset, out.leader_epoch = 0, 0
    return out
