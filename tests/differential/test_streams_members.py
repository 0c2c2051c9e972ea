"""Streams groups, told the same stories by ottla and by Apache Kafka: who may be a member, and what it commits."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import join_request
from ..support.stories.streams import (
    DELAY_MS,
    SETTINGS,
    Application,
    R,
    beat,
    configure,
    describe,
    info,
    join,
    listed,
    part,
    same_records,
    source,
    tasks,
    topology,
)

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


def test_static_members(pair: Pair) -> None:
    source(pair, "sm1", 2)
    parts = (part("0", "sm1"),)
    join(pair, "sm1", *parts, instance_id="i1")
    join(pair, "sm1", *parts, member="m2", instance_id="i1")
    beat(pair, "sm1", 2, instance_id="i1", has=tasks(s0=[0, 1]))
    beat(pair, "sm1", 2, "m2", instance_id="i1")
    beat(pair, "sm1", 2, "m2", instance_id="i9")
    join(pair, "sm1", *parts, member="m3", instance_id="i3")
    beat(pair, "sm1", 2, instance_id="i1", has=tasks(s0=[0]))
    beat(pair, "sm1", 2, instance_id="i1", has=tasks(s0=[0]), rebalance_timeout_ms=30_000)
    beat(pair, "sm1", 3, "m3", instance_id="i3")
    beat(pair, "sm1", -2, "m1", instance_id="i9")
    beat(pair, "sm1", -2, "m9", instance_id="i1")
    beat(pair, "sm1", -2, "m1", instance_id="i1")
    describe(pair, "sm1")
    join(pair, "sm1", *parts, member="m4", instance_id="i1", process_id="p-m1")
    beat(pair, "sm1", 3, "m4", instance_id="i1")
    beat(pair, "sm1", -2, "m4", instance_id="i1")
    join(pair, "sm1", *parts, member="m5", instance_id="i1", process_id="other")
    describe(pair, "sm1")
    beat(pair, "sm1", -2, "m5", instance_id="i1")
    join(pair, "sm1", *parts, member="m5", instance_id="i1", rack_id="r1", process_id="other")
    beat(pair, "sm1", -1, "m3", instance_id="i1")
    beat(pair, "sm1", -1, "m3", instance_id="i3")
    beat(pair, "sm1", -1, "m5", instance_id="i1")
    describe(pair, "sm1")
    same_records(pair, "sm1")
    assert pair.errors("StreamsGroupHeartbeat") == {
        "FENCED_INSTANCE_ID",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNRELEASED_INSTANCE_ID",
    }


def test_a_group_has_room_for_some(pair: Pair) -> None:
    source(pair, "sm2", 5)
    parts = (part("0", "sm2"),)
    for name in ("m1", "m2", "m3", "m4", "m5", "m4"):
        join(pair, "sm2", *parts, member=name, instance_id="i4" if name == "m4" else None)
    join(pair, "sm2", *parts, member="m6", instance_id="i6")
    join(pair, "sm2", *parts, member="m6", instance_id="i4")
    same_records(pair, "sm2")
    assert pair.errors("StreamsGroupHeartbeat") == {"GROUP_MAX_SIZE_REACHED", "NONE", "UNRELEASED_INSTANCE_ID"}


def test_what_a_member_says_of_itself(pair: Pair) -> None:
    source(pair, "sm3", 2)
    parts = (part("0", "sm3", changelogs=[]),)
    tags = [R.KeyValue(key="zone", value="a"), R.KeyValue(key="cluster", value="b")]
    join(pair, "sm3", *parts, rack_id="r1", client_tags=tags)
    beat(pair, "sm3", 2)
    beat(pair, "sm3", 2, rack_id="r2")
    beat(pair, "sm3", 3, process_id="again", client_tags=tags[:1])
    beat(pair, "sm3", 4, client_tags=[*tags, *tags])
    offsets = [R.TaskOffset(subtopology_id="0", partition=p, offset=100 + p) for p in (1, 0)]
    beat(pair, "sm3", 4, task_offsets=offsets)
    describe(pair, "sm3")
    beat(pair, "sm3", 4, task_end_offsets=offsets[:1])
    beat(pair, "sm3", 4, task_offsets=[])
    describe(pair, "sm3")
    configure(pair, "sm3", streams_rack_aware_assignment_tags="zone,cluster,row")
    beat(pair, "sm3", 4)
    beat(pair, "sm3", 5, version=0)
    beat(pair, "sm3", 5, client_tags=[*tags, R.KeyValue(key="row", value="1")])
    configure(pair, "sm3", streams_rack_aware_assignment_tags=None)
    same_records(pair, "sm3")


@pytest.mark.parametrize("version", [0, 1])
def test_configurations_of_a_group(pair: Pair, version: int) -> None:
    name = f"sm4-{version}"
    source(pair, name)
    values = {
        "streams_heartbeat_interval_ms": "6000",
        "streams_task_offset_interval_ms": "70000",
        "streams_acceptable_recovery_lag": "5000000000" if version else "77",
        "streams_session_timeout_ms": "50000",
    }
    configure(pair, name, **values)
    join(pair, name, part("0", name), version=version)
    beat(pair, name, 2, version=version)


def test_endpoints(pair: Pair) -> None:
    for name in ("sm5", "sm5-b"):
        source(pair, name, 3)
    parts = part("0", "sm5", "sm5-b"), part("1", "sm5-b")

    def at(port: int) -> Any:
        return R.Endpoint(host="here", port=port)

    def in_order(reply: Any) -> None:
        """The order of two subtopologies that read the same topic is another one in each JVM."""
        for one in reply.partitions_by_user_endpoint or ():
            one.active_partitions.sort(key=lambda of: (of.topic, of.partitions))

    pair.trims["StreamsGroupHeartbeat"] = in_order

    join(pair, "sm5", *parts, user_endpoint=at(1))
    beat(pair, "sm5", 2)
    beat(pair, "sm5", 2, endpoint_information_epoch=1)
    beat(pair, "sm5", 2, endpoint_information_epoch=2)
    join(pair, "sm5", *parts, member="m2", user_endpoint=at(2))
    beat(pair, "sm5", 2, endpoint_information_epoch=1, has=tasks(s0=[0, 1], s1=[0]))
    beat(pair, "sm5", 3, "m2", endpoint_information_epoch=0)
    beat(pair, "sm5", 3, "m2", user_endpoint=at(3))
    beat(pair, "sm5", -1, "m2")
    beat(pair, "sm5", 3, endpoint_information_epoch=0)
    join(pair, "sm5-none", part("0", "sm5-missing"), user_endpoint=at(9))
    describe(pair, "sm5")


def test_a_member_shuts_the_application_down(pair: Pair) -> None:
    source(pair, "sm6", 2)
    join(pair, "sm6", part("0", "sm6"))
    join(pair, "sm6", part("0", "sm6"), member="m2")
    beat(pair, "sm6", 2, shutdown_application=True)
    beat(pair, "sm6", 2, "m2")
    beat(pair, "sm6", -1)
    beat(pair, "sm6", 3, "m2")
    beat(pair, "sm6", -1, "m2", shutdown_application=True)
    join(pair, "sm6", part("0", "sm6"))
    beat(pair, "sm6", 6, shutdown_application=True)


def test_the_first_member_that_asks_for_the_end_is_named(pair: Pair) -> None:
    source(pair, "sm6b", 2)
    application = Application(pair, "sm6b", part("0", "sm6b"))
    application.join("m1")
    application.join("m2")
    application.settle()
    application.beat("m2", shutdown_application=True)
    application.beat("m1", shutdown_application=True)
    application.beat("m2")
    application.leave("m2")
    assert "member m2 encountered" in application.beat("m1").status[0].status_detail


@pytest.mark.parametrize("instance_id", [None, "i9"])
def test_one_that_is_no_member_shuts_the_application_down(pair: Pair, instance_id: str | None) -> None:
    """Kafka notes who asks for the end before it looks for the member."""
    group = f"sm6c-{instance_id}"
    source(pair, group, 2)
    application = Application(pair, group, part("0", group))
    application.join("m1")
    refused = beat(pair, group, -1, "nobody", instance_id=instance_id, shutdown_application=True)
    assert Errors(refused.error_code) == Errors.UNKNOWN_MEMBER_ID
    assert "member nobody encountered" in application.beat("m1").status[0].status_detail


def test_first_members_wait_for_others(pair: Pair) -> None:
    source(pair, "sm7", 2)
    configure(pair, "sm7", streams_initial_rebalance_delay_ms=DELAY_MS)
    join(pair, "sm7", part("0", "sm7"))
    join(pair, "sm7", part("0", "sm7"), member="m2")
    beat(pair, "sm7", 1)
    beat(pair, "sm7", 1, "m2", has=[])
    describe(pair, "sm7")
    same_records(pair, "sm7")


def test_assignments_have_an_interval(pair: Pair) -> None:
    source(pair, "sm8", 2)
    join(pair, "sm8", part("0", "sm8"))
    configure(pair, "sm8", streams_assignment_interval_ms="15000")
    join(pair, "sm8", part("0", "sm8"), member="m2")
    beat(pair, "sm8", 2, has=tasks(s0=[0, 1]))
    describe(pair, "sm8")
    same_records(pair, "sm8")


def test_another_topology(pair: Pair) -> None:
    for name in ("sm9", "sm9-b"):
        source(pair, name)
    first, second = part("0", "sm9"), part("1", "sm9-b")
    join(pair, "sm9", topology=topology(first, epoch=3))
    join(pair, "sm9", topology=topology(second, epoch=2), member="m2")
    beat(pair, "sm9", 3, "m2")
    join(pair, "sm9", topology=topology(second, epoch=3), member="m3")
    join(pair, "sm9", topology=topology(second, epoch=4), member="m4")
    join(pair, "sm9", topology=topology(first, epoch=3), member="m5")
    join(pair, "sm9", topology=topology(first, epoch=-1), member="m5")
    describe(pair, "sm9")
    same_records(pair, "sm9")


def test_groups_of_one_kind_are_not_of_another(pair: Pair) -> None:
    source(pair, "sk1")
    parts = (part("0", "sk1"),)
    join(pair, "sk1", *parts)
    consumer = m.ConsumerGroupHeartbeatRequest(group_id="sk1", member_id="c", rebalance_timeout_ms=1000)
    consumer.topic_partitions, consumer.subscribed_topic_names = [], ["sk1"]
    pair.ask("ConsumerGroupHeartbeat", 1, consumer)
    share = m.ShareGroupHeartbeatRequest(group_id="sk1", member_id="c", subscribed_topic_names=["sk1"])
    pair.ask("ShareGroupHeartbeat", 1, share)
    pair.ask("JoinGroup", 9, join_request(9, "sk1"))
    pair.ask("Heartbeat", 4, m.HeartbeatRequest(group_id="sk1", member_id="m1", generation_id=1))
    pair.ask("SyncGroup", 5, m.SyncGroupRequest(group_id="sk1", member_id="m1", generation_id=1))
    gone = m.LeaveGroupRequest.MemberIdentity(member_id="m1")
    pair.ask("LeaveGroup", 5, m.LeaveGroupRequest(group_id="sk1", members=[gone]))
    pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=["sk1"]))
    pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=["sk1"]))
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=["sk1"]))
    consumer.group_id = share.group_id = "sk2"
    pair.ask("ConsumerGroupHeartbeat", 1, consumer)
    join(pair, "sk2", *parts)
    beat(pair, "sk2", -1, "c")
    beat(pair, "sk2", 2, "c")
    share.group_id = "sk3"
    pair.ask("ShareGroupHeartbeat", 1, share)
    join(pair, "sk3", *parts)
    describe(pair, "sk2", "sk3")


def test_an_empty_classic_group_becomes_a_streams_group_and_back(pair: Pair) -> None:
    source(pair, "sk4")
    commit(pair, "sk4", "", -1)
    beat(pair, "sk4", 2)
    beat(pair, "sk4", -1)
    join(pair, "sk4", part("0", "sk4"))
    listed(pair, "sk4", types_filter=["streams"], states_filter=["Stable"])
    fetched(pair, "sk4", None, -1)
    beat(pair, "sk4", -1)
    pair.ask("JoinGroup", 9, join_request(9, "sk4"))
    described = m.DescribeGroupsRequest(groups=["sk4"])
    pair.until("DescribeGroups", 6, described, lambda reply: reply.groups[0].group_state == "Empty")
    pair.ask("DescribeGroups", 6, described)
    same_records(pair, "sk4")


# offsets


def commit(
    pair: Pair, group: str, member: str, epoch: int, *partitions: int, version: int = 9, topic: str = ""
) -> None:
    r = m.OffsetCommitRequest
    parts = [r.OffsetCommitRequestPartition(partition_index=p, committed_offset=5) for p in partitions or (0,)]
    topics = [r.OffsetCommitRequestTopic(name=topic or group, partitions=parts)]
    request = r(group_id=group, member_id=member, generation_id_or_member_epoch=epoch, topics=topics)
    pair.ask("OffsetCommit", version, request)


def fetched(pair: Pair, group: str, member: str | None, epoch: int) -> None:
    r = m.OffsetFetchRequest
    asked = r.OffsetFetchRequestGroup(group_id=group, member_id=member, member_epoch=epoch, topics=None)
    pair.ask("OffsetFetch", 9, r(groups=[asked]))


def test_offsets(pair: Pair) -> None:
    source(pair, "so1", 2)
    source(pair, "so1-b", 2)
    join(pair, "so1", part("0", "so1"))
    commit(pair, "so1", "m1", 2)
    for epoch in (1, 0, -1, 3):
        commit(pair, "so1", "m1", epoch)
    commit(pair, "so1", "m9", 2)
    commit(pair, "so1", "", -1)
    commit(pair, "so1", "m1", 2, version=8)
    commit(pair, "so1", "m1", 2, topic="so1-b")
    join(pair, "so1", part("0", "so1"), member="m2")
    beat(pair, "so1", 2, has=tasks(s0=[0, 1]))
    beat(pair, "so1", 2, has=tasks(s0=[0]))
    for partitions in ((0,), (1,), (0, 1)):
        commit(pair, "so1", "m1", 2, *partitions)
    commit(pair, "so1", "m1", 1, 0)
    commit(pair, "so1", "m1", 2, 0, topic="so1-b")
    for member, epoch in ((None, -1), ("m1", 3), ("m1", 2), ("m9", 3), ("m1", -1), (None, 3)):
        fetched(pair, "so1", member, epoch)
    d = m.OffsetDeleteRequest
    parts = [d.OffsetDeleteRequestPartition(partition_index=0)]
    for name in ("so1", "so1-b"):
        pair.ask("OffsetDelete", 0, d(group_id="so1", topics=[d.OffsetDeleteRequestTopic(name=name, partitions=parts)]))
    for member in ("m1", "m2"):
        beat(pair, "so1", -1, member)
    commit(pair, "so1", "", -1)
    pair.ask("OffsetDelete", 0, d(group_id="so1", topics=[d.OffsetDeleteRequestTopic(name="so1", partitions=parts)]))
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["so1"]))
    same_records(pair, "so1")


def test_topologies_are_not_described(pair: Pair) -> None:
    r = m.StreamsGroupTopologyDescriptionUpdateRequest
    for group in ("st", ""):
        pair.ask("StreamsGroupTopologyDescriptionUpdate", 0, r(group_id=group, member_id="m", topology_epoch=1))
    source(pair, "std")
    join(pair, "std", part("0", "std"), topology=topology(part("0", "std", changelogs=[info("std-log")])))
    request = m.StreamsGroupDescribeRequest(group_ids=["std"], include_topology_description=True)
    pair.ask("StreamsGroupDescribe", 1, request)
    assert pair.errors("StreamsGroupTopologyDescriptionUpdate") == {"UNSUPPORTED_VERSION"}
