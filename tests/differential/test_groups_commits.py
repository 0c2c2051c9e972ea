"""Offsets of groups and lists of groups, told the same stories by ottla and by Apache Kafka; compared by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.schema import NO_UUID

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import (
    commit_request,
    describe,
    join_request,
    leave,
    stable,
    subscription,
)
from ..support.stories.offsets import (
    fetch_request,
)
from ..support.stories.topics import topic, versions

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(
    {"group.consumer.assignment.interval.ms": 1000, "group.share.assignment.interval.ms": 1000}
)


def test_offsets_of_a_simple_group(pair: Pair) -> None:
    ids = topic(pair, "off", 3)
    for version in versions("OffsetCommit"):
        group = f"simple-{version}"
        pair.both(
            "OffsetCommit",
            version,
            lambda s: commit_request(
                version,
                group,
                [("off", ids[s], [(0, 5, "meta"), (1, 6, None), (7, 8, "")]), ("absent", b"x" * 16, [(0, 1, "")])],
            ),
        )
        for v in versions("OffsetFetch"):
            asked: Any = lambda s: [("off", ids[s], [0, 1, 2, 7]), ("absent", b"x" * 16, [0, 1])]  # noqa: E731
            pair.both("OffsetFetch", v, lambda s: fetch_request(v, group, asked(s)))
            if v >= 2:
                pair.both("OffsetFetch", v, lambda s: fetch_request(v, group, None))
            pair.both("OffsetFetch", v, lambda s: fetch_request(v, "no-such-group", [("off", ids[s], [0])]))
            if v >= 7:
                pair.both(
                    "OffsetFetch", v, lambda s: fetch_request(v, group, [("off", ids[s], [0])], require_stable=True)
                )
            if v >= 9:
                pair.both(
                    "OffsetFetch",
                    v,
                    lambda s: fetch_request(v, group, [("off", ids[s], [0])], member_id="x", member_epoch=1),
                )
        describe(pair, group)
    assert pair.errors("OffsetCommit") == {"NONE", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"}
    assert pair.errors("OffsetFetch") == {"NONE", "UNKNOWN_TOPIC_ID"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}


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
        pair.both(
            "OffsetCommit",
            v,
            lambda s: commit_request(v, "long", [("offx", ids[s], [(0, 1, too_long), (1, 2, "x" * 4096)])]),
        )
        if v >= 7:
            more = {"group_instance_id": "i"}
            pair.both("OffsetCommit", v, lambda s: commit_request(v, "commits", some(s), members[s], 1, **more))
        pair.both("OffsetCommit", v, lambda s: commit_request(v, "nothing", []))
    pair.both("JoinGroup", 9, lambda s: join_request(9, "commits", members[s]))
    pair.both("OffsetCommit", 9, lambda s: commit_request(9, "commits", some(s), members[s], 2))
    assert pair.errors("OffsetCommit") == {
        "ILLEGAL_GENERATION",
        "NONE",
        "OFFSET_METADATA_TOO_LARGE",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    }
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}


@pytest.mark.parametrize("version", [2, 8, 10])
def test_a_commit_makes_its_group_even_if_each_partition_is_refused(pair: Pair, version: int) -> None:
    """Those who only read see it after the next write of its coordinator, whenever that is."""
    ids, group = topic(pair, f"offm-{version}"), f"refused-{version}"

    def commit(name: str, metadata: str) -> None:
        pair.both(
            "OffsetCommit", version, lambda s: commit_request(version, group, [(name, ids[s], [(0, 1, metadata)])])
        )

    def delete() -> None:
        pair.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=[group]))

    commit(f"offm-{version}", "x" * 5000)
    delete()
    delete()
    for metadata in ("x" * 5000, ""):
        commit(f"offm-{version}", metadata)
    describe(pair, group)
    delete()
    assert pair.errors("OffsetCommit") == {"NONE", "OFFSET_METADATA_TOO_LARGE"}
    assert pair.errors("DeleteGroups") == {"NONE", "GROUP_ID_NOT_FOUND"}


def test_commits_of_a_generation_of_no_group(pair: Pair) -> None:
    ids = topic(pair, "offg", 1)
    for v in versions("OffsetCommit"):
        for member in ("", "nobody"):
            for generation in (0, 1, -1):
                group = f"unheard-{v}-{member}-{generation}"
                pair.both(
                    "OffsetCommit",
                    v,
                    lambda s: commit_request(v, group, [("offg", ids[s], [(0, 1, "")])], member, generation),
                )
        pair.both("OffsetCommit", v, lambda s: commit_request(v, f"no-parts-{v}", [("offg", ids[s], [])]))
        pair.both(
            "OffsetCommit",
            v,
            lambda s: commit_request(v, f"no-parts-{v}", [("offg", ids[s], []), ("offg", ids[s], [(0, 4, "")])]),
        )
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
                    lambda s: commit_request(
                        v,
                        f"twice-{v}",
                        [(n, ids[s] if n == "offg" else b"x" * 16, p) for n, p in topics],
                        "",
                        generation,
                    ),
                )
    assert pair.errors("OffsetCommit") == {
        "GROUP_ID_NOT_FOUND",
        "ILLEGAL_GENERATION",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_retention_of_a_request(pair: Pair) -> None:
    ids = topic(pair, "offr", 1)
    for v in (2, 3, 4):
        for ms in (-1, 0, 60_000):
            pair.both(
                "OffsetCommit",
                v,
                lambda s: commit_request(v, f"keep-{v}-{ms}", [("offr", ids[s], [(0, 3, "")])], retention_time_ms=ms),
            )
            pair.both("OffsetFetch", 8, lambda s: fetch_request(8, f"keep-{v}-{ms}", None))
    assert pair.errors("OffsetCommit") == {"NONE"}
    assert pair.errors("OffsetFetch") == {"NONE"}


def test_several_groups_at_once(pair: Pair) -> None:
    ids = topic(pair, "offm", 1)
    pair.both("OffsetCommit", 8, lambda s: commit_request(8, "many-1", [("offm", ids[s], [(0, 3, "")])]))
    r = m.OffsetFetchRequest

    def make(v: int, side: int) -> Any:
        t = r.OffsetFetchRequestTopics(
            name="" if v >= 10 else "offm", topic_id=ids[side] if v >= 10 else NO_UUID, partition_indexes=[0]
        )
        groups = [
            r.OffsetFetchRequestGroup(group_id=g, topics=topics)
            for g, topics in (("many-1", [t]), ("many-2", [t]), ("many-1", None), ("", [t]))
        ]
        return r(groups=groups)

    for v in (8, 9, 10):
        pair.both("OffsetFetch", v, lambda s: make(v, s))
    assert pair.errors("OffsetCommit") == {"NONE"}
    assert pair.errors("OffsetFetch") == {"NONE"}


def test_deleting_offsets_and_groups(pair: Pair) -> None:
    ids = topic(pair, "offd", 2)
    r = m.OffsetDeleteRequest

    def delete(group: str, *names: str) -> None:
        topics = [
            r.OffsetDeleteRequestTopic(
                name=n, partitions=[r.OffsetDeleteRequestPartition(partition_index=i) for i in (0, 5)]
            )
            for n in names
        ]
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
    assert pair.errors("OffsetDelete") == {
        "GROUP_SUBSCRIBED_TO_TOPIC",
        "INVALID_GROUP_ID",
        "NONE",
        "NON_EMPTY_GROUP",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert pair.errors("DeleteGroups") == {"GROUP_ID_NOT_FOUND", "NONE", "NON_EMPTY_GROUP"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_listing(pair: Pair) -> None:
    def only_own(reply: Any) -> None:
        reply.groups = [one for one in reply.groups if one.group_id == "listed"]

    pair.trims["ListGroups"] = only_own
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
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}
