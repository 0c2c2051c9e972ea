"""Groups as ListGroups, DescribeGroups and ConsumerGroupDescribe tell them, as of an offset that is committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...protocol import messages
from ...protocol.errors import ApiError, Errors
from .classic import TYPE as CLASSIC_TYPE
from .classic import ClassicGroup, State
from .consumer import PROTOCOL_TYPE, ConsumerGroup
from .consumer import TYPE as CONSUMER_TYPE
from .environment import Target
from .members import Member
from .share import PROTOCOL_TYPE as SHARE_PROTOCOL
from .share import TYPE as SHARE_TYPE
from .share import ShareGroup

if TYPE_CHECKING:
    from .shard import GroupShard

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def listed(shard: GroupShard, states: list[str], types: list[str], as_of: int) -> list[Any]:
    """The shard's groups, those in one of `states` and of one of `types`; an empty list lets everything pass."""
    g = messages.ListGroupsResponse.ListedGroup
    wanted_states, wanted_types = {s.strip().lower() for s in states}, {t.strip().lower() for t in types}
    found = []
    for group_id, group in shard.groups.items(as_of):
        if isinstance(group, ClassicGroup):
            kind, state, protocol = CLASSIC_TYPE, group.state.value, group.protocol_type or ""
        elif isinstance(group, ShareGroup):
            kind, state, protocol = SHARE_TYPE, group.state(as_of), SHARE_PROTOCOL
        else:
            kind, state, protocol = CONSUMER_TYPE, group.state(as_of), PROTOCOL_TYPE
        if wanted_states and state.lower() not in wanted_states:
            continue
        if wanted_types and kind.lower() not in wanted_types:
            continue
        found.append(g(group_id=group_id, protocol_type=protocol, group_state=state, group_type=kind))
    return found


def classic(shard: GroupShard, group_id: str, as_of: int) -> Any:
    """A classic group. ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.existing(group_id, as_of)
    if not isinstance(group, ClassicGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    r = messages.DescribeGroupsResponse
    stable = group.state is State.STABLE
    members = [
        r.DescribedGroupMember(
            member_id=m.id,
            group_instance_id=m.instance_id,
            client_id=m.client_id,
            client_host=m.client_host,
            member_metadata=m.metadata(group.protocol) if stable else b"",
            member_assignment=m.assignment,
        )
        for m in group.members.values()
    ]
    return r.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=members,
    )


def consumer(shard: GroupShard, group_id: str, as_of: int) -> Any:
    """A consumer group. ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.existing(group_id, as_of)
    if not isinstance(group, ConsumerGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    epoch, assignment_epoch = group.epochs(as_of)
    return messages.ConsumerGroupDescribeResponse.DescribedGroup(
        group_id=group_id,
        group_state=group.state(as_of),
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name=group.preferred_assignor(shard.assignors.default),
        members=[_member(shard, m, group.targets.get(m.id, {}, as_of)) for _, m in group.members.items(as_of)],
    )


def _member(shard: GroupShard, member: Member, target: Target) -> Any:
    r = messages.ConsumerGroupDescribeResponse
    assigned = {topic: frozenset(of) for topic, of in member.assigned.items()}
    for topic, of in member.revoking.items():
        assigned[topic] = assigned.get(topic, frozenset()) | frozenset(of)
    return r.Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=r.Assignment(topic_partitions=_topics(shard, assigned)),
        target_assignment=r.Assignment(topic_partitions=_topics(shard, target)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _topics(shard: GroupShard, partitions: Target) -> list[Any]:
    t = messages.ConsumerGroupDescribeResponse.TopicPartitions
    found = []
    for topic_id, of in partitions.items():
        name = shard.env.image.topic_name(topic_id)
        if name is not None:
            found.append(t(topic_id=topic_id, topic_name=name, partitions=sorted(of)))
    return found


def share(shard: GroupShard, group_id: str, as_of: int) -> Any:
    """A share group. ApiError(GROUP_ID_NOT_FOUND)."""
    group = shard.existing(group_id, as_of)
    if not isinstance(group, ShareGroup):
        raise ApiError(Errors.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
    epoch, assignment_epoch = group.epochs(as_of)
    r = messages.ShareGroupDescribeResponse
    members = []
    for _, member in group.members.items(as_of):
        topics = [
            r.TopicPartitions(topic_id=topic, topic_name=name, partitions=sorted(of))
            for topic, of in member.assigned.items()
            if (name := shard.env.image.topic_name(topic)) is not None
        ]
        members.append(
            r.Member(
                member_id=member.id,
                rack_id=member.rack_id,
                member_epoch=member.epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=sorted(member.topic_names),
                assignment=r.Assignment(topic_partitions=topics),
            )
        )
    return r.DescribedGroup(
        group_id=group_id,
        group_state=group.state(as_of),
        group_epoch=epoch,
        assignment_epoch=assignment_epoch,
        assignor_name="simple",
        members=members,
    )
