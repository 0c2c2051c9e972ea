"""Crowds: very many groups, and groups of very many members, that do what groups do all at the same time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice

from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.poll import until
from ..support.wire import Wire, request_frame
from .harness import Site, attack

STORM, ROUNDS = 500, 3
MANY = 10_000
AHEAD = 200
"""Requests that one connection sends before it reads replies."""


@attack(hold_ms_max=30, memory_mib_max=120, settings={"group.initial.rebalance.delay.ms": 500})
def five_hundred_members_join_at_once(site: Site) -> None:
    """Members of a classic group, each on its own connection; one leaves, and all of them join again."""
    j, s = m.JoinGroupRequest, m.SyncGroupRequest
    protocol = j.JoinGroupRequestProtocol(name="range", metadata=b"m" * 100)

    def joining(member: str) -> m.JoinGroupRequest:
        return j(
            group_id="storm",
            session_timeout_ms=300_000,
            rebalance_timeout_ms=300_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[protocol],
        )

    with ExitStack() as stack:
        wires = [stack.enter_context(site.wire()) for _ in range(STORM)]
        wires[0].ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["storm"]))
        members = [wire.ask("JoinGroup", 9, joining("")).member_id for wire in wires]
        for round_ in range(ROUNDS):
            for wire, member in zip(wires, members, strict=True):
                wire.say("JoinGroup", 9, joining(member))
            joined = [wire.reply("JoinGroup", 9) for wire in wires]
            assert {reply.error_code for reply in joined} == {0}
            assert max(len(reply.members) for reply in joined) == len(wires)
            for wire, reply in zip(wires, joined, strict=True):
                parts = [
                    s.SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"a" * 100)
                    for one in reply.members
                ]
                sync = s(group_id="storm", generation_id=reply.generation_id, member_id=reply.member_id)
                sync.protocol_type, sync.protocol_name, sync.assignments = "consumer", "range", parts
                wire.say("SyncGroup", 5, sync)
            assert {wire.reply("SyncGroup", 5).error_code for wire in wires} == {0}
            described = wires[0].ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=["storm"])).groups[0]
            assert len(described.members) == len(wires)
            leave = m.LeaveGroupRequest(group_id="storm")
            leave.members = [m.LeaveGroupRequest.MemberIdentity(member_id=members.pop())]
            wires.pop().ask("LeaveGroup", 5, leave)
            site.note(f"round {round_}: {len(described.members)} members")


def _pipelined(wire: Wire, name: str, version: int, requests: Iterator[bytes]) -> set[int]:
    """Returns the errors of the replies."""
    errors = set()
    while some := list(islice(requests, AHEAD)):
        wire.send(b"".join(some))
        errors |= {wire.reply(name, version).error_code for _ in some}
    return errors


def _beat(group: str, member: str, epoch: int, **more: object) -> bytes:
    request = m.ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=epoch)
    for name, value in more.items():
        setattr(request, name, value)
    return request_frame("ConsumerGroupHeartbeat", 1, request)


JOIN: dict[str, object] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["none"], "topic_partitions": []}


@attack(
    hold_ms_max=20,
    memory_mib_max=250,
    settings={
        "group.consumer.max.size": MANY,
        "group.consumer.assignment.interval.ms": 15_000,
        "group.consumer.max.session.timeout.ms": 600_000,
        "group.consumer.session.timeout.ms": 600_000,
    },
)
def ten_thousand_members_beat(site: Site) -> None:
    """One group of ten thousand members; each tells the broker that it is there, again and again."""
    with site.wire() as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=["large"]))
        join = (_beat("large", f"member-{n}", 0, **JOIN) for n in range(MANY))
        assert _pipelined(wire, "ConsumerGroupHeartbeat", 1, join) == {0}
        began = time.perf_counter()
        for _ in range(ROUNDS):
            beats = (_beat("large", f"member-{n}", n + 1) for n in range(MANY))
            assert _pipelined(wire, "ConsumerGroupHeartbeat", 1, beats) <= {0, Errors.FENCED_MEMBER_EPOCH}
        site.note(f"{ROUNDS * MANY / (time.perf_counter() - began):.0f} heartbeats/s")
        describe = m.ConsumerGroupDescribeRequest(group_ids=["large"])
        (group,) = wire.ask("ConsumerGroupDescribe", 1, describe).groups
        assert len(group.members) == MANY


SESSION_MS = 15_000


@attack(
    hold_ms_max=20,
    memory_mib_max=250,
    settings={
        "group.consumer.min.session.timeout.ms": SESSION_MS,
        "group.consumer.session.timeout.ms": SESSION_MS,
        "group.consumer.min.heartbeat.interval.ms": 1000,
        "group.consumer.heartbeat.interval.ms": 1000,
    },
)
def ten_thousand_groups_come_and_go(site: Site) -> None:
    """Groups of one member each; all are listed and described in one request, and all their sessions end."""
    names = [f"group-{n}" for n in range(MANY)]
    with site.wire() as wire:
        wire.ask("FindCoordinator", 4, m.FindCoordinatorRequest(key_type=0, coordinator_keys=names[:1]))
        join = (_beat(name, "member", 0, **JOIN) for name in names)
        assert _pipelined(wire, "ConsumerGroupHeartbeat", 1, join) == {0}
        for asked in (m.ListGroupsRequest(), m.ListGroupsRequest(states_filter=["Stable"])):
            assert len(wire.ask("ListGroups", 5, asked).groups) == MANY
        described = wire.ask("ConsumerGroupDescribe", 1, m.ConsumerGroupDescribeRequest(group_ids=names)).groups
        assert {len(group.members) for group in described} == {1}
        classic = wire.ask("DescribeGroups", 5, m.DescribeGroupsRequest(groups=names)).groups
        assert len(classic) == MANY
        empty = m.ListGroupsRequest(states_filter=["Empty"])
        until(lambda: len(wire.ask("ListGroups", 5, empty).groups) == MANY, "all sessions end", 60, 0.1)
        for at in range(0, MANY, 1000):
            deleted = wire.ask("DeleteGroups", 2, m.DeleteGroupsRequest(groups_names=names[at : at + 1000])).results
            assert {one.error_code for one in deleted} == {0}
