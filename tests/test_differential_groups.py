"""Groups, told the same stories by ottla and by Apache Kafka: every version of every API, good and bad, compared field by field."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ottla.protocol import codec
from ottla.protocol import messages as m
from ottla.protocol.schema import NO_UUID

from .differential import WITHIN_S, Pair, own_brokers
from .test_differential import topic, versions

pytestmark = [pytest.mark.oracle, pytest.mark.slow]


oracle, ours, coordinators = own_brokers({"group.consumer.assignment.interval.ms": 1000, "group.share.assignment.interval.ms": 1000})


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
    request.protocols = [r.JoinGroupRequestProtocol(name=n, metadata=d) for n, d in protocols or [("range", subscription("cg"))]]
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
    version: int, group: str, member_id: str, generation: int, assignments: dict[str, bytes] | None = None, instance: str | None = None, **more: Any
) -> Any:
    r = m.SyncGroupRequest
    request = r(group_id=group, generation_id=generation, member_id=member_id)
    request.assignments = [r.SyncGroupRequestAssignment(member_id=i, assignment=a) for i, a in (assignments or {}).items()]
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
    pair.both("SyncGroup", v, lambda s: sync_request(v, group, ids[s], 1, {ids[s]: assignment(name, 0)}, instance, kind=kind))
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
    pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=True))


def group_topic(pair: Pair, name: str, partitions: int) -> tuple[bytes, bytes]:
    """A topic that both coordinators know of already: Kafka's hear of it later than its brokers."""
    ids = topic(pair, name, partitions)
    for number in range(1000):
        found = []
        for wire in (pair.ours, pair.theirs):
            request = beat_request(1, f"probe-{name}-{number}", "p", 0, rebalance_timeout_ms=1000, subscribed_topic_names=[name], owned=[])
            found.append(wire.ask("ConsumerGroupHeartbeat", 1, request))
            wire.ask("ConsumerGroupHeartbeat", 1, beat_request(1, f"probe-{name}-{number}", "p", -1))
            wire.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[f"probe-{name}-{number}"]))
        if all(f.assignment and f.assignment.topic_partitions for f in found):
            return ids
    raise AssertionError(f"no group gets {name}")


# finding


def test_find_coordinator(pair: Pair) -> None:
    for version in versions("FindCoordinator"):
        for kind in (0, 2, 3, -1):
            if version == 0 and kind:
                continue
            for key in ("g", "", "a b", "ü" * 100, "g:x:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:-1", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
                r = m.FindCoordinatorRequest
                if version >= 4:
                    pair.ask("FindCoordinator", version, r(key_type=kind, coordinator_keys=[key, "other"]))
                else:
                    pair.ask("FindCoordinator", version, r(key_type=kind, key=key) if version else r(key=key))
        if version >= 4:
            pair.ask("FindCoordinator", version, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[]))


# the classic protocol


@pytest.mark.parametrize("version", versions("JoinGroup"))
def test_one_member_comes_and_goes(pair: Pair, version: int) -> None:
    topic(pair, "cg", 3)
    group = f"one-{version}"
    ids = joined(pair, version, group)
    describe(pair, group)
    for v in versions("SyncGroup"):
        pair.both("SyncGroup", v, lambda s: sync_request(v, group, ids[s], 0))
        pair.both("SyncGroup", v, lambda s: sync_request(v, group, "nobody", 1))
    for v in versions("Heartbeat"):
        heartbeat(pair, v, group, ids, 1)
    v = min(5, version)
    pair.both("SyncGroup", v, lambda s: sync_request(v, group, ids[s], 1, {ids[s]: assignment("cg", 0, 1), "other": b"x"}))
    for v in versions("SyncGroup"):
        pair.both("SyncGroup", v, lambda s: sync_request(v, group, ids[s], 1))
    for v in versions("Heartbeat"):
        heartbeat(pair, v, group, ids, 1)
        heartbeat(pair, v, group, ids, 2)
        heartbeat(pair, v, group, ("nobody", "nobody"), 1)
        heartbeat(pair, v, "no-such-group", ids, 1)
        heartbeat(pair, v, "", ids, 1)
    describe(pair, group)
    pair.both("JoinGroup", version, lambda s: join_request(version, group, ids[s]))
    heartbeat(pair, 4, group, ids, 1)
    heartbeat(pair, 4, group, ids, 2)
    leave(pair, min(5, version), group, (ids, None))
    leave(pair, min(5, version), group, (ids, None))
    describe(pair, group)


def test_joins_that_are_refused(pair: Pair) -> None:
    more: dict[str, Any]
    for version in versions("JoinGroup"):
        for more in (
            {"session": 5_999},
            {"session": 1_800_001},
            {"session": -1},
            {"kind": ""},
            {"member_id": "nobody"},
        ):
            pair.both("JoinGroup", version, lambda s: join_request(version, f"refused-{version}", **more))
        pair.both("JoinGroup", version, lambda s: join_request(version, ""))
        empty = join_request(version, f"refused-{version}")
        empty.protocols = []
        pair.ask("JoinGroup", version, empty)
        pair.both("JoinGroup", version, lambda s: join_request(version, f"refused-{version}", "nobody"))
    ids = stable(pair, "settled")
    other = pair.beside("other")
    for version in versions("JoinGroup"):
        for more in ({"kind": "connect"}, {"protocols": [("sticky", b"")]}, {"member_id": "nobody"}):
            other.both("JoinGroup", version, lambda s: join_request(version, "settled", **more))
        if version >= 5:
            other.both("JoinGroup", version, lambda s: join_request(version, "settled", ids[s], instance="i"))
    other.close()


def test_joins_of_members_that_are_not_what_they_were(pair: Pair) -> None:
    """A pending member that has become a static one, a member of another type or with other protocols, one of a group that nobody knows."""
    for version in versions("JoinGroup"):
        pair.both("JoinGroup", version, lambda s: join_request(version, f"unheard-{version}", "nobody"))
        if version >= 5:
            pair.both("JoinGroup", version, lambda s: join_request(version, f"unheard-{version}", "nobody", instance="i"))
            mine, other = pair.both("JoinGroup", version, lambda s: join_request(version, f"pending-{version}"))
            ids = (mine.member_id, other.member_id)
            pair.both("JoinGroup", version, lambda s: join_request(version, f"pending-{version}", ids[s], instance="i"))
        group = f"changing-{version}"
        member = stable(pair, group, version)
        pair.both("JoinGroup", version, lambda s: join_request(version, group, member[s], kind="connect"))
        beside = pair.beside("beside")
        beside.both("JoinGroup", version, lambda s: join_request(version, group, member[s], kind="connect", protocols=[("sticky", b"")]))
        beside.close()


def test_two_members_and_a_rebalance(pair: Pair) -> None:
    group = "two"
    second = pair.beside("second")
    first_ids = stable(pair, group, protocols=[("range", subscription("cg")), ("sticky", b"s1")])
    mine, theirs = second.both("JoinGroup", 9, lambda s: join_request(9, group, protocols=[("sticky", b"s2"), ("range", b"r2")]))
    second_ids = (mine.member_id, theirs.member_id)
    second.say("JoinGroup", 9, lambda s: join_request(9, group, second_ids[s], protocols=[("sticky", b"s2"), ("range", b"r2")]))
    third = pair.beside("third")
    third.until("DescribeGroups", 5, m.DescribeGroupsRequest(groups=[group]), lambda r: r.groups[0].group_state == "PreparingRebalance")
    heartbeat(third, 4, group, first_ids, 1)
    describe(third, group)
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, first_ids[s], 1))
    pair.say("JoinGroup", 9, lambda s: join_request(9, group, first_ids[s], protocols=[("range", b"r1"), ("sticky", b"s1")]))
    pair.hear("JoinGroup", 9)
    second.hear("JoinGroup", 9)
    describe(third, group)
    second.say("SyncGroup", 5, lambda s: sync_request(5, group, second_ids[s], 2))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, first_ids[s], 2, {first_ids[s]: b"one", second_ids[s]: b"two"}))
    second.hear("SyncGroup", 5)
    describe(third, group)
    leave(third, 5, group, (second_ids, None), (first_ids, None), (("x", "x"), None))
    describe(third, group)
    for one in (second, third):
        one.close()


def test_static_members(pair: Pair) -> None:
    for version in range(5, 10):
        group = f"static-{version}"
        ids = stable(pair, group, version, instance="i1")
        heartbeat(pair, 4, group, ids, 1, "i1")
        heartbeat(pair, 4, group, ids, 1, "i2")
        heartbeat(pair, 4, group, ("x", "x"), 1, "i1")
        again = pair.both("JoinGroup", version, lambda s: join_request(version, group, instance="i1"))
        new = (again[0].member_id, again[1].member_id)
        heartbeat(pair, 4, group, ids, 1, "i1")
        heartbeat(pair, 4, group, new, 1, "i1")
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, new[s], 1, instance="i1"))
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 1, instance="i1"))
        describe(pair, group)
        leave(pair, 5, group, (("", ""), "i2"), (("x", "x"), "i1"))
        leave(pair, 5, group, (("", ""), "i1"))
        describe(pair, group)


def test_leaving(pair: Pair) -> None:
    for version in versions("LeaveGroup"):
        leave(pair, version, "no-such-group", (("x", "x"), None))
        leave(pair, version, "", (("x", "x"), None))
        ids = stable(pair, f"leaving-{version}")
        leave(pair, version, f"leaving-{version}", (("x", "x"), None))
        leave(pair, version, f"leaving-{version}", (ids, None))


# offsets


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
        t.partitions = [r.OffsetCommitRequestPartition(partition_index=i, committed_offset=o, committed_metadata=d) for i, o, d in partitions]
        if version >= 6:
            for p in t.partitions:
                p.committed_leader_epoch = 0
        request.topics.append(t)
    for name, value in more.items():
        setattr(request, name, value)
    return request


def fetch_request(version: int, group: str, topics: Any, **more: Any) -> Any:
    r = m.OffsetFetchRequest
    if version < 8:
        request = r(group_id=group)
        request.topics = None if topics is None else [r.OffsetFetchRequestTopic(name=n, partition_indexes=p) for n, _, p in topics]
    else:
        g = r.OffsetFetchRequestGroup(group_id=group, member_id=more.pop("member_id", None), member_epoch=more.pop("member_epoch", -1))
        if topics is None:
            g.topics = None
        else:
            g.topics = [
                r.OffsetFetchRequestTopics(name="" if version >= 10 else n, topic_id=i if version >= 10 else NO_UUID, partition_indexes=p)
                for n, i, p in topics
            ]
        request = r(groups=[g])
    for name, value in more.items():
        setattr(request, name, value)
    return request


def test_offsets_of_a_simple_group(pair: Pair) -> None:
    ids = topic(pair, "off", 3)
    for version in versions("OffsetCommit"):
        group = f"simple-{version}"
        pair.both(
            "OffsetCommit",
            version,
            lambda s: commit_request(
                version, group, [("off", ids[s], [(0, 5, "meta"), (1, 6, None), (7, 8, "")]), ("absent", b"x" * 16, [(0, 1, "")])]
            ),
        )
        for v in versions("OffsetFetch"):
            asked: Any = lambda s: [("off", ids[s], [0, 1, 2, 7]), ("absent", b"x" * 16, [0, 1])]  # noqa: E731
            pair.both("OffsetFetch", v, lambda s: fetch_request(v, group, asked(s)))
            if v >= 2:
                pair.both("OffsetFetch", v, lambda s: fetch_request(v, group, None))
            pair.both("OffsetFetch", v, lambda s: fetch_request(v, "no-such-group", [("off", ids[s], [0])]))
            if v >= 7:
                pair.both("OffsetFetch", v, lambda s: fetch_request(v, group, [("off", ids[s], [0])], require_stable=True))
            if v >= 9:
                pair.both("OffsetFetch", v, lambda s: fetch_request(v, group, [("off", ids[s], [0])], member_id="x", member_epoch=1))
        describe(pair, group)


def test_commits_that_are_refused(pair: Pair) -> None:
    ids = topic(pair, "offx", 2)
    some: Any = lambda s: [("offx", ids[s], [(0, 1, "")])]  # noqa: E731
    members = stable(pair, "commits", name="offx")
    for v in versions("OffsetCommit"):
        for group in ("commits", "no-such-group", ""):
            for member in (("", ""), members, ("nobody", "nobody")):
                for generation in (-1, 0, 1, 2):
                    pair.both(
                        "OffsetCommit",
                        v,
                        lambda s: commit_request(v, group, some(s), member[s], generation),
                    )
        too_long = "x" * 4097
        pair.both("OffsetCommit", v, lambda s: commit_request(v, "long", [("offx", ids[s], [(0, 1, too_long), (1, 2, "x" * 4096)])]))
        if v >= 7:
            more = {"group_instance_id": "i"}
            pair.both("OffsetCommit", v, lambda s: commit_request(v, "commits", some(s), members[s], 1, **more))
        pair.both("OffsetCommit", v, lambda s: commit_request(v, "nothing", []))
    pair.both("JoinGroup", 9, lambda s: join_request(9, "commits", members[s]))
    pair.both("OffsetCommit", 9, lambda s: commit_request(9, "commits", some(s), members[s], 2))


def test_commits_of_a_generation_of_no_group(pair: Pair) -> None:
    ids = topic(pair, "offg", 1)
    for v in versions("OffsetCommit"):
        for member in ("", "nobody"):
            for generation in (0, 1, -1):
                group = f"unheard-{v}-{member}-{generation}"
                pair.both("OffsetCommit", v, lambda s: commit_request(v, group, [("offg", ids[s], [(0, 1, "")])], member, generation))
        pair.both("OffsetCommit", v, lambda s: commit_request(v, f"no-parts-{v}", [("offg", ids[s], [])]))
        pair.both("OffsetCommit", v, lambda s: commit_request(v, f"no-parts-{v}", [("offg", ids[s], []), ("offg", ids[s], [(0, 4, "")])]))
        pair.both("OffsetFetch", 8, lambda s: fetch_request(8, f"no-parts-{v}", None))
        some: list[Any] = [(0, 4, "")]
        none: list[Any] = []
        for topics in (
            [("offg", some), ("offg", [(7, 1, "")]), ("offg", some)],
            [("offg", [(7, 1, "")]), ("offg", none)],
            [("absent", none)],
            [("absent", none), ("absent", some), ("offg", some)],
            [("absent", some), ("offg", some), ("absent", [(1, 1, "")])],
        ):
            for generation in (-1, 5):
                pair.both(
                    "OffsetCommit",
                    v,
                    lambda s: commit_request(v, f"twice-{v}", [(n, ids[s] if n == "offg" else b"x" * 16, p) for n, p in topics], "", generation),
                )


def test_retention_of_a_request(pair: Pair) -> None:
    ids = topic(pair, "offr", 1)
    for v in (2, 3, 4):
        for ms in (-1, 0, 60_000):
            pair.both("OffsetCommit", v, lambda s: commit_request(v, f"keep-{v}-{ms}", [("offr", ids[s], [(0, 3, "")])], retention_time_ms=ms))
            pair.both("OffsetFetch", 8, lambda s: fetch_request(8, f"keep-{v}-{ms}", None))


def test_several_groups_at_once(pair: Pair) -> None:
    ids = topic(pair, "offm", 1)
    pair.both("OffsetCommit", 8, lambda s: commit_request(8, "many-1", [("offm", ids[s], [(0, 3, "")])]))
    r = m.OffsetFetchRequest

    def make(v: int, side: int) -> Any:
        t = r.OffsetFetchRequestTopics(name="" if v >= 10 else "offm", topic_id=ids[side] if v >= 10 else NO_UUID, partition_indexes=[0])
        groups = [
            r.OffsetFetchRequestGroup(group_id=g, topics=topics) for g, topics in (("many-1", [t]), ("many-2", [t]), ("many-1", None), ("", [t]))
        ]
        return r(groups=groups)

    for v in (8, 9, 10):
        pair.both("OffsetFetch", v, lambda s: make(v, s))


def test_deleting_offsets_and_groups(pair: Pair) -> None:
    ids = topic(pair, "offd", 2)
    r = m.OffsetDeleteRequest

    def delete(group: str, *names: str) -> None:
        topics = [r.OffsetDeleteRequestTopic(name=n, partitions=[r.OffsetDeleteRequestPartition(partition_index=i) for i in (0, 5)]) for n in names]
        pair.ask("OffsetDelete", 0, r(group_id=group, topics=topics))

    pair.both("OffsetCommit", 8, lambda s: commit_request(8, "del", [("offd", ids[s], [(0, 3, ""), (1, 4, "")])]))
    delete("del", "offd", "absent")
    delete("no-such-group", "offd")
    delete("", "offd")
    delete("del")
    pair.both("OffsetFetch", 8, lambda s: fetch_request(8, "del", None))
    members = stable(pair, "del-live", protocols=[("range", subscription("offd"))], name="offd")
    delete("del-live", "offd", "off")
    stable(pair, "del-other", kind="connect", protocols=[("range", b"x")], name="offd")
    delete("del-other", "offd")
    for v in versions("DeleteGroups"):
        pair.ask("DeleteGroups", v, m.DeleteGroupsRequest(groups_names=["del-live", "no-such-group", "", "del-live"]))
    leave(pair, 5, "del-live", (members, None))
    for v in versions("DeleteGroups"):
        pair.both("OffsetCommit", 8, lambda s: commit_request(8, f"del-{v}", [("offd", ids[s], [(0, 3, "")])]))
        pair.ask("DeleteGroups", v, m.DeleteGroupsRequest(groups_names=["del-live", f"del-{v}"]))
        pair.both("OffsetFetch", 8, lambda s: fetch_request(8, f"del-{v}", None))
    describe(pair, "del-live", "del-0", "")


def test_listing(pair: Pair) -> None:
    stable(pair, "listed")
    for v in versions("ListGroups"):
        r = m.ListGroupsRequest
        pair.ask("ListGroups", v, r())
        if v >= 4:
            for states in (["Stable"], ["stable", "Empty"], ["Dead"], ["nonsense"], [""]):
                pair.ask("ListGroups", v, r(states_filter=states))
        if v >= 5:
            for types in (["classic"], ["Consumer"], ["share"], ["nonsense"], ["Classic", "consumer"]):
                pair.ask("ListGroups", v, r(types_filter=types))


# consumer groups


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


def test_heartbeats_that_no_group_would_take(pair: Pair) -> None:
    group_topic(pair, "kip", 3)
    for v in versions("ConsumerGroupHeartbeat"):
        for more in (
            {"group": ""},
            {"group": "  "},
            {"member_id": ""},
            {"member_id": "  "},
            {"instance_id": ""},
            {"rack_id": " "},
            {"rebalance_timeout_ms": -1},
            {"owned": None},
            {"owned": [(b"x" * 16, [0])]},
            {"subscribed_topic_names": None},
            {"epoch": -3},
            {"epoch": -2},
            {"epoch": -1},
            {"epoch": 1},
            {"epoch": -1, "member_id": ""},
            {"epoch": -2, "instance_id": "i"},
            {"server_assignor": "nonsense"},
            {"server_assignor": ""},
        ):
            values: dict[str, Any] = {
                "group": f"bad-{v}",
                "member_id": "m",
                "epoch": 0,
                "rebalance_timeout_ms": 1000,
                "owned": [],
                "subscribed_topic_names": ["kip"],
                **more,
            }
            group, member, epoch = values.pop("group"), values.pop("member_id"), values.pop("epoch")
            pair.both("ConsumerGroupHeartbeat", v, lambda s: beat_request(v, group, member, epoch, **values))


def test_one_member_of_a_consumer_group(pair: Pair) -> None:
    ids = group_topic(pair, "kip1", 3)
    for v in versions("ConsumerGroupHeartbeat"):
        group = f"kip-one-{v}"
        first_beat(pair, group, "m1", ["kip1"], v)
        describe(pair, group)

        def beat(epoch: int, **more: Any) -> Any:
            def make(side: int) -> Any:
                return beat_request(v, group, "m1", epoch, **{k: x(side) if callable(x) else x for k, x in more.items()})

            return pair.both("ConsumerGroupHeartbeat", v, make)[0]

        beat(1)
        beat(1, owned=lambda s: [(ids[s], [0, 1, 2])])
        beat(0, rebalance_timeout_ms=5000, subscribed_topic_names=["kip1"], owned=[])
        beat(2)
        beat(1, owned=lambda s: [(ids[s], [0])])
        beat(1, rebalance_timeout_ms=5000, subscribed_topic_names=["kip1"], owned=lambda s: [(ids[s], [0, 1, 2])])
        beat(1, subscribed_topic_names=["kip1", "absent"])
        beat(2, subscribed_topic_names=["absent"])
        beat(2, server_assignor="range")
        describe(pair, group)
        beat(-1)
        beat(-1)
        describe(pair, group)
        pair.ask("ListGroups", 5, m.ListGroupsRequest(types_filter=["consumer"], states_filter=["empty"]))


def test_members_of_a_consumer_group_come_and_go(pair: Pair) -> None:
    ids = group_topic(pair, "kip2", 7)
    group = "kip-many"

    def beat(member: str, epoch: int, **more: Any) -> Any:
        def make(side: int) -> Any:
            return beat_request(1, group, member, epoch, **{k: x(side) if callable(x) else x for k, x in more.items()})

        return pair.both("ConsumerGroupHeartbeat", 1, make)[0]

    def later() -> None:
        """Past the second that lies between two assignments of a group."""
        import time

        time.sleep(1.05)

    first_beat(pair, group, "m1", ["kip2"])
    first_beat(pair, group, "m2", ["kip2"])
    describe(pair, group)
    later()
    beat("m1", 1, owned=lambda s: [(ids[s], list(range(7)))])
    describe(pair, group)
    beat("m2", 1)
    beat("m2", 2)
    beat("m1", 1)
    beat("m1", 1, owned=lambda s: [(ids[s], list(range(4)))])
    beat("m2", 2)
    describe(pair, group)
    later()
    first_beat(pair, group, "m3", ["kip2"])
    beat("m1", 2, owned=lambda s: [(ids[s], [0, 1, 2, 3])])
    beat("m1", 2, owned=lambda s: [(ids[s], [0, 1, 2])])
    beat("m2", 2, owned=lambda s: [(ids[s], [4, 5, 6])])
    beat("m3", 3)
    describe(pair, group)
    beat("m2", -1)
    later()
    beat("m1", 3)
    beat("m3", 3)
    describe(pair, group)
    for member in ("m1", "m3"):
        beat(member, -1)
    describe(pair, group)
    later()
    first_beat(pair, group, "m4", ["kip2"])


def test_static_members_of_a_consumer_group(pair: Pair) -> None:
    group_topic(pair, "kip3", 2)
    group = "kip-static"

    def beat(member: str, epoch: int, instance: str | None = "i1", **more: Any) -> Any:
        return pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, member, epoch, instance_id=instance, **more))[0]

    first_beat(pair, group, "m1", ["kip3"], instance_id="i1")
    first_beat(pair, group, "m2", ["kip3"], instance_id="i1")
    beat("m2", 1)
    beat("m1", 1)
    beat("m1", 1, None)
    beat("m1", 1, "i2")
    beat("m2", -2)
    beat("m1", -2)
    describe(pair, group)
    beat("m1", 1)
    first_beat(pair, group, "m2", ["kip3"], instance_id="i1")
    describe(pair, group)
    beat("m1", 1)
    beat("m2", 1)
    beat("m1", -1)
    beat("m2", -1, "i2")
    beat("m2", -1)
    describe(pair, group)


def test_regular_expressions(pair: Pair) -> None:
    for wrong in ("(", "[", "a**", "\\", "a{3,1}", "(?P<n", "(?z)", ")", "*", "[z-a]", "\\y", "a{2000}"):
        first_beat(pair, "kip-wrong", "m1", None, subscribed_topic_regex=wrong)
    group_topic(pair, "regex-a", 1)
    group_topic(pair, "regex-b", 2)
    group = "kip-regex"
    first_beat(pair, group, "m1", None, subscribed_topic_regex="regex-.*")
    for _ in range(20_000):
        replies = (
            pair.ours.ask("ConsumerGroupHeartbeat", 1, beat_request(1, group, "m1", 1)),
            pair.theirs.ask("ConsumerGroupHeartbeat", 1, beat_request(1, group, "m1", 1)),
        )
        if all(r.member_epoch >= 2 or r.error_code for r in replies):
            break
    describe(pair, group)
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, "m1", 2))


def test_offsets_of_a_consumer_group(pair: Pair) -> None:
    ids = group_topic(pair, "kip4", 3)
    group = "kip-offsets"
    first_beat(pair, group, "m1", ["kip4"])
    some: Any = lambda s: [("kip4", ids[s], [(0, 1, "")])]  # noqa: E731
    for v in versions("OffsetCommit"):
        for member in ("m1", "", "nobody"):
            for epoch in (-1, 0, 1, 2):
                pair.both("OffsetCommit", v, lambda s: commit_request(v, group, some(s), member, epoch))
    for v in (8, 9, 10):
        for asker, epoch in ((None, -1), ("m1", 1), ("m1", 2), ("nobody", 1)):
            if v == 8 and asker:
                continue
            pair.both(
                "OffsetFetch",
                v,
                lambda s: fetch_request(v, group, [("kip4", ids[s], [0, 1])], member_id=asker, member_epoch=epoch),
            )
    r = m.OffsetDeleteRequest
    parts = [r.OffsetDeleteRequestPartition(partition_index=0)]
    pair.ask("OffsetDelete", 0, r(group_id=group, topics=[r.OffsetDeleteRequestTopic(name=n, partitions=parts) for n in ("kip4", "cg")]))
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=[group]))
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, "m1", -1))
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=[group]))
    describe(pair, group)


def test_offsets_of_members_ahead_of_their_group(pair: Pair) -> None:
    """And of classic members of a consumer group, whose epoch is a generation."""
    ids = group_topic(pair, "kip6", 3)
    group = "kip-ahead"
    first_beat(pair, group, "m1", ["kip6"])
    mine, other = pair.both("JoinGroup", 9, lambda s: join_request(9, group, protocols=[("range", subscription("kip6"))]))
    members = (mine.member_id, other.member_id)
    pair.both("JoinGroup", 9, lambda s: join_request(9, group, members[s], protocols=[("range", subscription("kip6"))]))
    for v in versions("OffsetCommit"):
        for member in (("m1", "m1"), members):
            for epoch in (1, 2, 3, 99):
                pair.both("OffsetCommit", v, lambda s: commit_request(v, group, [("kip6", ids[s], [(0, 1, ""), (1, 2, "")])], member[s], epoch))


# between the protocols


def test_classic_requests_to_a_consumer_group(pair: Pair) -> None:
    group_topic(pair, "mix", 4)
    group = "mix-classic"
    first_beat(pair, group, "m1", ["mix"])
    heartbeat(pair, 4, group, ("m1", "m1"), 1)
    heartbeat(pair, 4, group, ("x", "x"), 1)
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, "m1", 1))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, "x", 1))
    leave(pair, 5, group, (("x", "x"), None), (("", ""), "i"))
    for version in versions("JoinGroup"):
        for protocols in ([("range", b"")], [("range", b"junk")]):
            if version >= 4:
                pair.both("JoinGroup", version, lambda s: join_request(version, group, "classic", protocols=protocols))
        pair.both("JoinGroup", version, lambda s: join_request(version, group, "c", kind="connect"))
    mine, theirs = pair.both("JoinGroup", 9, lambda s: join_request(9, group, protocols=[("range", subscription("mix"))]))
    ids = (mine.member_id, theirs.member_id)
    pair.both("JoinGroup", 9, lambda s: join_request(9, group, ids[s], protocols=[("range", subscription("mix"))]))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 2))
    heartbeat(pair, 4, group, ids, 2)
    describe(pair, group)
    leave(pair, 5, group, (ids, None))
    describe(pair, group)


def test_classic_members_of_a_consumer_group_that_are_refused(pair: Pair) -> None:
    group_topic(pair, "mixr", 4)
    group = "mix-refused"
    first_beat(pair, group, "m1", ["mixr"])
    protocols = [("range", subscription("mixr"))]
    mine, theirs = pair.both("JoinGroup", 9, lambda s: join_request(9, group, protocols=protocols, instance="i1"))
    ids = (mine.member_id, theirs.member_id)
    generation = mine.generation_id
    for g in (generation, generation + 1, generation - 1, -1):
        heartbeat(pair, 4, group, ids, g)
        for instance in ("i1", "i2"):
            heartbeat(pair, 4, group, ids, g, instance)
            heartbeat(pair, 4, group, ("x", "x"), g, instance)
    asker: str | None
    for asker in (None, "i1", "i2"):
        for g in (generation + 1, generation - 1):
            pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], g, instance=asker))
        for kind, protocol in (("connect", "range"), ("consumer", "sticky"), ("connect", "sticky")):
            pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], generation, instance=asker, kind=kind, protocol=protocol))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, "x", generation, instance="i1"))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], generation, instance="i1"))
    describe(pair, group)


def test_groups_of_other_types(pair: Pair) -> None:
    """Leaving by KIP-848's heartbeat a group that is classic or not there; a commit in a share group; what share groups alone may."""
    ids = group_topic(pair, "kinds", 2)
    member = stable(pair, "kinds-classic", protocols=[("range", subscription("kinds"))], name="kinds")
    share = m.ShareGroupHeartbeatRequest
    for epoch in (-1, -2, 1):
        for group in ("kinds-classic", "kinds-none"):
            for more in ({}, {"instance_id": "i"}):
                pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, member[s], epoch, **more))
        pair.both("ShareGroupHeartbeat", 1, lambda s: share(group_id="kinds-classic", member_id=member[s], member_epoch=epoch))
    pair.ask("ShareGroupHeartbeat", 1, share(group_id="kinds-share", member_id="s1", member_epoch=0, subscribed_topic_names=["kinds"]))
    for v in versions("OffsetCommit"):
        for generation in (-1, 1):
            pair.both("OffsetCommit", v, lambda s: commit_request(v, "kinds-share", [("kinds", ids[s], [(0, 1, "")])], "s1", generation))
    for v in versions("JoinGroup"):
        pair.both("JoinGroup", v, lambda s: join_request(v, "kinds-share", protocols=[("range", subscription("kinds"))]))
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, "kinds-share", "s1", 1))
    r, d, a, f = m.DeleteShareGroupOffsetsRequest, m.DescribeShareGroupOffsetsRequest, m.AlterShareGroupOffsetsRequest, m.OffsetDeleteRequest
    first_beat(pair, "kinds-consumer", "m1", ["kinds"])
    for group in ("kinds-classic", "kinds-consumer", "kinds-share", "kinds-none"):
        pair.ask("DeleteShareGroupOffsets", 0, r(group_id=group, topics=[r.DeleteShareGroupOffsetsRequestTopic(topic_name="kinds")]))
        for v in versions("DescribeShareGroupOffsets"):
            asked = d.DescribeShareGroupOffsetsRequestTopic(topic_name="kinds", partitions=[0])
            pair.ask("DescribeShareGroupOffsets", v, d(groups=[d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[asked])]))
        part = a.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
        altered = a.AlterShareGroupOffsetsRequestTopic(topic_name="kinds", partitions=[part])
        pair.ask("AlterShareGroupOffsets", 0, a(group_id=group, topics=[altered]))
        parts = [f.OffsetDeleteRequestPartition(partition_index=0)]
        pair.ask("OffsetDelete", 0, f(group_id=group, topics=[f.OffsetDeleteRequestTopic(name="kinds", partitions=parts)]))
        heartbeat(pair, 4, group, ("x", "x"), 1)
        leave(pair, 5, group, (("x", "x"), None))
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, "x", 1))
        describe(pair, group)


def test_groups_that_cannot_be_upgraded(pair: Pair) -> None:
    """A custom assignor's user data, an assignment and a subscription that cannot be read, another protocol type."""
    group_topic(pair, "upg", 2)
    a = m.ConsumerProtocolAssignment
    with_data = a(assigned_partitions=[a.TopicPartition(topic="upg", partitions=[0])], user_data=b"mine")
    custom = bytes(codec.build("ConsumerProtocolAssignment", 1, with_data, bytearray(b"\0\1")))
    for number, (protocols, said) in enumerate(
        [
            ([("range", subscription("upg"))], custom),
            ([("range", subscription("upg"))], b"junk"),
            ([("range", b"junk")], assignment("upg", 0)),
            ([("range", b"")], b""),
        ]
    ):
        group = f"upgrade-{number}"
        ids = joined(pair, 9, group, protocols=protocols)
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 1, {ids[s]: said}))
        first_beat(pair, group, "m1", ["upg"])
        describe(pair, group)


def test_a_classic_group_becomes_a_consumer_group_and_back(pair: Pair) -> None:
    group_topic(pair, "mig", 2)
    group = "migrating"
    ids = stable(pair, group, protocols=[("range", subscription("mig"))], name="mig")
    describe(pair, group)
    first_beat(pair, group, "m1", ["mig"])
    describe(pair, group)
    heartbeat(pair, 4, group, ids, 1)
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 1))
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, "m1", -1))
    describe(pair, group)
    heartbeat(pair, 4, group, ids, 3)
    leave(pair, 5, group, (ids, None))
    first_beat(pair, group, "m2", ["mig"])
    describe(pair, group)
    stable(pair, "other-kind", kind="connect", protocols=[("range", b"x")])
    first_beat(pair, "other-kind", "m1", ["mig"])
    pair.both("JoinGroup", 9, lambda s: join_request(9, "simple-8", protocols=[("range", subscription("mig"))]))


# configurations of groups


def test_configs_of_groups(pair: Pair) -> None:
    d, i, lister = m.DescribeConfigsRequest, m.IncrementalAlterConfigsRequest, m.ListConfigResourcesRequest

    def describe_configs(name: str, version: int = 4) -> None:
        resource = d.DescribeConfigsResource(resource_type=32, resource_name=name, configuration_keys=None)
        pair.ask("DescribeConfigs", version, d(resources=[resource], include_synonyms=True))

    def alter(name: str, *changes: tuple[str, int, str | None]) -> None:
        configs = [i.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
        pair.ask("IncrementalAlterConfigs", 1, i(resources=[i.AlterConfigsResource(resource_type=32, resource_name=name, configs=configs)]))

    pair.ask("ListConfigResources", 0, lister())
    for version in versions("DescribeConfigs"):
        describe_configs("plain-group", version)
        describe_configs("", version)
    session, interval, assignment_ms = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms"
    for value in ("50000", "1", "70000", "x", "", "-1"):
        alter("configured", (session, 0, value))
    for value in ("6000", "50001", "4999", "15001"):
        alter("configured", (interval, 0, value))
    for value in ("0", "500", "15001", "-1"):
        alter("configured", (assignment_ms, 0, value))
    for name, value in (
        ("share.auto.offset.reset", "latestx"),
        ("share.auto.offset.reset", "by_duration:P1D"),
        ("share.isolation.level", "serializable"),
        ("share.record.lock.duration.ms", "1"),
        ("share.delivery.count.limit", "11"),
        ("streams.num.standby.replicas", "9"),
        ("nope", "1"),
    ):
        alter("configured", (name, 0, value))
    alter("", (session, 0, "50000"))
    alter("configured", (session, 2, "50000"))
    alter("configured", (session, 0, None))
    alter("configured", (session, 1, None), (interval, 1, None))
    resource = d.DescribeConfigsResource(resource_type=32, resource_name="configured", configuration_keys=[session])
    until = time.monotonic() + WITHIN_S
    while pair.theirs.ask("DescribeConfigs", 4, d(resources=[resource])).results[0].configs[0].config_source != 5:
        assert time.monotonic() < until, "the last change does not come"
    describe_configs("configured")
    for types in ([32], [16], [77], [32, 77], [8], [4, 32]):
        pair.ask("ListConfigResources", 1, lister(resource_types=types))
