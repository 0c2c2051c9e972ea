"""`ottla compare` with groups of several members: classic groups, groups of KIP-848 and share groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, cast

import pytest
from confluent_kafka import Consumer
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ottla.lab_faults import RequestHold
from ottla.testing import Broker

from ..support import compared_work
from ..support.compared import Compared, assert_same, compared
from ..support.poll import until
from ..support.wire import Wire

pytestmark = pytest.mark.slow
SETTINGS: dict[str, object] = {
    "ottla.group.settle": False,
    "group.initial.rebalance.delay.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 300,
}


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Broker, Broker]]:
    with Broker(SETTINGS) as a, Broker(SETTINGS) as b:
        yield a, b


@pytest.fixture
def proxy(pair: tuple[Broker, Broker]) -> Iterator[Compared]:
    with compared(*(one.bootstrap_servers for one in pair), "--timeout", "10") as found:
        yield found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_share_partitions(proxy: Compared, protocol: str) -> None:
    compared_work.share_partitions(proxy.bootstrap_servers, protocol)
    proxy.end()
    assert_same(proxy, "JoinGroup" if protocol == "classic" else "ConsumerGroupHeartbeat", "OffsetCommit")


def test_members_of_a_share_group_get_the_same_records(proxy: Compared) -> None:
    compared_work.share_records(proxy.bootstrap_servers)
    proxy.end()
    assert_same(proxy, "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge")


def test_another_record_of_b_is_found(pair: tuple[Broker, Broker]) -> None:
    """Someone writes to B beside the proxy."""
    a, b = (one.bootstrap_servers for one in pair)
    compared_work.prepare(a, b, "planted")
    with compared(a, b, "--timeout", "10") as proxy:
        compared_work.take(proxy.bootstrap_servers, "planted")
        proxy.end()
    assert proxy.code == 1, proxy.events
    paths = {path.rpartition(".")[2] for api, path in proxy.differences if api == "ShareFetch"}
    assert (proxy.code, paths) == (1, {"value"})


def state(broker: Broker, group: str) -> str:
    return "".join(one["state"] for one in broker.lab.get("groups")["groups"] if one["group"] == group)


class Member:
    """A member of a classic group, over a socket."""

    def __init__(self, servers: str, group: str, name: str = "other") -> None:
        self.wire = Wire(servers, client_id=name)
        self.group = group
        self.id = ""
        asked = m.FindCoordinatorRequest(coordinator_keys=[group])
        until(lambda: self.wire.ask("FindCoordinator", 4, asked).coordinators[0].error_code == 0, "a coordinator")
        self.join()
        found = self.joined()
        assert found.error_code == Errors.MEMBER_ID_REQUIRED
        self.id = found.member_id

    def join(self) -> None:
        r = m.JoinGroupRequest
        asked = r(group_id=self.group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, member_id=self.id)
        asked.protocol_type, asked.protocols = "consumer", [r.JoinGroupRequestProtocol(name="range", metadata=b"m")]
        self.wire.say("JoinGroup", 5, asked)

    def joined(self) -> Any:
        return self.wire.reply("JoinGroup", 5)

    def sync(self, generation: int, *assigned: str) -> None:
        """Each of the members is assigned its own id."""
        r = m.SyncGroupRequest
        asked = r(group_id=self.group, generation_id=generation, member_id=self.id)
        asked.assignments = [r.SyncGroupRequestAssignment(member_id=one, assignment=one.encode()) for one in assigned]
        self.wire.say("SyncGroup", 3, asked)

    def synced(self) -> Any:
        return self.wire.reply("SyncGroup", 3)

    def close(self) -> None:
        self.wire.close()


def joined(a: Broker, *of: Member) -> list[Any]:
    """The members join A in their order; returns the replies."""
    with a.lab.hold_requests(api="JoinGroup", group=of[0].group) as hold:
        for one in of:
            one.join()
        hold.release(*held(hold, len(of)))
    return [one.joined() for one in of]


def held(hold: RequestHold, count: int) -> list[int]:
    """The numbers of requests that are held, in the order of the names of their clients. Those of members without an id
    go on: B may get them only now.
    """

    def named() -> list[Any]:
        found = [cast(dict[str, Any], one) for one in hold.held()]
        first = [one["number"] for one in found if not one["request"]["member_id"]]
        if first:
            hold.release(*first)
        rest = [one for one in found if one["request"]["member_id"]]
        return rest if len(rest) == count else []

    return [one["number"] for one in sorted(until(named, "the members"), key=lambda one: one["client_id"])]


@pytest.fixture
def two(proxy: Compared, request: pytest.FixtureRequest) -> Iterator[list[Member]]:
    found = [Member(proxy.bootstrap_servers, request.node.name, name) for name in ("first", "second")]
    yield found
    for one in found:
        one.close()


def test_another_member_leads_at_b(pair: tuple[Broker, Broker], proxy: Compared, two: list[Member]) -> None:
    """It assigns there what A's leader has assigned."""
    a, b = pair
    with b.lab.hold_requests(api="JoinGroup", group=two[0].group) as hold:
        replies = joined(a, *two)
        hold.release(*reversed(held(hold, 2)))
    ids = [one.id for one in two]
    assert [one.leader for one in replies] == [ids[0], ids[0]]
    two[1].sync(1)
    two[0].sync(1, *ids)
    assert [one.synced().assignment.decode() for one in two] == ids
    proxy.end()
    assert_same(proxy, "JoinGroup", "SyncGroup")


def test_b_completes_a_generation_before_all_have_joined(
    pair: tuple[Broker, Broker], proxy: Compared, two: list[Member]
) -> None:
    """Those who have joined B join it again when the last one does."""
    a, b = pair
    with b.lab.hold_requests(api="JoinGroup", group=two[0].group) as hold:
        joined(a, *two)
        hold.release(held(hold, 2)[0])
        until(lambda: state(b, two[0].group) == "CompletingRebalance", "a generation of one member")
    two[1].sync(1)
    two[0].sync(1, *(one.id for one in two))
    assert [one.synced().assignment.decode() for one in two] == [one.id for one in two]
    proxy.end()
    assert_same(proxy, "JoinGroup", "SyncGroup")
    assert proxy.summary["asked_again"]["JoinGroup"] >= 1


def test_a_member_that_only_b_has_is_found(pair: tuple[Broker, Broker], proxy: Compared, two: list[Member]) -> None:
    a, b = pair
    with closing(Member(b.bootstrap_servers, two[0].group)) as third:
        with b.lab.hold_requests(api="JoinGroup", group=third.group) as hold:
            third.join()
            joined(a, *two)
            hold.release(*held(hold, 3))
        proxy.await_difference("JoinGroup", f"members[{third.id}]")


def test_a_rebalance_of_b_that_nothing_explains_is_found(
    pair: tuple[Broker, Broker], proxy: Compared, two: list[Member]
) -> None:
    a, b = pair
    with b.lab.fault("error", error="REBALANCE_IN_PROGRESS", api="SyncGroup", group=two[0].group):
        joined(a, *two)
        two[1].sync(1)
        two[0].sync(1, *(one.id for one in two))
        assert [one.synced().error_code for one in two] == [0, 0]
        proxy.await_difference("SyncGroup", "error_code")


def test_a_member_that_gets_less_at_b_is_found(pair: tuple[Broker, Broker], proxy: Compared) -> None:
    """A consumer of B, beside the proxy, has half of the partitions."""
    name = "less"
    compared_work.filled(proxy.bootstrap_servers, name, 6)
    beside, one = (
        Consumer({"bootstrap.servers": servers, "log_level": 2, "group.id": name, "group.protocol": "consumer"})
        for servers in (pair[1].bootstrap_servers, proxy.bootstrap_servers)
    )
    beside.subscribe([name])
    until(lambda: beside.poll(0.1) is not None or len(beside.assignment()) == 6, "all partitions of B")
    one.subscribe([name])

    def is_found() -> bool:
        for consumer in (one, beside):
            consumer.poll(0.05)
        return ("ConsumerGroupHeartbeat", "assignment") in proxy.differences

    until(is_found, "the difference")
    for consumer in (one, beside):
        consumer.close()
