"""ConsumerGroupDescribe: a consumer group as of a committed offset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ....protocol import messages
from ...hashing import set_order
from ..environment import Target
from ..state import ShardState
from .group import ConsumerGroup
from .member import Member

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


if TYPE_CHECKING:
    _Response = messages.ConsumerGroupDescribeResponse
    Described = tuple[_Response.DescribedGroup, Iterator[_Response.Member]]


def describe(shard: ShardState, group_id: str, as_of: int) -> Described:
    """Returns a group without its members, and an iterator of the members, which may be used after the group has
    changed: there may be thousands. Raises ApiError(GROUP_ID_NOT_FOUND).
    """
    group = shard.existing_of(ConsumerGroup, group_id, as_of)
    epoch, assignment_epoch = group.epochs(as_of)
    described = messages.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name(as_of),
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=group.preferred_assignor(shard.assignors.default),
    )
    members = [(m, group.targets.get(m.id, {}, as_of)) for m in group.in_order(as_of)]
    return described, (_member(shard, m, target) for m, target in members)


def _member(shard: ShardState, member: Member, target: Target) -> messages.ConsumerGroupDescribeResponse.Member:
    r = messages.ConsumerGroupDescribeResponse
    held: dict[bytes, list[int]] = {topic: sorted(of) for topic, of in member.assigned.items()}
    for topic, of in member.revoking.items():
        held[topic] = [*held.get(topic, []), *sorted(of)]
    return r.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=set_order(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=r.Assignment(topic_partitions=_topics(shard, held)),
        target_assignment=r.Assignment(topic_partitions=_topics(shard, {t: sorted(of) for t, of in target.items()})),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _topics(
    shard: ShardState, partitions: dict[bytes, list[int]]
) -> list[messages.ConsumerGroupDescribeResponse.TopicPartitions]:
    t = messages.ConsumerGroupDescribeResponse.TopicPartitions
    return [t(topic_id=topic, topic_name=name, partitions=of) for topic, name, of in shard.named(partitions)]
