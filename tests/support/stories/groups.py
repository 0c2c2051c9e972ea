"""Groups of both protocols in the differential stories."""

from __future__ import annotations

import itertools
from typing import Any

from ottla.protocol import codec
from ottla.protocol import messages as m

from ..differential import Pair
from ..poll import until
from .topics import topic, versions

Ids = tuple[str, str]


def subscription(*topics: str, version: int = 1) -> bytes:
    message = m.ConsumerProtocolSubscription(topics=list(topics))
    return bytes(codec.build("ConsumerProtocolSubscription", version, message, bytearray(version.to_bytes(2, "big"))))


def assignment(topic_name: str, *partitions: int) -> bytes:
    a = m.ConsumerProtocolAssignment
    message = a(assigned_partitions=[a.TopicPartition(topic=topic_name, partitions=list(partitions))])
    return bytes(codec.build("ConsumerProtocolAssignment", 1, message, bytearray(b"\0\1")))


def join_request(
    version: int,
    group: str,
    member_id: str = "",
    *,
    session: int = 10_000,
    rebalance: int = 10_000,
    kind: str = "consumer",
    protocols: list[tuple[str, bytes]] | None = None,
    instance: str | None = None,
) -> Any:
    r = m.JoinGroupRequest
    request = r(group_id=group, session_timeout_ms=session, member_id=member_id, protocol_type=kind)
    request.protocols = [
        r.JoinGroupRequestProtocol(name=n, metadata=d) for n, d in protocols or [("range", subscription("cg"))]
    ]
    if version >= 1:
        request.rebalance_timeout_ms = rebalance
    if version >= 5:
        request.group_instance_id = instance
    return request


def joined(pair: Pair, version: int, group: str, **more: Any) -> Ids:
    """A member that joins an empty group and leads it; the ids that it has here and there."""
    mine, other = pair.both("JoinGroup", version, lambda s: join_request(version, group, **more))
    if mine.error_code == 79:
        ids = (mine.member_id, other.member_id)
        mine, other = pair.both("JoinGroup", version, lambda s: join_request(version, group, ids[s], **more))
    return mine.member_id, other.member_id


def sync_request(
    version: int,
    group: str,
    member_id: str,
    generation: int,
    assignments: dict[str, bytes] | None = None,
    instance: str | None = None,
    **more: Any,
) -> Any:
    r = m.SyncGroupRequest
    request = r(group_id=group, generation_id=generation, member_id=member_id)
    request.assignments = [
        r.SyncGroupRequestAssignment(member_id=i, assignment=a) for i, a in (assignments or {}).items()
    ]
    if version >= 3:
        request.group_instance_id = instance
    if version >= 5:
        request.protocol_type, request.protocol_name = more.get("kind", "consumer"), more.get("protocol", "range")
    return request


def stable(pair: Pair, group: str, version: int = 9, name: str = "cg", **more: Any) -> Ids:
    """A group of one member that has its assignment."""
    ids = joined(pair, version, group, **more)
    v = min(5, version)
    instance, kind = more.get("instance"), more.get("kind", "consumer")
    pair.both(
        "SyncGroup", v, lambda s: sync_request(v, group, ids[s], 1, {ids[s]: assignment(name, 0)}, instance, kind=kind)
    )
    return ids


def heartbeat(pair: Pair, version: int, group: str, ids: Ids, generation: int, instance: str | None = None) -> Any:
    def make(side: int) -> Any:
        request = m.HeartbeatRequest(group_id=group, generation_id=generation, member_id=ids[side])
        if version >= 3:
            request.group_instance_id = instance
        return request

    return pair.both("Heartbeat", version, make)[0]


def leave(pair: Pair, version: int, group: str, *ids: tuple[Ids, str | None]) -> Any:
    def make(side: int) -> Any:
        r = m.LeaveGroupRequest
        if version < 3:
            return r(group_id=group, member_id=ids[0][0][side])
        return r(group_id=group, members=[r.MemberIdentity(member_id=i[side], group_instance_id=n) for i, n in ids])

    return pair.both("LeaveGroup", version, make)[0]


def describe(pair: Pair, *groups: str) -> None:
    for version in versions("DescribeGroups"):
        pair.ask("DescribeGroups", version, m.DescribeGroupsRequest(groups=list(groups)))
    pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=list(groups), include_authorized_operations=True))
    for version in versions("ConsumerGroupDescribe"):
        pair.ask("ConsumerGroupDescribe", version, m.ConsumerGroupDescribeRequest(group_ids=list(groups)))
    pair.ask(
        "ConsumerGroupDescribe",
        1,
        m.ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True),
    )


def group_topic(pair: Pair, name: str, partitions: int) -> tuple[bytes, bytes]:
    """A topic that both coordinators know of already: Kafka's hear of it later than its brokers."""
    ids = topic(pair, name, partitions)
    numbers = itertools.count()

    def is_assigned() -> bool:
        number = next(numbers)
        found = []
        for wire in pair.wires:
            request = beat_request(
                1, f"probe-{name}-{number}", "p", 0, rebalance_timeout_ms=1000, subscribed_topic_names=[name], owned=[]
            )
            found.append(wire.ask("ConsumerGroupHeartbeat", 1, request))
            wire.ask("ConsumerGroupHeartbeat", 1, beat_request(1, f"probe-{name}-{number}", "p", -1))
            wire.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[f"probe-{name}-{number}"]))
        return all(f.assignment and f.assignment.topic_partitions for f in found)

    until(is_assigned, f"groups get {name}")
    return ids


def commit_request(
    version: int,
    group: str,
    topics: Any,
    member_id: str = "",
    generation: int = -1,
    **more: Any,
) -> Any:
    r = m.OffsetCommitRequest
    request = r(group_id=group, generation_id_or_member_epoch=generation, member_id=member_id)
    for name, topic_id, partitions in topics:
        t = r.OffsetCommitRequestTopic()
        if version >= 10:
            t.topic_id = topic_id
        else:
            t.name = name
        t.partitions = [
            r.OffsetCommitRequestPartition(partition_index=i, committed_offset=o, committed_metadata=d)
            for i, o, d in partitions
        ]
        if version >= 6:
            for p in t.partitions:
                p.committed_leader_epoch = 0
        request.topics.append(t)
    for name, value in more.items():
        setattr(request, name, value)
    return request


def beat_request(version: int, group: str, member_id: str, epoch: int, **more: Any) -> Any:
    r = m.ConsumerGroupHeartbeatRequest
    request = r(group_id=group, member_id=member_id, member_epoch=epoch)
    owned = more.pop("owned", None)
    if owned is not None:
        request.topic_partitions = [r.TopicPartitions(topic_id=t, partitions=p) for t, p in owned]
    for name, value in more.items():
        setattr(request, name, value)
    return request


def first_beat(pair: Pair, group: str, member_id: str, topics: list[str] | None, version: int = 1, **more: Any) -> Any:
    more = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": topics, "owned": [], **more}
    return pair.both("ConsumerGroupHeartbeat", version, lambda s: beat_request(version, group, member_id, 0, **more))[0]
