"""Between the protocols of groups, configurations of groups, and long names, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import codec
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.poll import until
from ..support.stories.groups import (
    assignment,
    beat_request,
    commit_request,
    describe,
    first_beat,
    group_topic,
    heartbeat,
    join_request,
    joined,
    leave,
    stable,
    subscription,
    sync_request,
)
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(
    {
        "group.consumer.assignment.interval.ms": 1000,
        "group.share.assignment.interval.ms": 1000,
        "group.streams.assignment.interval.ms": 1000,
        "group.streams.initial.rebalance.delay.ms": 3000,
    }
)


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
    mine, theirs = pair.both(
        "JoinGroup", 9, lambda s: join_request(9, group, protocols=[("range", subscription("mix"))])
    )
    ids = (mine.member_id, theirs.member_id)
    pair.both("JoinGroup", 9, lambda s: join_request(9, group, ids[s], protocols=[("range", subscription("mix"))]))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 2))
    heartbeat(pair, 4, group, ids, 2)
    describe(pair, group)
    leave(pair, 5, group, (ids, None))
    describe(pair, group)
    assert pair.errors("JoinGroup") == {"INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED", "NONE"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("Heartbeat") == {"NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("LeaveGroup") == {"NONE", "UNKNOWN_MEMBER_ID"}


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
            pair.both(
                "SyncGroup",
                5,
                lambda s: sync_request(5, group, ids[s], generation, instance=asker, kind=kind, protocol=protocol),
            )
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, "x", generation, instance="i1"))
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], generation, instance="i1"))
    describe(pair, group)
    assert pair.errors("SyncGroup") == {
        "FENCED_INSTANCE_ID",
        "ILLEGAL_GENERATION",
        "INCONSISTENT_GROUP_PROTOCOL",
        "NONE",
        "UNKNOWN_MEMBER_ID",
    }
    assert pair.errors("Heartbeat") == {"FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_a_protocol_that_a_member_names_twice_is_not_chosen(pair: Pair) -> None:
    a, b, c = ((name, subscription("pt")) for name in "abc")
    group_topic(pair, "pt", 1)
    members = joined(pair, 9, "pt", protocols=[a, a, b, c])
    for protocols in ([b, a, b, c], [c, b], [a, a, b, b]):
        requests = [join_request(9, "pt", member, protocols=protocols) for member in members]
        pair.ask("JoinGroup", 9, requests[1], requests[0])
    assert pair.errors("JoinGroup") == {"NONE", "MEMBER_ID_REQUIRED", "UNKNOWN_SERVER_ERROR"}


def share_offsets(pair: Pair, group: str, name: str) -> None:
    """Deletes, describes and alters the offsets of a group as those of a share group."""
    r, d, a = (
        m.DeleteShareGroupOffsetsRequest,
        m.DescribeShareGroupOffsetsRequest,
        m.AlterShareGroupOffsetsRequest,
    )
    topics = [r.DeleteShareGroupOffsetsRequestTopic(topic_name=name)]
    pair.ask("DeleteShareGroupOffsets", 0, r(group_id=group, topics=topics))
    asked = d.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=[0])
    for v in versions("DescribeShareGroupOffsets"):
        groups = [d.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=[asked])]
        pair.ask("DescribeShareGroupOffsets", v, d(groups=groups))
    part = a.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=0)
    altered = a.AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=[part])
    pair.ask("AlterShareGroupOffsets", 0, a(group_id=group, topics=[altered]))


def test_groups_of_other_types(pair: Pair) -> None:
    """Leaving by KIP-848's heartbeat a group that is classic or not there; a commit in a share group; what share groups
    alone may.
    """
    ids = group_topic(pair, "kinds", 2)
    member = stable(pair, "kinds-classic", protocols=[("range", subscription("kinds"))], name="kinds")
    share = m.ShareGroupHeartbeatRequest
    for epoch in (-1, -2, 1):
        for group in ("kinds-classic", "kinds-none"):
            for more in ({}, {"instance_id": "i"}):
                pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, member[s], epoch, **more))
        pair.both(
            "ShareGroupHeartbeat", 1, lambda s: share(group_id="kinds-classic", member_id=member[s], member_epoch=epoch)
        )
    pair.ask(
        "ShareGroupHeartbeat",
        1,
        share(group_id="kinds-share", member_id="s1", member_epoch=0, subscribed_topic_names=["kinds"]),
    )
    for v in versions("OffsetCommit"):
        for generation in (-1, 1):
            pair.both(
                "OffsetCommit",
                v,
                lambda s: commit_request(v, "kinds-share", [("kinds", ids[s], [(0, 1, "")])], "s1", generation),
            )
    for v in versions("JoinGroup"):
        pair.both(
            "JoinGroup", v, lambda s: join_request(v, "kinds-share", protocols=[("range", subscription("kinds"))])
        )
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, "kinds-share", "s1", 1))
    first_beat(pair, "kinds-consumer", "m1", ["kinds"])
    for group in ("kinds-classic", "kinds-consumer", "kinds-share", "kinds-none"):
        share_offsets(pair, group, "kinds")
        f = m.OffsetDeleteRequest
        parts = [f.OffsetDeleteRequestPartition(partition_index=0)]
        pair.ask(
            "OffsetDelete", 0, f(group_id=group, topics=[f.OffsetDeleteRequestTopic(name="kinds", partitions=parts)])
        )
        heartbeat(pair, 4, group, ("x", "x"), 1)
        leave(pair, 5, group, (("x", "x"), None))
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, "x", 1))
        describe(pair, group)
    assert pair.errors("AlterShareGroupOffsets") == {"GROUP_ID_NOT_FOUND", "NONE", "NON_EMPTY_GROUP"}
    assert pair.errors("ConsumerGroupHeartbeat") == {"GROUP_ID_NOT_FOUND", "INVALID_REQUEST", "NONE"}
    assert pair.errors("JoinGroup") == {"INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED", "NONE"}
    assert pair.errors("OffsetDelete") == {"GROUP_ID_NOT_FOUND", "GROUP_SUBSCRIBED_TO_TOPIC", "NONE"}


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
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}
    assert pair.errors("ConsumerGroupHeartbeat") == {"GROUP_ID_NOT_FOUND"}


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
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("ConsumerGroupHeartbeat") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}
    assert pair.errors("Heartbeat") == {"ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"}


# configurations of groups


def test_configs_of_groups(pair: Pair) -> None:
    d, i, lister = m.DescribeConfigsRequest, m.IncrementalAlterConfigsRequest, m.ListConfigResourcesRequest

    def describe_configs(name: str, version: int = 4) -> None:
        resource = d.DescribeConfigsResource(resource_type=32, resource_name=name, configuration_keys=None)
        pair.ask("DescribeConfigs", version, d(resources=[resource], include_synonyms=True))

    def alter(name: str, *changes: tuple[str, int, str | None]) -> None:
        configs = [i.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
        pair.ask(
            "IncrementalAlterConfigs",
            1,
            i(resources=[i.AlterConfigsResource(resource_type=32, resource_name=name, configs=configs)]),
        )

    pair.ask("ListConfigResources", 0, lister())
    for version in versions("DescribeConfigs"):
        describe_configs("plain-group", version)
        describe_configs("", version)
    session, interval, assignment_ms = (
        "consumer.session.timeout.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.assignment.interval.ms",
    )
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

    def is_default_again() -> bool:
        found = pair.theirs.ask("DescribeConfigs", 4, d(resources=[resource]))
        return bool(found.results[0].configs[0].config_source == 5)

    until(is_default_again, "the last change of the group's configuration")
    describe_configs("configured")
    for types in ([32], [16], [77], [32, 77], [8], [4, 32]):
        pair.ask("ListConfigResources", 1, lister(resource_types=types))
    assert pair.errors("DescribeConfigs") == {"INVALID_REQUEST", "NONE"}
    assert pair.errors("ListConfigResources") == {"NONE", "UNSUPPORTED_VERSION"}
    assert pair.errors("IncrementalAlterConfigs") == {"INVALID_CONFIG", "INVALID_REQUEST", "NONE"}


def test_configs_of_client_metrics(pair: Pair) -> None:
    d, i, lister = m.DescribeConfigsRequest, m.IncrementalAlterConfigsRequest, m.ListConfigResourcesRequest

    def described(name: str) -> Any:
        return d(resources=[d.DescribeConfigsResource(resource_type=16, resource_name=name)], include_synonyms=True)

    def alter(name: str, *changes: tuple[str, int, str | None]) -> None:
        configs = [i.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes]
        resource = i.AlterConfigsResource(resource_type=16, resource_name=name, configs=configs)
        pair.ask("IncrementalAlterConfigs", 1, i(resources=[resource]))

    for name in ("none", ""):
        for version in versions("DescribeConfigs"):
            pair.ask("DescribeConfigs", version, described(name))
    for value in ("99", "100", "3600000", "3600001", "x", ""):
        alter("m", ("interval.ms", 0, value))
    for value in (
        "client_id=a.*,client_software_name = Java",
        "client_id",
        "client_id=",
        "other=a",
        "=a",
        "client_id=a=b",
        "",
    ):
        alter("m", ("match", 0, value))
    alter("m", ("match", 2, "client_source_port=1.*"))
    for operation, value in (
        (0, "*"),
        (0, "org.apache.kafka."),
        (2, "b,c"),
        (3, "c"),
        (0, "b,b"),
        (0, " a , b"),
        (0, "b,,c"),
    ):
        alter("m", ("metrics", operation, value))
        pair.agree("DescribeConfigs", 4, described("m"))
        pair.ask("DescribeConfigs", 4, described("m"))
    alter("m", ("interval.ms", 2, "5"))
    alter("m", ("nonsense", 0, "5"), ("nonsense2", 0, "5"))
    alter("m", ("metrics", 0, None))
    alter("", ("metrics", 0, "*"))
    alter("", ("metrics", 1, None))
    alter("other", ("interval.ms", 0, "500"))
    pair.agree("DescribeConfigs", 4, described("other"))
    pair.ask("ListConfigResources", 0, lister())
    pair.ask("ListConfigResources", 1, lister(resource_types=[16]))
    for key in ("metrics", "match", "interval.ms"):
        alter("m", (key, 1, None))
    alter("other", ("interval.ms", 1, None))
    pair.agree("DescribeConfigs", 4, described("other"))
    pair.ask("ListConfigResources", 0, lister())
    assert pair.errors("IncrementalAlterConfigs") == {"INVALID_CONFIG", "INVALID_REQUEST", "NONE"}


# the last story, as it leaves groups with long names


@pytest.mark.parametrize("version", [3, 5, 9])
def test_strings_of_the_greatest_length(pair: Pair, version: int) -> None:
    """A reply that would have a longer one is an error."""
    longest = "x" * 32767
    j = m.JoinGroupRequest
    given: dict[str, Any] = {
        "group_id": f"long-{version}",
        "protocol_type": "consumer",
        "protocols": [j.JoinGroupRequestProtocol(name="p", metadata=b"")],
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 1000,
    }
    pair.ask("JoinGroup", version, j(**{**given, "member_id": longest}))
    if version >= 5:
        pair.ask("JoinGroup", version, j(**{**given, "group_instance_id": longest}))
        pair.ask("JoinGroup", version, j(**{**given, "group_id": f"long-group-{version}", "protocol_type": longest}))
    for length in (32700, 32731, 32767):
        client = pair.beside("c" * length)
        client.ask("JoinGroup", version, j(**{**given, "group_id": f"long-client-{version}-{length}"}))
        client.close()
    if version == 9:
        h, s = m.ConsumerGroupHeartbeatRequest, m.ShareGroupHeartbeatRequest
        for field in ("group_id", "member_id", "instance_id", "rack_id", "server_assignor"):
            beat = h(group_id=f"long-{field}", member_id="m", member_epoch=0, rebalance_timeout_ms=5000)
            beat.subscribed_topic_names, beat.topic_partitions = ["none"], []
            setattr(beat, field, longest)
            pair.ask("ConsumerGroupHeartbeat", 1, beat)
        for field in ("group_id", "member_id", "rack_id"):
            share = s(group_id=f"long-share-{field}", member_id="m", member_epoch=0, subscribed_topic_names=["none"])
            setattr(share, field, longest)
            pair.ask("ShareGroupHeartbeat", 1, share)
