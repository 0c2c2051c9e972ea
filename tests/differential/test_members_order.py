"""In which order a broker describes the members of a group: by the table of members, whose size its past tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.streams import SETTINGS, beat, join, part, source

pytestmark = pytest.mark.slow
kafka, ours, coordinators = own_brokers(
    SETTINGS
    | {
        "group.consumer.assignment.interval.ms": 0,
        "group.share.assignment.interval.ms": 0,
        "group.streams.max.size": 100,
    }
)
MEMBERS = [f"member-{number}" for number in range(1, 24)]
JOIN, LEAVE = 0, -1


def described_after_each(pair: Pair, api: str, request: Any, tell: Callable[[str, int], object]) -> None:
    """Members join, most of them leave, and one comes back: both brokers list those that are there in one order."""
    present: set[str] = set()
    moved = False
    for member, epoch in (
        *((member, JOIN) for member in MEMBERS),
        *((member, LEAVE) for member in MEMBERS[3:20]),
        (MEMBERS[7], JOIN),
    ):
        tell(member, epoch)
        present ^= {member}
        mine, kafkas = ([one.member_id for one in reply.groups[0].members] for reply in pair.ask(api, 1, request))
        assert mine == kafkas
        assert set(mine) == present
        moved = moved or mine != [one for one in MEMBERS if one in present]
    assert moved, "the order is not that in which they came"


def test_members_of_a_consumer_group(pair: Pair) -> None:
    def tell(member: str, epoch: int) -> None:
        request = m.ConsumerGroupHeartbeatRequest(group_id="oc", member_id=member, member_epoch=epoch)
        if epoch == JOIN:
            request.topic_partitions, request.subscribed_topic_names = [], ["absent"]
            request.rebalance_timeout_ms = 60_000
        pair.ask("ConsumerGroupHeartbeat", 1, request)

    described_after_each(pair, "ConsumerGroupDescribe", m.ConsumerGroupDescribeRequest(group_ids=["oc"]), tell)
    assert pair.errors("ConsumerGroupHeartbeat") == {"NONE"}


def test_members_of_a_share_group(pair: Pair) -> None:
    def tell(member: str, epoch: int) -> None:
        request = m.ShareGroupHeartbeatRequest(group_id="os", member_id=member, member_epoch=epoch)
        if epoch == JOIN:
            request.subscribed_topic_names = ["absent"]
        pair.ask("ShareGroupHeartbeat", 1, request)

    described_after_each(pair, "ShareGroupDescribe", m.ShareGroupDescribeRequest(group_ids=["os"]), tell)
    assert pair.errors("ShareGroupHeartbeat") == {"NONE"}


def test_members_of_a_streams_group(pair: Pair) -> None:
    def tell(member: str, epoch: int) -> None:
        if epoch == JOIN:
            join(pair, "ot", part("0", "ot"), member=member)
        else:
            beat(pair, "ot", LEAVE, member)

    source(pair, "ot", 1)
    described_after_each(pair, "StreamsGroupDescribe", m.StreamsGroupDescribeRequest(group_ids=["ot"]), tell)
    assert pair.errors("StreamsGroupHeartbeat") == {"NONE"}
