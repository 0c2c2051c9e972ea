"""Groups of the classic protocol, told the same stories by ottla and by Apache Kafka, compared field by field."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m

from ..support.differential import Pair, own_brokers
from ..support.stories.groups import (
    assignment,
    describe,
    heartbeat,
    join_request,
    joined,
    leave,
    stable,
    subscription,
    sync_request,
)
from ..support.stories.topics import topic, versions

pytestmark = pytest.mark.slow


kafka, ours, coordinators = own_brokers(
    {"group.consumer.assignment.interval.ms": 1000, "group.share.assignment.interval.ms": 1000}
)


# finding


def test_find_coordinator(pair: Pair) -> None:
    for version in versions("FindCoordinator"):
        for kind in (0, 2, 3, -1):
            if version == 0 and kind:
                continue
            for key in ("g", "", "a b", "ü" * 100, "g:x:0", "g:AAAAAAAAAAAAAAAAAAAAAQ:-1", ":AAAAAAAAAAAAAAAAAAAAAQ:0"):
                r = m.FindCoordinatorRequest
                if version >= 4:
                    pair.ask("FindCoordinator", version, r(key_type=kind, coordinator_keys=[key, "other"]))
                else:
                    pair.ask("FindCoordinator", version, r(key_type=kind, key=key) if version else r(key=key))
        if version >= 4:
            pair.ask("FindCoordinator", version, m.FindCoordinatorRequest(key_type=0, coordinator_keys=[]))
    assert pair.errors("FindCoordinator") == {"INVALID_REQUEST", "NONE"}


# the classic protocol


@pytest.mark.parametrize("version", versions("JoinGroup"))
def test_one_member_comes_and_goes(pair: Pair, version: int) -> None:
    topic(pair, "cg", 3)
    group = f"one-{version}"
    ids = joined(pair, version, group)
    describe(pair, group)
    for v in versions("SyncGroup"):
        pair.both("SyncGroup", v, lambda s: sync_request(v, group, ids[s], 0))
        pair.both("SyncGroup", v, lambda s: sync_request(v, group, "nobody", 1))
    for v in versions("Heartbeat"):
        heartbeat(pair, v, group, ids, 1)
    v = min(5, version)
    pair.both(
        "SyncGroup", v, lambda s: sync_request(v, group, ids[s], 1, {ids[s]: assignment("cg", 0, 1), "other": b"x"})
    )
    for v in versions("SyncGroup"):
        pair.both("SyncGroup", v, lambda s: sync_request(v, group, ids[s], 1))
    for v in versions("Heartbeat"):
        heartbeat(pair, v, group, ids, 1)
        heartbeat(pair, v, group, ids, 2)
        heartbeat(pair, v, group, ("nobody", "nobody"), 1)
        heartbeat(pair, v, "no-such-group", ids, 1)
        heartbeat(pair, v, "", ids, 1)
    describe(pair, group)
    pair.both("JoinGroup", version, lambda s: join_request(version, group, ids[s]))
    heartbeat(pair, 4, group, ids, 1)
    heartbeat(pair, 4, group, ids, 2)
    leave(pair, min(5, version), group, (ids, None))
    leave(pair, min(5, version), group, (ids, None))
    describe(pair, group)
    assert pair.errors("Heartbeat") == {"ILLEGAL_GENERATION", "INVALID_GROUP_ID", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("SyncGroup") == {"ILLEGAL_GENERATION", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("LeaveGroup") == {"NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}


def test_joins_that_are_refused(pair: Pair) -> None:
    more: dict[str, Any]
    for version in versions("JoinGroup"):
        for more in (
            {"session": 5_999},
            {"session": 1_800_001},
            {"session": -1},
            {"kind": ""},
            {"member_id": "nobody"},
        ):
            pair.both("JoinGroup", version, lambda s: join_request(version, f"refused-{version}", **more))
        pair.both("JoinGroup", version, lambda s: join_request(version, ""))
        empty = join_request(version, f"refused-{version}")
        empty.protocols = []
        pair.ask("JoinGroup", version, empty)
        pair.both("JoinGroup", version, lambda s: join_request(version, f"refused-{version}", "nobody"))
    ids = stable(pair, "settled")
    other = pair.beside("other")
    for version in versions("JoinGroup"):
        for more in ({"kind": "connect"}, {"protocols": [("sticky", b"")]}, {"member_id": "nobody"}):
            other.both("JoinGroup", version, lambda s: join_request(version, "settled", **more))
        if version >= 5:
            other.both("JoinGroup", version, lambda s: join_request(version, "settled", ids[s], instance="i"))
    other.close()
    assert pair.errors("JoinGroup") == {
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "INVALID_SESSION_TIMEOUT",
        "MEMBER_ID_REQUIRED",
        "NONE",
        "UNKNOWN_MEMBER_ID",
    }


def test_joins_of_members_that_are_not_what_they_were(pair: Pair) -> None:
    """A pending member that has become a static one, a member of another type or with other protocols, one of a group
    that does not exist.
    """
    for version in versions("JoinGroup"):
        pair.both("JoinGroup", version, lambda s: join_request(version, f"unheard-{version}", "nobody"))
        if version >= 5:
            pair.both(
                "JoinGroup", version, lambda s: join_request(version, f"unheard-{version}", "nobody", instance="i")
            )
            mine, other = pair.both("JoinGroup", version, lambda s: join_request(version, f"pending-{version}"))
            ids = (mine.member_id, other.member_id)
            pair.both("JoinGroup", version, lambda s: join_request(version, f"pending-{version}", ids[s], instance="i"))
        group = f"changing-{version}"
        member = stable(pair, group, version)
        pair.both("JoinGroup", version, lambda s: join_request(version, group, member[s], kind="connect"))
        beside = pair.beside("beside")
        beside.both(
            "JoinGroup",
            version,
            lambda s: join_request(version, group, member[s], kind="connect", protocols=[("sticky", b"")]),
        )
        beside.close()
    assert pair.errors("JoinGroup") == {
        "INCONSISTENT_GROUP_PROTOCOL",
        "MEMBER_ID_REQUIRED",
        "NONE",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_SERVER_ERROR",
    }


def test_two_members_and_a_rebalance(pair: Pair) -> None:
    group = "two"
    second = pair.beside("second")
    first_ids = stable(pair, group, protocols=[("range", subscription("cg")), ("sticky", b"s1")])
    mine, theirs = second.both(
        "JoinGroup", 9, lambda s: join_request(9, group, protocols=[("sticky", b"s2"), ("range", b"r2")])
    )
    second_ids = (mine.member_id, theirs.member_id)
    second.say(
        "JoinGroup", 9, lambda s: join_request(9, group, second_ids[s], protocols=[("sticky", b"s2"), ("range", b"r2")])
    )
    third = pair.beside("third")
    third.until(
        "DescribeGroups",
        5,
        m.DescribeGroupsRequest(groups=[group]),
        lambda r: r.groups[0].group_state == "PreparingRebalance",
    )
    heartbeat(third, 4, group, first_ids, 1)
    describe(third, group)
    pair.both("SyncGroup", 5, lambda s: sync_request(5, group, first_ids[s], 1))
    pair.say(
        "JoinGroup", 9, lambda s: join_request(9, group, first_ids[s], protocols=[("range", b"r1"), ("sticky", b"s1")])
    )
    pair.hear("JoinGroup", 9)
    second.hear("JoinGroup", 9)
    describe(third, group)
    second.say("SyncGroup", 5, lambda s: sync_request(5, group, second_ids[s], 2))
    pair.both(
        "SyncGroup", 5, lambda s: sync_request(5, group, first_ids[s], 2, {first_ids[s]: b"one", second_ids[s]: b"two"})
    )
    second.hear("SyncGroup", 5)
    describe(third, group)
    leave(third, 5, group, (second_ids, None), (first_ids, None), (("x", "x"), None))
    describe(third, group)
    for one in (second, third):
        one.close()
    assert pair.errors("SyncGroup") == {"INCONSISTENT_GROUP_PROTOCOL", "NONE", "REBALANCE_IN_PROGRESS"}
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}
    assert pair.errors("LeaveGroup") == {"NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}


def test_static_members(pair: Pair) -> None:
    for version in range(5, 10):
        group = f"static-{version}"
        ids = stable(pair, group, version, instance="i1")
        heartbeat(pair, 4, group, ids, 1, "i1")
        heartbeat(pair, 4, group, ids, 1, "i2")
        heartbeat(pair, 4, group, ("x", "x"), 1, "i1")
        again = pair.both("JoinGroup", version, lambda s: join_request(version, group, instance="i1"))
        new = (again[0].member_id, again[1].member_id)
        heartbeat(pair, 4, group, ids, 1, "i1")
        heartbeat(pair, 4, group, new, 1, "i1")
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, new[s], 1, instance="i1"))
        pair.both("SyncGroup", 5, lambda s: sync_request(5, group, ids[s], 1, instance="i1"))
        describe(pair, group)
        leave(pair, 5, group, (("", ""), "i2"), (("x", "x"), "i1"))
        leave(pair, 5, group, (("", ""), "i1"))
        describe(pair, group)
    assert pair.errors("Heartbeat") == {"FENCED_INSTANCE_ID", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("LeaveGroup") == {"FENCED_INSTANCE_ID", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("SyncGroup") == {"FENCED_INSTANCE_ID", "NONE"}
    assert pair.errors("ConsumerGroupDescribe") == {"GROUP_ID_NOT_FOUND"}


def test_leaving(pair: Pair) -> None:
    for version in versions("LeaveGroup"):
        leave(pair, version, "no-such-group", (("x", "x"), None))
        leave(pair, version, "", (("x", "x"), None))
        ids = stable(pair, f"leaving-{version}")
        leave(pair, version, f"leaving-{version}", (("x", "x"), None))
        leave(pair, version, f"leaving-{version}", (ids, None))
    assert pair.errors("LeaveGroup") == {"INVALID_GROUP_ID", "NONE", "UNKNOWN_MEMBER_ID"}
    assert pair.errors("JoinGroup") == {"MEMBER_ID_REQUIRED", "NONE"}
