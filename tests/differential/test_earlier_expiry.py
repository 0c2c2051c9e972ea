"""When committed offsets of a group with members expire: before 2.1 by the time of the commit, then not while the group
has members (KIP-211), and since 2.4 those of topics that no member is subscribed to (KIP-496). Kafka's answers were
written down once, as in `test_earlier_releases`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.trees import tree

from ..support.differential import Pair
from ..support.stories.earlier import SETTINGS, earlier_brokers, topic

pytestmark = pytest.mark.slow
OWN: dict[str, object] = {
    "offsets.retention.minutes": 1440,
    "offsets.retention.check.interval.ms": 200,
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
}
release, kafka, ours, settled = earlier_brokers(("0.9", "0.10.2", "1.1", "2.2", "2.8"), SETTINGS | OWN)
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1" + b"\0\4read" + b"\xff\xff\xff\xff"
TWO_DAYS_MS = 2 * 86_400_000
GONE = {
    "0.9": ["read", "unread"],
    "0.10.2": ["read", "unread"],
    "1.1": ["read", "unread"],
    "2.2": [],
    "2.8": ["unread"],
}


def commit(pair: Pair, group: str, names: Iterable[str], members: tuple[str, str] = ("", ""), age_ms: int = 0) -> None:
    """Commits an offset of each topic, for as short a time as can be asked for, or at a time that is past."""
    r, generation = m.OffsetCommitRequest, 1 if members[0] else -1
    version = 1 if age_ms else 2
    part_class = tree("OffsetCommitRequest", version).at("topics.partitions").cls
    for side, (wire, member) in enumerate(zip(pair.wires, members, strict=True)):
        part = part_class(partition_index=0, committed_offset=5, committed_metadata="m")
        fields: dict[str, Any] = {} if age_ms else {"retention_time_ms": 1}
        if age_ms:
            part.commit_timestamp = int(time.time() * 1000) - age_ms
        topics = [r.OffsetCommitRequestTopic(name=name, partitions=[part]) for name in names]
        asked = r(group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=topics, **fields)
        reply = wire.ask("OffsetCommit", version, asked)
        assert {part.error_code for one in reply.topics for part in one.partitions} == {0}, side


def wait_until_gone(pair: Pair, group: str, name: str) -> None:
    pair.until("OffsetFetch", 1, fetching(group, [name]), lambda r: r.topics[0].partitions[0].committed_offset == -1)


def fetching(group: str, names: list[str]) -> m.OffsetFetchRequest:
    q = m.OffsetFetchRequest
    return q(group_id=group, topics=[q.OffsetFetchRequestTopic(name=name, partition_indexes=[0]) for name in names])


def joined(pair: Pair, group: str) -> tuple[str, str]:
    """A member that stays, here and there; the ids."""
    j, s = m.JoinGroupRequest, m.SyncGroupRequest
    protocol = j.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
    asked = j(group_id=group, session_timeout_ms=30_000, member_id="", protocol_type="consumer", protocols=[protocol])
    ids = []
    for wire in pair.wires:
        mine = wire.ask("JoinGroup", 0, asked)
        assert not mine.error_code
        ids.append(mine.member_id)
        given = [s.SyncGroupRequestAssignment(member_id=mine.member_id, assignment=b"all")]
        found = wire.ask(
            "SyncGroup", 0, s(group_id=group, generation_id=1, member_id=mine.member_id, assignments=given)
        )
        assert not found.error_code
    return ids[0], ids[1]


@pytest.mark.parametrize("age_ms", [0, TWO_DAYS_MS])
def test_offsets_of_a_group_with_members(pair: Pair, release: str, age_ms: int) -> None:
    names = ["read", "unread"]
    for name in names:
        topic(pair, name)
    group, other = f"members-{age_ms}", f"simple-{age_ms}"
    find = m.FindCoordinatorRequest(key=group)
    pair.until("FindCoordinator", 0, find, lambda reply: not reply.error_code)
    pair.until("OffsetFetch", 1, fetching(group, names), lambda r: not r.topics[0].partitions[0].error_code)
    commit(pair, group, names, joined(pair, group), age_ms)
    for _ in range(2):  # the second is gone after a whole round, which looked at the other group
        commit(pair, other, ["read"])
        wait_until_gone(pair, other, "read")
    _, theirs = pair.ask("OffsetFetch", 1, fetching(group, names))
    gone = sorted(one.name for one in theirs.topics if one.partitions[0].committed_offset == -1)
    assert gone == GONE[release]
