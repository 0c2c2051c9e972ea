"""Holds of single requests and replies: what is held, how it is shown, and in which order it goes on."""

from __future__ import annotations

from typing import Any

import pytest
from ottla.protocol import messages as m
from ottla.protocol.errors import Errors

from ..support.ask import batch, fetch_message, produce_message
from ..support.connected import Client, ConnectedWorld
from ..support.lab import LabWorld
from ..support.topic_world import create

GROUPS = "ListGroups", 4, m.ListGroupsRequest()
METADATA = "Metadata", 12, m.MetadataRequest(topics=[])


class Holding:
    """A broker with its lab and two clients."""

    def __init__(self) -> None:
        self.world = ConnectedWorld()
        self.lab = LabWorld(self.world)
        self.one, self.other = self.world.connect(), self.world.connect()

    def hold(self, **asked: Any) -> int:
        number: int = self.lab.ask("POST /v1/requests/holds", **asked)["number"]
        return number

    def held(self) -> list[Any]:
        found: list[Any] = self.lab.ask("GET /v1/requests")["requests"]
        return found

    def release(self, **asked: Any) -> list[int]:
        found: list[int] = self.lab.ask("POST /v1/requests/release", **asked)["released"]
        self.world.pass_ms(0)
        return found


@pytest.mark.parametrize("at", ["request", "reply"])
def test_what_is_held_is_shown_and_goes_on_in_any_order(at: str) -> None:
    holding = Holding()
    holding.hold(api="ListGroups", at=at)
    holding.one.send(*METADATA)
    clients = [holding.world.connect() for _ in range(4)]
    for client in clients:
        client.send(*GROUPS)
    assert holding.one.ids == [1]
    assert [one["number"] for one in holding.held()] == [1, 2, 3, 4]
    assert holding.release(requests=[3, 1]) == [3, 1]
    assert [client.ids for client in clients] == [[1], [], [1], []]
    assert holding.release(count=1) == [2]
    assert holding.release() == [4]
    assert [client.ids for client in clients] == [[1]] * 4
    assert holding.held() == []
    assert holding.world.seam.waiting == 0


def test_a_hold_of_a_listener_that_does_not_exist_is_refused() -> None:
    refused = Holding().lab.refused("POST /v1/requests/holds", {"listener": "plain*"})
    assert refused == (400, "listener: no listener 'plain*' (there are PLAINTEXT)")


def test_requests_are_handled_in_the_order_of_their_release() -> None:
    holding = Holding()
    create(holding.world, "t")
    holding.hold(api="Produce")
    for client, value in ((holding.one, b"first"), (holding.other, b"second")):
        client.send("Produce", 9, produce_message("t", batch(value)))
    holding.release(requests=[2, 1])
    offsets = [c.reply(1).responses[0].partition_responses[0].base_offset for c in (holding.one, holding.other)]
    assert offsets == [1, 0]


def test_a_held_request_as_it_is_shown() -> None:
    holding = Holding()
    holding.hold(group="g")
    holding.one.send("Heartbeat", 4, m.HeartbeatRequest(group_id="g", generation_id=7, member_id="m"))
    holding.world.pass_ms(1500)
    (found,) = holding.held()
    assert found | {"request": None} == {
        "number": 1,
        "hold": 1,
        "at": "request",
        "waiting_ms": 1500,
        "connection": 1,
        "client": "127.0.0.1:1",
        "client_id": "client",
        "principal": "User:ANONYMOUS",
        "listener": "PLAINTEXT",
        "api": "Heartbeat",
        "version": 4,
        "correlation_id": 1,
        "request": None,
        "reply": None,
    }
    assert found["request"] == {"group_id": "g", "generation_id": 7, "member_id": "m", "group_instance_id": None}


def test_a_held_reply_as_it_is_shown() -> None:
    holding = Holding()
    create(holding.world, "t")
    holding.one.ask("Produce", 9, produce_message("t", batch(b"value")))
    holding.hold(api="Fetch", topic="t", at="reply")
    holding.one.send("Fetch", 11, fetch_message("t", 0))
    (found,) = holding.held()
    (partition,) = found["reply"]["responses"][0]["partitions"]
    assert partition["high_watermark"] == 1
    assert partition["records"].endswith("bytes of records>")


def test_secrets_are_masked() -> None:
    holding = Holding()
    holding.hold(api="AlterUserScramCredentials")
    r = m.AlterUserScramCredentialsRequest
    secret = r.ScramCredentialUpsertion(name="a", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"secret")
    holding.one.send("AlterUserScramCredentials", 0, r(upsertions=[secret]))
    (found,) = holding.held()
    assert found["request"]["upsertions"][0]["salted_password"] == "***"


def test_a_connection_that_ends_takes_its_own_with_it() -> None:
    holding = Holding()
    holding.hold(api="ListGroups")
    holding.hold(api="Metadata", at="reply")
    holding.one.send(*GROUPS)
    holding.other.send(*METADATA)
    assert len(holding.held()) == 2
    holding.one.lose()
    holding.other.lose()
    assert holding.held() == []
    assert holding.lab.refused("POST /v1/requests/release", {"requests": [1]}) == (404, "no request 1 is held")


@pytest.mark.parametrize("at", ["request", "reply"])
def test_connections_can_be_closed_instead(at: str) -> None:
    holding = Holding()
    holding.hold(api="ListGroups", at=at)
    holding.one.send(*GROUPS)
    holding.release(then="close")
    assert holding.one.closed
    assert holding.one.ids == []


def test_how_many_are_held() -> None:
    holding = Holding()
    number = holding.hold(api="ListGroups", every=2, times=1)
    for _ in range(3):
        holding.one.send(*GROUPS)
    holding.other.send(*GROUPS)
    assert (holding.one.ids, holding.other.ids) == ([1], [1])
    assert [one["correlation_id"] for one in holding.held()] == [2]
    assert holding.lab.ask("GET /v1/requests/holds")["holds"] == [
        {"number": number, "asked": {"api": "ListGroups", "every": 2, "times": 1}, "held": 1, "waiting": 1}
    ]
    holding.lab.ask(f"DELETE /v1/requests/holds/{number}")
    holding.world.pass_ms(0)
    assert holding.one.ids == [1, 2, 3]
    assert holding.world.dispatcher.seam is None


def test_the_list_waits_for_requests() -> None:
    holding = Holding()
    holding.hold(api="ListGroups")

    def send() -> None:
        holding.one.send(*GROUPS)

    holding.world.schedule.later(50, send)
    status, found = holding.lab.reply("GET /v1/requests", query="at_least=1&within=5s")
    assert (status, len(found["requests"])) == (200, 1)
    words = "1 of 2 requests are held after 500 ms"
    assert holding.lab.refused("GET /v1/requests", query="at_least=2&within=500ms") == (409, words)


# a race in a rebalance


JOIN = m.JoinGroupRequest
PROTOCOL = JOIN.JoinGroupRequestProtocol(name="range", metadata=b"")


def joining(member_id: str = "") -> tuple[str, int, Any]:
    message = JOIN(
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[PROTOCOL],
    )
    return "JoinGroup", 3, message


def syncing(joined: Any, *assigned: str) -> tuple[str, int, Any]:
    r = m.SyncGroupRequest
    assignments = [r.SyncGroupRequestAssignment(member_id=one, assignment=b"all") for one in assigned]
    message = r(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments)
    return "SyncGroup", 3, message


def test_a_member_joins_while_the_leader_syncs() -> None:
    """The leader's SyncGroup arrives after another member has begun a rebalance: the leader has to join again."""
    holding = Holding()
    leader, late = holding.one, holding.other
    leader.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    holding.world.pass_ms(1000)
    first = leader.ask(*joining())
    assert first.leader == first.member_id
    holding.hold(api="SyncGroup", group="g", member=first.member_id, times=1)
    sync = leader.send(*syncing(first, first.member_id))
    join = late.send(*joining())
    holding.world.pass_ms(100)
    assert (leader.ids.count(sync), late.ids) == (0, [])
    holding.release()
    assert leader.reply(sync).error_code == Errors.REBALANCE_IN_PROGRESS
    again = leader.ask(*joining(first.member_id))
    assert again.generation_id == late.reply(join).generation_id == first.generation_id + 1
    assert len(again.members) == 2


def test_without_the_hold_the_leader_gets_its_assignment() -> None:
    holding = Holding()
    leader: Client = holding.one
    leader.ask("FindCoordinator", 4, m.FindCoordinatorRequest(coordinator_keys=["g"]))
    holding.world.pass_ms(1000)
    first = leader.ask(*joining())
    assert leader.ask(*syncing(first, first.member_id)).assignment == b"all"
