"""Streams groups, told the same stories by ottla and by Apache Kafka: members, tasks, topologies (KIP-1071)."""

from __future__ import annotations

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import (
    SETTINGS,
    beat,
    describe,
    info,
    join,
    known,
    listed,
    part,
    same_records,
    source,
    tasks,
)

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


def test_one_member_comes_stays_and_goes(pair: Pair) -> None:
    source(pair, "st1", 2)
    join(pair, "st1", part("0", "st1"))
    for epoch in (2, 1, 7, 2):
        beat(pair, "st1", epoch)
    beat(pair, "st1", 2, has=tasks(s0=[0, 1]))
    for version in (0, 1):
        describe(pair, "st1", "none", "", version=version, operations=True)
    for filters in ([], ["Stable"], ["Empty"], ["NotReady"], ["not_ready"]):
        listed(pair, "st1", states_filter=filters, types_filter=["streams"])
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["st1"]))
    beat(pair, "st1", -1, "m9")
    beat(pair, "st1", -1)
    beat(pair, "st1", -1)
    describe(pair, "st1")
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=["st1", "none"]))
    describe(pair, "st1")
    same_records(pair, "st1")
    assert pair.errors("StreamsGroupHeartbeat") == {"FENCED_MEMBER_EPOCH", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("StreamsGroupDescribe") == {"GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NONE"}


@pytest.mark.parametrize("version", [0, 1])
def test_tasks_move_between_members(pair: Pair, version: int) -> None:
    name = f"st2-{version}"
    source(pair, name, 4)
    parts = part("0", name), part("1", name)
    join(pair, name, *parts, version=version)
    join(pair, name, *parts, member="m2", version=version)
    describe(pair, name, version=version)
    beat(pair, name, 2, version=version)
    beat(pair, name, 2, has=tasks(s0=[0, 1, 2, 3], s1=[0, 1, 2, 3]), version=version)
    beat(pair, name, 3, "m2", version=version)
    beat(pair, name, 2, has=tasks(s0=[0, 1], s1=[0, 1]), version=version)
    beat(pair, name, 2, has=tasks(s0=[0], s1=[3]), version=version)
    for member in ("m2", "m1"):
        for epoch in (2, 3, 4):
            beat(pair, name, epoch, member, has=[], version=version)
    describe(pair, name, version=version)
    same_records(pair, name)


def test_heartbeats_that_no_group_takes(pair: Pair) -> None:
    source(pair, "st3")
    good = part("0", "st3")
    for group, member in (("", "m1"), (" ", "m1"), ("st3", ""), ("st3", " ")):
        join(pair, group, good, member=member)
    join(pair, "st3", good, instance_id=" ")
    join(pair, "st3", good, rack_id="")
    join(pair, "st3", good, rebalance_timeout_ms=-1)
    join(pair, "st3", good, has=tasks(s0=[0]))
    join(pair, "st3", good, active_tasks=None)
    join(pair, "st3", good, standby_tasks=None)
    join(pair, "st3", good, warmup_tasks=tasks(s0=[0]))
    join(pair, "st3", good, topology=None)
    join(pair, "st3", part("0", "st3", regex=["a.*"]))
    join(pair, "st3", part("0", "st3", changelogs=[info("log", 3)]))
    join(pair, "st3", part("0", "__consumer_offsets"))
    join(pair, "st3", part("0", "st3", sinks=["a b"]))
    join(pair, "st3", good, good)
    join(pair, "st3", part("0"))
    join(pair, "st3", part("0", "st3", together=[([1], [])]))
    join(pair, "st3", part("0", "st3", together=[([], [0])]))
    join(pair, "st3", part("0", "st3", together=[([], [])]))
    beat(pair, "st3", -2)
    beat(pair, "st3", -3)
    beat(pair, "none", -1)
    beat(pair, "none", 5)
    beat(pair, "st3", 5, topology=m.StreamsGroupHeartbeatRequest.Topology(subtopologies=[good]))
    beat(pair, "st3", 2, active_tasks=[])
    beat(pair, "st3", 2, has=tasks(s1=[0]))
    beat(pair, "st3", 2, has=tasks(s0=[1]))
    beat(pair, "st3", 2, has=tasks(s0=[-1]))
    offset = m.StreamsGroupHeartbeatRequest.TaskOffset(subtopology_id="0", partition=0, offset=5)
    beat(pair, "st3", 2, task_offsets=[offset, offset])
    same_records(pair, "st3")


def test_topics_that_are_missing(pair: Pair) -> None:
    parts = part("0", "st4-a", "st4-b", "st4-c", "st4-d"), part("1", "st4-e")
    join(pair, "st4", *parts)
    beat(pair, "st4", 2)
    describe(pair, "st4")
    for name in "abcd":
        source(pair, f"st4-{name}", 2)
    beat(pair, "st4", 2)
    source(pair, "st4-e", 1)
    for epoch in (2, 3, 4):
        beat(pair, "st4", epoch)
    describe(pair, "st4")
    same_records(pair, "st4")


def test_internal_topics_are_created(pair: Pair) -> None:
    source(pair, "st5", 3)
    parts = (
        part("0", "st5", sinks=["st5-r1", "st5-r2"]),
        part(
            "1", repartitions=[info("st5-r1", retention_ms="-1")], changelogs=[info("st5-c1", cleanup_policy="compact")]
        ),
        part("2", repartitions=[info("st5-r2", 5)], changelogs=[info("st5-c2"), info("st5-c3")]),
    )
    join(pair, "st5", *parts)
    known(pair, "st5-r1", "st5-r2", "st5-c1", "st5-c2", "st5-c3")
    beat(pair, "st5", 2)
    beat(pair, "st5", 3)
    describe(pair, "st5")
    for name in ("st5-r1", "st5-r2", "st5-c1"):
        asked = m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=name)])
        pair.ask("Metadata", 12, asked)
        d = m.DescribeConfigsRequest
        pair.ask("DescribeConfigs", 4, d(resources=[d.DescribeConfigsResource(resource_type=2, resource_name=name)]))
    same_records(pair, "st5")
