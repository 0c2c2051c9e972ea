"""Members of consumer groups that change what they are: static ones between the protocols, patterns that come and go.
Compared field by field.

Every member has topics of its own, so that who gets what does not depend on ids that are random.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import codec
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.poll import until
from ..support.stories.groups import (
    beat_request,
    commit_request,
    describe,
    first_beat,
    group_topic,
    heartbeat,
    join_request,
    joined,
    leave,
    subscription,
    sync_request,
)
from ..support.transcripts import Asks

pytestmark = pytest.mark.slow
kafka, ours, coordinators = own_brokers({"group.consumer.assignment.interval.ms": 0})
RANGE = [("range", subscription("w"))]


def beat(pair: Pair, group: str, member: str, epoch: int, **more: Any) -> Any:
    return pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, member, epoch, **more))[0]


def classic(
    pair: Pair, group: str, topic: str, member: tuple[str, str] = ("", ""), version: int = 9, **more: Any
) -> tuple[tuple[str, str], int]:
    """A member that joins by the classic protocol; its ids, and its generation."""
    mine, other = pair.both(
        "JoinGroup",
        version,
        lambda s: join_request(version, group, member[s], protocols=[("range", subscription(topic))], **more),
    )
    if mine.error_code == 79:
        return classic(pair, group, topic, (mine.member_id, other.member_id), version, **more)
    return (mine.member_id, other.member_id), mine.generation_id


def test_assignors_with_as_many_votes(pair: Pair) -> None:
    """The own one of the member that beats comes first, so that the members of a group take it in turns."""
    group_topic(pair, "votes", 1)

    def told(member: str, epoch: int, **more: Any) -> int:
        reply = beat(pair, group, member, epoch, **more)
        describe(pair, group)
        return int(reply.member_epoch)

    for first, second in (("uniform", "range"), ("range", "uniform")):
        group = f"votes-{first}"
        joins = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ["votes"], "owned": []}
        z, a = told("z", 0, server_assignor=first, **joins), told("a", 0, server_assignor=second, **joins)
        a, z = told("a", a), told("z", z)
        z = told("z", z, server_assignor=second)
        z = told("z", z, server_assignor=first)
        a = told("a", a)
        told("a", -1)
        a = told("a", 0, server_assignor=first, **joins)
        a = told("a", a, server_assignor=second)
        c = told("c", 0, **joins)
        c, a, z = told("c", c), told("a", a), told("z", z)
        c = told("c", c, server_assignor=second)  # no more as many
        a, z = told("a", a), told("z", z)
        b = told("b", 0, server_assignor=first, **joins)  # two and two
        b, c, a = told("b", b), told("c", c), told("a", a)


def test_a_topic_that_does_not_exist_makes_subscriptions_differ(pair: Pair) -> None:
    """The uniform assignor shares out then as it does where members want different topics."""
    group_topic(pair, "wanted", 1)
    joins = {"rebalance_timeout_ms": 10_000, "owned": []}
    for group, others in (("differ", ["wanted", "absent"]), ("agree", ["wanted"])):
        members = ("m2", ["wanted"]), ("m3", others), ("m1", ["wanted"])
        for member, topics in members:
            beat(pair, group, member, 0, subscribed_topic_names=topics, **joins)
        for gone, new in (("m2", "xyz"), ("xyz", "m2"), ("m1", "ab"), ("m3", "xyz"), ("ab", "m1")):
            beat(pair, group, gone, -1)
            beat(pair, group, new, 0, subscribed_topic_names=["wanted"], **joins)
            describe(pair, group)
        for member in ("m1", "m2", "xyz"):
            beat(pair, group, member, -1)
            describe(pair, group)


@pytest.mark.parametrize("assignor", ["range", "uniform"])
@pytest.mark.parametrize("late", ["a", "z"])
def test_a_member_without_topics_joins_when_an_assignment_is_due(pair: Pair, assignor: str, late: str) -> None:
    """It does not raise the group's epoch, so that the group takes all to be subscribed alike, and asks the first one
    for the topics of all: none gets anything, or the new one does, too.
    """
    topic = group = f"due-{assignor}-{late}"
    group_topic(pair, topic, 4)
    joins = {"rebalance_timeout_ms": 10_000, "owned": [], "server_assignor": assignor}

    def told(member: str, epoch: int, **more: Any) -> int:
        reply = beat(pair, group, member, epoch, **more)
        describe(pair, group)
        return int(reply.member_epoch)

    m1 = told("m1", 0, subscribed_topic_names=[topic], **joins)
    m2 = told("m2", 0, subscribed_topic_names=[topic], **joins)
    m1, m2 = told("m1", m1, owned=[]), told("m2", m2, owned=[])
    told("m2", -1)
    epoch = told(late, 0, subscribed_topic_names=[], **joins)
    m1, epoch = told("m1", m1, owned=[]), told(late, epoch, owned=[])
    told(late, epoch, subscribed_topic_names=[topic])
    told("m1", m1, owned=[])


@pytest.mark.parametrize("version", [5, 9])
def test_a_static_member_comes_back_by_the_other_protocol(pair: Pair, version: int) -> None:
    for name in ("sa", "sb"):
        group_topic(pair, f"{name}{version}", 2)
    group, a, b = f"static-{version}", f"sa{version}", f"sb{version}"
    first_beat(pair, group, "m1", [a], instance_id="i1")
    second = pair.beside("second")
    ids, generation = classic(second, group, b, version=version, instance="i2")
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], generation, instance="i2"))
    describe(pair, group)
    instance: str | None
    for instance in ("i1", "i2", None):
        classic(pair, group, a, ("x", "x"), version, instance=instance)  # fenced, or unknown
    beat(pair, group, "m1", -2, instance_id="i1")
    describe(pair, group)
    late, generation = classic(
        pair, group, a, version=version, instance="i1"
    )  # all are classic now, and so is the group
    describe(pair, group)
    heartbeat(pair, 4, group, late, generation, "i1")
    heartbeat(pair, 4, group, ids, generation, "i2")
    leave(pair, 5, group, (("x", "x"), "i1"), (("", ""), "i9"))
    leave(pair, 5, group, (late, "i1"))
    first_beat(pair, group, "m3", [a], instance_id="i2")  # and back: a classic static member that comes by the new one
    describe(pair, group)
    heartbeat(pair, 4, group, ids, generation, "i2")
    leave(pair, 5, group, (("", ""), "i2"))
    describe(pair, group)
    second.close()
    assert pair.errors("LeaveGroup") == {"FENCED_INSTANCE_ID", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("Heartbeat") == {"FENCED_INSTANCE_ID", "NONE"}


def test_static_members_of_both_protocols_leave(pair: Pair) -> None:
    for name in ("sla", "slb", "slc"):
        group_topic(pair, name, 1)
    group = "static-leaving"
    first_beat(pair, group, "m1", ["sla"], instance_id="i1")
    second, another = pair.beside("second"), pair.beside("third")
    ids, generation = classic(second, group, "slb", instance="i2")
    third, _ = classic(another, group, "slc")
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], generation, instance="i2"))
    leave(
        pair,
        5,
        group,
        (("m1", "m1"), None),
        (("m1", "m1"), "i1"),
        (("x", "x"), "i2"),
        (("x", "x"), None),
        (third, "i2"),
    )
    describe(pair, group)
    leave(pair, 5, group, (ids, "i2"), (third, None))
    describe(pair, group)
    beat(pair, group, "m1", -1, instance_id="i1")
    describe(pair, group)
    for one in (second, another):
        one.close()
    assert pair.errors("LeaveGroup") == {"FENCED_INSTANCE_ID", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("ConsumerGroupHeartbeat") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}


def test_a_member_with_owned_partitions_joins_classically(pair: Pair) -> None:
    ids = group_topic(pair, "owned", 2)
    group_topic(pair, "not-owned", 1)
    group = "owning"
    first_beat(pair, group, "m1", ["not-owned"])

    def protocols(*partitions: int) -> list[tuple[str, bytes]]:
        c = m.ConsumerProtocolSubscription
        said = c(topics=["owned"], owned_partitions=[c.TopicPartition(topic="owned", partitions=list(partitions))])
        return [("range", bytes(codec.build("ConsumerProtocolSubscription", 1, said, bytearray(b"\0\1"))))]

    def joins(member: tuple[str, str], *partitions: int) -> tuple[Any, Any]:
        return pair.both("JoinGroup", 9, lambda s: join_request(9, group, member[s], protocols=protocols(*partitions)))

    mine, other = joins(("", ""), 0, 1)
    members = (mine.member_id, other.member_id)
    generation = joins(members, 0, 1)[0].generation_id
    describe(pair, group)
    pair.both(
        "OffsetCommit", 9, lambda s: commit_request(9, group, [("owned", ids[s], [(0, 1, "")])], members[s], generation)
    )
    for partitions in ((0, 1), (0,), ()):
        joins(members, *partitions)
    describe(pair, group)
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}


def settled(pair: Pair, group: str, members: dict[str, list[str]], epoch: int = 0) -> None:
    """Beats until both describe the members with these topics: patterns are resolved beside the heartbeats, new ones
    after ten seconds.
    """
    for wire in pair.wires:

        def is_settled(wire: Asks = wire) -> bool:
            found = wire.ask("ConsumerGroupDescribe", 0, m.ConsumerGroupDescribeRequest(group_ids=[group])).groups[0]
            targets = {
                one.member_id: sorted(t.topic_name for t in one.target_assignment.topic_partitions)
                for one in found.members
            }
            if targets == members and found.group_state == "Stable" and found.group_epoch >= epoch:
                return True
            for one in found.members:
                wire.ask("ConsumerGroupHeartbeat", 1, beat_request(1, group, one.member_id, one.member_epoch, owned=[]))
            return False

        until(is_settled, f"{group} has {members}")


def test_patterns_that_come_and_go(pair: Pair) -> None:
    for name in ("pat-a", "pat-b", "pot-c", "pit-d"):
        group_topic(pair, name, 1)
    group = "patterns"

    def changed(member: str, then: dict[str, list[str]], **more: Any) -> None:
        for wire in pair.wires:
            found = wire.ask("ConsumerGroupDescribe", 0, m.ConsumerGroupDescribeRequest(group_ids=[group])).groups[0]
            epoch = next(one.member_epoch for one in found.members if one.member_id == member)
            answer = wire.ask("ConsumerGroupHeartbeat", 1, beat_request(1, group, member, epoch, owned=[], **more))
            assert answer.error_code == 0, answer
        settled(pair, group, then)
        describe(pair, group)

    first_beat(pair, group, "m1", None, subscribed_topic_regex="p[ao]t-.*")
    settled(pair, group, {"m1": ["pat-a", "pat-b", "pot-c"]})
    first_beat(pair, group, "m2", None, subscribed_topic_regex="p[ao]t-.*")  # known already
    changed(
        "m2",
        {"m1": ["pat-a", "pat-b", "pot-c"], "m2": ["pit-d"]},
        subscribed_topic_regex="",
        subscribed_topic_names=["pit-d"],
    )
    changed("m2", {"m1": ["pat-a", "pat-b", "pot-c"], "m2": ["pit-d"]}, rack_id="r9")
    changed(
        "m1", {"m1": [], "m2": ["pit-d"]}, subscribed_topic_regex="", subscribed_topic_names=[]
    )  # no member's any more
    changed("m1", {"m1": ["pat-a"], "m2": ["pit-d"]}, subscribed_topic_regex="pat-[a]", subscribed_topic_names=[])
    changed("m2", {"m1": ["pat-a"], "m2": ["pit-d"]}, subscribed_topic_regex="p[x-z]t-.*")  # there is nothing like that
    before = (
        pair.ask("ConsumerGroupDescribe", 0, m.ConsumerGroupDescribeRequest(group_ids=[group]))[0].groups[0].group_epoch
    )
    pair.ask("DeleteTopics", 5, m.DeleteTopicsRequest(topic_names=["pat-a"], timeout_ms=10_000))
    settled(pair, group, {"m1": [], "m2": ["pit-d"]}, before + 1)
    describe(pair, group)
    beat(pair, group, "m2", -1)
    describe(pair, group)
    beat(pair, group, "m1", -1)
    describe(pair, group)


def test_partitions_to_give_up_are_described_after_those_that_stay(pair: Pair) -> None:
    ids = group_topic(pair, "given-up", 4)
    group = "given-up"
    first_beat(pair, group, "m2", ["given-up"], server_assignor="range")
    first_beat(pair, group, "m1", ["given-up"], server_assignor="range")
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, "m2", 2, owned=[(ids[s], [0, 1, 2, 3])]))
    mine, _ = pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[group]))
    (held,) = (one.assignment.topic_partitions for one in mine.groups[0].members if one.member_id == "m2")
    assert [one.partitions for one in held] == [[2, 3, 0, 1]]
    assert pair.errors("ConsumerGroupHeartbeat") == {"NONE"}


def test_offsets_for_an_epoch_without_a_member(pair: Pair) -> None:
    """Kafka fails where it looks for the member without an id."""
    group_topic(pair, "nobody", 1)
    first_beat(pair, "nobody", "m1", ["nobody"])
    r = m.OffsetFetchRequest
    for epoch in (-1, 0):
        asked = r.OffsetFetchRequestGroup(group_id="nobody", member_id=None, member_epoch=epoch, topics=None)
        pair.ask("OffsetFetch", 9, r(groups=[asked]))
    assert pair.errors("OffsetFetch") == {"NONE", "UNKNOWN_SERVER_ERROR"}


def rebalancing(pair: Pair, second: Pair, group: str) -> tuple[str, str]:
    """A classic group whose second member waits until the first joins again; the ids of the first."""
    first = joined(pair, 9, group, instance="i1", protocols=RANGE)
    second.say("JoinGroup", 9, lambda s: join_request(9, group, instance="i2", protocols=RANGE))
    pair.until("DescribeGroups", 5, described(group), lambda r: r.groups[0].group_state == "PreparingRebalance")
    return first


def described(group: str) -> m.DescribeGroupsRequest:
    return m.DescribeGroupsRequest(groups=[group])


def test_who_waits_is_told_to_join_again_by_a_member_that_is_refused(pair: Pair) -> None:
    """The group would become a consumer group with a member whose expression is none, and stays a classic group."""
    group, second = "refused-upgrade", pair.beside("second")
    rebalancing(pair, second, group)
    beat(pair, group, "m", 0, rebalance_timeout_ms=10_000, subscribed_topic_regex="[", owned=[])
    second.hear("JoinGroup", 9)
    pair.ask("DescribeGroups", 5, described(group))
    second.close()
    assert pair.errors("ConsumerGroupHeartbeat") == {"INVALID_REGULAR_EXPRESSION"}
    assert pair.errors("JoinGroup") == {"NONE", "REBALANCE_IN_PROGRESS"}


def test_an_assignment_that_is_too_large_lets_all_join_again(pair: Pair) -> None:
    """The record of the group is larger than a batch of its topic may be."""
    group, second = "large-assignment", pair.beside("second")
    limit(pair, "2000")
    pair.trims["JoinGroup"] = lambda reply: reply.members.sort(key=lambda one: one.group_instance_id)
    first = rebalancing(pair, second, group)
    pair.both("JoinGroup", 9, lambda s: join_request(9, group, first[s], instance="i1", protocols=RANGE))
    mine, other = second.hear("JoinGroup", 9)
    ids = (mine.member_id, other.member_id)
    second.say("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 2, instance="i2"))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, first[s], 2, {first[s]: bytes(3000)}, instance="i1"))
    second.hear("SyncGroup", 5)
    pair.ask("DescribeGroups", 5, described(group))
    heartbeat(pair, 4, group, ids, 2, "i2")
    limit(pair, None)
    second.close()
    assert pair.errors("SyncGroup") == {"UNKNOWN_SERVER_ERROR"}
    assert pair.errors("Heartbeat") == {"REBALANCE_IN_PROGRESS"}


def limit(pair: Pair, value: str | None) -> None:
    """How large a batch of the groups' topic may be."""
    r = m.IncrementalAlterConfigsRequest
    change = r.AlterableConfig(name="max.message.bytes", config_operation=0 if value else 1, value=value)
    resource = r.AlterConfigsResource(resource_type=2, resource_name="__consumer_offsets", configs=[change])
    pair.ask("IncrementalAlterConfigs", 1, r(resources=[resource]))
    d = m.DescribeConfigsRequest
    wanted = d.DescribeConfigsResource(resource_type=2, resource_name="__consumer_offsets")
    wanted.configuration_keys = ["max.message.bytes"]
    value = value or "1048588"
    pair.until("DescribeConfigs", 4, d(resources=[wanted]), lambda r: r.results[0].configs[0].value == value)
