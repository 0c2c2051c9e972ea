"""Descriptions of the topologies of streams groups (KIP-1331), told the same stories by ottla and by Apache Kafka, both
with Kafka's plug-in that keeps descriptions in memory.
"""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import join_request, joined, leave
from ..support.stories.streams import (
    SETTINGS,
    Application,
    beat,
    info,
    join,
    part,
    same_records,
    source,
    tasks,
    topology,
)

pytestmark = pytest.mark.slow

PLUGIN = "org.apache.kafka.server.streams.InMemoryTopologyDescriptionPlugin"
kafka, ours, coordinators = own_brokers({**SETTINGS, "group.streams.topology.description.plugin.class": PLUGIN})

U = m.StreamsGroupTopologyDescriptionUpdateRequest
SOURCE, PROCESSOR, SINK = 1, 2, 3


def node(name: str, kind: int, *, topics: tuple[str, ...] = (), sink: str | None = None, **more: Any) -> Any:
    stores, successors = more.get("stores", ()), more.get("successors", ())
    return U.TopologyDescriptionNode(
        name=name,
        node_type=kind,
        source_topics=list(topics),
        sink_topic=sink,
        stores=list(stores),
        successors=list(successors),
    )


def described(*nodes: Any, stores: tuple[tuple[Any, Any], ...] = (), name: str = "0") -> Any:
    """A description with one subtopology."""
    parts = [U.TopologyDescriptionSubtopology(subtopology_id=name, nodes=list(nodes))]
    return U.TopologyDescription(
        subtopologies=parts,
        global_stores=[U.TopologyDescriptionGlobalStore(source=one, processor=other) for one, other in stores],
    )


def word_count(topic: str = "in") -> Any:
    return described(
        node("source", SOURCE, topics=(topic,), successors=("count",)),
        node("count", PROCESSOR, stores=("counts",), successors=("sink",)),
        node("sink", SINK, sink="out"),
    )


def push(pair: Pair, group: str, description: Any, *, member: str = "m1", epoch: int = 0) -> None:
    request = U(group_id=group, member_id=member, topology_epoch=epoch, topology_description=description)
    pair.ask("StreamsGroupTopologyDescriptionUpdate", 0, request)


def shown(pair: Pair, *groups: str, version: int = 1, wanted: bool = True) -> Any:
    request = m.StreamsGroupDescribeRequest(group_ids=list(groups))
    if version >= 1:
        request.include_topology_description = wanted
    return pair.ask("StreamsGroupDescribe", version, request)[0].groups


def test_a_description_is_asked_for_once_and_shown(pair: Pair) -> None:
    source(pair, "ta", 2)
    assert join(pair, "ta", topology=topology(part("0", "ta"), epoch=3)).topology_description_required
    assert not beat(pair, "ta", 2).topology_description_required
    assert shown(pair, "ta")[0].topology_description_status == 1
    push(pair, "ta", word_count(), epoch=3)
    assert not beat(pair, "ta", 2).topology_description_required
    assert shown(pair, "ta")[0].topology_description_status == 3
    assert shown(pair, "ta", wanted=False)[0].topology_description_status == 0
    shown(pair, "ta", version=0)
    push(pair, "ta", word_count("other"), epoch=3)  # takes the place of the first
    shown(pair, "ta", "ta", "ta-absent", "")
    same_records(pair, "ta")
    assert pair.errors("StreamsGroupTopologyDescriptionUpdate") == {"NONE"}


def test_any_member_may_describe_and_only_the_first_is_asked(pair: Pair) -> None:
    """Whoever of a group heartbeats first; a member that can only take version 0 is not asked."""
    source(pair, "tb", 2)
    app = Application(pair, "tb", part("0", "tb"))
    app.join("m1", version=0)
    app.join("m2")
    app.join("m3")
    app.settle()
    push(pair, "tb", word_count(), member="m3")
    push(pair, "tb", word_count(), member="m1")
    app.leave("m2")
    app.settle()
    shown(pair, "tb")
    same_records(pair, "tb")


def test_who_may_not_describe_what(pair: Pair) -> None:
    source(pair, "tc")
    join(pair, "tc", topology=topology(part("0", "tc"), epoch=3))
    joined(pair, 9, "tc-classic")
    for group in ("tc", "tc-classic", "tc-absent", "", " "):
        for member in ("m1", "m9", "", " "):
            for epoch in (3, 2, 4, -1):
                push(pair, group, word_count(), member=member, epoch=epoch)
    same_records(pair, "tc")
    assert pair.errors("StreamsGroupTopologyDescriptionUpdate") == {
        "NONE",
        "INVALID_REQUEST",
        "GROUP_ID_NOT_FOUND",
        "UNKNOWN_MEMBER_ID",
    }


DESCRIPTIONS: dict[str, Any] = {
    "nothing": U.TopologyDescription(),
    "no-nodes": described(),
    "unknown-kind": described(node("n", 9)),
    "kind-0": described(node("n", 0)),
    "negative-kind": described(node("n", -1)),
    "source-without-topics": described(node("n", SOURCE)),
    "everything-of-a-source": described(node("n", SOURCE, topics=("a",), sink="b", stores=("c",), successors=("d",))),
    "everything-of-a-processor": described(
        node("n", PROCESSOR, topics=("a",), sink="b", stores=("c",), successors=("d",))
    ),
    "everything-of-a-sink": described(node("n", SINK, topics=("a",), sink="b", stores=("c",), successors=("d",))),
    "a-sink-without-a-topic": described(node("n", SINK)),
    "names-twice": described(
        node("n", SOURCE, topics=("b", "a", "b"), successors=("z", "y", "z")),
        node("n", PROCESSOR, stores=("t", "s", "t"), successors=("z", "z")),
    ),
    "empty-names": described(node("", SOURCE, topics=("",), successors=("",)), name=""),
    "global-stores": described(
        stores=(
            (node("s", SOURCE, topics=("t",), successors=("p",)), node("p", PROCESSOR, stores=("g",))),
            (node("s", SOURCE), node("p", PROCESSOR)),
        )
    ),
    "global-store-of-two-sources": described(stores=((node("s", SOURCE), node("p", SOURCE)),)),
    "global-store-of-two-processors": described(stores=((node("s", PROCESSOR), node("p", PROCESSOR)),)),
    "global-store-of-a-sink": described(stores=((node("s", SOURCE), node("p", SINK)),)),
    "global-store-of-an-unknown-kind": described(stores=((node("s", 7), node("p", 8)),)),
    "unknown-kinds-everywhere": described(node("n", 5), stores=((node("s", 7), node("p", 8)),)),
    "subtopologies-of-one-name": U.TopologyDescription(
        subtopologies=[
            U.TopologyDescriptionSubtopology(subtopology_id=name, nodes=[node("n", SOURCE)]) for name in ("1", "0", "1")
        ]
    ),
}


def test_what_a_description_may_hold(pair: Pair) -> None:
    """One that is refused leaves what was there."""
    source(pair, "td")
    join(pair, "td", part("0", "td"))
    for description in DESCRIPTIONS.values():
        push(pair, "td", description)
        shown(pair, "td")
    same_records(pair, "td")
    assert pair.errors("StreamsGroupTopologyDescriptionUpdate") == {"NONE", "INVALID_REQUEST"}


def test_a_group_without_its_topics_may_be_described(pair: Pair) -> None:
    join(pair, "te", part("0", "te-absent"))
    push(pair, "te", word_count())
    shown(pair, "te")
    beat(pair, "te", 1)
    same_records(pair, "te")


def test_a_member_with_an_older_topology_is_not_asked(pair: Pair) -> None:
    source(pair, "tf", 2)
    assert join(pair, "tf", topology=topology(part("0", "tf"), epoch=5), version=0).error_code == 0
    join(pair, "tf", topology=topology(part("0", "tf"), epoch=4), member="m2")
    beat(pair, "tf", 2, "m2")
    push(pair, "tf", word_count(), member="m2", epoch=4)
    push(pair, "tf", word_count(), member="m2", epoch=5)
    shown(pair, "tf")
    same_records(pair, "tf")


def test_a_topology_with_a_negative_epoch_is_not_asked_for(pair: Pair) -> None:
    source(pair, "tg")
    join(pair, "tg", topology=topology(part("0", "tg"), epoch=-1))
    push(pair, "tg", word_count(), epoch=-1)
    shown(pair, "tg")
    same_records(pair, "tg")


def test_a_heartbeat_that_is_refused_or_leaves_asks_for_nothing(pair: Pair) -> None:
    source(pair, "th", 2)
    join(pair, "th", part("0", "th"), version=0)
    join(pair, "th", part("0", "th"), version=0, member="m2", instance_id="i")
    beat(pair, "th", 9)
    beat(pair, "th", -2, "m2", instance_id="i")
    beat(pair, "th", -1)
    assert join(pair, "th", part("0", "th"), member="m3", instance_id="i").topology_description_required


def test_the_next_members_of_an_empty_group_are_not_asked_again(pair: Pair) -> None:
    """The description stays when all members leave."""
    source(pair, "ti", 2)
    join(pair, "ti", part("0", "ti"))
    push(pair, "ti", word_count())
    beat(pair, "ti", -1)
    shown(pair, "ti")
    push(pair, "ti", word_count())
    assert not join(pair, "ti", part("0", "ti"), member="m2").topology_description_required
    shown(pair, "ti")
    same_records(pair, "ti")


def test_deleted_groups_are_described_anew(pair: Pair) -> None:
    """A group with members keeps its description."""
    for name in ("tj", "tj-other"):
        source(pair, name, 2)
        join(pair, name, part("0", name))
        push(pair, name, word_count())
    beat(pair, "tj", -1)
    for version in (2, 3):
        names = ["tj", "tj-other", "tj-absent"]
        pair.ask("DeleteGroups", version, m.DeleteGroupsRequest(groups_names=names))
        shown(pair, *names)
    assert join(pair, "tj", part("0", "tj")).topology_description_required
    shown(pair, "tj")
    push(pair, "tj", word_count("again"))
    shown(pair, "tj")
    same_records(pair, "tj")
    same_records(pair, "tj-other")
    assert pair.errors("DeleteGroups") == {"NONE", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"}


@pytest.mark.parametrize("state", ["described", "asked"])
def test_a_classic_group_takes_the_place_of_a_described_group(pair: Pair, state: str) -> None:
    """A member of the classic protocol is refused while the streams group has members."""
    name = f"tk-{state}"
    source(pair, name, 2)
    join(pair, name, part("0", name))
    if state == "described":
        push(pair, name, word_count())
    pair.ask("JoinGroup", 9, join_request(9, name))
    beat(pair, name, -1)
    ids = joined(pair, 9, name)
    shown(pair, name)
    leave(pair, 5, name, (ids, None))
    asked = join(pair, name, part("0", name), member="m2").topology_description_required
    assert asked == (state == "described")  # the other group was asked less than half a minute ago
    shown(pair, name)
    push(pair, name, word_count(), member="m2")
    shown(pair, name)
    same_records(pair, name)


def test_tasks_go_on_beside_descriptions(pair: Pair) -> None:
    """Records of the group keep what is said of its description."""
    source(pair, "tl", 2)
    parts = (part("0", "tl", changelogs=[info("tl-log", factor=1, cleanup_policy="compact")]),)
    source(pair, "tl-log", 2)
    app = Application(pair, "tl", *parts)
    app.join("m1")
    push(pair, "tl", word_count())
    app.join("m2")
    app.settle()
    app.leave("m1")
    app.settle()
    beat(pair, "tl", app.epochs["m2"], "m2", has=tasks(s0=[0, 1]))
    shown(pair, "tl")
    same_records(pair, "tl")
