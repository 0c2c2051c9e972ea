"""Sets and deletes the start offsets of a share group, by the rules of AlterShareGroupOffsets and
DeleteShareGroupOffsets: the group has no members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypedDict

from ...coordinator.group.share.group import NOTHING, ShareGroup
from ...coordinator.group.state import other_kind
from ...coordinator.shard import Result
from ...coordinator.share.batches import UNSET_OFFSET
from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from ..share_groups import alter_offsets, delete_offsets, each, keys_of
from .shapes import Size

if TYPE_CHECKING:
    from ...coordinator.group.shard import GroupShard
    from ..broker import Broker


@dataclass(frozen=True)
class DeleteOffsets:
    """Which topic of a share group is forgotten."""

    group: Annotated[str, Size(1)]
    topic: str
    plan: Annotated[bool, "Only show what would be deleted."] = False


class StartOffsetView(TypedDict):
    """The start offset of a share-partition; null if the group begins where its configuration says."""

    topic: str
    partition: int
    before: int | None


class DeletedOffsetsView(TypedDict):
    """The share-partitions that were deleted. `is_plan`: they were not, because only the plan was asked for."""

    group: str
    is_plan: bool
    offsets: list[StartOffsetView]


def check_empty(group_id: str, is_empty: bool) -> None:
    """Raises ApiError(NON_EMPTY_GROUP)."""
    if not is_empty:
        raise ApiError(Errors.NON_EMPTY_GROUP, f"the group {group_id} has members: stop them first")


async def starts(broker: Broker, group: str, topic_id: bytes, partitions: list[int]) -> dict[int, int]:
    """The start offsets of share-partitions that have one. Raises ApiError."""
    states, errors = await each(
        broker, keys_of(group, {topic_id: partitions}), broker.share_partitions.persister.once.summary
    )
    for error in errors.values():
        raise error
    found = {key.partition: state.start_offset for key, state in states.items() if state is not None}
    return {index: offset for index, offset in found.items() if offset != UNSET_OFFSET}


async def alter(broker: Broker, group: str, topic: str, places: dict[int, int]) -> None:
    """Raises ApiError."""
    broker.share_partitions.check_enabled()
    r = messages.AlterShareGroupOffsetsRequest
    wanted = r.AlterShareGroupOffsetsRequestTopic(topic_name=topic)
    wanted.partitions = [
        r.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
        for index, offset in places.items()
    ]
    reply = await alter_offsets(broker, r(group_id=group, topics=[wanted]))
    for one in (one for out in reply.responses for one in out.partitions):
        if one.error_code:
            raise ApiError(one.error_code, one.error_message)


async def delete(broker: Broker, asked: DeleteOffsets) -> DeletedOffsetsView:
    """Raises LookupError, or ApiError if the group is no share group, has members or cannot be written."""
    broker.share_partitions.check_enabled()
    topic_id = broker.groups.image.topic_id(asked.topic)
    if topic_id is None:
        raise LookupError(f"topic {asked.topic} does not exist")

    def read(shard: GroupShard) -> Result[list[int] | None]:
        group = shard.groups.get(asked.group)
        if group is None:
            return Result([], None)
        if not isinstance(group, ShareGroup):
            raise other_kind(asked.group, ShareGroup.kind)
        check_empty(asked.group, group.is_empty)
        known = shard.initializations.get(asked.group, NOTHING).initialized.get(topic_id)
        return Result([], sorted(known.partitions) if known is not None else [])

    await broker.groups.create_topic()
    partitions = await broker.groups.write(asked.group, "read-offsets", read)
    if partitions is None:
        raise LookupError(f"group {asked.group} does not exist")
    if not partitions:
        raise LookupError(f"the group {asked.group} has no offsets of topic {asked.topic}")
    before = await starts(broker, asked.group, topic_id, partitions)
    if not asked.plan:
        r = messages.DeleteShareGroupOffsetsRequest
        topic = r.DeleteShareGroupOffsetsRequestTopic(topic_name=asked.topic)
        for out in (await delete_offsets(broker, r(group_id=asked.group, topics=[topic]))).responses:
            if out.error_code:
                raise ApiError(out.error_code, out.error_message)
    return {
        "group": asked.group,
        "is_plan": asked.plan,
        "offsets": [{"topic": asked.topic, "partition": one, "before": before.get(one)} for one in partitions],
    }
