"""Streams groups, told the same stories by ottla and by Apache Kafka: groups of other kinds, descriptions of
topologies, and a cluster without streams groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import commit_request, join_request, joined, leave
from ..support.stories.streams import (
    SETTINGS,
    beat,
    describe,
    info,
    join,
    part,
    same_records,
    source,
    tasks,
    topology,
)
from ..support.stories.topics import topic_ids, versions

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(SETTINGS)


# groups of other kinds


def consumer_beat(pair: Pair, group: str, epoch: int, **more: Any) -> None:
    request = m.ConsumerGroupHeartbeatRequest(group_id=group, member_id="c", member_epoch=epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 1000
        request.topic_partitions, request.subscribed_topic_names = [], [group]
    pair.ask("ConsumerGroupHeartbeat", 1, request)


def share_beat(pair: Pair, group: str, epoch: int) -> None:
    names = [group] if epoch == 0 else None
    request = m.ShareGroupHeartbeatRequest(group_id=group, member_id="c", member_epoch=epoch)
    request.subscribed_topic_names = names
    pair.ask("ShareGroupHeartbeat", 1, request)


def commit(pair: Pair, group: str) -> None:
    ids = topic_ids(pair, group)
    pair.both("OffsetCommit", 9, lambda side: commit_request(9, group, [(group, ids[side], [(0, 5, "")])]))


def as_classic_members(pair: Pair, name: str) -> None:
    """A classic group that was used and is empty."""
    ids = joined(pair, 9, name)
    leave(pair, 5, name, (ids, None))


def as_connect(pair: Pair, name: str) -> None:
    ids = joined(pair, 9, name, kind="connect", protocols=[("default", b"x")])
    leave(pair, 5, name, (ids, None))


def as_consumer(pair: Pair, name: str) -> None:
    for epoch in (0, -1):
        consumer_beat(pair, name, epoch)


def as_share(pair: Pair, name: str) -> None:
    for epoch in (0, -1):
        share_beat(pair, name, epoch)


EMPTY: dict[str, Callable[[Pair, str], None]] = {
    "classic": as_classic_members,
    "commits-only": commit,
    "consumer": as_consumer,
    "share": as_share,
    "classic-of-connect": as_connect,
}


@pytest.mark.parametrize("kind", EMPTY)
def test_an_application_comes_to_an_empty_group_of_another_kind(pair: Pair, kind: str) -> None:
    """Only a classic group becomes a streams group."""
    name = f"ke-{kind}"
    source(pair, name, 2)
    EMPTY[kind](pair, name)
    beat(pair, name, 2)
    beat(pair, name, -1)
    describe(pair, name)
    join(pair, name, part("0", name))
    beat(pair, name, 2)
    beat(pair, name, 3)
    describe(pair, name)
    commit(pair, name)
    beat(pair, name, -1)
    commit(pair, name)
    pair.ask("DescribeGroups", 6, m.DescribeGroupsRequest(groups=[name]))
    if kind not in ("consumer", "share"):  # whose records have topics' ids
        same_records(pair, name)


def test_an_application_comes_to_a_classic_group_with_members(pair: Pair) -> None:
    source(pair, "kc")
    ids = joined(pair, 9, "kc")
    join(pair, "kc", part("0", "kc"))
    describe(pair, "kc")
    leave(pair, 5, "kc", (ids, None))
    join(pair, "kc", part("0", "kc"))
    describe(pair, "kc")
    same_records(pair, "kc")


@pytest.mark.parametrize("kind", ["classic", "consumer", "share", "commit"])
def test_others_come_to_an_empty_streams_group(pair: Pair, kind: str) -> None:
    """A classic member gets it, and offsets may be committed; members of a consumer or a share group are refused."""
    name = f"ko-{kind}"
    source(pair, name, 2)
    join(pair, name, part("0", name))
    beat(pair, name, -1)
    if kind == "classic":
        pair.ask("JoinGroup", 9, join_request(9, name))
    elif kind == "consumer":
        as_consumer(pair, name)
    elif kind == "share":
        as_share(pair, name)
    else:
        commit(pair, name)
    pair.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=[name]))
    pair.ask("ShareGroupDescribe", 1, m.ShareGroupDescribeRequest(group_ids=[name]))
    if kind != "classic":
        describe(pair, name)
        join(pair, name, part("0", name), member="m2")
        describe(pair, name)
        same_records(pair, name)


# descriptions


@pytest.mark.parametrize("version", versions("StreamsGroupDescribe"))
def test_groups_are_described_with_their_topologies(pair: Pair, version: int) -> None:
    """In each state, several at once, one twice, and groups that are none."""
    name = f"kd-{version}"
    for one in (name, f"{name}-log"):
        source(pair, one, 2)
    ids = joined(pair, 9, f"{name}-classic")
    parts = (part("0", name, changelogs=[info(f"{name}-log", factor=1, cleanup_policy="compact")]),)
    join(pair, f"{name}-unready", part("0", f"{name}-missing"))
    join(pair, name, *parts, rack_id="r", instance_id="i1")
    join(pair, name, *parts, member="m2", process_id="p-m1")

    def all_described() -> None:
        request = m.StreamsGroupDescribeRequest()
        request.group_ids = [name, f"{name}-unready", f"{name}-absent", "", f"{name}-classic", name, " "]
        for operations in (False, True):
            request.include_authorized_operations = operations
            for descriptions in (False, True) if version >= 1 else (False,):
                request.include_topology_description = descriptions
                pair.ask("StreamsGroupDescribe", version, request)

    all_described()
    beat(pair, name, 2, instance_id="i1", has=tasks(s0=[0]))
    beat(pair, name, 3, "m2")
    all_described()
    beat(pair, name, -1, "m2")
    beat(pair, name, -2, instance_id="i1")
    all_described()
    beat(pair, name, -1, instance_id="i1")
    beat(pair, f"{name}-unready", -1)
    leave(pair, 5, f"{name}-classic", (ids, None))
    all_described()
    pair.ask("StreamsGroupDescribe", version, m.StreamsGroupDescribeRequest())
    assert pair.errors("StreamsGroupHeartbeat") == {"NONE"}


def description(*, sources: tuple[str, ...] = ("in",), kind: int = 0, successors: tuple[str, ...] = ()) -> Any:
    r = m.StreamsGroupTopologyDescriptionUpdateRequest
    node = r.TopologyDescriptionNode(name="source", node_type=kind, source_topics=list(sources))
    node.successors = list(successors)
    return r.TopologyDescription(subtopologies=[r.TopologyDescriptionSubtopology(subtopology_id="0", nodes=[node])])


def test_descriptions_of_topologies_are_not_taken(pair: Pair) -> None:
    """Without a plug-in that keeps them, whoever says what of which group."""
    r = m.StreamsGroupTopologyDescriptionUpdateRequest
    source(pair, "ku")
    join(pair, "ku", topology=topology(part("0", "ku"), epoch=3))
    joined(pair, 9, "ku-classic")
    for group in ("ku", "ku-classic", "ku-absent", "", " "):
        for member in ("m1", "m9", ""):
            for epoch in (3, 2, 4, -1):
                request = r(group_id=group, member_id=member, topology_epoch=epoch)
                pair.ask("StreamsGroupTopologyDescriptionUpdate", 0, request)
                request.topology_description = description()
                pair.ask("StreamsGroupTopologyDescriptionUpdate", 0, request)
    for wrong in (description(sources=()), description(kind=9), description(successors=("absent",))):
        request = r(group_id="ku", member_id="m1", topology_epoch=3, topology_description=wrong)
        pair.ask("StreamsGroupTopologyDescriptionUpdate", 0, request)
    beat(pair, "ku", 2)
    pair.ask(
        "StreamsGroupDescribe", 1, m.StreamsGroupDescribeRequest(group_ids=["ku"], include_topology_description=True)
    )
    same_records(pair, "ku")
    assert pair.errors("StreamsGroupTopologyDescriptionUpdate") == {"UNSUPPORTED_VERSION"}


# a cluster without streams groups


def test_a_cluster_may_have_no_streams_groups(pair: Pair) -> None:
    """With `streams.version` 0; groups that were there are kept, and go on with 1."""
    source(pair, "kv", 2)
    join(pair, "kv", part("0", "kv"))
    u = m.UpdateFeaturesRequest

    def finalize(level: int) -> None:
        update = u.FeatureUpdateKey(feature="streams.version", max_version_level=level, upgrade_type=1 if level else 2)
        pair.ask("UpdateFeatures", 2, u(timeout_ms=10_000, feature_updates=[update]))
        request = m.StreamsGroupDescribeRequest(group_ids=["kv"])
        wanted = 0 if level else 35
        pair.until("StreamsGroupDescribe", 1, request, lambda reply: bool(reply.groups[0].error_code == wanted))

    def own(reply: Any) -> None:
        reply.groups = [one for one in reply.groups if one.group_id == "kv"]

    pair.trims["ListGroups"] = own
    finalize(0)
    for version in (0, 1):
        join(pair, "kv", part("0", "kv"), member="m2", version=version)
        beat(pair, "kv", 2, version=version)
        describe(pair, "kv", "kv-absent", version=version)
    r = m.StreamsGroupTopologyDescriptionUpdateRequest
    pair.ask("StreamsGroupTopologyDescriptionUpdate", 0, r(group_id="kv", member_id="m1"))
    pair.ask("ListGroups", 5, m.ListGroupsRequest(types_filter=["streams"]))
    pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=["kv"]))
    commit(pair, "kv")
    finalize(1)
    beat(pair, "kv", 2)
    describe(pair, "kv")
    same_records(pair, "kv")
    assert pair.errors("StreamsGroupHeartbeat") == {"NONE", "UNSUPPORTED_VERSION"}
