"""Sets the committed offsets of a group, as `kafka-consumer-groups --reset-offsets` does, or the start offsets of a
share group, as `kafka-share-groups --reset-offsets` does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from ...coordinator.group import routes
from ...coordinator.group.environment import Client
from ...coordinator.group.share.group import ShareGroup
from ...coordinator.shard import Decided, Result
from ...protocol import messages
from ...protocol.errors import ApiError
from ...storage import timestamps
from ..steps import opened_in_steps
from . import share_resets
from .shapes import INT64, Invalid, Range, Size

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ..broker import Broker
    from ..replica.partition import Partition

COMMIT_VERSION = 9
CLIENT = Client("ottla-lab", "", COMMIT_VERSION)


@dataclass(frozen=True)
class ResetOffsets:
    """Which offsets of a group are set, and to what: one of `to`, `offset`, `timestamp` and `by`."""

    group: Annotated[str, Size(1)]
    topic: str
    partition: Annotated[int | None, "Only this partition; default: all partitions of the topic.", Range(0)] = None
    to: Annotated[
        Literal["earliest", "latest"] | None, "The log start offset, or the high watermark, of each partition."
    ] = None
    offset: Annotated[int | None, "This offset; the nearest that there is.", Range(0, INT64)] = None
    timestamp: Annotated[
        int | None, "The first record at or after this time, in milliseconds; else the high watermark.", Range(0, INT64)
    ] = None
    by: Annotated[
        int | None, "So many records from the committed or start offset, back or on.", Range(-INT64, INT64)
    ] = None
    plan: Annotated[bool, "Only show what would be set."] = False

    def __post_init__(self) -> None:
        if sum(one is not None for one in (self.to, self.offset, self.timestamp, self.by)) != 1:
            raise Invalid("", "exactly one of to, offset, timestamp and by must be given")


class CommittedView(TypedDict):
    """A committed offset, or the start offset of a share-partition. `before`: null if there was none."""

    topic: str
    partition: int
    before: int | None
    committed_offset: int


class ResetView(TypedDict):
    """The offsets that were set. `is_plan`: they were not, because only the plan was asked for."""

    group: str
    is_plan: bool
    offsets: list[CommittedView]


async def reset(broker: Broker, asked: ResetOffsets) -> ResetView:
    """Raises LookupError, or ApiError if the group has members or cannot be written."""
    index = asked.partition
    partitions = [one for one in broker.partitions.of_topic(asked.topic) if index in (None, one.index)]
    if not partitions:
        place = f"topic {asked.topic}" if index is None else f"partition {asked.topic}-{index}"
        raise LookupError(f"{place} does not exist")
    before, is_share = await _before(broker, asked, partitions)
    places = {one.index: await _place(broker, one, asked, before.get(one.index)) for one in partitions}
    if is_share and not asked.plan:
        await share_resets.alter(broker, asked.group, asked.topic, places)
    elif not asked.plan:
        await _commit(broker, asked, places)
    shown: Iterable[CommittedView] = (
        {"topic": asked.topic, "partition": place, "before": before.get(place), "committed_offset": offset}
        for place, offset in places.items()
    )
    return {"group": asked.group, "is_plan": asked.plan, "offsets": list(shown)}


async def _before(broker: Broker, asked: ResetOffsets, partitions: list[Partition]) -> tuple[dict[int, int], bool]:
    """The offsets by partition, and whether the group is a share group. Creates the topic of the coordinator if it does
    not exist, as FindCoordinator does. Raises ApiError.
    """
    await broker.groups.create_topic()
    found = await broker.groups.write(asked.group, "read-offsets", lambda shard: _committed(shard, asked, partitions))
    if found is not None:
        return found, False
    topic_id = broker.image.topics[asked.topic].id
    return await share_resets.starts(broker, asked.group, topic_id, [one.index for one in partitions]), True


async def _commit(broker: Broker, asked: ResetOffsets, places: dict[int, int]) -> None:
    request = _request(broker, asked, places)

    def commit(shard: GroupShard) -> Decided[messages.OffsetCommitResponse]:
        if asked.group not in shard.groups:
            broker.groups.room.check_group(shard, asked.group)
        return routes.commit_offsets(shard, CLIENT, request)

    response = await broker.groups.write(asked.group, "commit-offset", commit)
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise ApiError(partition.error_code)


def _committed(shard: GroupShard, asked: ResetOffsets, partitions: list[Partition]) -> Result[dict[int, int] | None]:
    """The committed offsets by partition; None for a share group. Raises ApiError(NON_EMPTY_GROUP)."""
    group = shard.groups.get(asked.group)
    share_resets.check_empty(asked.group, group is None or group.is_empty)
    if isinstance(group, ShareGroup):
        return Result([], None)
    stored = shard.offsets.by_group.get(asked.group)
    if stored is None:
        return Result([], {})
    keys = ((one.index, stored.get((asked.topic, one.index))) for one in partitions)
    return Result([], {index: found[1] for index, found in keys if found is not None})


async def _place(broker: Broker, partition: Partition, asked: ResetOffsets, before: int | None) -> int:
    """The offset for a partition."""
    log, end = partition.open_log(), partition.high_watermark
    if asked.to is not None:
        return log.start_offset if asked.to == "earliest" else end
    if asked.timestamp is not None:
        found = await opened_in_steps(broker.turn, timestamps.first_from(log, asked.timestamp))
        return end if found is None else min(found.offset, end)
    wanted = asked.offset if asked.offset is not None else (log.start_offset if before is None else before)
    return min(max(wanted + (asked.by or 0), log.start_offset), end)


def _request(broker: Broker, asked: ResetOffsets, places: dict[int, int]) -> messages.OffsetCommitRequest:
    r = messages.OffsetCommitRequest
    topic = r.OffsetCommitRequestTopic(name=asked.topic, topic_id=broker.image.topics[asked.topic].id)
    topic.partitions = [
        r.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in places.items()
    ]
    return r(group_id=asked.group, topics=[topic])
