"""ShareGroupDescribe: a share group as of a committed offset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....protocol import messages
from ...hashing import set_order
from ..state import ShardState
from .group import ShareGroup, ShareMember

if TYPE_CHECKING:
    _Response = messages.ShareGroupDescribeResponse
    Described = tuple[_Response.DescribedGroup, Iterator[_Response.Member]]


def describe(shard: ShardState, group_id: str, as_of: int) -> Described:
    """Returns a group without its members, and an iterator of the members, which may be used after the group has
    changed: there may be thousands. Raises ApiError(GROUP_ID_NOT_FOUND).
    """
    group = shard.existing_of(ShareGroup, group_id, as_of)
    epoch, assignment_epoch = group.epochs(as_of)
    described = messages.ShareGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(as_of),
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name="simple",
    )
    return described, (_member(shard, member) for member in group.in_order(as_of))


def _member(shard: ShardState, member: ShareMember) -> messages.ShareGroupDescribeResponse.Member:
    r = messages.ShareGroupDescribeResponse
    topics = [
        r.TopicPartitions(topic_id=topic, topic_name=name, partitions=sorted(of))
        for topic, name, of in shard.named(member.assigned)
    ]
    return r.Member(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=set_order(member.topic_names),
        assignment=r.Assignment(topic_partitions=topics),
    )
