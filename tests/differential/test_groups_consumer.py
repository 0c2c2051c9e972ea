"""Consumer groups (KIP-848), told the same stories by ottla and by Apache Kafka, compared field by field."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.poll import until
from ..support.stories.groups import (
    beat_request,
    commit_request,
    describe,
    first_beat,
    group_topic,
    join_request,
    subscription,
)
from ..support.stories.offsets import (
    fetch_request,
)
from ..support.stories.topics import versions

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(
    {"group.consumer.assignment.interval.ms": 1000, "group.share.assignment.interval.ms": 1000}
)


# consumer groups


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
    assert pair.errors("ConsumerGroupHeartbeat") == {
        "GROUP_ID_NOT_FOUND",
        "INVALID_REQUEST",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNSUPPORTED_ASSIGNOR",
    }


def test_one_member_of_a_consumer_group(pair: Pair) -> None:
    ids = group_topic(pair, "kip1", 3)
    for v in versions("ConsumerGroupHeartbeat"):
        group = f"kip-one-{v}"
        first_beat(pair, group, "m1", ["kip1"], v)
        describe(pair, group)

        def beat(epoch: int, **more: Any) -> Any:
            def make(side: int) -> Any:
                return beat_request(
                    v, group, "m1", epoch, **{k: x(side) if callable(x) else x for k, x in more.items()}
                )

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
    assert pair.errors("ConsumerGroupHeartbeat") == {"FENCED_MEMBER_EPOCH", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_members_of_a_consumer_group_come_and_go(pair: Pair) -> None:
    ids = group_topic(pair, "kip2", 7)
    group = "kip-many"

    def beat(member: str, epoch: int, **more: Any) -> Any:
        def make(side: int) -> Any:
            return beat_request(1, group, member, epoch, **{k: x(side) if callable(x) else x for k, x in more.items()})

        return pair.both("ConsumerGroupHeartbeat", 1, make)[0]

    def later() -> None:
        """Past the second that lies between two assignments of a group."""

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
    assert pair.errors("ConsumerGroupHeartbeat") == {"FENCED_MEMBER_EPOCH", "NONE"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_static_members_of_a_consumer_group(pair: Pair) -> None:
    group_topic(pair, "kip3", 2)
    group = "kip-static"

    def beat(member: str, epoch: int, instance: str | None = "i1", **more: Any) -> Any:
        return pair.both(
            "ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, member, epoch, instance_id=instance, **more)
        )[0]

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
    assert pair.errors("ConsumerGroupHeartbeat") == {
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNRELEASED_INSTANCE_ID",
    }
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_regular_expressions(pair: Pair) -> None:
    for wrong in ("(", "[", "a**", "\\", "a{3,1}", "(?P<n", "(?z)", ")", "*", "[z-a]", "\\y", "a{2000}"):
        first_beat(pair, "kip-wrong", "m1", None, subscribed_topic_regex=wrong)
    group_topic(pair, "regex-a", 1)
    group_topic(pair, "regex-b", 2)
    group = "kip-regex"
    first_beat(pair, group, "m1", None, subscribed_topic_regex="regex-.*")

    def is_resolved() -> bool:
        replies = [wire.ask("ConsumerGroupHeartbeat", 1, beat_request(1, group, "m1", 1)) for wire in pair.wires]
        return all(r.member_epoch >= 2 or r.error_code for r in replies)

    until(is_resolved, "the regular expression is resolved")
    describe(pair, group)
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, "m1", 2))
    assert pair.errors("ConsumerGroupHeartbeat") == {"INVALID_REGULAR_EXPRESSION", "NONE"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_offsets_of_a_consumer_group(pair: Pair) -> None:
    ids = group_topic(pair, "kip4", 3)
    group_topic(pair, "kip4-unread", 1)
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
    pair.ask(
        "OffsetDelete",
        0,
        r(
            group_id=group,
            topics=[r.OffsetDeleteRequestTopic(name=n, partitions=parts) for n in ("kip4", "kip4-unread")],
        ),
    )
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=[group]))
    pair.both("ConsumerGroupHeartbeat", 1, lambda s: beat_request(1, group, "m1", -1))
    pair.ask("DeleteGroups", 3, m.DeleteGroupsRequest(groups_names=[group]))
    describe(pair, group)
    assert pair.errors("OffsetCommit") == {"NONE", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "UNSUPPORTED_VERSION"}
    assert pair.errors("OffsetFetch") == {"NONE", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("DeleteGroups") == {"NONE", "NON_EMPTY_GROUP"}
    assert pair.errors("DescribeGroups") == {"GROUP_ID_NOT_FOUND", "NONE"}


def test_offsets_of_members_ahead_of_their_group(pair: Pair) -> None:
    """And of classic members of a consumer group, whose epoch is a generation."""
    ids = group_topic(pair, "kip6", 3)
    group = "kip-ahead"
    first_beat(pair, group, "m1", ["kip6"])
    mine, other = pair.both(
        "JoinGroup", 9, lambda s: join_request(9, group, protocols=[("range", subscription("kip6"))])
    )
    members = (mine.member_id, other.member_id)
    pair.both("JoinGroup", 9, lambda s: join_request(9, group, members[s], protocols=[("range", subscription("kip6"))]))
    for v in versions("OffsetCommit"):
        for member in (("m1", "m1"), members):
            for epoch in (1, 2, 3, 99):
                pair.both(
                    "OffsetCommit",
                    v,
                    lambda s: commit_request(v, group, [("kip6", ids[s], [(0, 1, ""), (1, 2, "")])], member[s], epoch),
                )
    assert pair.errors("OffsetCommit") == {"ILLEGAL_GENERATION", "NONE", "STALE_MEMBER_EPOCH", "UNSUPPORTED_VERSION"}
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}
